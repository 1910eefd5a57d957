/* What each pod is known to have of each change: by what it shows, by its start, by time alone. And what follows from
 * old material that was seen for too long: the fall-back to a restart. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { WHY = CR_SHOWN_WHY };

/* The change, or its restart. */
static int64_t begun_ms(const struct plan_consumer *consumer, const struct plan_change *change)
{
    bool restarted = change->classes && change->covered && consumer->status->last_restart_ms > change->since_ms;
    return restarted ? consumer->status->last_restart_ms : change->since_ms;
}

int64_t cr_plan_deadline_ms(const struct plan_consumer *consumer, const struct plan_change *change)
{
    /* Also without the right to nudge, the kubelet must have had the time to refresh by itself. */
    int64_t wait = consumer->spec->verify.timeout_ms;
    if (wait < CR_KUBELET_REFRESH_MS)
        wait = CR_KUBELET_REFRESH_MS;
    return begun_ms(consumer, change) + wait + change->max_delay_ms;
}

/* A new pod has that time from when it came: where each waits for the end of an old one, which may drain for minutes,
 * the last comes long after the restart. */
static int64_t later_ms(const struct plan_consumer *consumer, const struct plan_change *change,
                        const struct cr_world_pod *pod)
{
    int64_t begun = begun_ms(consumer, change);
    return change->classes && pod->created_ms > begun ? pod->created_ms - begun : 0;
}

/* The pod of a workload that is restarted by time came after its last restart. */
static bool is_since_restart(const struct plan_consumer *consumer, const struct cr_world_pod *pod)
{
    return pod->created_ms && pod->created_ms >= cr_plan_restarted_at_ms(consumer->world->workload);
}

/* The pod's template already had what this consumer is restarted for, or the pod came by an eviction for it. */
bool cr_plan_pod_is_new(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                        const struct cr_world_pod *pod, size_t change)
{
    if (cr_plan_came_by_eviction(consumer, pod))
        return true;
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(ctx->changes[change].secret->name, name);
    const struct cr_json *workload = consumer->world->workload;
    const char *value;
    if (!cr_plan_restarts_by_time(consumer))
        value = cr_restart_annotation_read(cr_json_at(pod->pod, "metadata", "annotations"), name,
                                           cr_json_string_at(workload, "metadata", "uid"));
    else
        value = is_since_restart(consumer, pod) ? cr_restart_annotation_of(workload, name) : NULL;
    if (cr_restart_annotation_covers(value, &ctx->pending[change]->pending.target, consumer->changes[change].classes))
        return true;
    /* The template may be known to be right by other means than its digests. */
    return value && consumer->changes[change].covered && cr_streq(value, cr_restart_annotation_of(workload, name));
}

bool cr_plan_created_since(const struct cr_world_pod *pod, int64_t since_ms)
{
    /* Creation times have whole seconds. */
    return pod->created_ms && pod->created_ms / 1000 >= since_ms / 1000;
}

void cr_plan_add_leaves(const struct cr_secret_status *secret, struct cr_strvec *out)
{
    if (secret->has_settled && secret->settled.leaf[0])
        cr_strvec_add(out, secret->settled.leaf);
    if (!secret->pending.set)
        return;
    if (secret->pending.target.leaf[0])
        cr_strvec_add(out, secret->pending.target.leaf);
    for (size_t k = 0; k < secret->pending.old_leaves.len; k++)
        cr_strvec_add(out, secret->pending.old_leaves.items[k]);
}

/* The leaves of the policy's other Secrets: what shows one of them says nothing about this change. */
static void leaves_of_others(const struct plan_ctx *ctx, size_t change, struct cr_strvec *out)
{
    const struct cr_policy_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->secrets_len; i++)
        if (&status->secrets[i] != ctx->pending[change])
            cr_plan_add_leaves(&status->secrets[i], out);
}

/* What is the same for all pods of a consumer when they are looked at for one change. */
struct look {
    struct cr_strvec others;
    struct plan_trust_look trust;
    struct plan_trigger_look trigger;
};

/* What one pod shows of one change. */
struct shown {
    struct cr_shown_leaf leaf;
    struct cr_shown_leaf trust;
    bool found; /* by its certroll-sidecar */
};

static bool can_look(const struct plan_consumer *consumer, size_t change)
{
    return consumer->spec->verify.endpoints_len && consumer->changes[change].leaf_changed;
}

