/* What is reported of a policy in its conditions. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/rules/expiry.h"
#include "policy/rules/look_again.h"

enum {
    LOOK_AGAIN_MAX_MS = 24 * 3600 * 1000,
    UNREAD_AGAIN_MS = 30 * 1000,
    UNMANAGED_AGAIN_MS = 60 * 1000, /* at first, beside the event of its end */
};

static const char unmanaged[] = CR_REASON_UNMANAGED_POD;
static const char no_consumers[] = "NoConsumers";

static void set(struct plan_ctx *ctx, const char *type, bool value, const char *reason, const char *message)
{
    cr_status_condition(&ctx->plan->status, type, value, reason, message, ctx->world->policy->generation,
                        ctx->world->now_ms - ctx->world->now_ms % 1000);
}

static void set_unknown(struct plan_ctx *ctx, const char *type, const char *reason, const char *message)
{
    cr_status_condition_unknown(&ctx->plan->status, type, reason, message, ctx->world->policy->generation,
                                ctx->world->now_ms - ctx->world->now_ms % 1000);
}

static void add_line(struct cr_buf *text, const char *line)
{
    if (text->len)
        cr_buf_puts(text, "; ");
    cr_buf_puts(text, line);
}

static char *not_acted_on(const struct cr_policy *policy)
{
    if (!policy->unsupported.len)
        return NULL;
    cr_autofree char *fields = cr_strvec_join(&policy->unsupported, ", ");
    return cr_asprintf("This version of certroll does not act on: %s.", fields);
}

/* --- opaque material that cannot be digested: reported where it matters --- */

/* Whether a change of these entries would concern the consumer: as it is decided when there is one. */
static bool would_concern(const struct plan_ctx *ctx, size_t consumer, const struct cr_secret_change *change)
{
    const struct cr_world *world = ctx->world;
    if (!world->consumers[consumer].found)
        return false;
    struct cr_decide_input input = {.consumer = &world->policy->consumers[consumer],
                                    .pod_spec =
                                        cr_json_at(world->consumers[consumer].workload, "spec", "template", "spec"),
                                    .catalogue = world->catalogue,
                                    .changes = change,
                                    .changes_len = 1};
    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&input, &decision);
    return decision.kind != CR_DECISION_NONE;
}

static const char *who_takes(const struct plan_ctx *ctx, size_t secret)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    const struct cr_material *material = ctx->world->secrets[secret].material;
    for (size_t i = 0; i < material->opaque_keys.len; i++) {
        cr_autofree char *name =
            cr_strndup(material->opaque_keys.items[i], cr_opaque_key_len(material->opaque_keys.items[i]));
        cr_strvec_add(&names, name);
    }
    const struct cr_secret_change change = {
        .secret = &ctx->world->policy->secrets[secret], .changes = CR_CHANGE_OPAQUE, .opaque_keys = &names};
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++)
        if (would_concern(ctx, i, &change))
            return ctx->world->policy->consumers[i].name;
    return NULL;
}

/* In words, which opaque material some consumer takes and the operator cannot look at; NULL: none. Owned. */
static char *say_unread(struct plan_ctx *ctx)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const char *why = NULL;
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++) {
        const struct cr_world_secret *secret = &ctx->world->secrets[i];
        if (!secret->material || !cr_streq(secret->material->opaque, CR_OPAQUE_UNREAD))
            continue;
        const char *consumer = who_takes(ctx, i);
        if (!consumer)
            continue;
        cr_plan_requeue(ctx->plan, UNREAD_AGAIN_MS);
        if (!secret->opaque_problem)
            continue;
        why = secret->opaque_problem;
        cr_buf_printf(&text, "%sSecret %s (consumer %s)", text.len ? ", " : "", ctx->world->policy->secrets[i].name,
                      consumer);
    }
    return text.len ? cr_asprintf("Opaque material is not looked at, because %s: %s.", why, cr_buf_text(&text)) : NULL;
}

/* --- what belongs to the policy and is not acted on --- */

/* A sentence; the first problem is the reason. Takes line. */
static void add_problem(struct cr_buf *text, const char **reason, const char *word, char *line)
{
    *reason = *reason ? *reason : word;
    cr_buf_printf(text, "%s%s", text->len ? " " : "", line);
    free(line);
}

