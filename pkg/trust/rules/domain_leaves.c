/* Which leaf is published where: kept, taken over from its source, issued, or put back. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { CLOCK_SKEW_MS = 5 * 60 * 1000 };

/* Takes text. */
static void set_problem(struct domain_leaf *leaf, enum cr_trust_reason problem, char *text)
{
    leaf->problem = problem;
    leaf->problem_text = text;
}

/* --- whether it goes out now --- */

/* A leaf that is missing, near its end, or of a CA that no reader may trust is not held back: that would be the outage.
 */
static bool is_urgent(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *published)
{
    int64_t life = published->not_after_ms - published->not_before_ms;
    return !cr_domain_is_usable(published) || cr_domain_needs_distrusted(ctx, published) ||
           ctx->world->now_ms > published->not_after_ms - life / 6;
}

/* A consumer cannot get where the leaves that were published before should have brought it. */
static bool is_held(const struct domain_ctx *ctx)
{
    const struct cr_domain_status *status = &ctx->plan->status;
    enum cr_stage stage = status->stage == CR_STAGE_HELD ? status->held_stage : status->stage;
    int64_t waited = ctx->world->now_ms - status->stage_since_ms;
    return ctx->failed || (stage == CR_STAGE_SWITCHING && !ctx->leaf_arrived &&
                           waited > ctx->world->domain->evidence.stage_deadline_ms);
}

/* Whether all readers trust it; says what stands in its way. */
static bool is_free(const struct domain_ctx *ctx, size_t at, const bool *verifies, struct domain_leaf *leaf)
{
    leaf->switches_ca = !cr_domain_is_equivalent(ctx, at, verifies);
    leaf->waits = !cr_domain_may_publish(ctx, at, verifies, &leaf->waits_on);
    leaf->held_back =
        !leaf->waits && leaf->switches_ca && is_held(ctx) && !is_urgent(ctx, &ctx->world->objects[at].published);
    return !leaf->waits && !leaf->held_back;
}

/* --- from a source --- */

static void refuse_time(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *source,
                        struct domain_leaf *leaf)
{
    char when[CR_TIME_TEXT];
    bool expired = source->not_after_ms <= ctx->world->now_ms;
    cr_time_format(expired ? source->not_after_ms : source->not_before_ms, when);
    set_problem(
        leaf, expired ? CR_TRUST_EXPIRED : CR_TRUST_NOT_YET,
        cr_asprintf(expired ? "the leaf of its source has expired at %s" : "the leaf of its source is valid from %s",
                    when));
}

static bool has_root(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->world->cas[ca].root && !cr_domain_is_expired(ctx, ca) && cr_domain_leaf_verifies(leaf, ca))
            return true;
    return false;
}

/* Clients that demand a root accept what is published, and would refuse this. */
static bool loses_root(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    return cr_domain_is_usable(&object->published) && has_root(ctx, &object->published) &&
           !has_root(ctx, &object->source);
}

/* The CA that the source's leaf verifies against. */
static void refuse_issuer(const struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    cr_autofree char *object = cr_asprintf("Secret %s", cr_domain_leaf_of(ctx, at)->mirror);
    struct cr_trust_about about = {.object = object};
    for (size_t ca = 0; ca < ctx->world->cas_len && !about.ca; ca++)
        if (cr_domain_leaf_verifies(&ctx->world->objects[at].source, ca))
            about.ca = ctx->world->cas[ca].subject;
    set_problem(leaf, CR_TRUST_NEEDS_ISSUER, cr_trust_problem_text(CR_TRUST_NEEDS_ISSUER, &about));
}

