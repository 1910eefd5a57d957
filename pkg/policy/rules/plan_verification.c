/* What pods show while nothing changes. A consumer with verify is probed also at first sight, of itself, of a Secret or
 * of both together, and so is each pod that comes later: material that was there when certroll came counts as settled,
 * and which pods serve it was not seen yet. Nothing is restarted for what is found. What was seen is remembered by the
 * time up to which pods had been created, so a new process asks only those that came after. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "catalogue/usage.h"

enum {
    LONG_MS = 60 * 60 * 1000, /* after so long a look is a precaution */
    LONG_PAUSE_MS = 5 * 60 * 1000,
    WHY = CR_SHOWN_WHY,
};

/* --- what should be shown --- */

/* The Secrets of the policy that the consumer serves the leaf of, at an endpoint that may be of that Secret. */
struct wanted {
    struct wanted_secret {
        struct cr_secret_status *secret; /* borrowed from the plan */
        struct cr_strvec others;         /* leaves of other Secrets of the policy */
        bool seen;                       /* each pod was seen to show it; what is remembered does not count */
    } * items;
    size_t len;
    bool any_pod; /* was seen */
    int64_t max_delay_ms;
    char of[CR_VERIFICATION_OF];
    struct cr_verification before; /* what is remembered of these very leaves */
};

static void wanted_dispose(struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->len; i++)
        cr_strvec_dispose(&wanted->items[i].others);
    free(wanted->items);
}

static bool may_be_asked(const struct cr_policy_verify *verify, const char *secret)
{
    for (size_t i = 0; i < verify->endpoints_len; i++)
        if (!verify->endpoints[i].secret_name || cr_streq(verify->endpoints[i].secret_name, secret))
            return true;
    return false;
}

static bool is_of_other_policy(const struct plan_consumer *consumer, size_t secret)
{
    return consumer->world->others && consumer->world->others[secret].policy;
}

/* In which roles the consumer would take a new leaf of each Secret. */
static void find_served(const struct plan_ctx *ctx, const struct plan_consumer *consumer, struct wanted *out)
{
    const struct cr_policy *policy = ctx->world->policy;
    cr_autofree struct cr_secret_status **secrets = cr_calloc(policy->secrets_len, sizeof(struct cr_secret_status *));
    cr_autofree struct cr_secret_change *as_if = cr_calloc(policy->secrets_len, sizeof *as_if);
    size_t len = 0;
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_usage_secrets(consumer->pod_spec, &used); /* of most policies' Secrets, one or two */
    for (size_t i = 0; i < policy->secrets_len; i++) {
        struct cr_secret_status *secret = cr_status_secret(&ctx->plan->status, policy->secrets[i].name);
        if (!secret->has_settled || !secret->settled.has_leaf || is_of_other_policy(consumer, i) ||
            !may_be_asked(&consumer->spec->verify, secret->name) || !cr_strvec_has(&used, secret->name))
            continue;
        secrets[len] = secret;
        as_if[len++] = (struct cr_secret_change){.secret = &policy->secrets[i], .changes = CR_CHANGE_LEAF_RENEWED};
    }
    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&(struct cr_decide_input){.consumer = consumer->spec,
                                        .pod_spec = consumer->pod_spec,
                                        .catalogue = ctx->world->catalogue,
                                        .changes = as_if,
                                        .changes_len = len},
              &decision);
    for (size_t i = 0; i < len; i++) {
        const struct cr_decision_secret *of = &decision.secrets[i];
        if (!of->used || !(of->roles & CR_ROLE_BIT(CR_ROLE_SERVER_LEAF)))
            continue;
        PLAN_PUSH(out->items, out->len, {.secret = secrets[i], .seen = true});
        out->max_delay_ms = of->max_delay_ms > out->max_delay_ms ? of->max_delay_ms : out->max_delay_ms;
    }
}

/* An endpoint that shows one of these says nothing of this Secret, unless the two have the same. */
static void find_others(const struct plan_ctx *ctx, struct wanted_secret *of)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec all = {0};
    for (size_t i = 0; i < ctx->plan->status.secrets_len; i++)
        if (&ctx->plan->status.secrets[i] != of->secret)
            cr_plan_add_leaves(&ctx->plan->status.secrets[i], &all);
    for (size_t i = 0; i < all.len; i++)
        if (!cr_streq(all.items[i], of->secret->settled.leaf))
            cr_strvec_add(&of->others, all.items[i]);
}

