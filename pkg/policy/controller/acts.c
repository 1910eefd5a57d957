#include "policy/controller/acts.h"

#include <stdio.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "policy/controller/acts_probe.h"
#include "kube/object.h"

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"
/* On the pod itself: any new value makes its kubelet refresh Secret volumes at once. */
#define NUDGE_ANNOTATION "certroll.dev/refresh"

enum { REFUSED_FIRST_MS = 5000, REFUSED_DOUBLINGS = 6 };

static void keep_first(struct cr_error *first, const struct cr_error *err)
{
    if (first->kind == CR_ERR_NONE)
        *first = *err;
}

static void note_write(const struct cr_actor *actor, const struct cr_policy *policy, const char *kind,
                       const struct cr_json *written)
{
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    cr_own_writes_add(actor->own_writes, key, kind, written, cr_clock_monotonic_ms());
}

static const struct cr_policy_consumer *spec_of(const struct cr_gathered *gathered, size_t consumer)
{
    return &gathered->world.policy->consumers[consumer];
}

/* What an act was for, in the log: for acts on pods everything that is pending, for a restart exactly what it was for.
 */
struct act_about {
    const char *secrets;
    const char *rotations;
    const char *object;
    const char *reason;
};

static void log_about(const struct cr_policy *policy, const char *msg, const struct act_about *about,
                      const struct cr_error *err)
{
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    cr_log(err ? CR_LOG_WARN : CR_LOG_INFO, msg, {"policy", key}, {"secret", about->secrets},
           {"rotation", about->rotations}, {"object", about->object}, {"reason", about->reason},
           {"error", err ? err->text : NULL});
}

static void log_pod(const struct cr_gathered *gathered, const struct cr_plan *plan, const char *msg, const char *pod,
                    const char *reason, const struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec ids = {0};
    for (size_t i = 0; i < plan->status.secrets_len; i++) {
        if (!plan->status.secrets[i].pending.set)
            continue;
        cr_strvec_add(&names, plan->status.secrets[i].name);
        cr_strvec_add(&ids, plan->status.secrets[i].pending.id);
    }
    cr_autofree char *secrets = cr_strvec_join(&names, ",");
    cr_autofree char *rotations = cr_strvec_join(&ids, ",");
    struct act_about about = {.secrets = secrets, .rotations = rotations, .object = pod, .reason = reason};
    log_about(gathered->world.policy, msg, &about, err);
}

static void log_said(const struct cr_policy *policy, const struct cr_plan_event *said, const char *object)
{
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    cr_log(said->warning ? CR_LOG_WARN : CR_LOG_INFO, said->message, {"policy", key}, {"secret", said->secret},
           {"rotation", said->rotation[0] ? said->rotation : NULL}, {"object", object}, {"reason", said->reason});
}

/* --- restart --- */

/* uid and resourceVersion are preconditions: a workload that was recreated, or that was changed since the decision (by
 * another leader, or by ourselves a moment ago), answers Conflict, and the decision is made again. */
static struct cr_json *restart_patch(const struct cr_json *workload, const struct cr_plan_restart *restart)
{
    struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", cr_obj_uid(workload));
    cr_json_set_string(metadata, "resourceVersion", cr_obj_resource_version(workload));
    struct cr_json *spec = cr_json_object_in(patch, "spec");
    char at[CR_TIME_TEXT];
    cr_time_format(restart->restart_at_ms ? restart->restart_at_ms : cr_clock_wall_ms(), at);
    if (restart->restart_at_ms) {
        cr_json_set(metadata, "annotations", cr_json_copy(restart->annotations));
        cr_json_set_string(spec, "restartAt", at);
        return patch;
    }
    struct cr_json *template_metadata = cr_json_object_in(cr_json_object_in(spec, "template"), "metadata");
    struct cr_json *set = cr_json_set(template_metadata, "annotations", cr_json_copy(restart->annotations));
    cr_json_set_string(set, RESTARTED_AT, at);
    return patch;
}

/* Fills in the object of the Event; the caller fills in reason and message. */
static struct cr_event event_about(const struct cr_gathered *gathered, size_t consumer)
{
    const struct cr_policy_consumer *spec = spec_of(gathered, consumer);
    return (struct cr_event){.api_version = spec->api_version,
                             .kind = spec->kind,
                             .ns = gathered->world.policy->ns,
                             .name = spec->target,
                             .uid = cr_obj_uid(gathered->consumers[consumer].workload)};
}

