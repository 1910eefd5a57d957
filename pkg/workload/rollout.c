/* The rules of `kubectl rollout status` (k8s.io/kubectl pkg/polymorphichelpers/rollout_status.go), and beside them what
 * that command waits for in vain: a paused Deployment and the OnDelete strategy. */
#include "workload/rollout.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/consumer_kind.h"
#include "base/clock.h"
#include "base/strings.h"

static void judge(struct cr_rollout *out, enum cr_rollout_state state, const char *fmt, ...) CR_PRINTF(3, 4);
static void judge(struct cr_rollout *out, enum cr_rollout_state state, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out->state = state;
    vsnprintf(out->message, sizeof out->message, fmt, args);
    va_end(args);
}

/* A count of the API: never negative, 0 when absent. */
static int count(const struct cr_json *value, int fallback)
{
    int64_t n = cr_json_int(value, fallback);
    return n < 0 || n > INT_MAX ? fallback : (int)n;
}

static bool is_observed(const struct cr_json *workload)
{
    int64_t observed = cr_json_int_at(workload, 0, "status", "observedGeneration");
    return observed > 0 && observed >= cr_json_int_at(workload, 0, "metadata", "generation");
}

static void judge_unobserved(struct cr_rollout *out)
{
    judge(out, CR_ROLLOUT_PROGRESSING, "the change is not yet observed by its controller");
}

static const struct cr_json *condition(const struct cr_json *workload, const char *type)
{
    const struct cr_json *list = cr_json_at(workload, "status", "conditions");
    for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, "type"), type))
            return c;
    return NULL;
}

/* --- Deployment --- */

static void judge_observed_deployment(const struct cr_json *workload, struct cr_rollout *out)
{
    int all = count(cr_json_at(workload, "status", "replicas"), 0);
    const char *reason = cr_json_string_at(condition(workload, "Progressing"), "reason");
    if (cr_streq(reason, "ProgressDeadlineExceeded"))
        judge(out, CR_ROLLOUT_FAILED, "exceeded its progress deadline with %d of %d replicas updated", out->updated,
              out->desired);
    else if (out->updated < out->desired)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d replicas updated", out->updated, out->desired);
    else if (all > out->updated)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d replicas updated, old ones left: %d", out->updated, out->desired,
              all - out->updated);
    else if (out->available < out->updated)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d updated replicas available", out->available, out->updated);
    else
        judge(out, CR_ROLLOUT_COMPLETE, "%d of %d replicas updated and available", out->updated, out->desired);
}

static void judge_deployment(const struct cr_json *workload, struct cr_rollout *out)
{
    out->desired = count(cr_json_at(workload, "spec", "replicas"), 1);
    out->updated = count(cr_json_at(workload, "status", "updatedReplicas"), 0);
    out->available = count(cr_json_at(workload, "status", "availableReplicas"), 0);
    out->mixed = !is_observed(workload) || count(cr_json_at(workload, "status", "replicas"), 0) > out->updated;
    if (is_observed(workload))
        judge_observed_deployment(workload, out);
    else
        judge_unobserved(out);
    if (out->state != CR_ROLLOUT_COMPLETE && cr_json_bool_at(workload, false, "spec", "paused"))
        judge(out, CR_ROLLOUT_PAUSED, "paused with %d of %d replicas updated; kubectl rollout resume lets it go on",
              out->updated, out->desired);
}

/* --- OnDelete --- */

static bool is_on_delete(const struct cr_json *workload)
{
    return cr_streq(cr_json_string_at(workload, "spec", "updateStrategy", "type"), "OnDelete");
}

static void judge_manual(struct cr_rollout *out)
{
    judge(out, CR_ROLLOUT_MANUAL,
          "%d of %d pods updated; strategy OnDelete replaces the others only when they are deleted", out->updated,
          out->desired);
}

/* --- StatefulSet --- */

static void judge_stateful_set(const struct cr_json *workload, struct cr_rollout *out)
{
    const struct cr_json *status = cr_json_get(workload, "status");
    const struct cr_json *available = cr_json_get(status, "availableReplicas");
    out->desired = count(cr_json_at(workload, "spec", "replicas"), 1);
    out->updated = count(cr_json_get(status, "updatedReplicas"), 0);
    /* Before 1.22 there was only readyReplicas, which kubectl still looks at. */
    out->available = count(available ? available : cr_json_get(status, "readyReplicas"), 0);
    int all = count(cr_json_get(status, "replicas"), 0);
    int partition = count(cr_json_at(workload, "spec", "updateStrategy", "rollingUpdate", "partition"), 0);
    int wanted = partition < out->desired ? out->desired - partition : 0;
    out->mixed = !is_observed(workload) || all > out->updated;
    if (!is_observed(workload))
        judge_unobserved(out);
    else if (is_on_delete(workload) && out->updated < out->desired)
        judge_manual(out);
    else if (all > out->desired) /* those beyond may be the updated ones, which go first */
        judge(out, CR_ROLLOUT_PROGRESSING, "scaled down to %d, and %d pods are still there", out->desired, all);
    else if (out->updated < wanted)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d pods updated", out->updated, wanted);
    else if (out->available < out->desired)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d pods available", out->available, out->desired);
    else if (out->updated < out->desired)
        judge(out, CR_ROLLOUT_COMPLETE, "%d of %d pods updated; partition %d keeps the others as they are",
              out->updated, out->desired, partition);
    else
        judge(out, CR_ROLLOUT_COMPLETE, "%d of %d pods updated and available", out->updated, out->desired);
}

/* --- DaemonSet --- */