/* Another leaf, another Secret or another place to ask is another question. */
static void name_question(const struct plan_consumer *consumer, struct wanted *wanted)
{
    const struct cr_policy_verify *verify = &consumer->spec->verify;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < verify->endpoints_len; i++)
        cr_buf_printf(&text, "%d/%d/%s/%s\n", verify->endpoints[i].port, (int)verify->endpoints[i].protocol,
                      cr_or_empty(verify->endpoints[i].server_name), cr_or_empty(verify->endpoints[i].secret_name));
    cr_buf_printf(&text, "%s\n", cr_or_empty(verify->client_secret_name));
    for (size_t i = 0; i < wanted->len; i++)
        cr_buf_printf(&text, "%s=%s\n", wanted->items[i].secret->name, wanted->items[i].secret->settled.leaf);
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(cr_buf_text(&text), text.len, hex);
    snprintf(wanted->of, sizeof wanted->of, "%.*s", CR_VERIFICATION_OF - 1, hex);
}

/* Whether the consumer is idle: otherwise, what it may not have yet is the matter of a rotation or of a problem. */
static bool is_idle(const struct plan_consumer *consumer)
{
    const struct cr_consumer_status *status = consumer->status;
    return consumer->world->found && consumer->pod_spec && !cr_policy_kind_by_api(consumer->spec->kind) &&
           (status->state == CR_CONSUMER_IDLE || status->state == CR_CONSUMER_CONVERGED) && !status->gate.hold;
}

static bool is_any_under_way(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->len; i++)
        if (wanted->items[i].secret->pending.set || wanted->items[i].secret->problem_reason)
            return true;
    return false;
}

/* --- since when --- */

/* It has settled with this very plan: then it is asked for since it changed. 0: it has not. */
static int64_t settled_now_ms(const struct plan_ctx *ctx, const struct cr_secret_status *secret)
{
    for (size_t i = 0; i < ctx->changes_len; i++)
        if (ctx->pending[i] == secret)
            return secret->changed_ms;
    return 0;
}

static int64_t asked_since_ms(const struct plan_ctx *ctx, const struct wanted *wanted)
{
    int64_t since_ms = ctx->world->now_ms;
    for (size_t i = 0; i < wanted->len; i++) {
        int64_t changed_ms = settled_now_ms(ctx, wanted->items[i].secret);
        since_ms = changed_ms && changed_ms < since_ms ? changed_ms : since_ms;
    }
    return since_ms;
}

static void recall(const struct plan_ctx *ctx, const struct plan_consumer *consumer, struct wanted *wanted)
{
    if (strcmp(consumer->status->verification.of, wanted->of) == 0)
        wanted->before = consumer->status->verification;
    else
        wanted->before = (struct cr_verification){.since_ms = asked_since_ms(ctx, wanted)};
    memcpy(wanted->before.of, wanted->of, sizeof wanted->of);
    /* A clock that was set back must not make them of the future. */
    if (wanted->before.since_ms > ctx->world->now_ms)
        wanted->before.since_ms = ctx->world->now_ms;
    if (wanted->before.at_ms > ctx->world->now_ms)
        wanted->before.at_ms = ctx->world->now_ms;
}

/* The time that a probe must be later than to count: a covered pod has answered already, and a change does not become
 * one of the future because a clock was set back. */
static int64_t counts_since_ms(const struct plan_ctx *ctx, const struct wanted *wanted,
                               const struct cr_secret_status *secret, bool covered)
{
    if (covered)
        return wanted->before.at_ms;
    return secret->changed_ms <= ctx->world->now_ms ? secret->changed_ms : 0;
}

static int64_t begun_ms(const struct wanted *wanted, const struct cr_world_pod *pod)
{
    return pod->created_ms > wanted->before.since_ms ? pod->created_ms : wanted->before.since_ms;
}

static int64_t deadline_ms(const struct plan_consumer *consumer, const struct wanted *wanted,
                           const struct cr_world_pod *pod)
{
    int64_t wait_ms = consumer->spec->verify.timeout_ms;
    wait_ms = wait_ms < CR_KUBELET_REFRESH_MS ? CR_KUBELET_REFRESH_MS : wait_ms;
    return begun_ms(wanted, pod) + wait_ms + wanted->max_delay_ms;
}