static void add_beyond(const struct plan_ctx *ctx, struct cr_buf *text, const char **reason)
{
    const struct cr_world_beyond *beyond = &ctx->world->beyond;
    const struct cr_policy *policy = ctx->world->policy;
    if (beyond->secrets)
        add_problem(text, reason, "TooManySecrets",
                    cr_asprintf("%zu Secrets belong to this policy and %zu are in force, those it has known longest "
                                "and the oldest: divide it into several.",
                                policy->secrets_len + beyond->secrets, policy->secrets_len));
    if (beyond->consumers)
        add_problem(text, reason, cr_unknown_readers_name(CR_READERS_TOO_MANY),
                    cr_asprintf("%zu consumers belong to this policy and %zu are in force, those it has known longest "
                                "and the oldest: divide it into several.",
                                policy->consumers_len + beyond->consumers, policy->consumers_len));
    if (beyond->unseen)
        add_problem(text, reason, cr_unknown_readers_name(CR_READERS_CANNOT_DISCOVER), cr_strdup(beyond->unseen));
}

static void add_not_acted_on(struct plan_ctx *ctx, struct cr_buf *text, const char **reason)
{
    const struct cr_policy *policy = ctx->world->policy;
    char *unsupported = not_acted_on(policy);
    char *unread = say_unread(ctx);
    if (unsupported)
        add_problem(text, reason, cr_unknown_readers_name(CR_READERS_NOT_ACTED_ON), unsupported);
    if (unread)
        add_problem(text, reason, cr_unknown_readers_name(CR_READERS_NOT_ACTED_ON), unread);
    if (unsupported || unread)
        cr_buf_printf(text, " The rest of the policy is in force.");
}

/* What the policy names and is not there, or is not used. */
static void add_unmet(const struct plan_ctx *ctx, struct cr_buf *text, const char **reason)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    const struct cr_policy *policy = ctx->world->policy;
    if (!policy->secrets_len)
        add_problem(text, reason, cr_hold_name(CR_HOLD_NO_SECRET), cr_strdup("No Secret belongs to this policy."));
    if (!cr_policy_may_have_consumers(policy) && !policy->trust.targets_len)
        add_problem(text, reason, no_consumers,
                    cr_strdup("The policy lists no consumers, and spec.discover.enabled is false: nothing is restarted "
                              "or verified."));
    for (size_t i = 0; i < status->secrets_len; i++)
        if (cr_streq(status->secrets[i].problem_reason, CR_PROBLEM_NOT_FOUND))
            add_problem(text, reason, cr_hold_name(CR_HOLD_NO_SECRET),
                        cr_asprintf("Secret %s does not exist.", status->secrets[i].name));
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_gate *gate = &status->consumers[i].gate;
        if (gate->hold == CR_HOLD_NOT_FOUND || gate->hold == CR_HOLD_USES_NO_SECRET)
            add_problem(text, reason, cr_hold_name(gate->hold), cr_strdup(gate->text));
    }
}

/* What a Secret holds and no consumer can take up. */
static void add_refused(const struct plan_ctx *ctx, struct cr_buf *text, const char **reason)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (secret->problem_reason && !cr_streq(secret->problem_reason, CR_PROBLEM_NOT_FOUND))
            add_problem(text, reason, secret->problem_reason,
                        cr_asprintf("Secret %s: %s.", secret->name, cr_or_empty(secret->problem_message)));
    }
}

static void ready(struct plan_ctx *ctx, struct plan_progress *progress)
{
    const char *reason = NULL;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    add_beyond(ctx, &text, &reason);
    add_not_acted_on(ctx, &text, &reason);
    const char *unmet = NULL;
    add_unmet(ctx, &text, &unmet);
    bool needs_edit = !reason && cr_streq(unmet, no_consumers);
    if (reason || needs_edit)
        progress->stuck = (struct plan_stuck){reason ? reason : unmet, "Ready"};
    progress->unmet = needs_edit ? NULL : unmet;
    reason = reason ? reason : unmet;
    if (reason)
        set(ctx, "Ready", false, reason, cr_buf_text(&text));
    else
        set(ctx, "Ready", true, "Accepted", "The policy is valid and in force.");
}

static void conflict(struct plan_ctx *ctx)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (cr_plan_conflicts(ctx, &text))
        set(ctx, "Conflict", true, "OtherPolicy", cr_buf_text(&text));
    else
        set(ctx, "Conflict", false, "NoConflict", "No other policy has a Secret for a consumer of this one.");
}