/* Takes message. */
static void say_workload(const struct cr_actor *actor, const struct cr_gathered *gathered, size_t consumer,
                         bool warning, const char *reason, char *message)
{
    cr_autofree char *text = message;
    struct cr_event event = event_about(gathered, consumer);
    event.warning = warning;
    event.reason = reason;
    event.message = text;
    cr_recorder_emit(actor->recorder, &event);
}

static void say_restart_failed(const struct cr_actor *actor, const struct cr_gathered *gathered,
                               const struct cr_plan_restart *what, const struct cr_error *err)
{
    say_workload(actor, gathered, what->consumer, true, "RestartFailed", cr_asprintf("cannot restart: %s", err->text));
}

/* The warning is emitted with the restart and not with a status, because the plan that has it acts, and so is made
 * again before a status is written. */
static void say_restart(const struct cr_actor *actor, const struct cr_gathered *gathered,
                        const struct cr_plan_restart *what)
{
    const char *policy = gathered->world.policy->name;
    say_workload(actor, gathered, what->consumer, false, "Restarting",
                 cr_asprintf("%s (CertRotationPolicy %s)", what->why, policy));
    if (what->warns)
        say_workload(actor, gathered, what->consumer, true, what->warns,
                     cr_asprintf("%s (CertRotationPolicy %s)", what->warning, policy));
}

/* key: of the policy. */
static struct cr_reservation place_of(struct cr_gathered *gathered, size_t consumer, const char *key)
{
    const struct cr_policy_consumer *spec = spec_of(gathered, consumer);
    return (struct cr_reservation){
        .policy = key,
        .ns = gathered->world.policy->ns,
        .workload = {.kind = spec->kind, .name = spec->target},
        .version = cr_obj_resource_version(gathered->consumers[consumer].workload),
        .moves = &gathered->moves,
    };
}

static bool take_place(const struct cr_actor *actor, struct cr_gathered *gathered, size_t consumer, bool evicts,
                       bool under_budget)
{
    const struct cr_policy *policy = gathered->world.policy;
    if (!actor->reservations)
        return true;
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    struct cr_reservation place = place_of(gathered, consumer, key);
    place.evicts = evicts;
    place.under_budget = under_budget;
    return cr_reservations_take(actor->reservations, &place, cr_clock_monotonic_ms());
}

/* A write that was refused with one of these errors was not done. With any other error it may have been done, even with
 * a conflict: the transport may have sent the request twice. */
static bool was_not_done(const struct cr_error *err)
{
    return err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_FORBIDDEN || err->kind == CR_ERR_INVALID ||
           err->kind == CR_ERR_UNAUTHORIZED;
}

/* Where the answer leaves it open, the place is kept until the workload shows what happened. */
static void note_answer(const struct cr_actor *actor, struct cr_gathered *gathered, size_t consumer,
                        const struct cr_error *failed)
{
    const struct cr_policy *policy = gathered->world.policy;
    if (!actor->reservations || (failed && !was_not_done(failed)))
        return;
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    struct cr_reservation place = place_of(gathered, consumer, key);
    cr_reservations_answered(actor->reservations, &place, !failed, cr_clock_monotonic_ms());
}

bool cr_act_may_evict(const struct cr_actor *actor, struct cr_gathered *gathered, const struct cr_plan *plan)
{
    for (size_t i = 0; i < plan->evicting_len; i++)
        if (!take_place(actor, gathered, plan->evicting[i], true, false))
            return false;
    return true;
}

/* The API server checks evictions against the budgets as they are now; it does not know what a rollout takes away next.
 */
static bool still_may_evict(const struct cr_actor *actor, struct cr_gathered *gathered, size_t consumer)
{
    const struct cr_policy *policy = gathered->world.policy;
    if (!actor->reservations)
        return true;
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    struct cr_reservation place = place_of(gathered, consumer, key);
    place.evicts = true;
    place.under_budget = gathered->world.budgets.len > 0;
    return cr_reservations_may_evict(actor->reservations, &place);
}

