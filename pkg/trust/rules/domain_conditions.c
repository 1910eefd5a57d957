/* The conditions of a domain: one sentence each for a person. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strmap.h"
#include "base/strings.h"
#include "pki/expiry_notice.h"

/* Objects that are named in one message. */
enum { SHOWN = 5 };
enum { NOTICE_MAX_MS = 7 * 24 * 3600 * 1000 };

static void set(struct domain_ctx *ctx, const char *type, bool value, const char *reason, const char *message)
{
    cr_domain_status_condition(&ctx->plan->status, type, value, reason, message, ctx->world->domain->generation,
                               ctx->world->now_ms - ctx->world->now_ms % 1000);
}

/* A message of many lines, of which some are named and the others counted. */
struct lines {
    struct cr_buf text;
    size_t len;
};

/* Takes line. */
static void add_line(struct lines *lines, char *line)
{
    if (lines->len++ < SHOWN)
        cr_buf_printf(&lines->text, "%s%s", lines->text.len ? "; " : "", line);
    free(line);
}

static const char *lines_text(struct lines *lines)
{
    if (lines->len > SHOWN)
        cr_buf_printf(&lines->text, "; and %zu more", lines->len - SHOWN);
    return cr_buf_text(&lines->text);
}

/* --- each --- */

/* Owned; "": all that are selected have consented. */
static char *say_without_consent(const struct cr_strvec *selected)
{
    struct lines names = {0};
    for (size_t i = 0; selected && i < selected->len; i++)
        if (!i || strcmp(selected->items[i], selected->items[i - 1]) != 0)
            add_line(&names, cr_strdup(selected->items[i]));
    char *text = names.len ? cr_asprintf(" Selected namespaces that have not consented get nothing (annotation "
                                         "certroll.dev/trust-domains); there are %zu: %s.",
                                         names.len, lines_text(&names))
                           : cr_strdup("");
    cr_buf_dispose(&names.text);
    return text;
}

/* Owned. */
static char *say_beyond(const struct cr_domain_world *world)
{
    const struct cr_domain_beyond *beyond = &world->beyond;
    cr_autofree char *more = beyond->objects > 1 ? cr_asprintf(" and %zu more", beyond->objects - 1) : cr_strdup("");
    return cr_asprintf("%zu objects belong to this domain and %zu are in force, first those on its record; %s%s get "
                       "nothing: let namespaceSelector match fewer namespaces, or make several domains.",
                       world->objects_len + beyond->objects, world->objects_len, beyond->example, more);
}

static void ready(struct domain_ctx *ctx)
{
    if (ctx->world->domain->suspend) {
        set(ctx, "Ready", false, "Suspended", "spec.suspend is true: nothing is written.");
        return;
    }
    bool all = !ctx->world->beyond.objects;
    cr_autofree char *without_consent = say_without_consent(ctx->world->without_consent);
    cr_autofree char *sentence = all ? cr_strdup("The domain is valid and in force.") : say_beyond(ctx->world);
    cr_autofree char *text = cr_asprintf("%s%s", sentence, without_consent);
    set(ctx, "Ready", all, all ? "Accepted" : CR_DOMAIN_TOO_MANY_OBJECTS, text);
}

static void rotating(struct domain_ctx *ctx)
{
    const struct cr_domain_status *status = &ctx->plan->status;
    if (!*status->rotation) {
        set(ctx, "Rotating", false, "Idle", "Nothing is under way.");
        return;
    }
    enum cr_stage stage = status->stage == CR_STAGE_HELD ? status->held_stage : status->stage;
    cr_autofree char *text =
        cr_asprintf("Rotation %s (%s) is %s.", status->rotation, cr_or_empty(status->what), cr_stage_name(stage));
    set(ctx, "Rotating", true, cr_stage_name(stage), text);
}

static void add_waiting(const struct domain_ctx *ctx, struct lines *lines)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const char *waits_for = ctx->plan->status.objects[i].waits_for;
        if (!waits_for)
            continue;
        cr_autofree char *title = cr_domain_object_title(&ctx->world->objects[i]);
        add_line(lines, cr_asprintf("%s: %s", title, waits_for));
    }
}

/* Objects whose trust, or with_leaves whose leaf, is not observed. */
static size_t count_inferred(const struct cr_domain_status *status, bool with_leaves)
{
    size_t inferred = 0;
    for (size_t i = 0; i < status->objects_len; i++)
        inferred += status->objects[i].trust_evidence == CR_ARRIVAL_INFERRED ||
                    (with_leaves && status->objects[i].leaf_evidence == CR_ARRIVAL_INFERRED);
    return inferred;
}