static bool any_pending(const struct cr_policy_status *status)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].pending.set)
            return true;
    return false;
}

static void rotating(struct plan_ctx *ctx)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (!secret->pending.set)
            continue;
        cr_autofree char *what = cr_diff_describe(secret->pending.changes);
        cr_autofree char *lost = cr_plan_lost_names(&secret->settled, &secret->pending.target);
        cr_autofree char *line =
            cr_asprintf("Secret %s: %s%s%s", secret->name, what, lost ? "; " : "", cr_or_empty(lost));
        add_line(&text, line);
    }
    if (text.len)
        set(ctx, "Rotating", true, "ChangePending", cr_buf_text(&text));
    else
        set(ctx, "Rotating", false, "Idle", "No change is pending.");
}

/* Some consumer takes up CAs that changed, and nothing can show that it has. */
static bool trust_is_blind(const struct plan_ctx *ctx)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        for (size_t k = 0; ctx->consumers[i].concerned && k < ctx->changes_len; k++) {
            const struct plan_change *change = &ctx->consumers[i].changes[k];
            if (change->concerns && change->trust_roles && !(change->notified & CR_CLASS_TRUST) &&
                !cr_trust_can_be_seen(change->trust_roles, &ctx->consumers[i].spec->verify))
                return true;
        }
    return false;
}

struct levels {
    size_t of[CR_SETTLED_VERIFIED + 1];
};

/* " Leaves: 2 verified, 1 inferred." */
static void add_levels(struct cr_buf *text, const char *what, const struct levels *levels)
{
    static const char *const words[] = {[CR_SETTLED_FIRST_SIGHT] = "unchanged since first sight",
                                        [CR_SETTLED_INFERRED] = "inferred",
                                        [CR_SETTLED_VERIFIED] = "verified"};
    const char *before = what;
    for (size_t i = cr_array_len(words); i-- > 0;) {
        if (!levels->of[i])
            continue;
        cr_buf_printf(text, "%s%zu %s", before, levels->of[i], words[i]);
        before = ", ";
    }
    if (before != what)
        cr_buf_puts(text, ".");
}

/* What a handshake proves, and what a client would look at beside it. */
static void add_what_was_checked(const struct plan_ctx *ctx, struct cr_buf *text)
{
    struct plan_names_checked checked = cr_plan_names_checked(ctx);
    cr_buf_puts(text, " Verified is a leaf that a pod showed with proof of its key");
    if (checked.names)
        cr_buf_printf(text, ", and for its name at %zu of %zu endpoints", checked.names, checked.endpoints);
    cr_buf_printf(text, ". Not checked: %schains with the CAs of clients.",
                  !checked.names                      ? "names, and "
                  : checked.names < checked.endpoints ? "names at the other endpoints, and "
                                                      : "");
}

/* What was there at first sight is taken as given: no more was seen of such a leaf, or of trust that comes alone. */
static bool is_baseline(const struct cr_secret_status *secret)
{
    return secret->has_settled &&
           (secret->settled.has_leaf ? secret->leaf_by : secret->trust_by) == CR_SETTLED_FIRST_SIGHT;
}

static bool any_baseline(const struct cr_policy_status *status)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (is_baseline(&status->secrets[i]))
            return true;
    return false;
}

/* What was seen and what was not, of the last change of each Secret. */
static void has_converged(struct plan_ctx *ctx)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    struct levels trust = {0};
    struct levels leaf = {0};
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        leaf.of[secret->leaf_by] += secret->has_settled && secret->settled.has_leaf;
        trust.of[secret->trust_by] += secret->has_settled && cr_material_has_trust(&secret->settled);
    }
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    bool baseline = any_baseline(status);
    cr_buf_puts(&text, baseline ? "No change was seen that a consumer does not have."
                                : "Every consumer has the material that its Secrets hold.");
    add_levels(&text, " Leaves: ", &leaf);
    add_levels(&text, " Trust: ", &trust);
    if (leaf.of[CR_SETTLED_INFERRED] || trust.of[CR_SETTLED_INFERRED])
        cr_buf_puts(&text, " What no port or page shows is inferred from pod starts and reload delays.");
    if (leaf.of[CR_SETTLED_VERIFIED])
        add_what_was_checked(ctx, &text);
    if (leaf.of[CR_SETTLED_FIRST_SIGHT] || trust.of[CR_SETTLED_FIRST_SIGHT])
        cr_buf_puts(&text, " What is unchanged since first sight is taken as given, not observed.");
    set(ctx, "Converged", true, baseline ? "Baseline" : "Converged", cr_buf_text(&text));
}