static bool restart(const struct cr_actor *actor, struct cr_gathered *gathered, const struct cr_plan_restart *what,
                    struct cr_error *err)
{
    const struct cr_policy *policy = gathered->world.policy;
    const struct cr_policy_consumer *spec = spec_of(gathered, what->consumer);
    const struct cr_json *workload = gathered->consumers[what->consumer].workload;
    const struct cr_consumer_kind *kind = cr_consumer_kind_find(spec->api_version, spec->kind);
    cr_autofree char *object = cr_asprintf("%s/%s", spec->kind, spec->target);
    struct act_about about = {
        .secrets = what->secrets, .rotations = what->rotations, .object = object, .reason = what->why};
    if (!kind)
        return cr_error_set(err, CR_ERR_INTERNAL, "%s %s is not a kind that can be restarted", spec->api_version,
                            spec->kind);

    CR_CLEANUP(cr_json) struct cr_json *patch = restart_patch(workload, what);
    struct cr_json *patched =
        cr_client_merge_patch(actor->client, &kind->resource, policy->ns, spec->target, NULL, patch, err);
    if (!patched) {
        /* A conflict is an invitation to look again, no refusal. */
        if (err->kind == CR_ERR_CONFLICT)
            return false;
        log_about(policy, "restart failed", &about, err);
        say_restart_failed(actor, gathered, what, err);
        return false;
    }
    note_write(actor, policy, spec->kind, patched);
    log_about(policy, "restarted", &about, NULL);
    say_restart(actor, gathered, what);
    cr_world_override(gathered, what->consumer, patched);
    return true;
}

/* --- pods --- */

static const struct cr_world_pod *pod_of(const struct cr_gathered *gathered, size_t consumer, size_t pod)
{
    return &gathered->consumers[consumer].pods[pod];
}

/* Through pods/status, which can touch no spec and needs no right to patch pods. */
static void nudge(const struct cr_actor *actor, struct cr_gathered *gathered, struct cr_plan *plan,
                  const struct cr_plan_pod *what)
{
    const struct cr_policy *policy = gathered->world.policy;
    const struct cr_world_pod *pod = pod_of(gathered, what->consumer, what->pod);
    int64_t now_ms = cr_clock_wall_ms();
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", pod->uid);
    cr_autofree char *value = cr_asprintf("%lld", (long long)now_ms);
    cr_json_set_string(cr_json_object_in(metadata, "annotations"), NUDGE_ANNOTATION, value);

    struct cr_error err = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *patched =
        cr_client_merge_patch(actor->client, &cr_res_pods, policy->ns, pod->name, "status", patch, &err);
    /* A refused nudge counts as well: the kubelet refreshes by itself within its period, and a storm of requests would
     * not help. */
    const struct cr_consumer_status *consumer =
        cr_status_consumer(&plan->status, spec_of(gathered, what->consumer)->name);
    cr_memory_nudged(actor->memory, pod->uid, consumer ? consumer->since_ms : 0, now_ms);
    if (patched)
        cr_metric_add(actor->nudges, CR_LABELS(policy->ns), 1);
    else if (err.kind != CR_ERR_NOT_FOUND && err.kind != CR_ERR_CONFLICT)
        log_pod(gathered, plan, "nudge failed; the kubelet refreshes its volumes within 95 s by itself", pod->name,
                NULL, &err);
}

/* Evictions of new pods are counted, since they have a limit. Each of the others is remembered until the cache shows
 * it. */
static void note_eviction(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_plan *plan,
                          const struct cr_plan_eviction *what)
{
    const struct cr_policy *policy = gathered->world.policy;
    const char *name = spec_of(gathered, what->consumer)->name;
    const struct cr_consumer_status *consumer = cr_status_consumer(&plan->status, name);
    cr_memory_evicted(actor->memory, pod_of(gathered, what->consumer, what->pod)->uid, cr_clock_monotonic_ms());
    if (!what->repair)
        return;
    cr_autofree char *key = cr_world_evicted_key(policy, name, consumer ? consumer->since_ms : 0);
    cr_memory_note_time(actor->memory, key, cr_clock_monotonic_ms());
}

static void say_eviction(const struct cr_actor *actor, const struct cr_policy *policy, const struct cr_world_pod *pod,
                         bool repair, const char *why)
{
    cr_metric_add(actor->evictions, CR_LABELS(policy->ns, repair ? "repair" : "restart"), 1);
    cr_autofree char *message = cr_asprintf("%s (CertRotationPolicy %s)", why, policy->name);
    struct cr_event event = {.api_version = "v1",
                             .kind = "Pod",
                             .ns = policy->ns,
                             .name = pod->name,
                             .uid = pod->uid,
                             .warning = repair,
                             .reason = repair ? "EvictedStale" : "Evicted",
                             .message = message};
    cr_recorder_emit(actor->recorder, &event);
}