static bool is_published(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (!cr_domain_is_there(ctx, i))
            return false;
    return true;
}

/* Objects that are not written as they should be, or that another program writes as well. The reason of the first. */
static enum cr_trust_reason add_problems(const struct domain_ctx *ctx, bool with_contested, struct lines *lines)
{
    enum cr_trust_reason first = CR_TRUST_FINE;
    for (size_t i = 0; i < ctx->plan->status.objects_len; i++) {
        const struct cr_domain_object_status *object = &ctx->plan->status.objects[i];
        if (!object->problem || (!with_contested && cr_domain_is_contested(ctx, i)))
            continue;
        first = first ? first : object->problem;
        cr_autofree char *title = cr_domain_object_title(&ctx->world->objects[i]);
        add_line(lines, cr_asprintf("%s (%s): %s", title, cr_trust_reason_name(object->problem),
                                    cr_or_empty(object->problem_message)));
    }
    return first;
}

/* What a person has to mend comes first: what is only under way ends by itself. */
static void converged(struct domain_ctx *ctx)
{
    struct lines lines = {0};
    enum cr_trust_reason problem = add_problems(ctx, false, &lines);
    add_waiting(ctx, &lines);
    size_t inferred = count_inferred(&ctx->plan->status, true);
    size_t objects = ctx->world->objects_len;
    bool pending = ctx->plan->writes_len || ctx->plan->stage_next_ca || ctx->plan->first_ca;
    if (lines.len)
        set(ctx, "Converged", false, problem ? cr_trust_reason_name(problem) : "RotationInProgress",
            lines_text(&lines));
    else if (pending || !is_published(ctx))
        set(ctx, "Converged", false, "NotPublished", "Not everything is published yet.");
    else if (ctx->world->beyond.objects)
        set(ctx, "Converged", false, CR_DOMAIN_TOO_MANY_OBJECTS,
            "Every consumer has what is published; the condition Ready says what is not.");
    else if (!objects)
        set(ctx, "Converged", false, "NotPublished",
            "Nothing is published: the spec names no object, or namespaceSelector matches no namespace that consents "
            "(annotation certroll.dev/trust-domains).");
    else if (inferred) {
        cr_autofree char *text = cr_asprintf("Every consumer has what is published. Of %zu of %zu objects that is "
                                             "inferred from pod starts, reload delays or time, not observed.",
                                             inferred, objects);
        set(ctx, "Converged", true, "Inferred", text);
    } else
        set(ctx, "Converged", true, "Verified", "Every consumer has what is published, and was seen to have it.");
    cr_buf_dispose(&lines.text);
}

static void held(struct domain_ctx *ctx)
{
    if (ctx->plan->status.stage != CR_STAGE_HELD) {
        set(ctx, "Held", false, "NotHeld", "Nothing is held.");
        return;
    }
    struct lines lines = {0};
    add_waiting(ctx, &lines);
    if (ctx->failed)
        set(ctx, "Held", true, "ConsumerFailed", lines_text(&lines));
    else if (!lines.len && ctx->is_put_back)
        set(ctx, "Held", true, CR_DOMAIN_PUT_BACK,
            "The previous leaves are back. What they replace is published again when its source or spec.rotate "
            "changes.");
    else
        set(ctx, "Held", true, "DeadlinePassed", lines_text(&lines));
    cr_buf_dispose(&lines.text);
}

/* --- what is refused --- */

static void add_authority(const struct domain_ctx *ctx, struct lines *lines, const char **reason)
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    const char *secret = cr_or_empty(ctx->world->domain->ca.ca_secret);
    if (ctx->world->domain->authority != CR_AUTHORITY_ISSUE)
        return;
    if (authority->current == CR_DOMAIN_CA_BROKEN) {
        *reason = "CABroken";
        add_line(lines, cr_asprintf("the CA in Secret %s cannot be used: %s", secret,
                                    cr_or_empty(authority->current_problem)));
    }
    if (authority->next == CR_DOMAIN_CA_BROKEN) {
        *reason = *reason ? *reason : "NextCABroken";
        add_line(lines, cr_asprintf("the next CA, which is staged, cannot be used: %s; delete the staging Secret to "
                                    "have another one made",
                                    cr_or_empty(authority->next_problem)));
    }
    if (ctx->renewal_refused) {
        *reason = *reason ? *reason : "CANotOurs";
        add_line(lines, cr_asprintf("another CA is needed: %s", authority->cannot_renew));
    }
    if (authority->cannot_cross_sign) {
        *reason = *reason ? *reason : "CannotCrossSign";
        add_line(lines, cr_asprintf("the next CA is not cross-signed, trust goes first instead: %s",
                                    authority->cannot_cross_sign));
    }
}