/* Pods that use a Secret and belong to no workload: made by hand, or by a controller of a kind that is not known here.
 * They are neither restarted nor probed, so nothing is known of a pod that came before the last change, or so soon
 * after it that its kubelet may have had the old Secret; "every consumer has it" would be wrong. */
static bool may_have_the_old_one(const struct cr_other_pods *pods, int64_t changed_ms)
{
    return pods->pods && changed_ms && pods->created_ms < changed_ms + CR_KUBELET_REFRESH_MS;
}

static bool add_unmanaged(struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; ctx->world->unmanaged && i < ctx->world->policy->secrets_len; i++) {
        const struct cr_other_pods *pods = &ctx->world->unmanaged[i];
        const char *secret = ctx->world->policy->secrets[i].name;
        int64_t at_ms = cr_status_secret(&ctx->plan->status, secret)->changed_ms;
        if (!may_have_the_old_one(pods, at_ms))
            continue;
        char when[CR_TIME_TEXT];
        cr_time_format(at_ms, when);
        cr_buf_printf(text,
                      "%sPod %s%s uses Secret %s and belongs to no workload that certroll knows: it came before the "
                      "change of %s, or too soon after it, and may have what was there before. Restart it by hand.",
                      text->len ? " " : "", pods->oldest, pods->pods > 1 ? ", the oldest of several," : "", secret,
                      when);
        cr_plan_requeue(ctx->plan, cr_look_again_ms(UNMANAGED_AGAIN_MS, ctx->world->now_ms - at_ms));
    }
    return text->len > before;
}

/* When the Secret changed last; 0: not since first sight. */
static int64_t last_change_ms(const struct cr_secret_status *secret)
{
    return secret->pending.set ? secret->pending.since_ms : secret->changed_ms;
}

bool cr_plan_is_uncovered(const struct plan_ctx *ctx, size_t i, const struct cr_secret_status *secret)
{
    return ctx->world->uncovered && may_have_the_old_one(&ctx->world->uncovered[i], last_change_ms(secret));
}

/* A rollout that is under way, held or given up leaves such pods, so nothing is wrong with the policy; but what is
 * known of consumers says nothing of them. */
static bool add_uncovered(struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; ctx->world->uncovered && i < ctx->world->policy->secrets_len; i++) {
        const struct cr_other_pods *pods = &ctx->world->uncovered[i];
        const char *name = ctx->world->policy->secrets[i].name;
        const struct cr_secret_status *secret = cr_status_secret(&ctx->plan->status, name);
        if (!cr_plan_is_uncovered(ctx, i, secret))
            continue;
        cr_buf_printf(
            text,
            "%sPod %s%s uses Secret %s, and its workload is not there or does not use it any more: it may have "
            "what was there before the last change.",
            text->len ? " " : "", pods->oldest, pods->pods > 1 ? ", the oldest of several," : "", name);
        int64_t age_ms = ctx->world->now_ms - last_change_ms(secret);
        cr_plan_requeue(ctx->plan, cr_look_again_ms(UNMANAGED_AGAIN_MS, age_ms));
    }
    return text->len > before;
}

/* Per Secret, whatever else is reported: a trust domain goes by it. */
static void note_unknown_readers(struct plan_ctx *ctx)
{
    const struct cr_world *world = ctx->world;
    enum cr_unknown_readers of_all = world->beyond.unseen_pods        ? CR_READERS_CANNOT_DISCOVER
                                     : world->beyond.consumers        ? CR_READERS_TOO_MANY
                                     : world->policy->unsupported.len ? CR_READERS_NOT_ACTED_ON
                                                                      : CR_READERS_KNOWN;
    for (size_t i = 0; i < world->policy->secrets_len; i++) {
        struct cr_secret_status *secret = cr_status_secret(&ctx->plan->status, world->policy->secrets[i].name);
        bool unmanaged_pod = world->unmanaged && may_have_the_old_one(&world->unmanaged[i], secret->changed_ms);
        secret->unknown_readers = unmanaged_pod                          ? CR_READERS_UNMANAGED_POD
                                  : cr_plan_is_uncovered(ctx, i, secret) ? CR_READERS_UNCOVERED_POD
                                                                         : of_all;
    }
}