/* --- one pod --- */

enum seen { SEEN_RIGHT, SEEN_INFERRED, SEEN_UNKNOWN, SEEN_OTHER, SEEN_APART };

/* It was there when all were seen. Times have whole seconds: of the last one others may follow. */
static bool is_covered(const struct wanted *wanted, const struct cr_world_pod *pod)
{
    return pod->created_ms && pod->created_ms < wanted->before.until_ms;
}

/* What the pod shows at its endpoints, of the Secret that shows the worst. */
static enum seen look(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct cr_world_pod *pod,
                      struct wanted *wanted, char why[WHY])
{
    enum seen worst = SEEN_RIGHT;
    bool covered = is_covered(wanted, pod);
    bool any = covered;
    for (size_t i = 0; i < wanted->len; i++) {
        const struct cr_secret_status *secret = wanted->items[i].secret;
        struct cr_shown_leaf shown;
        cr_sightings_judge(&(struct cr_sightings_input){.secret = secret->name,
                                                        .leaf = secret->settled.leaf,
                                                        .names = &secret->settled.names,
                                                        .others = &wanted->items[i].others,
                                                        .verify = &consumer->spec->verify,
                                                        .on_missing_name = cr_plan_on_missing_name(
                                                            ctx, secret->name, consumer->spec->verify.on_missing_name),
                                                        .sightings = pod->sightings,
                                                        .since_ms = counts_since_ms(ctx, wanted, secret, covered)},
                           &shown);
        enum seen seen = SEEN_RIGHT;
        if (shown.shown == CR_SHOWN_UNKNOWN)
            seen = shown.other ? SEEN_OTHER : covered ? SEEN_RIGHT : SEEN_UNKNOWN;
        wanted->items[i].seen = wanted->items[i].seen && shown.shown == CR_SHOWN_NEW;
        any = any || shown.shown != CR_SHOWN_NOTHING;
        if (seen > worst) {
            worst = seen;
            memcpy(why, shown.why, WHY);
        }
    }
    if (any)
        return worst;
    snprintf(why, WHY, "serves only leaves of Secrets that it does not use");
    return SEEN_OTHER;
}

static bool runs(const struct cr_world_pod *pod)
{
    return pod->started_ms && pod->ip;
}

/* Pods that have answered are known; a pod that comes later serves no client before it is ready. */
static bool is_apart(const struct wanted *wanted, const struct cr_world_pod *pod)
{
    return wanted->before.at_ms && (!runs(pod) || !pod->ready);
}

static enum seen judge(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct cr_world_pod *pod,
                       struct wanted *wanted, char why[WHY])
{
    enum seen seen = SEEN_UNKNOWN;
    if (runs(pod) && pod->sightings)
        seen = look(ctx, consumer, pod, wanted, why);
    else
        snprintf(why, WHY, "has not started yet");
    if (seen == SEEN_UNKNOWN && is_apart(wanted, pod))
        return SEEN_APART;
    if (seen == SEEN_UNKNOWN && consumer->spec->verify.on_unreachable == CR_ON_UNREACHABLE_INFER && runs(pod) &&
        cr_plan_asked_ms(consumer, pod) && ctx->world->now_ms >= deadline_ms(consumer, wanted, pod))
        return SEEN_INFERRED;
    return seen;
}

/* --- handshakes --- */

static int64_t pause_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct wanted *wanted,
                        const struct cr_world_pod *pod)
{
    int64_t age_ms = ctx->world->now_ms - begun_ms(wanted, pod);
    int64_t pause = cr_plan_probe_pause_ms(consumer, age_ms, consumer->spec->verify.endpoints_len);
    return age_ms >= LONG_MS && pause < LONG_PAUSE_MS ? LONG_PAUSE_MS : pause;
}

static void ask(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index,
                const struct wanted *wanted)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    if (!cr_plan_may_act(ctx) || !runs(pod))
        return;
    int64_t asked = cr_plan_asked_ms(consumer, pod);
    int64_t due = asked ? asked + pause_ms(ctx, consumer, wanted, pod) : 0;
    if (ctx->world->now_ms < due)
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
    else
        PLAN_PUSH(ctx->plan->probes, ctx->plan->probes_len, {.consumer = index, .pod = pod_index});
}