static void degraded(struct domain_ctx *ctx)
{
    const char *reason = NULL;
    struct lines lines = {0};
    add_authority(ctx, &lines, &reason);
    enum cr_trust_reason problem = add_problems(ctx, true, &lines);
    if (problem && !reason)
        reason = cr_trust_reason_name(problem);
    if (reason)
        set(ctx, "Degraded", true, reason, lines_text(&lines));
    else
        set(ctx, "Degraded", false, "AsExpected", "Nothing is refused.");
    cr_buf_dispose(&lines.text);
}

/* --- what ends --- */

static bool has_ended(const struct domain_ctx *ctx, int64_t not_after_ms)
{
    return not_after_ms < ctx->world->now_ms;
}

/* In the last sixth of its life, at most seven days before the end: renewal is far earlier. */
static bool ends_soon(struct domain_ctx *ctx, int64_t not_before_ms, int64_t not_after_ms)
{
    int64_t notice_ms = cr_expiry_notice_ms(not_before_ms, not_after_ms, NOTICE_MAX_MS);
    bool soon = ctx->world->now_ms >= notice_ms;
    if (!has_ended(ctx, not_after_ms))
        cr_domain_requeue_at(ctx, soon ? not_after_ms + 1 : notice_ms);
    return soon;
}

static void add_end(const struct domain_ctx *ctx, struct lines *lines, const char *what, int64_t not_after_ms)
{
    char when[CR_TIME_TEXT];
    cr_time_format(not_after_ms, when);
    add_line(lines, cr_asprintf("%s %s at %s", what, has_ended(ctx, not_after_ms) ? "expired" : "expires", when));
}

enum end { LEAF_ENDED, CA_ENDED, LEAF_ENDS, CA_ENDS, ENDS };

static void expiring(struct domain_ctx *ctx)
{
    static const char *const reasons[ENDS] = {"LeafExpired", "CAExpired", "LeafExpiresSoon", "CAExpiresSoon"};
    struct lines lines = {0};
    bool any[ENDS] = {0};
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (!object->is_leaf || !object->published.found || cr_domain_is_foreign(object) ||
            !ends_soon(ctx, object->published.not_before_ms, object->published.not_after_ms))
            continue;
        cr_autofree char *title = cr_domain_object_title(object);
        cr_autofree char *what = cr_asprintf("the leaf of %s", title);
        add_end(ctx, &lines, what, object->published.not_after_ms);
        any[has_ended(ctx, object->published.not_after_ms) ? LEAF_ENDED : LEAF_ENDS] = true;
    }
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
        if (!ctx->current[ca] || !ends_soon(ctx, at_hand->not_before_ms, at_hand->not_after_ms))
            continue;
        cr_autofree char *what = cr_asprintf("CA %s", cr_or_empty(at_hand->subject));
        add_end(ctx, &lines, what, at_hand->not_after_ms);
        any[has_ended(ctx, at_hand->not_after_ms) ? CA_ENDED : CA_ENDS] = true;
    }
    size_t worst = 0;
    while (worst < ENDS && !any[worst])
        worst++;
    if (worst < ENDS)
        set(ctx, "ExpiringSoon", true, reasons[worst], lines_text(&lines));
    else
        set(ctx, "ExpiringSoon", false, "FarFromExpiry", "No leaf and no CA expires soon.");
    cr_buf_dispose(&lines.text);
}

/* --- CAs of before --- */

/* Adds the object's consumers that are not known to have its bundle. */
static void count_left(const struct domain_ctx *ctx, size_t at, struct cr_strmap *left)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    const struct cr_strvec *waiting = object->evidence ? &object->evidence->lack_trust : NULL;
    for (size_t i = 0; waiting && i < waiting->len; i++) {
        cr_autofree char *key = cr_asprintf("%s/%s", cr_or_empty(object->ns), waiting->items[i]);
        cr_strmap_set(left, key, NULL);
    }
}