/* What the pods of idle consumers were seen to show, or were not. The worst reason counts. */
static enum cr_hold add_unseen(const struct plan_ctx *ctx, struct cr_buf *text)
{
    enum cr_hold worst = CR_HOLD_NONE;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct cr_consumer_status *consumer = ctx->consumers[i].status;
        if (!cr_hold_is_unseen(consumer->gate.hold))
            continue;
        worst = worst == CR_HOLD_OTHER_CERTIFICATE ? worst : consumer->gate.hold;
        cr_buf_printf(text, "%s%s: %s.", text->len ? " " : "", consumer->name, consumer->gate.text);
    }
    return worst;
}

/* Nothing is known to be missed; what is not looked at may be. */
static void nothing_is_missed(struct plan_ctx *ctx, enum cr_hold unseen, struct cr_buf *text)
{
    const char *reason = unseen ? cr_hold_name(unseen) : NULL;
    add_beyond(ctx, text, &reason);
    add_not_acted_on(ctx, text, &reason);
    if (reason)
        set_unknown(ctx, "Converged", reason, cr_buf_text(text));
    else
        has_converged(ctx);
}

/* Of consumers that are done but for such pods. */
static void add_ending(const struct plan_ctx *ctx, struct cr_buf *text)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        bool waits = false;
        for (size_t k = 0; consumer->concerned && k < ctx->changes_len; k++)
            waits = waits || !cr_plan_old_pods_have_ended(consumer, k);
        if (!waits || consumer->status->state != CR_CONSUMER_CONVERGED)
            continue;
        cr_autofree char *line =
            cr_asprintf("%s has pods that are being deleted and go on with the CAs of before", consumer->status->name);
        add_line(text, line);
    }
}

static void converged(struct plan_ctx *ctx)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!any_pending(status)) {
        const char *reason = NULL;
        add_unmet(ctx, &text, &reason);
        add_refused(ctx, &text, &reason);
        if (add_unmanaged(ctx, &text) && !reason)
            reason = unmanaged;
        if (add_uncovered(ctx, &text) && !reason)
            reason = CR_REASON_UNCOVERED_POD;
        if (ctx->world->trust_refused)
            add_problem(&text, &reason, cr_trust_reason_name(ctx->world->trust_refused),
                        cr_strdup(ctx->world->trust_refused_text));
        enum cr_hold unseen = add_unseen(ctx, &text);
        if (!reason && unseen == CR_HOLD_OTHER_CERTIFICATE)
            reason = cr_hold_name(unseen);
        if (reason)
            set(ctx, "Converged", false, reason, cr_buf_text(&text));
        else
            nothing_is_missed(ctx, unseen, &text);
        return;
    }
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &status->consumers[i];
        if (consumer->state == CR_CONSUMER_CONVERGED || consumer->state == CR_CONSUMER_IDLE ||
            (consumer->state == CR_CONSUMER_ABSENT && !cr_plan_is_missed(&ctx->consumers[i])))
            continue;
        cr_autofree char *line = cr_asprintf("%s is %s", consumer->name, cr_consumer_state_name(consumer->state));
        add_line(&text, line);
    }
    add_ending(ctx, &text);
    (void)add_uncovered(ctx, &text);
    if (!text.len)
        add_line(&text, ctx->world->beyond.unseen_pods
                            ? "a kind of workload cannot be listed, so who else uses it is not known"
                            : "the change is being put on record");
    if (trust_is_blind(ctx))
        add_line(&text, "trust will be inferred where no port or page shows it");
    set(ctx, "Converged", false, "RotationInProgress", cr_buf_text(&text));
}

/* What a person must lift: a gate that time alone does not open. */
static bool stands_in_the_way(const struct cr_consumer_status *consumer)
{
    if (consumer->state == CR_CONSUMER_BLOCKED)
        return true;
    enum cr_hold hold = consumer->gate.hold;
    return consumer->state == CR_CONSUMER_PENDING && hold && hold != CR_HOLD_COALESCE && hold != CR_HOLD_WINDOW;
}

static void blocked(struct plan_ctx *ctx)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &status->consumers[i];
        if (!stands_in_the_way(consumer))
            continue;
        cr_autofree char *line = cr_asprintf("%s waits: %s", consumer->name, cr_or_empty(consumer->gate.text));
        add_line(&text, line);
    }
    if (ctx->world->policy->suspend)
        add_line(&text, "the policy is suspended");
    if (text.len)
        set(ctx, "Blocked", true, ctx->world->policy->suspend ? "Suspended" : "Gated", cr_buf_text(&text));
    else
        set(ctx, "Blocked", false, "Free", "Nothing stands in the way.");
}