/* --- all pods of a consumer --- */

struct found {
    int right, inferred, unknown, other;
    bool late;         /* one of those without an answer is past its deadline */
    int64_t newest_ms; /* of those that were looked at */
    int64_t apart_ms;  /* the oldest of those that were not; 0: none */
};

static void add_example(struct cr_consumer_status *status, const struct cr_world_pod *pod, const char *why)
{
    if (status->examples.len >= CR_EXAMPLES_MAX)
        return;
    cr_autofree char *line = cr_asprintf("%s: %s", pod->name, why);
    cr_strvec_add(&status->examples, line);
}

static void note_late(struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct wanted *wanted,
                      const struct cr_world_pod *pod, struct found *found)
{
    int64_t left_ms = deadline_ms(consumer, wanted, pod) - ctx->world->now_ms;
    found->late = found->late || left_ms <= 0;
    if (left_ms > 0)
        cr_plan_requeue(ctx->plan, left_ms);
}

static void look_at_pods(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, struct wanted *wanted,
                         struct found *out)
{
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        const struct cr_world_pod *pod = &consumer->world->pods[i];
        char why[WHY] = "";
        enum seen seen = judge(ctx, consumer, pod, wanted, why);
        if (seen == SEEN_APART) {
            out->apart_ms = out->apart_ms && out->apart_ms < pod->created_ms ? out->apart_ms : pod->created_ms;
            continue;
        }
        out->right += seen == SEEN_RIGHT;
        out->inferred += seen == SEEN_INFERRED;
        out->unknown += seen == SEEN_UNKNOWN;
        out->other += seen == SEEN_OTHER;
        out->newest_ms = pod->created_ms > out->newest_ms ? pod->created_ms : out->newest_ms;
        if (seen == SEEN_RIGHT)
            continue;
        ask(ctx, consumer, index, i, wanted);
        if (seen == SEEN_INFERRED)
            continue;
        add_example(consumer->status, pod, why);
        note_late(ctx, consumer, wanted, pod, out);
    }
}

static char *names_of(const struct wanted *wanted)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    for (size_t i = 0; i < wanted->len; i++)
        cr_strvec_add(&names, wanted->items[i].secret->name);
    return cr_strvec_join(&names, ", ");
}

/* Owned by the caller. */
static struct cr_gate gate_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              const struct wanted *wanted, const struct found *found)
{
    int pods = found->right + found->inferred + found->unknown + found->other;
    cr_autofree char *names = names_of(wanted);
    cr_autofree char *examples = cr_strvec_join(&consumer->status->examples, "; ");
    CR_CLEANUP(plan_answer) struct plan_answer off = cr_plan_ask(ctx, consumer, PLAN_TO_ACT);
    if (found->other)
        return cr_gate_make(CR_HOLD_OTHER_CERTIFICATE,
                            "%d of %d pods serve another certificate than Secret %s holds (%s). No change was seen "
                            "since, so nothing is restarted for it: restart %s %s if it does not reload by itself",
                            found->other, pods, names, examples, consumer->spec->kind, consumer->spec->target);
    return cr_gate_make(CR_HOLD_NOT_VERIFIED,
                        "%d of %d pods have not been seen to serve the certificate that Secret %s holds (%s)%s%s",
                        found->unknown, pods, names, examples, off.gate.hold ? "; nobody asks them: " : "",
                        off.gate.hold ? off.gate.text : "");
}

/* After a rotation its counts stand as long as all is right: it may have been about more than a leaf shows. */
static bool are_counts_due(const struct plan_ctx *ctx, const struct cr_consumer_status *status,
                           const struct found *found)
{
    const struct cr_consumer_status *known = cr_plan_on_record(ctx->world->status, status);
    return !status->since_ms || found->unknown || found->other || (known && cr_hold_is_unseen(known->gate.hold));
}

static void set_counts(const struct plan_ctx *ctx, struct cr_consumer_status *status, const struct found *found)
{
    if (!are_counts_due(ctx, status, found))
        return;
    status->pods = (struct cr_pod_counts){.total = found->right + found->inferred + found->unknown + found->other,
                                          .verified = found->right,
                                          .inferred = found->inferred,
                                          .stale = found->other,
                                          .unknown = found->unknown};
}