static void add_previous_cas(const struct domain_ctx *ctx, struct lines *lines)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
        if (ctx->anywhere[ca] && !ctx->current[ca] && !cr_domain_is_expired(ctx, ca))
            add_line(lines, cr_asprintf("%s (%.16s…)", cr_or_empty(at_hand->subject), at_hand->fingerprint));
    }
}

static size_t count_without_bundle(const struct domain_ctx *ctx)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *consumers = cr_strmap_new(NULL);
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        count_left(ctx, i, consumers);
    return cr_strmap_len(consumers);
}

/* without: consumers that are not known to have what is published. */
static void published_cas_are_pending(struct domain_ctx *ctx, struct lines *cas, size_t without)
{
    static const struct {
        const char *reason, *when;
    } rules[] = {
        [CR_RETIRE_NEXT_ROTATION] = {"NextRotation", "retire: NextRotation drops it with the bundle of the next CA, so "
                                                     "that no consumer restarts for it alone"},
        [CR_RETIRE_CONVERGED] = {"NotConverged", "retire: Converged drops it as soon as everything has arrived"},
        [CR_RETIRE_NEVER] = {"Never", "retire: Never keeps it"},
    };
    bool rotates = *ctx->plan->status.rotation;
    cr_autofree char *more =
        without ? cr_asprintf(" %zu consumers do not have the published bundle yet, and may trust CAs that it lacks.",
                              without)
                : cr_strdup("");
    cr_autofree char *text =
        cr_asprintf("Trusted beside the CA in use: %s; %s.%s", lines_text(cas),
                    rotates ? "a rotation is under way" : rules[ctx->world->domain->retire].when, more);
    set(ctx, "RetirementPending", true, rotates ? "RotationInProgress" : rules[ctx->world->domain->retire].reason,
        text);
}

static bool misses_what_was_read(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (!cr_domain_is_there(ctx, i) && *ctx->plan->status.objects[i].trust)
            return true;
    return false;
}

/* A CA that has gone from the bundles is pending until every consumer is known to have them; as known as the domain
 * demands, which may be inferred. Which CAs a consumer that lacks its bundle trusts is not known. */
static void retirement(struct domain_ctx *ctx)
{
    struct lines cas = {0};
    add_previous_cas(ctx, &cas);
    size_t without = count_without_bundle(ctx);
    if (cas.len) {
        published_cas_are_pending(ctx, &cas, without);
    } else if (misses_what_was_read(ctx)) {
        set(ctx, "RetirementPending", true, "NotPublished",
            "Not everything is published that was before: its consumers may still trust a CA of before.");
    } else if (!ctx->trust_arrived || without) {
        cr_autofree char *who = without ? cr_asprintf("%zu consumers do not have the published bundle yet", without)
                                        : cr_strdup("it is not known whether every consumer has the published bundle");
        cr_autofree char *text = cr_asprintf("No bundle has a CA of before; %s. Consumers may still trust one.", who);
        set(ctx, "RetirementPending", true, "Arriving", text);
    } else {
        set(ctx, "RetirementPending", false, "NothingToRetire", "No bundle has a CA of before.");
    }
    cr_buf_dispose(&cas.text);
}

/* --- CAs that nobody shall trust --- */

static void add_unknown(const struct domain_ctx *ctx, struct lines *lines)
{
    const struct cr_domain *domain = ctx->world->domain;
    for (size_t i = 0; i < domain->distrust.len; i++)
        if (!cr_domain_distrusted_record(&ctx->plan->status, domain->distrust.items[i]))
            add_line(lines, cr_asprintf("the domain has never known a CA %.16s…: is it misspelled?",
                                        domain->distrust.items[i]));
}

/* A leaf that is replaced as soon as what it waits for has come. */
static bool is_replaced(const struct domain_leaf *leaf)
{
    return leaf->waits || leaf->held_back || leaf->act != CR_LEAF_ACT_KEEP;
}

static void add_lost(const struct domain_ctx *ctx, struct lines *lines)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!cr_domain_is_lost(ctx, i) || is_replaced(&ctx->leaves[i]))
            continue;
        cr_autofree char *title = cr_domain_object_title(&ctx->world->objects[i]);
        add_line(lines, cr_asprintf("the leaf of %s is of that CA alone, and the domain cannot replace it", title));
    }
}