/* New pods without evidence are reported also while old ones drain. */
static bool waits_for_evidence(const struct plan_consumer *consumer)
{
    enum cr_consumer_state state = consumer->status->state;
    return state == CR_CONSUMER_VERIFYING || state == CR_CONSUMER_BLOCKED ||
           (state == CR_CONSUMER_RESTARTING && cr_plan_drains(consumer) &&
            consumer->rollout.state == CR_ROLLOUT_COMPLETE);
}

/* At rest. */
static bool is_unseen_late(const struct plan_consumer *consumer)
{
    return consumer->unseen_late && cr_hold_is_unseen(consumer->status->gate.hold);
}

/* Unverifiable pods are reported once the time to verify them is over, not while it runs. */
static bool is_unverified_late(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    return consumer->concerned && waits_for_evidence(consumer) && cr_plan_past_deadline(ctx, consumer);
}

bool cr_plan_is_late(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    return is_unseen_late(consumer) || is_unverified_late(ctx, consumer);
}

static void add_unseen_late(const struct plan_ctx *ctx, struct cr_buf *text)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        if (!is_unseen_late(consumer))
            continue;
        cr_autofree char *line = cr_asprintf("%s: %s", consumer->spec->name, consumer->status->gate.text);
        add_line(text, line);
    }
}

static void add_unverifiable(const struct plan_ctx *ctx, struct cr_buf *text)
{
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        if (!is_unverified_late(ctx, consumer))
            continue;
        const struct cr_pod_counts *pods = &consumer->status->pods;
        cr_autofree char *line =
            cr_asprintf("%s: %d of %d pods have old material, %d cannot be verified, %d are missing%s%s",
                        consumer->spec->name, pods->stale, pods->total, pods->unknown,
                        cr_plan_enough_pods(consumer) ? 0 : consumer->rollout.desired - pods->total,
                        consumer->status->examples.len ? ", such as " : "",
                        consumer->status->examples.len ? consumer->status->examples.items[0] : "");
        add_line(text, line);
    }
}

static const char *add_consumers(const struct plan_ctx *ctx, struct cr_buf *text)
{
    const char *reason = NULL;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct cr_consumer_status *consumer = ctx->consumers[i].status;
        enum cr_hold hold = consumer->gate.hold;
        if (hold != CR_HOLD_NOT_FOUND && hold != CR_HOLD_USES_NO_SECRET && hold != CR_HOLD_ROLLOUT_FAILED)
            continue;
        reason = reason ? reason : cr_hold_event(hold);
        const struct cr_policy_consumer *spec = ctx->consumers[i].spec;
        cr_autofree char *line = hold == CR_HOLD_ROLLOUT_FAILED
                                     ? cr_asprintf("%s (%s %s): %s", consumer->name, spec->kind, spec->target,
                                                   cr_or_empty(consumer->gate.text))
                                     : cr_asprintf("%s: %s", consumer->name, cr_or_empty(consumer->gate.text));
        add_line(text, line);
    }
    return reason;
}

static bool add_refused_keys(const struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *consumer = &ctx->consumers[i];
        if (!consumer->concerned || !consumer->decision.not_accepted)
            continue;
        cr_autofree char *line = cr_asprintf("%s: %s", consumer->spec->name, consumer->decision.not_accepted);
        add_line(text, line);
    }
    return text->len > before;
}

static bool add_breakers(const struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct cr_consumer_status *consumer = ctx->consumers[i].status;
        if (consumer->gate.hold != CR_HOLD_CIRCUIT_BREAKER)
            continue;
        cr_autofree char *line = cr_asprintf("%s: %s", consumer->name, consumer->gate.text);
        add_line(text, line);
    }
    return text->len > before;
}

/* They stop no restart. Returns the reason of the first; NULL: there is none. */
static const char *add_warnings(const struct plan_ctx *ctx, struct cr_buf *text)
{
    const char *reason = NULL;
    for (size_t k = 0; k < CR_PLAN_WARNINGS; k++)
        for (size_t i = 0; i < ctx->consumers_len; i++) {
            if (!(ctx->consumers[i].status->warnings & cr_plan_warnings[k].bit))
                continue;
            cr_autofree char *line = cr_plan_warnings[k].words(ctx, &ctx->consumers[i]);
            add_line(text, line);
            reason = reason ? reason : cr_warning_name(cr_plan_warnings[k].bit);
        }
    return reason;
}