/* Whether the source's leaf can be published at all. */
static bool is_source_good(struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    const struct cr_domain_leaf_view *source = &ctx->world->objects[at].source;
    const struct cr_domain_leaf *spec = cr_domain_leaf_of(ctx, at);
    int64_t now = ctx->world->now_ms;
    if (source->problem)
        set_problem(leaf, source->problem,
                    cr_asprintf("source %s: %s", spec->mirror, cr_or_empty(source->problem_text)));
    else if (!source->found)
        set_problem(leaf, CR_TRUST_SOURCE_NOT_FOUND,
                    cr_asprintf("Secret %s, its source, does not exist", spec->mirror));
    else if (source->not_after_ms <= now || source->not_before_ms > now + CLOCK_SKEW_MS)
        refuse_time(ctx, source, leaf);
    else if (!cr_domain_leaf_verifies_any(ctx, source))
        set_problem(
            leaf, CR_TRUST_UNKNOWN_ISSUER,
            cr_asprintf("the CA of the leaf in its source %s is not known, so nobody could be told to trust it: "
                        "put it into ca.crt there",
                        spec->mirror));
    else if (cr_domain_needs_distrusted(ctx, source))
        set_problem(
            leaf, CR_TRUST_DISTRUSTED_CA,
            cr_asprintf("the leaf of its source %s is of a CA that spec.distrust lists: have another one issued, "
                        "by another CA",
                        spec->mirror));
    else if (loses_root(ctx, at))
        refuse_issuer(ctx, at, leaf);
    if (source->found && source->not_before_ms > now + CLOCK_SKEW_MS)
        cr_domain_requeue_at(ctx, source->not_before_ms - CLOCK_SKEW_MS);
    return !leaf->problem;
}

static void mirror(struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    if (!is_source_good(ctx, at, leaf) || leaf->put_back)
        return;
    if (object->published.found && !object->published.problem &&
        strcmp(object->published.fingerprint, object->source.fingerprint) == 0)
        return;
    if (is_free(ctx, at, object->source.verifies, leaf))
        leaf->act = CR_LEAF_ACT_MIRROR;
}

/* --- issued --- */

/* The CAs that can issue it, the best first. */
struct issuer {
    size_t ca;
    bool cross_signed;
};

static size_t find_issuers(const struct domain_ctx *ctx, const struct domain_leaf *leaf, struct issuer issuers[3])
{
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    size_t len = 0;
    if (ctx->has_next && !leaf->put_back) {
        issuers[len++] = (struct issuer){.ca = authority->next_ca};
        if (ctx->world->domain->ca.cross_sign && !authority->cannot_cross_sign && ctx->has_current)
            issuers[len++] = (struct issuer){.ca = authority->next_ca, .cross_signed = true};
    }
    if (ctx->has_current)
        issuers[len++] = (struct issuer){.ca = authority->current_ca};
    return len;
}

static bool *verifies_of(const struct domain_ctx *ctx, const struct issuer *issuer)
{
    bool *verifies = cr_calloc(ctx->world->cas_len + 1, sizeof *verifies);
    verifies[issuer->ca] = true;
    if (issuer->cross_signed)
        verifies[ctx->world->authority.current_ca] = true;
    return verifies;
}

/* It was issued by another spec, or before spec.rotate asked for another leaf. */
static bool is_outdated(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    return !cr_streq(object->issued_for, object->wanted_for) ||
           (cr_domain_token_is_new(ctx, CR_ROTATE_LEAVES) &&
            !cr_streq(object->token, ctx->world->domain->rotate_token));
}

/* Whether there must be another leaf, of any CA. */
static bool must_issue(struct domain_ctx *ctx, size_t at, const struct domain_leaf *leaf, size_t ca)
{
    const struct cr_domain_leaf_view *published = &ctx->world->objects[at].published;
    const struct cr_domain_leaf *spec = cr_domain_leaf_of(ctx, at);
    if (!cr_domain_is_usable(published) && !published->costly)
        return true;
    if (leaf->put_back) /* it was there before, and may be due or of another spec for just what was wrong */
        return is_urgent(ctx, published);
    if (is_outdated(ctx, at))
        return true;
    cr_autofree char *key = cr_asprintf("%s/%s", cr_or_empty(ctx->world->domain->uid), spec->name);
    cr_domain_requeue_at(ctx,
                         cr_domain_renewal_ms(&spec->life, published->not_before_ms, published->not_after_ms, key));
    return cr_domain_is_due(&spec->life, published->not_before_ms, published->not_after_ms, key,
                            ctx->world->cas[ca].not_after_ms, ctx->world->now_ms);
}