/* Evicts by UID, so that no other pod of that name is hit; a pod that is gone already counts as evicted. */
static bool evict(const struct cr_actor *actor, struct cr_gathered *gathered, struct cr_plan *plan,
                  const struct cr_plan_eviction *what, struct cr_error *err)
{
    const struct cr_policy *policy = gathered->world.policy;
    const struct cr_world_pod *pod = pod_of(gathered, what->consumer, what->pod);
    const struct cr_consumer_status *consumer =
        cr_status_consumer(&plan->status, spec_of(gathered, what->consumer)->name);
    const char *why = what->repair ? "the new pod shows old material: it mounted the Secret from its kubelet's cache"
                                   : cr_or_empty(consumer ? consumer->reason : NULL);
    if (!cr_client_evict(actor->client, policy->ns, pod->name, pod->uid, err)) {
        if (err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_CONFLICT) {
            cr_memory_evicted(actor->memory, pod->uid, cr_clock_monotonic_ms()); /* the cache shows it still */
            cr_error_clear(err);
            return true;
        }
        log_pod(gathered, plan, "eviction failed", pod->name, why, err);
        return false;
    }
    log_pod(gathered, plan, "evicted", pod->name, why, NULL);
    note_eviction(actor, gathered, plan, what);
    say_eviction(actor, policy, pod, what->repair, why);
    return true;
}

static bool refuse_until(const struct cr_actor *actor, const struct cr_gathered *gathered, size_t consumer,
                         const struct cr_error *err, int64_t pause_ms, enum cr_hold reason)
{
    cr_autofree char *key = cr_world_refused_key(gathered->world.policy, spec_of(gathered, consumer)->name);
    if (pause_ms < err->retry_after_ms)
        pause_ms = err->retry_after_ms;
    cr_memory_take_note(
        actor->memory, key,
        &(struct cr_note_input){.at_ms = cr_clock_monotonic_ms() + pause_ms, .reason = reason, .text = err->text});
    return true;
}

/* What the API server refuses is tried again by a clock of its own, doubling from 5 s to 320 s, so that neither our
 * other work nor the events that it causes change the pace. A conflict is an invitation to look again at once. */
static bool remember_refusal(const struct cr_actor *actor, const struct cr_gathered *gathered, size_t consumer,
                             const struct cr_error *err)
{
    if (err->kind == CR_ERR_CONFLICT || err->kind == CR_ERR_CANCELLED)
        return false;
    cr_autofree char *key = cr_world_refused_key(gathered->world.policy, spec_of(gathered, consumer)->name);
    CR_CLEANUP(cr_note) struct cr_note before = cr_memory_note(actor->memory, key);
    int64_t pause_ms = (int64_t)REFUSED_FIRST_MS
                       << (before.count < REFUSED_DOUBLINGS ? before.count : REFUSED_DOUBLINGS);
    return refuse_until(actor, gathered, consumer, err, pause_ms, CR_HOLD_REFUSED);
}

/* The budget in the cache is checked before; so when the API server says that it allows none (429, which is its answer
 * to an eviction for no other reason but its own overload), the cache is behind, and soon shows it. */
static bool remember_refused_eviction(const struct cr_actor *actor, const struct cr_gathered *gathered, size_t consumer,
                                      const struct cr_error *err)
{
    return err->kind == CR_ERR_THROTTLED
               ? refuse_until(actor, gathered, consumer, err, REFUSED_FIRST_MS, CR_HOLD_REFUSED_BY_BUDGET)
               : remember_refusal(actor, gathered, consumer, err);
}

static void forget_refusal(const struct cr_actor *actor, const struct cr_gathered *gathered, size_t consumer)
{
    cr_autofree char *key = cr_world_refused_key(gathered->world.policy, spec_of(gathered, consumer)->name);
    cr_memory_drop_note(actor->memory, key);
}