/* Names in use, as far as they hold nothing. */
static const char *add_host_warnings(const struct plan_ctx *ctx, const char *worse, struct cr_buf *text,
                                     struct plan_reported *reported)
{
    CR_CLEANUP(cr_buf) struct cr_buf line = CR_BUF_INIT(0);
    const char *reason = cr_plan_add_host_warnings(ctx, &line);
    if (!reason)
        return worse;
    add_line(text, cr_buf_text(&line));
    if (worse)
        return worse;
    reported->hosts_reason = reason;
    reported->hosts = cr_buf_steal(&line);
    return reason;
}

/* What is missing may still come; anything else has to be mended. */
static void note_progress(struct plan_progress *progress, const char *problem)
{
    enum cr_trust_reason reason = CR_TRUST_FINE;
    if (cr_trust_reason_parse(problem, &reason) && cr_trust_may_come(reason))
        progress->unmet = progress->unmet ? progress->unmet : problem;
    else if (!progress->stuck.reason)
        progress->stuck = (struct plan_stuck){problem, "Degraded"};
}

static const char *add_secrets(const struct cr_policy_status *status, struct cr_buf *text,
                               struct plan_progress *progress)
{
    const char *reason = NULL;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *secret = &status->secrets[i];
        if (!secret->problem_reason)
            continue;
        reason = reason ? reason : secret->problem_reason;
        note_progress(progress, secret->problem_reason);
        cr_autofree char *line = cr_asprintf("Secret %s: %s", secret->name, cr_or_empty(secret->problem_message));
        add_line(text, line);
    }
    return reason;
}

/* What a person must look at, whichever consumer it is of. Returns the reason of the first; NULL: there is none. */
static const char *add_unproved(struct plan_ctx *ctx, struct cr_buf *text, struct plan_reported *reported,
                                struct plan_progress *progress)
{
    const char *reason = NULL;
    if (add_unmanaged(ctx, text)) {
        reported->unmanaged = cr_strdup(cr_buf_text(text));
        reason = unmanaged;
        note_progress(progress, unmanaged);
    }
    size_t before = text->len;
    add_unverifiable(ctx, text);
    add_unseen_late(ctx, text);
    if (!reason && text->len > before)
        reason = "NotVerified";
    if (ctx->world->trust_refused) {
        add_line(text, ctx->world->trust_refused_text);
        reason = reason ? reason : cr_trust_reason_name(ctx->world->trust_refused);
        note_progress(progress, cr_trust_reason_name(ctx->world->trust_refused));
    }
    return reason;
}

static void degraded(struct plan_ctx *ctx, struct plan_reported *reported, struct plan_progress *progress)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    const char *reason = add_secrets(&ctx->plan->status, &text, progress);
    const char *of_consumers = add_consumers(ctx, &text);
    reason = reason ? reason : of_consumers;
    if (add_refused_keys(ctx, &text) && !reason)
        reason = cr_hold_name(CR_HOLD_KEY_TYPE_NOT_ACCEPTED);
    if (add_breakers(ctx, &text) && !reason)
        reason = cr_hold_event(CR_HOLD_CIRCUIT_BREAKER);
    const char *unproved = add_unproved(ctx, &text, reported, progress);
    reason = reason ? reason : unproved;
    const char *warning = add_warnings(ctx, &text);
    reason = reason ? reason : warning;
    reason = add_host_warnings(ctx, reason, &text, reported);
    if (reason)
        set(ctx, "Degraded", true, reason, cr_buf_text(&text));
    else
        set(ctx, "Degraded", false, "AsExpected", "No problem is known.");
}

/* Its successor is there, and is not rolled out. */
static bool is_held(const struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    return cr_streq(secret->problem_reason, CR_PROBLEM_NAME_MISSING) && secret->has_settled && now->material &&
           !cr_streq(secret->settled.leaf, now->material->leaf);
}

