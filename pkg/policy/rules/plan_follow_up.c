/* What is done for pods: made to refresh, looked at, and, rarely, replaced. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"

enum {
    PROBED_NUDGES_MAX = 12, /* a pod that shows the old leaf is nudged again, slower and slower */
    BLIND_NUDGES_MAX = 3,   /* where nothing can be seen, enough to win the race with the kubelet's Secret watch */
    OLD_POD_NUDGES_MAX = 1, /* the old pods of a restart go soon: one lets them serve the new leaf meanwhile */
    AWAITED_NUDGES_MAX = 4, /* but for those that wait for their kubelets (plan_kubelet_cache.c) */
    PROBE_SLACK_MS = 5000,  /* a probe's own time-out, and the queue */
    PROBES_PER_SECOND = 250,
    LONG_HELD_MS = 60 * 60 * 1000, /* a window or a budget may hold a restart for days */
    LONG_HELD_PAUSE_MS = 5 * 60 * 1000,
    PAUSE_WITHOUT_EVIDENCE_MS = 2000,
    RECORD_MS = 3000, /* a trust domain writes, and has that on record, within a second */
    RECORD_PAUSE_MS = 100,
};

/* --- nudges --- */

/* A look at the pod may show the change. */
static bool can_be_seen(const struct plan_consumer *consumer, const struct cr_world_pod *pod, size_t k)
{
    const struct plan_change *change = &consumer->changes[k];
    return (consumer->spec->verify.endpoints_len && change->leaf_changed) || change->notified ||
           cr_plan_can_see_trust(consumer, pod, k);
}

static int nudges_max(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod, size_t k)
{
    const struct plan_change *change = &consumer->changes[k];
    if (change->classes)
        return cr_plan_awaits_kubelet(ctx, consumer, pod) ? AWAITED_NUDGES_MAX : OLD_POD_NUDGES_MAX;
    return can_be_seen(consumer, &consumer->world->pods[pod], k) ? PROBED_NUDGES_MAX : BLIND_NUDGES_MAX;
}

/* The pod is one that the restart for this change brought. */
static bool came_up_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod, size_t change)
{
    const struct cr_world_pod *p = &consumer->world->pods[pod];
    const struct plan_change *c = &consumer->changes[change];
    return c->classes && cr_plan_created_since(p, c->since_ms) && cr_plan_pod_is_new(ctx, consumer, p, change);
}

/* How often this pod may be nudged; 0 when it would not help. */
static int nudges_wanted(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    int wanted = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_decision_secret *secret = &consumer->decision.secrets[k];
        const struct plan_change *change = &consumer->changes[k];
        enum cr_evidence evidence = cr_plan_evidence_at(ctx, consumer, pod, k)->evidence;
        if (!change->concerns || change->not_accepted || !secret->refreshes || !secret->reload_classes ||
            evidence == CR_EVIDENCE_VERIFIED || evidence == CR_EVIDENCE_INFERRED ||
            cr_plan_evidence_at(ctx, consumer, pod, k)->found)
            continue;
        /* A new pod that shows old material must not be refreshed: what it read once would stay old, unseen. */
        if (came_up_for(ctx, consumer, pod, k))
            return 0;
        int max = nudges_max(ctx, consumer, pod, k);
        if (max > wanted)
            wanted = max;
    }
    return wanted;
}

/* A kubelet that is nudged now would read what another program has put there, which its domain is about to replace. */
static bool awaits_record(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].concerns && cr_plan_awaits_record(ctx, consumer, k, RECORD_MS))
            return true;
    return false;
}

static void maybe_nudge(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    static const int64_t pauses_ms[] = {0, 1000, 2000, 3000, 5000, 8000, 15000, 30000};
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    int64_t now = ctx->world->now_ms;
    int nudges = pod->nudged_since_ms == consumer->since_ms ? pod->nudges : 0;
    if (!pod->started_ms || nudges >= nudges_wanted(ctx, consumer, pod_index))
        return;
    if (awaits_record(ctx, consumer)) {
        cr_plan_requeue(ctx->plan, RECORD_PAUSE_MS);
        return;
    }
    size_t step = (size_t)nudges < cr_array_len(pauses_ms) ? (size_t)nudges : cr_array_len(pauses_ms) - 1;
    int64_t due = nudges ? pod->nudged_ms + pauses_ms[step] : 0;
    if (now < due && pod->nudged_ms <= now) {
        cr_plan_requeue(ctx->plan, due - now);
        return;
    }
    PLAN_PUSH(ctx->plan->nudges, ctx->plan->nudges_len, {.consumer = index, .pod = pod_index});
}

/* --- probes --- */

/* A database forks a process for each connection or counts it, and a client's key is fetched for each round. */
static bool asks_much(const struct cr_policy_verify *verify)
{
    bool much = verify->client_secret_name != NULL;
    for (size_t i = 0; i < verify->endpoints_len; i++)
        much = much || verify->endpoints[i].protocol != CR_PROBE_TLS;
    return much;
}