/* Objects that have one of them, or whose readers may. How many there are. */
static size_t add_unclean(const struct domain_ctx *ctx, struct lines *lines, struct cr_strmap *left)
{
    size_t unclean = 0;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        if (!cr_domain_has_distrusted(ctx, i))
            continue;
        unclean++;
        count_left(ctx, i, left);
        const char *waits_for = ctx->plan->status.objects[i].waits_for;
        cr_autofree char *title = cr_domain_object_title(&ctx->world->objects[i]);
        if (waits_for)
            add_line(lines, cr_asprintf("%s: %s", title, waits_for));
        else if (!cr_domain_may_write(&ctx->world->objects[i]))
            add_line(lines, cr_asprintf("%s may not be written (%s)", title,
                                        cr_trust_reason_name(ctx->world->objects[i].refused)));
    }
    return unclean;
}

static void distrusted_is_under_way(struct domain_ctx *ctx)
{
    struct lines lines = {0};
    CR_CLEANUP(cr_strmap) struct cr_strmap *left = cr_strmap_new(NULL);
    add_lost(ctx, &lines);
    bool loses = lines.len && !ctx->overdue;
    size_t unclean = add_unclean(ctx, &lines, left);
    const struct cr_domain *domain = ctx->world->domain;
    int64_t since_ms = cr_domain_status_distrusts_since_ms(&ctx->plan->status); /* 0: suspended, so not on record */
    char until[CR_TIME_TEXT];
    cr_time_format(since_ms + domain->evidence.stage_deadline_ms, until);
    cr_autofree char *hold = ctx->overdue || !since_ms
                                 ? cr_strdup("")
                                 : cr_asprintf(" What the domain cannot bring about is waited for until %s.", until);
    cr_autofree char *text =
        cr_asprintf("It is trusted still: %zu of %zu objects, %zu consumers are left.%s %s", unclean,
                    ctx->world->objects_len, cr_strmap_len(left), hold, lines_text(&lines));
    set(ctx, "Distrusted", false, loses ? "LeafNeedsCA" : "InProgress", text);
    cr_buf_dispose(&lines.text);
}

/* Owned; "": all was seen. */
static char *say_inferred_trust(size_t inferred, size_t objects)
{
    return inferred
               ? cr_asprintf(" For %zu of %zu objects this is inferred from pod starts, reload delays or time, not "
                             "observed; evidence.trust: Verified waits until it is observed.",
                             inferred, objects)
               : cr_strdup("");
}

/* One that is at hand, and of which nothing was seen yet: the domain is suspended. */
static bool is_any_unrecorded(const struct domain_ctx *ctx)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->distrusted[ca] && !cr_domain_distrusted_record(&ctx->plan->status, ctx->world->cas[ca].fingerprint))
            return true;
    return false;
}

/* True only by evidence: every object that the domain publishes, or has published, is without them, and every consumer
 * is known to have that. */
static void distrusted(struct domain_ctx *ctx)
{
    struct lines lines = {0};
    if (!ctx->world->domain->distrust.len) {
        cr_domain_status_drop_condition(&ctx->plan->status, "Distrusted");
        return;
    }
    if (cr_domain_status_distrusts_since_ms(&ctx->plan->status) || cr_domain_publishes_distrusted(ctx) ||
        is_any_unrecorded(ctx)) {
        distrusted_is_under_way(ctx);
        return;
    }
    add_unknown(ctx, &lines);
    bool unknown = lines.len > 0;
    add_lost(ctx, &lines);
    size_t inferred = count_inferred(&ctx->plan->status, false);
    cr_autofree char *how = say_inferred_trust(inferred, ctx->plan->status.objects_len);
    const char *gone = inferred ? "Inferred" : "Gone";
    cr_autofree char *text = cr_asprintf("In no bundle of the domain, and no consumer trusts what is listed.%s%s%s",
                                         how, lines.len ? " Lost with it: " : "", lines_text(&lines));
    if (unknown)
        set(ctx, "Distrusted", false, CR_DOMAIN_UNKNOWN_CA, lines_text(&lines));
    else
        set(ctx, "Distrusted", true, lines.len ? "LeavesLost" : gone, text);
    cr_buf_dispose(&lines.text);
}

void cr_domain_plan_conditions(struct domain_ctx *ctx)
{
    distrusted(ctx);
    ready(ctx);
    rotating(ctx);
    converged(ctx);
    held(ctx);
    degraded(ctx);
    expiring(ctx);
    retirement(ctx);
}
