/* Old pods that let their connections go (shutdown_hook.h). A Deployment counts as rolled out while they do, and that
 * may take minutes: they serve what they have read for so long, and the restart is over only when they have ended. All
 * of it is in the API server, so the process that follows a crash says the same. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { KILLED_WITHIN_MS = 30 * 1000 }; /* a kubelet takes its time, and clocks differ */

/* A pod without what the restart was for: a new pod that is scaled down is not waited for. */
static bool is_old(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                   const struct cr_world_ending *ending)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (change->classes && ending->pod.created_ms < change->since_ms + CR_KUBELET_REFRESH_MS &&
            !cr_plan_pod_is_new(ctx, consumer, &ending->pod, k))
            return true;
    }
    return false;
}

/* Past it, the pod is stuck. */
static int64_t due_ms(const struct cr_world_ending *ending)
{
    return ending->until_ms + KILLED_WITHIN_MS;
}

/* The kubelet ends it then in any case. */
static int64_t grace_ms(const struct cr_world_ending *ending)
{
    return ending->until_ms - ending->since_ms;
}

static int64_t most_ms(const struct cr_world_ending *ending)
{
    return ending->drain_ms > 0 && ending->drain_ms < grace_ms(ending) ? ending->drain_ms : grace_ms(ending);
}

/* Pods come in no order, and the same one is to be named each time. */
static bool is_later(const struct cr_world_ending *a, const struct cr_world_ending *b)
{
    int64_t a_ms = a->since_ms + most_ms(a);
    int64_t b_ms = b->since_ms + most_ms(b);
    return a_ms != b_ms ? a_ms > b_ms : strcmp(a->pod.name, b->pod.name) < 0;
}

static bool is_earlier(const struct cr_world_ending *a, const struct cr_world_ending *b)
{
    return a->until_ms != b->until_ms ? a->until_ms < b->until_ms : strcmp(a->pod.name, b->pod.name) < 0;
}

static void note(int64_t now_ms, struct plan_drain *drain, const struct cr_world_ending *ending)
{
    if (now_ms >= due_ms(ending)) {
        drain->stuck = !drain->stuck || is_earlier(ending, drain->stuck) ? ending : drain->stuck;
        return;
    }
    drain->pods++;
    drain->last = !drain->last || is_later(ending, drain->last) ? ending : drain->last;
    drain->look_again_ms = cr_plan_sooner_ms(drain->look_again_ms, due_ms(ending) - now_ms); /* its end is an event */
}

/* Also those without a shutdown manager go on with the CAs that they have read, for as long as they may. */
static bool has_old_trust(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                          const struct cr_world_ending *ending)
{
    (void)ending;
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (consumer->changes[k].classes & CR_CLASS_TRUST)
            return true;
    return false;
}

/* A kubelet does not refresh the volumes of a pod that is being deleted: what reloads goes on with what it has. */
static bool is_unrefreshed(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                           const struct cr_world_ending *ending)
{
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct plan_change *change = &consumer->changes[k];
        if (change->reloads_cas && ending->since_ms < change->since_ms + CR_KUBELET_REFRESH_MS)
            return true;
    }
    return false;
}

typedef bool counts(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                    const struct cr_world_ending *ending);

/* When the last of those that count may run no more. 0: none does any longer. */
static int64_t ends_in_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer, counts *count)
{
    int64_t latest_ms = 0;
    for (size_t i = 0; i < consumer->world->ending_len; i++) {
        const struct cr_world_ending *ending = &consumer->world->ending[i];
        if (due_ms(ending) > latest_ms && count(ctx, consumer, ending))
            latest_ms = due_ms(ending);
    }
    return latest_ms > ctx->world->now_ms ? latest_ms - ctx->world->now_ms : 0;
}

struct plan_drain cr_plan_find_drain(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct plan_drain drain = {.old_trust_ms = ends_in_ms(ctx, consumer, has_old_trust),
                               .unrefreshed_ms = ends_in_ms(ctx, consumer, is_unrefreshed)};
    for (size_t i = 0; i < consumer->world->ending_len; i++)
        if (consumer->world->ending[i].drain_ms && is_old(ctx, consumer, &consumer->world->ending[i]))
            note(ctx->world->now_ms, &drain, &consumer->world->ending[i]);
    drain.look_again_ms = cr_plan_sooner_ms(drain.look_again_ms, drain.old_trust_ms);
    drain.look_again_ms = cr_plan_sooner_ms(drain.look_again_ms, drain.unrefreshed_ms);
    return drain;
}

bool cr_plan_drains(const struct plan_consumer *consumer)
{
    return consumer->drain.pods || consumer->drain.stuck;
}

/* --- in words: times, not what is left of them, which would be news each second --- */

static struct cr_gate say_stuck(const struct cr_world_ending *ending)
{
    char until[CR_TIME_TEXT];
    cr_time_format(ending->until_ms, until);
    return cr_gate_make(CR_HOLD_DRAIN_STUCK,
                        "drain: stuck: old pod %s should have ended by %s and is still there: look at its node; when "
                        "that is gone for good, kubectl delete pod --force",
                        ending->pod.name, until);
}

static struct cr_gate say_drain(const struct plan_drain *drain)
{
    char since[CR_TIME_TEXT];
    char most[CR_TIME_TEXT];
    cr_time_format(drain->last->since_ms, since);
    cr_duration_format(most_ms(drain->last), most);
    if (drain->pods == 1)
        return cr_gate_make(CR_HOLD_DRAIN, "drain: old pod %s drains its connections since %s, at most %s",
                            drain->last->pod.name, since, most);
    return cr_gate_make(CR_HOLD_DRAIN, "drain: %zu old pods drain their connections, %s since %s, at most %s",
                        drain->pods, drain->last->pod.name, since, most);
}

struct plan_stand cr_plan_draining(const struct plan_consumer *consumer)
{
    const struct plan_drain *drain = &consumer->drain;
    return drain->stuck ? cr_plan_stand_by(CR_CONSUMER_BLOCKED, say_stuck(drain->stuck))
                        : cr_plan_stand_by(CR_CONSUMER_RESTARTING, say_drain(drain));
}

/* --- what waits for their end --- */

bool cr_plan_old_pods_have_ended(const struct plan_consumer *consumer, size_t change)
{
    unsigned classes = consumer->changes[change].classes;
    return !(classes && cr_plan_drains(consumer)) && !((classes & CR_CLASS_TRUST) && consumer->drain.old_trust_ms) &&
           !(consumer->changes[change].reloads_cas && consumer->drain.unrefreshed_ms);
}

/* No pod shows how long pods that are just gone have drained: the template does. */
int64_t cr_plan_drain_allowance_ms(const struct plan_consumer *consumer)
{
    int64_t allowance_ms = consumer->hooks.len ? consumer->hooks.grace_ms : 0;
    for (size_t i = 0; i < consumer->world->ending_len; i++)
        if (consumer->world->ending[i].drain_ms && grace_ms(&consumer->world->ending[i]) > allowance_ms)
            allowance_ms = grace_ms(&consumer->world->ending[i]);
    return allowance_ms;
}

char *cr_plan_misfit(const struct plan_consumer *consumer)
{
    cr_autofree char *misfit = cr_shutdown_hooks_misfit(&consumer->hooks);
    return misfit ? cr_asprintf("%s: %s", consumer->spec->name, misfit) : NULL;
}