/* The only changes are of CAs, and a probe has looked and seen nothing of them: a server that asks its clients for
 * nothing goes on to do so. Only a canary may come to help. */
static bool shows_no_evidence(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (change->concerns &&
            ((change->leaf_changed && consumer->spec->verify.endpoints_len) || change->leaf_presented ||
             change->notified || cr_plan_evidence_at(ctx, consumer, pod, k)->trust != CR_SHOWN_NOTHING))
            return false;
    }
    return true;
}

/* The change, its restart, or the newest pod that this has brought: it may have had to wait for an old one to drain. */
static int64_t newest_ms(const struct plan_consumer *consumer)
{
    int64_t newest =
        consumer->status->last_restart_ms > consumer->since_ms ? consumer->status->last_restart_ms : consumer->since_ms;
    for (size_t i = 0; (consumer->restarted || consumer->evicts) && i < consumer->world->pods_len; i++)
        if (consumer->world->pods[i].created_ms > newest)
            newest = consumer->world->pods[i].created_ms;
    return newest;
}

int64_t cr_plan_probe_pause_ms(const struct plan_consumer *consumer, int64_t age_ms, size_t places)
{
    int64_t pause_ms = asks_much(&consumer->spec->verify) ? 1000 : 200;
    if (age_ms >= 10 * 60 * 1000)
        pause_ms = 30 * 1000;
    else if (age_ms >= 2 * 60 * 1000)
        pause_ms = 5000;
    else if (age_ms >= 15 * 1000)
        pause_ms = 1000;
    /* Many pods are asked less often: a handshake costs either side about a millisecond. */
    int64_t least_ms = (int64_t)(consumer->world->pods_len * places) * 1000 / PROBES_PER_SECOND;
    return pause_ms > least_ms ? pause_ms : least_ms;
}

/* A gate holds its restart, as far as is on record or planned. */
static bool is_held(const struct plan_consumer *consumer)
{
    const struct cr_consumer_status *status = consumer->status;
    return status->gate.hold && (status->state == CR_CONSUMER_PENDING || status->state == CR_CONSUMER_BLOCKED);
}

static int64_t probe_interval_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_policy_verify *verify = &consumer->spec->verify;
    size_t places = verify->endpoints_len + (verify->certs_port != 0) + (cr_plan_sidecar_port(ctx, consumer) != 0);
    int64_t age_ms = ctx->world->now_ms - newest_ms(consumer);
    int64_t pause_ms = cr_plan_probe_pause_ms(consumer, age_ms, places);
    return age_ms >= LONG_HELD_MS && pause_ms < LONG_HELD_PAUSE_MS && is_held(consumer) ? LONG_HELD_PAUSE_MS : pause_ms;
}

bool cr_plan_seen_old_lately(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod,
                             size_t change)
{
    int64_t seen_ms = cr_plan_evidence_at(ctx, consumer, pod, change)->old_ms;
    return seen_ms && seen_ms <= ctx->world->now_ms &&
           ctx->world->now_ms - seen_ms <= 2 * probe_interval_ms(ctx, consumer) + PROBE_SLACK_MS;
}

/* Whether a look at this pod can show anything: whatever an old pod of a demanded restart shows, it goes, unless its
 * kubelet is waited for. */
static bool worth_a_look(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (!change->concerns || !can_be_seen(consumer, pod, k) ||
            cr_plan_evidence_at(ctx, consumer, pod_index, k)->evidence == CR_EVIDENCE_VERIFIED)
            continue;
        if (!change->demanded || cr_plan_created_since(pod, change->since_ms) ||
            cr_plan_pod_is_new(ctx, consumer, pod, k))
            return true;
    }
    return cr_plan_awaits_kubelet(ctx, consumer, pod_index);
}

/* All endpoints are asked in one go. */
int64_t cr_plan_asked_ms(const struct plan_consumer *consumer, const struct cr_world_pod *pod)
{
    int64_t first_ms = 0;
    for (size_t i = 0; i < consumer->spec->verify.endpoints_len; i++)
        if (i == 0 || pod->sightings[i].at_ms < first_ms)
            first_ms = pod->sightings[i].at_ms;
    return first_ms;
}

static bool wants_trust(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                        const struct cr_world_pod *pod)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (cr_plan_can_see_trust(consumer, pod, k))
            return true;
    return false;
}

/* When the parts of a probe were last looked at: the time of the part that was looked at the longest ago; 0: one never
 * was. */
struct asked {
    bool any;
    int64_t at_ms;
};

static void add_look(struct asked *asked, int64_t at_ms)
{
    if (!asked->any || at_ms < asked->at_ms)
        asked->at_ms = at_ms;
    asked->any = true;
}