static void look_at_leaf(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                         const struct cr_world_pod *pod, size_t change, const struct cr_strvec *others,
                         struct cr_shown_leaf *shown)
{
    const struct cr_pending_change *pending = &ctx->pending[change]->pending;
    *shown = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (!can_look(consumer, change))
        return;
    const struct cr_material *target = cr_plan_target(ctx, change);
    struct cr_sightings_input input = {.secret = ctx->pending[change]->name,
                                       .leaf = pending->target.leaf,
                                       .names = target ? &target->names : NULL,
                                       .old = &pending->old_leaves,
                                       .others = others,
                                       .verify = &consumer->spec->verify,
                                       .on_missing_name = cr_plan_on_missing_name(
                                           ctx, ctx->pending[change]->name, consumer->spec->verify.on_missing_name),
                                       .sightings = pod->sightings,
                                       .since_ms = consumer->changes[change].since_ms};
    cr_sightings_judge(&input, shown);
}

/* A leaf that is served stands for the one that is presented, too, unless a page shows the old one. A page that cannot
 * be read proves nothing. */
static void add_page_leaf(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                          const struct cr_world_pod *pod, size_t change, struct cr_shown_leaf *shown)
{
    struct cr_shown_leaf page;
    cr_plan_look_at_page_leaf(ctx, consumer, pod, change, &page);
    if (page.shown == CR_SHOWN_OLD || (page.shown == CR_SHOWN_NEW && shown->shown == CR_SHOWN_NOTHING))
        *shown = page;
}

static void look_at(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct cr_world_pod *pod,
                    size_t change, const struct look *look, struct shown *out)
{
    look_at_leaf(ctx, consumer, pod, change, &look->others, &out->leaf);
    add_page_leaf(ctx, consumer, pod, change, &out->leaf);
    cr_plan_look_at_trust(ctx, consumer, pod, change, &look->trust, &out->trust);
    cr_plan_look_at_sidecar(ctx, consumer, pod, change, &look->trigger, &out->leaf, &out->trust, &out->found);
}

/* The pod came up by other means than our restart, so late that its volume cannot be the old one, or it shows the new
 * leaf and reads a leaf only at its start: it has all that a restart would bring. */
static bool renewed_by_others(const struct plan_consumer *consumer, const struct cr_world_pod *pod, size_t change,
                              const struct cr_shown_leaf *shown)
{
    const struct plan_change *c = &consumer->changes[change];
    if (!cr_plan_created_since(pod, c->since_ms))
        return false;
    if (pod->created_ms >= c->since_ms + CR_KUBELET_REFRESH_MS)
        return true;
    return shown->shown == CR_SHOWN_NEW && (c->classes & CR_CLASS_LEAF) && c->demanded;
}

/* By its looks alone: the time that passed and a later start prove nothing. */
static enum cr_evidence judge_immutable(const struct shown *shown, char why[WHY])
{
    bool old = shown->leaf.shown == CR_SHOWN_OLD || shown->trust.shown == CR_SHOWN_OLD;
    if (!old && (shown->leaf.shown == CR_SHOWN_NEW || shown->trust.shown == CR_SHOWN_NEW))
        return CR_EVIDENCE_VERIFIED;
    snprintf(why, WHY,
             old ? "has the old content of an immutable Secret" : "may have the old content of an immutable Secret");
    return old ? CR_EVIDENCE_STALE : CR_EVIDENCE_UNKNOWN;
}

static bool is_trust_alone(const struct plan_consumer *consumer, size_t change)
{
    const struct cr_decision_secret *secret = &consumer->decision.secrets[change];
    return (secret->restart_classes | secret->reload_classes) == CR_CLASS_TRUST;
}

/* A policy that asks for a probe is not satisfied without one: a wrong port, or a NetworkPolicy, would pass for proof.
 */
static bool may_infer(const struct cr_policy_verify *verify)
{
    bool is_asked_for = verify->endpoints_len || verify->certs_port;
    return !is_asked_for || verify->on_unreachable == CR_ON_UNREACHABLE_INFER;
}