static void judge_daemon_set(const struct cr_json *workload, struct cr_rollout *out)
{
    const struct cr_json *status = cr_json_get(workload, "status");
    out->desired = count(cr_json_get(status, "desiredNumberScheduled"), 0);
    out->updated = count(cr_json_get(status, "updatedNumberScheduled"), 0);
    out->available = count(cr_json_get(status, "numberAvailable"), 0);
    out->mixed = !is_observed(workload) || out->updated < out->desired;
    if (!is_observed(workload))
        judge_unobserved(out);
    else if (is_on_delete(workload) && out->updated < out->desired)
        judge_manual(out);
    else if (out->updated < out->desired)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d pods updated", out->updated, out->desired);
    else if (out->available < out->desired)
        judge(out, CR_ROLLOUT_PROGRESSING, "%d of %d updated pods available", out->available, out->desired);
    else
        judge(out, CR_ROLLOUT_COMPLETE, "%d of %d pods updated and available", out->updated, out->desired);
}

/* --- ReplicaSet --- */

static void judge_replica_set(const struct cr_json *workload, struct cr_rollout *out)
{
    out->desired = count(cr_json_at(workload, "spec", "replicas"), 1);
    out->updated = count(cr_json_at(workload, "status", "replicas"), 0);
    out->available = count(cr_json_at(workload, "status", "availableReplicas"), 0);
    if (!is_observed(workload))
        judge_unobserved(out);
    else
        judge(out, out->available < out->desired ? CR_ROLLOUT_PROGRESSING : CR_ROLLOUT_COMPLETE,
              "%d of %d pods available", out->available, out->desired);
}

/* --- Argo Rollout: GetRolloutPhase and CalculateRolloutPhase in its utils/rollout/rolloututil.go --- */

/* There it is a string. */
static bool is_observed_by_argo(const struct cr_json *workload)
{
    const char *observed = cr_json_string_at(workload, "status", "observedGeneration");
    return observed && strtoll(observed, NULL, 10) >= cr_json_int_at(workload, 0, "metadata", "generation");
}

static bool is_updated_by_argo(const struct cr_json *status)
{
    const char *stable = cr_json_string_at(status, "stableRS");
    return stable && *stable && cr_streq(stable, cr_json_string_at(status, "currentPodHash"));
}

static bool is_restarted_by_argo(const struct cr_json *workload)
{
    int64_t wanted_ms = 0;
    int64_t done_ms = 0;
    const char *wanted = cr_json_string_at(workload, "spec", "restartAt");
    const char *done = cr_json_string_at(workload, "status", "restartedAt");
    if (!wanted)
        return true;
    return done && cr_time_parse(wanted, &wanted_ms, NULL) && cr_time_parse(done, &done_ms, NULL) &&
           wanted_ms == done_ms;
}

static bool is_paused_by_argo(const struct cr_json *workload)
{
    return cr_json_bool_at(workload, false, "spec", "paused") ||
           cr_json_len(cr_json_at(workload, "status", "pauseConditions")) > 0;
}

static void judge_busy_argo_rollout(const struct cr_json *workload, struct cr_rollout *out)
{
    const struct cr_json *status = cr_json_get(workload, "status");
    const char *message = cr_or_empty(cr_json_string_at(status, "message"));
    out->busy = true;
    if (!is_observed_by_argo(workload))
        judge_unobserved(out);
    else if (cr_streq(cr_json_string_at(status, "phase"), "Degraded"))
        judge(out, CR_ROLLOUT_FAILED, "it is degraded: %.120s", *message ? message : "its controller does not say why");
    else if (!is_updated_by_argo(status))
        judge(out, CR_ROLLOUT_PROGRESSING, "it is being updated%s%.120s", *message ? ": " : "", message);
    else if (!is_restarted_by_argo(workload))
        judge(out, CR_ROLLOUT_PROGRESSING, "its pods are being restarted, within budgets");
    else
        out->busy = false;
}

static void judge_argo_rollout(const struct cr_json *workload, struct cr_rollout *out)
{
    out->desired = count(cr_json_at(workload, "spec", "replicas"), 1);
    out->updated = count(cr_json_at(workload, "status", "updatedReplicas"), 0);
    out->available = count(cr_json_at(workload, "status", "availableReplicas"), 0);
    out->mixed = !is_observed_by_argo(workload) || !is_updated_by_argo(cr_json_get(workload, "status"));
    judge_busy_argo_rollout(workload, out);
    if (out->busy && out->state == CR_ROLLOUT_PROGRESSING && is_paused_by_argo(workload))
        judge(out, CR_ROLLOUT_PAUSED, "paused; kubectl argo rollouts promote lets it go on");
    if (!out->busy)
        judge(out, out->available < out->desired ? CR_ROLLOUT_PROGRESSING : CR_ROLLOUT_COMPLETE,
              "%d of %d pods available", out->available, out->desired);
}

void cr_rollout_judge(const char *kind, const struct cr_json *workload, struct cr_rollout *out)
{
    static void (*const rules[CR_UPDATES])(const struct cr_json *, struct cr_rollout *) = {
        [CR_UPDATE_DEPLOYMENT] = judge_deployment,     [CR_UPDATE_STATEFUL_SET] = judge_stateful_set,
        [CR_UPDATE_DAEMON_SET] = judge_daemon_set,     [CR_UPDATE_NOTHING] = judge_replica_set,
        [CR_UPDATE_ARGO_ROLLOUT] = judge_argo_rollout,
    };
    enum cr_kind_update update = cr_consumer_kind_of(kind)->update;
    *out = (struct cr_rollout){0};
    if (update != CR_UPDATE_UNKNOWN)
        rules[update](workload, out);
    else
        judge(out, CR_ROLLOUT_PROGRESSING, "the rollout of a %s cannot be judged", cr_or_empty(kind));
}