static int64_t looked_ms(const struct plan_consumer *consumer, const struct cr_world_pod *pod,
                         const struct cr_plan_pod *probe)
{
    struct asked asked = {0};
    if (consumer->spec->verify.endpoints_len)
        add_look(&asked, cr_plan_asked_ms(consumer, pod));
    if (probe->trust)
        add_look(&asked, pod->trust->at_ms);
    if (probe->sidecar_port)
        add_look(&asked, pod->sidecar ? pod->sidecar->at_ms : 0);
    return asked.at_ms;
}

static void maybe_probe(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    if (!pod->ip || !pod->started_ms || !worth_a_look(ctx, consumer, pod_index))
        return;
    struct cr_plan_pod probe = {.consumer = index,
                                .pod = pod_index,
                                .trust = wants_trust(ctx, consumer, pod),
                                .sidecar_port = cr_plan_sidecar_port(ctx, consumer)};
    int64_t asked = looked_ms(consumer, pod, &probe);
    int64_t pause_ms = probe_interval_ms(ctx, consumer);
    if (probe.trust && pause_ms < PAUSE_WITHOUT_EVIDENCE_MS && shows_no_evidence(ctx, consumer, pod_index))
        pause_ms = PAUSE_WITHOUT_EVIDENCE_MS;
    int64_t due = asked ? asked + pause_ms : 0;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return;
    }
    const char *canary = probe.trust ? cr_plan_canary_ca(ctx, consumer) : NULL;
    snprintf(probe.canary_ca, sizeof probe.canary_ca, "%s", cr_or_empty(canary));
    ctx->plan->probes = cr_reallocarray(ctx->plan->probes, ctx->plan->probes_len + 1, sizeof *ctx->plan->probes);
    ctx->plan->probes[ctx->plan->probes_len++] = probe;
}

/* --- evictions --- */

static bool holds_old_material(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].covered && came_up_for(ctx, consumer, pod_index, k) &&
            cr_plan_evidence_at(ctx, consumer, pod_index, k)->evidence == CR_EVIDENCE_STALE &&
            cr_plan_seen_old_lately(ctx, consumer, pod_index, k))
            return true;
    return false;
}

bool cr_plan_repair_is_due(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index,
                           struct cr_gate *held)
{
    static const int64_t pauses_ms[] = {10 * 1000, 30 * 1000, 60 * 1000, 120 * 1000};
    int done = consumer->world->evictions;
    const struct cr_world_pod *pod = &consumer->world->pods[pod_index];
    *held = CR_GATE_OPEN;
    if (done >= CR_PLAN_EVICTIONS_MAX)
        return false;
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask_repair(ctx, consumer, pod);
    if (answer.gate.hold) {
        cr_plan_note_wait(ctx, &answer.gate);
        if (cr_hold_needs_a_person(answer.gate.hold))
            *held = cr_gate_steal(&answer.gate);
        return false;
    }
    /* Budgets hold only who has one. */
    if (pod->ready && !cr_plan_can_spare_a_pod(ctx, consumer))
        return false;
    size_t step = (size_t)done < cr_array_len(pauses_ms) ? (size_t)done : cr_array_len(pauses_ms) - 1;
    int64_t due = done ? consumer->world->evicted_ms + pauses_ms[step] : 0;
    if (consumer->world->refused && consumer->world->refused_until_ms > due)
        due = consumer->world->refused_until_ms;
    if (ctx->world->now_ms < due) {
        cr_plan_requeue(ctx->plan, due - ctx->world->now_ms);
        return false;
    }
    return true;
}

/* A new pod that serves the old leaf mounted the Secret from its kubelet's cache (kubernetes#129645): what it read once
 * is old as well. One at a time, slower and slower, and not for ever: then something else keeps the old leaf. */
static bool maybe_evict(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index, size_t pod_index)
{
    CR_CLEANUP(cr_gate) struct cr_gate held = CR_GATE_OPEN;
    if (cr_plan_pod_is_gone(ctx, &consumer->world->pods[pod_index]) || !holds_old_material(ctx, consumer, pod_index))
        return false;
    if (!cr_plan_repair_is_due(ctx, consumer, pod_index, &held)) {
        if (held.hold)
            cr_plan_set_stand(consumer->status, cr_plan_held(cr_gate_steal(&held)));
        return false;
    }
    PLAN_PUSH(ctx->plan->evictions, ctx->plan->evictions_len, {.consumer = index, .pod = pod_index, .repair = true});
    return true;
}

void cr_plan_follow_up(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index)
{
    if (!cr_plan_may_act(ctx))
        return;
    bool evicting = false;
    cr_plan_await_gone(ctx, consumer);
    for (size_t i = 0; i < consumer->world->pods_len; i++) {
        maybe_probe(ctx, consumer, index, i);
        evicting = evicting || maybe_evict(ctx, consumer, index, i);
        maybe_nudge(ctx, consumer, index, i);
    }
}