size_t cr_act_restarts(const struct cr_actor *actor, struct cr_gathered *gathered, const struct cr_plan *plan,
                       struct cr_error *err)
{
    size_t done = 0;
    for (size_t i = 0; i < plan->restarts_len; i++) {
        struct cr_error failed = {0};
        size_t consumer = plan->restarts[i].consumer;
        if (!take_place(actor, gathered, consumer, false, plan->restarts[i].under_budget)) {
            gathered->outdated = true;
            continue;
        }
        bool did = restart(actor, gathered, &plan->restarts[i], &failed);
        note_answer(actor, gathered, consumer, did ? NULL : &failed);
        cr_policy_metrics_restarted(actor->metrics, gathered->world.policy, &plan->status, &plan->restarts[i],
                                    did ? NULL : &failed);
        done += did;
        if (did)
            forget_refusal(actor, gathered, plan->restarts[i].consumer);
        else if (!remember_refusal(actor, gathered, plan->restarts[i].consumer, &failed))
            keep_first(err, &failed);
    }
    return done;
}

bool cr_act(const struct cr_actor *actor, struct cr_gathered *gathered, struct cr_plan *plan, bool *did,
            struct cr_error *err)
{
    struct cr_error first = {0};
    (void)cr_act_restarts(actor, gathered, plan, &first);
    for (size_t i = 0; i < plan->nudges_len; i++)
        nudge(actor, gathered, plan, &plan->nudges[i]);
    for (size_t i = 0; i < plan->evictions_len; i++) {
        struct cr_error failed = {0};
        if (!still_may_evict(actor, gathered, plan->evictions[i].consumer))
            gathered->outdated = true;
        else if (evict(actor, gathered, plan, &plan->evictions[i], &failed))
            forget_refusal(actor, gathered, plan->evictions[i].consumer);
        else if (!remember_refused_eviction(actor, gathered, plan->evictions[i].consumer, &failed))
            keep_first(&first, &failed);
    }
    bool probed = cr_act_probe(actor, gathered, plan);
    *did = probed || plan->restarts_len || plan->nudges_len || plan->evictions_len;
    if (first.kind == CR_ERR_NONE)
        return true;
    *err = first;
    return false;
}

/* --- what is said --- */

static struct cr_event event_of(const struct cr_gathered *gathered, const struct cr_plan_event *said)
{
    const struct cr_policy *policy = gathered->world.policy;
    struct cr_event event = {.api_version = CR_API_GROUP "/" CR_API_VERSION,
                             .kind = CR_POLICY_KIND,
                             .ns = policy->ns,
                             .name = policy->name,
                             .uid = policy->uid};
    if (said->about == CR_ABOUT_WORKLOAD)
        event = event_about(gathered, said->consumer);
    event.warning = said->warning;
    event.reason = said->reason;
    event.message = said->message;
    return event;
}

void cr_act_say(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan)
{
    for (size_t i = 0; i < plan->events_len; i++) {
        const struct cr_plan_event *said = &plan->events[i];
        struct cr_event event = event_of(gathered, said);
        cr_recorder_emit(actor->recorder, &event);
        log_said(gathered->world.policy, said, event.name);
    }
}

/* --- status --- */

/* A merge patch keeps what it does not name: members that are gone must be named with null. */
static void null_the_gone(struct cr_json *after, const struct cr_json *before)
{
    for (const struct cr_json *member = cr_json_first(before); member; member = cr_json_next(member))
        if (!cr_json_get(after, cr_json_key(member)))
            cr_json_set(after, cr_json_key(member), cr_json_new_null());
}

bool cr_act_status(const struct cr_actor *actor, const struct cr_policy *policy, const char *resource_version,
                   const struct cr_policy_status *before, const struct cr_policy_status *after,
                   struct cr_json **written, struct cr_error *err)
{
    *written = NULL;
    CR_CLEANUP(cr_json) struct cr_json *old_json = cr_policy_status_encode(before);
    struct cr_json *new_json = cr_policy_status_encode(after);
    if (cr_json_equal(old_json, new_json)) {
        cr_json_free(new_json);
        return true;
    }
    null_the_gone(new_json, old_json);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", policy->uid);
    cr_json_set_string(metadata, "resourceVersion", resource_version);
    cr_json_set(patch, "status", new_json);
    *written = cr_client_merge_patch(actor->client, &cr_res_policies, policy->ns, policy->name, "status", patch, err);
    if (*written) {
        note_write(actor, policy, CR_POLICY_KIND, *written);
        return true;
    }
    cr_error_wrap(err, "cannot write the status of CertRotationPolicy %s/%s", policy->ns, policy->name);
    return false;
}