static void issue_by(struct domain_ctx *ctx, size_t at, const struct issuer *issuer, struct domain_leaf *leaf)
{
    const struct cr_domain_leaf *spec = cr_domain_leaf_of(ctx, at);
    int64_t end = ctx->world->cas[issuer->ca].not_after_ms;
    leaf->issuer = issuer->ca;
    leaf->cross_signed = issuer->cross_signed;
    leaf->act = CR_LEAF_ACT_ISSUE;
    if (ctx->world->now_ms + spec->life.duration_ms <= end)
        return;
    char when[CR_TIME_TEXT];
    cr_time_format(end, when);
    cr_domain_say(ctx, true, "LifetimeClamped",
                  cr_asprintf("Leaf %s ends with its CA at %s, earlier than its duration says", spec->name, when));
}

/* Another leaf is needed, and the CA is broken: a person must mend it. One that is absent is made. */
static void refuse_without_ca(const struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    bool must = !cr_domain_is_usable(&ctx->world->objects[at].published) || is_outdated(ctx, at);
    if (ctx->world->authority.current == CR_DOMAIN_CA_BROKEN && !leaf->put_back && must)
        set_problem(leaf, CR_TRUST_NO_CA,
                    cr_asprintf("another leaf is needed, and the CA in Secret %s, which would issue it, cannot be used",
                                cr_or_empty(ctx->world->domain->ca.ca_secret)));
}

/* Issued by the best CA that all readers trust. If that is not the newest CA, a leaf is issued only if it must be, and
 * otherwise waits for the newest. */
static void issue(struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    struct issuer issuers[3];
    size_t len = find_issuers(ctx, leaf, issuers);
    if (!len) {
        refuse_without_ca(ctx, at, leaf);
        return;
    }
    const struct cr_domain_leaf_view *published = &ctx->world->objects[at].published;
    bool must = must_issue(ctx, at, leaf, issuers[0].ca);
    /* What is too costly may be of the current one, and another of it would be, too. */
    bool may_have_newest = published->costly && !ctx->has_next;
    bool wants_newest = !leaf->put_back && !may_have_newest && !cr_domain_leaf_verifies(published, issuers[0].ca);
    for (size_t i = 0; i < len && (must || wants_newest); i++) {
        if (!must && issuers[i].ca != issuers[0].ca)
            break;
        cr_autofree bool *verifies = verifies_of(ctx, &issuers[i]);
        if (!is_free(ctx, at, verifies, leaf))
            continue;
        issue_by(ctx, at, &issuers[i], leaf);
        break;
    }
}

/* --- all of them --- */

/* It is the way out of what holds the others: a consumer that cannot take what was published. */
static void put_back(struct domain_ctx *ctx, size_t at, struct domain_leaf *leaf)
{
    (void)is_free(ctx, at, ctx->world->objects[at].previous.verifies, leaf);
    leaf->held_back = false;
    if (!leaf->waits)
        leaf->act = CR_LEAF_ACT_PUT_BACK;
}

static void plan_leaf(struct domain_ctx *ctx, size_t at)
{
    struct domain_leaf *leaf = &ctx->leaves[at];
    leaf->put_back = cr_domain_is_put_back(ctx, at);
    ctx->is_put_back = ctx->is_put_back || leaf->put_back;
    if (ctx->world->objects[at].refused)
        return;
    if (cr_domain_puts_back(ctx, at))
        put_back(ctx, at, leaf);
    else if (cr_domain_leaf_of(ctx, at)->source == CR_LEAF_MIRROR)
        mirror(ctx, at, leaf);
    else
        issue(ctx, at, leaf);
    ctx->waits = ctx->waits || leaf->waits;
    ctx->holds = ctx->holds || leaf->held_back;
    ctx->switches = ctx->switches || leaf->act != CR_LEAF_ACT_KEEP;
}

void cr_domain_plan_leaves(struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (ctx->world->objects[i].is_leaf)
            plan_leaf(ctx, i);
}