/* Of the pods before that time all have answered: one that is not ready yet is still to be asked, though later ones
 * were. */
static int64_t seen_until_ms(const struct found *found)
{
    return found->apart_ms && found->apart_ms < found->newest_ms ? found->apart_ms : found->newest_ms;
}

/* What is inferred is tried again by the next process. */
static void remember(const struct plan_ctx *ctx, struct cr_consumer_status *status, const struct wanted *wanted,
                     const struct found *found)
{
    struct cr_verification after = wanted->before;
    bool all = !found->inferred && !found->unknown && !found->other;
    int64_t until_ms = seen_until_ms(found);
    if (all && (!after.at_ms || until_ms > after.until_ms))
        after.at_ms = ctx->world->now_ms;
    if (all && until_ms > after.until_ms)
        after.until_ms = until_ms;
    status->verification = after;
}

/* False: there is nothing to ask it for. */
static bool look_at_consumer(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, struct wanted *wanted)
{
    find_served(ctx, consumer, wanted);
    if (!wanted->len || is_any_under_way(wanted))
        return false;
    for (size_t i = 0; i < wanted->len; i++)
        find_others(ctx, &wanted->items[i]);
    name_question(consumer, wanted);
    recall(ctx, consumer, wanted);
    struct found found = {0};
    cr_strvec_dispose(&consumer->status->examples);
    look_at_pods(ctx, consumer, index, wanted, &found);
    wanted->any_pod = found.right > 0;
    set_counts(ctx, consumer->status, &found);
    remember(ctx, consumer->status, wanted, &found);
    consumer->unseen_late = found.late;
    if (!found.unknown && !found.other)
        return true;
    cr_plan_set_stand(consumer->status,
                      cr_plan_stand_by(CR_CONSUMER_VERIFYING, gate_of(ctx, consumer, wanted, &found)));
    return true;
}

/* --- what is known of a Secret by that --- */

static bool was_seen(const struct wanted *wanted, const struct plan_consumer *consumer, const char *secret)
{
    for (size_t i = 0; i < wanted->len; i++)
        if (cr_streq(wanted->items[i].secret->name, secret))
            return wanted->items[i].seen && wanted->any_pod && !consumer->status->gate.hold;
    return false;
}

static bool uses(const struct plan_consumer *consumer, const char *secret)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    if (consumer->world->found)
        cr_usage_of_object(consumer->spec->kind, consumer->world->workload, &used);
    return cr_strvec_has(&used, secret) || cr_policy_kind_runs_to_end(consumer->spec->kind);
}

/* All pods that use it were seen to serve it, and there is at least one. */
static bool is_verified(const struct plan_ctx *ctx, const struct wanted *wanted, const char *secret)
{
    bool any = false;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        if (!uses(&ctx->consumers[i], secret))
            continue;
        if (!was_seen(&wanted[i], &ctx->consumers[i], secret))
            return false;
        any = true;
    }
    return any;
}

static void note_levels(struct plan_ctx *ctx, const struct wanted *wanted)
{
    for (size_t i = 0; i < ctx->plan->status.secrets_len; i++) {
        struct cr_secret_status *secret = &ctx->plan->status.secrets[i];
        if (secret->has_settled && secret->settled.has_leaf && !secret->pending.set && !secret->problem_reason &&
            secret->leaf_by == CR_SETTLED_FIRST_SIGHT && is_verified(ctx, wanted, secret->name))
            secret->leaf_by = CR_SETTLED_VERIFIED;
    }
}

void cr_plan_verification(struct plan_ctx *ctx)
{
    struct wanted *wanted = cr_calloc(ctx->consumers_len, sizeof *wanted);
    bool any = false;
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        struct plan_consumer *consumer = &ctx->consumers[i];
        if (!consumer->spec->verify.endpoints_len)
            consumer->status->verification = (struct cr_verification){0};
        else if (is_idle(consumer))
            any = look_at_consumer(ctx, consumer, i, &wanted[i]) || any;
    }
    if (any)
        note_levels(ctx, wanted);
    for (size_t i = 0; i < ctx->consumers_len; i++)
        wanted_dispose(&wanted[i]);
    free(wanted);
}