static void add_leaf_end(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                         const struct cr_expiry *expiry, bool held, struct cr_buf *text, struct plan_reported *reported)
{
    char when[CR_TIME_TEXT];
    cr_time_format(expiry->leaf_ms, when);
    bool ended = cr_expiry_leaf_has_ended(expiry, ctx->world->now_ms);
    cr_autofree char *line =
        cr_asprintf("the leaf of Secret %s %s at %s%s%s", secret->name, ended ? "expired" : "expires", when,
                    held ? ", and the one after it is held: " : "", held ? secret->problem_reason : "");
    add_line(text, line);
    if (held)
        PLAN_PUSH(reported->held, reported->held_len, {.secret = secret, .end = cr_strdup(line)});
}

static void add_ca_end(const char *secret, const struct cr_expiry *expiry, struct cr_buf *text)
{
    char when[CR_TIME_TEXT];
    cr_time_format(expiry->noticed_ca_ms, when);
    cr_autofree char *line = cr_asprintf("a CA in Secret %s expires at %s", secret, when);
    add_line(text, line);
}

static void add_expired_cas(const char *secret, const struct cr_expiry *expiry, struct cr_buf *text)
{
    cr_autofree char *line = cr_asprintf("%zu of the %zu CAs in Secret %s %s expired", expiry->expired, expiry->cas,
                                         secret, expiry->expired == 1 ? "has" : "have");
    add_line(text, line);
}

/* What ends is reported, worst first; a CA among others is not refused: a verifier goes by the others. Some do not (an
 * old gateway broke on one that had expired). */
static void expiring(struct plan_ctx *ctx, struct plan_reported *reported)
{
    static const char *const reasons[] = {CR_PLAN_LEAF_EXPIRED, CR_PLAN_LEAF_EXPIRES_SOON, "TrustExpiresSoon",
                                          "TrustExpired"};
    const int64_t now_ms = ctx->world->now_ms;
    size_t worst = cr_array_len(reasons);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++) {
        const struct cr_secret_status *secret =
            cr_status_secret(&ctx->plan->status, ctx->world->policy->secrets[i].name);
        const struct cr_expiry expiry = cr_expiry_of(&ctx->world->secrets[i], &ctx->plan->status, secret, now_ms);
        const bool is[] = {cr_expiry_leaf_has_ended(&expiry, now_ms), cr_expiry_leaf_ends_soon(&expiry, now_ms),
                           cr_expiry_ca_ends_soon(&expiry, now_ms), expiry.expired > 0};
        for (size_t k = 0; k < worst; k++)
            worst = is[k] ? k : worst;
        if (is[1])
            add_leaf_end(ctx, secret, &expiry, is_held(secret, &ctx->world->secrets[i]), &text, reported);
        if (is[2])
            add_ca_end(secret->name, &expiry, &text);
        if (is[3])
            add_expired_cas(secret->name, &expiry, &text);
        int64_t next_ms = cr_expiry_changes_in_ms(&expiry, now_ms);
        /* A day is soon enough to look again; the queue keeps its times in memory. */
        if (next_ms)
            cr_plan_requeue(ctx->plan, next_ms < LOOK_AGAIN_MAX_MS ? next_ms : LOOK_AGAIN_MAX_MS);
    }
    if (text.len)
        set(ctx, "ExpiringSoon", true, reasons[worst], cr_buf_text(&text));
    else
        set(ctx, "ExpiringSoon", false, "FarFromExpiry", "No certificate expires soon.");
}

/* What a person must look at before anything of it goes on. */
static bool any_problem(const struct cr_policy_status *status)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].problem_reason)
            return true;
    return false;
}

static enum cr_stage stage_of(const struct cr_policy_status *status)
{
    if (any_problem(status))
        return CR_STAGE_HELD;
    return any_pending(status) ? CR_STAGE_SWITCHING : CR_STAGE_IDLE;
}

void cr_plan_reported_dispose(struct plan_reported *reported)
{
    free(reported->unmanaged);
    free(reported->hosts);
    for (size_t i = 0; i < reported->held_len; i++)
        free(reported->held[i].end);
    free(reported->held);
    *reported = (struct plan_reported){0};
}

struct plan_reported cr_plan_conditions(struct plan_ctx *ctx)
{
    struct plan_reported reported = {0};
    struct plan_progress progress = {0};
    ready(ctx, &progress);
    rotating(ctx);
    note_unknown_readers(ctx);
    converged(ctx);
    blocked(ctx);
    degraded(ctx, &reported, &progress);
    expiring(ctx, &reported);
    conflict(ctx);
    cr_plan_progress(ctx, &progress);
    ctx->plan->status.stage = stage_of(&ctx->plan->status);
    return reported;
}