static enum cr_evidence judge_accepted(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                       const struct cr_world_pod *pod, size_t change, const struct shown *shown,
                                       char why[WHY])
{
    const struct plan_change *c = &consumer->changes[change];
    if (c->is_immutable)
        return judge_immutable(shown, why);
    bool by_others = c->classes && renewed_by_others(consumer, pod, change, &shown->leaf);
    bool annotated = c->classes && cr_plan_pod_is_new(ctx, consumer, pod, change);
    /* Annotated for this material but up since before the change: it was taken back to what the pod was last restarted
     * for. What it read once is right already, the rest reloads. */
    bool evicted = c->classes && cr_plan_came_by_eviction(consumer, pod);
    bool restarts = c->classes && (evicted || !annotated || cr_plan_created_since(pod, c->since_ms));
    bool is_new = restarts && (by_others || annotated);

    struct cr_evidence_input input = {
        .shown = &shown->leaf,
        .trust = c->trust_roles || (c->notified & CR_CLASS_TRUST) ? &shown->trust : NULL,
        .trust_alone = is_trust_alone(consumer, change),
        .trust_notified = c->notified & CR_CLASS_TRUST,
        .restarted = restarts,
        .pod_is_new = is_new,
        /* A pod that starts at all starts after its creation. */
        .pod_started_ms = pod->started_ms ? pod->created_ms : 0,
        .since_ms = c->since_ms,
        .now_ms = ctx->world->now_ms,
        .max_delay_ms = c->max_delay_ms,
    };
    /* What came by an eviction for this change came after it, whatever clocks say. */
    if (evicted && pod->started_ms && pod->created_ms <= c->since_ms)
        input.pod_started_ms = c->since_ms;
    enum cr_evidence evidence = cr_evidence_judge(&input, why);
    if (evidence == CR_EVIDENCE_STALE && restarts && !is_new && cr_plan_created_since(pod, c->since_ms))
        snprintf(why, WHY, "came up after the change, but too soon to be sure that it mounted the new Secret");
    /* A pod that started with the new template but cannot be reached: in the end its start is what there is to go by.
     */
    if (evidence == CR_EVIDENCE_UNKNOWN && is_new && pod->started_ms && may_infer(&consumer->spec->verify) &&
        ctx->world->now_ms >= cr_plan_deadline_ms(consumer, c) + later_ms(consumer, c, pod))
        return CR_EVIDENCE_INFERRED;
    return evidence;
}

/* Software that takes no such leaf keeps the old one, or stands still, however long it had. */
static enum cr_evidence judge(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              const struct cr_world_pod *pod, size_t change, const struct shown *shown, char why[WHY])
{
    enum cr_evidence evidence = judge_accepted(ctx, consumer, pod, change, shown, why);
    if (evidence != CR_EVIDENCE_INFERRED || !consumer->changes[change].not_accepted)
        return evidence;
    snprintf(why, WHY, "takes no leaf with a key of this type");
    return CR_EVIDENCE_UNKNOWN;
}

const struct plan_evidence *cr_plan_evidence_at(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                                size_t pod, size_t change)
{
    return &consumer->evidence[pod * ctx->changes_len + change];
}

static int badness(enum cr_evidence evidence)
{
    static const int order[] = {
        [CR_EVIDENCE_VERIFIED] = 0, [CR_EVIDENCE_INFERRED] = 1, [CR_EVIDENCE_UNKNOWN] = 2, [CR_EVIDENCE_STALE] = 3};
    return order[evidence];
}

static void count(struct cr_pod_counts *counts, enum cr_evidence evidence)
{
    int *const slots[] = {[CR_EVIDENCE_VERIFIED] = &counts->verified,
                          [CR_EVIDENCE_INFERRED] = &counts->inferred,
                          [CR_EVIDENCE_STALE] = &counts->stale,
                          [CR_EVIDENCE_UNKNOWN] = &counts->unknown};
    counts->total++;
    ++*slots[evidence];
}

static int64_t later(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* A pod is as good as the worst of what is known of it. looks, out: parallel to the changes. */
static enum cr_evidence judge_pod(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                  const struct cr_world_pod *pod, const struct look *looks, struct plan_evidence *out,
                                  char why[WHY])
{
    enum cr_evidence worst = CR_EVIDENCE_VERIFIED;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->changes[k].concerns)
            continue;
        char reason[WHY] = "";
        struct shown shown;
        look_at(ctx, consumer, pod, k, &looks[k], &shown);
        enum cr_evidence evidence = judge(ctx, consumer, pod, k, &shown, reason);
        out[k] = (struct plan_evidence){.evidence = evidence,
                                        .leaf = shown.leaf.shown,
                                        .trust = shown.trust.shown,
                                        .old_leaf_ms = shown.leaf.old_ms,
                                        .old_trust_ms = shown.trust.old_ms,
                                        .old_ms = later(shown.leaf.old_ms, shown.trust.old_ms),
                                        .found = shown.found};
        if (badness(evidence) > badness(worst)) {
            worst = evidence;
            memcpy(why, reason, WHY);
        }
    }
    return worst;
}

static struct look *prepare_looks(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct look *looks = cr_calloc(ctx->changes_len, sizeof *looks);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        if (!consumer->changes[k].concerns)
            continue;
        if (can_look(consumer, k))
            leaves_of_others(ctx, k, &looks[k].others);
        cr_plan_trust_look_make(ctx, consumer, k, &looks[k].trust);
        cr_plan_trigger_look_make(ctx, consumer, k, &looks[k].trigger);
    }
    return looks;
}

/* Time alone changes something then. */
static void look_when(int64_t at_ms, int64_t now_ms, int64_t *look_again_ms)
{
    if (at_ms > now_ms)
        *look_again_ms = cr_plan_sooner_ms(*look_again_ms, at_ms - now_ms);
}

/* A pod without evidence has it, or is late, by the time alone. evidence: of the pod, by change. */
static void await_pod(const struct plan_ctx *ctx, const struct plan_consumer *consumer, const struct cr_world_pod *pod,
                      const struct plan_evidence *evidence, int64_t *look_again_ms)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || badness(evidence[k].evidence) <= badness(CR_EVIDENCE_INFERRED))
            continue;
        look_when(change->since_ms + CR_KUBELET_REFRESH_MS + change->max_delay_ms, ctx->world->now_ms, look_again_ms);
        look_when(cr_plan_deadline_ms(consumer, change) + later_ms(consumer, change, pod), ctx->world->now_ms,
                  look_again_ms);
    }
}

/* Also a pod that is missing is late then. */
static void await_deadlines(const struct plan_ctx *ctx, const struct plan_consumer *consumer, int pods,
                            int64_t *look_again_ms)
{
    for (size_t k = 0; k < ctx->changes_len && pods < consumer->rollout.desired; k++)
        if (consumer->changes[k].concerns)
            look_when(cr_plan_deadline_ms(consumer, &consumer->changes[k]), ctx->world->now_ms, look_again_ms);
}

struct plan_found cr_plan_evidence(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    size_t pods = consumer->world->pods_len;
    struct plan_found out = {.evidence = cr_calloc(pods * ctx->changes_len, sizeof *out.evidence)};
    cr_autofree struct look *looks = prepare_looks(ctx, consumer);
    for (size_t i = 0; i < pods; i++) {
        char why[WHY] = "";
        const struct cr_world_pod *pod = &consumer->world->pods[i];
        enum cr_evidence evidence = judge_pod(ctx, consumer, pod, looks, &out.evidence[i * ctx->changes_len], why);
        count(&out.pods, evidence);
        await_pod(ctx, consumer, pod, &out.evidence[i * ctx->changes_len], &out.look_again_ms);
        if (badness(evidence) < badness(CR_EVIDENCE_UNKNOWN) || out.examples.len >= CR_EXAMPLES_MAX)
            continue;
        cr_autofree char *line = cr_asprintf("%s: %s", pod->name, why);
        cr_strvec_add(&out.examples, line);
    }
    await_deadlines(ctx, consumer, out.pods.total, &out.look_again_ms);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        cr_strvec_dispose(&looks[k].others);
        cr_plan_trust_look_dispose(&looks[k].trust);
        cr_plan_trigger_look_dispose(&looks[k].trigger);
    }
    return out;
}

bool cr_plan_enough_pods(const struct plan_consumer *consumer)
{
    return consumer->status->pods.total >= consumer->rollout.desired;
}

/* No pods: inferred from the longest delay alone, since no kubelet stands between the Secret and the controller that
 * watches it. */
static int64_t delay_ends_ms(const struct plan_change *change)
{
    return change->since_ms + change->max_delay_ms;
}

int64_t cr_plan_delay_left_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t first_ms = 0;
    for (size_t k = 0; cr_policy_kind_by_api(consumer->spec->kind) && k < ctx->changes_len; k++) {
        if (consumer->changes[k].concerns)
            look_when(delay_ends_ms(&consumer->changes[k]), ctx->world->now_ms, &first_ms);
    }
    return first_ms;
}

static bool all_have_evidence(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    if (!cr_plan_enough_pods(consumer))
        return false;
    for (size_t i = 0; i < consumer->world->pods_len; i++)
        if (badness(cr_plan_evidence_at(ctx, consumer, i, change)->evidence) > badness(CR_EVIDENCE_INFERRED))
            return false;
    return true;
}

/* They show all that is new. Nothing shows opaque material. */
static bool all_show_it(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    const struct cr_decision_secret *secret = &consumer->decision.secrets[change];
    unsigned classes = secret->restart_classes | secret->reload_classes;
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        const struct plan_evidence *evidence = cr_plan_evidence_at(ctx, consumer, i, change);
        if (((classes & CR_CLASS_LEAF) && evidence->leaf != CR_SHOWN_NEW) ||
            ((classes & CR_CLASS_TRUST) && evidence->trust != CR_SHOWN_NEW) || (classes & CR_CLASS_OPAQUE))
            return false;
    }
    return true;
}

/* It is decided by the template that the software reloads. Pods of another one may be a version that reads once, so
 * time alone proves nothing. What is restarted for needs new pods in any case. */
static bool is_of_others(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    return consumer->rollout.mixed && !consumer->changes[change].classes && !all_show_it(ctx, consumer, change);
}

bool cr_plan_pods_have(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change)
{
    if (cr_policy_kind_by_api(consumer->spec->kind))
        return ctx->world->now_ms >= delay_ends_ms(&consumer->changes[change]);
    return all_have_evidence(ctx, consumer, change) && !is_of_others(ctx, consumer, change);
}

bool cr_plan_awaits_template(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && !all_have_evidence(ctx, consumer, k))
            return false;
    return consumer->rollout.mixed;
}

/* Pods come and go for other reasons, too: each has its own time, and only those without evidence are asked for it.
 * Where one is missing, its place may have to wait for an old pod to drain. */
bool cr_plan_past_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    bool late = !cr_plan_enough_pods(consumer) && !cr_plan_drains(consumer);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        int64_t left_ms = cr_plan_deadline_ms(consumer, change) - ctx->world->now_ms;
        if (change->concerns && left_ms > 0)
            return false;
        for (size_t i = 0; change->concerns && !late && i < consumer->world->pods_len; i++)
            late = badness(cr_plan_evidence_at(ctx, consumer, i, k)->evidence) > badness(CR_EVIDENCE_INFERRED) &&
                   left_ms + later_ms(consumer, change, &consumer->world->pods[i]) <= 0;
    }
    return late;
}

/* --- the fall-back: what was to be reloaded was seen not to be, and is restarted for --- */

/* Pods that were seen, after the deadline and lately, to have the old material of this change, in one of the classes.
 */
static int late_pods(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change, unsigned class)
{
    int late = 0;
    int64_t deadline = cr_plan_deadline_ms(consumer, &consumer->changes[change]);
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        const struct plan_evidence *evidence = cr_plan_evidence_at(ctx, consumer, i, change);
        int64_t seen_ms = class == CR_CLASS_TRUST ? evidence->old_trust_ms : evidence->old_leaf_ms;
        late += evidence->evidence == CR_EVIDENCE_STALE && seen_ms >= deadline &&
                cr_plan_seen_old_lately(ctx, consumer, i, change);
    }
    return late;
}

/* Pods of the class that has most of them. *classes: those that have any. */
static int count_late(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k, unsigned *classes)
{
    int most = 0;
    unsigned reloads = consumer->decision.secrets[k].reload_classes & CR_PLAN_FALLS_BACK;
    *classes = 0;
    for (unsigned class = CR_CLASS_LEAF; class <= CR_CLASS_TRUST; class <<= 1) {
        int late = reloads & class ? late_pods(ctx, consumer, k, class) : 0;
        *classes |= late ? class : 0u;
        most = late > most ? late : most;
    }
    return most;
}

/* In words. classes: of the old material that is still there. */
static char *say_late(const struct plan_consumer *consumer, int late, unsigned classes)
{
    return cr_asprintf(
        "%d of %d pods %s past the deadline, so %s did not happen: restart. (Expected was: %s)", late,
        consumer->status->pods.total, classes & CR_CLASS_LEAF ? "still serve the old leaf" : "still go by the old CAs",
        consumer->decision.kind == CR_DECISION_TRIGGER ? "the reload by its certroll-sidecar" : "hot reload",
        cr_or_empty(consumer->decision.reason));
}

/* Hot reload was expected, did not happen, and old material is positively still there; or it was, and the replacements
 * of the pods that had it are still to come. */
struct plan_fall_back cr_plan_fall_back(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct plan_fall_back out = {0};
    int most = 0;
    unsigned all = 0;
    if (!cr_plan_may_act(ctx) || consumer->spec->verify.on_timeout == CR_ON_TIMEOUT_REPORT)
        return out;
    out.classes = cr_calloc(ctx->changes_len, sizeof *out.classes);
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || change->classes)
            continue;
        unsigned seen = 0;
        int late = count_late(ctx, consumer, k, &seen);
        bool evicted = !late && cr_plan_was_evicted_for(ctx, consumer, k);
        out.classes[k] = evicted ? consumer->decision.secrets[k].reload_classes & CR_PLAN_FALLS_BACK : seen;
        out.any = out.any || late || evicted;
        most = late > most ? late : most;
        all |= seen;
        look_when(cr_plan_deadline_ms(consumer, change), ctx->world->now_ms, &out.look_again_ms);
    }
    out.reason = most ? say_late(consumer, most, all) : NULL;
    return out;
}
