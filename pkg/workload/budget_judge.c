/* The verdict of budget.h: method and singleReplica on top of what the budgets allow. */
#include <stdint.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "workload/budget_internal.h"

/* Takes text. */
static void decide(struct cr_budget_verdict *out, enum cr_budget_way way, enum cr_budget_reason reason, char *text)
{
    cr_budget_verdict_dispose(out);
    *out = (struct cr_budget_verdict){.way = way, .reason = reason, .pod = SIZE_MAX, .text = text};
}

/* Takes the refusal. */
static void block(struct cr_budget_verdict *out, struct cr_budget_refusal *refusal)
{
    decide(out, CR_BUDGET_BLOCKED, refusal->reason, cr_steal(&refusal->text));
    out->waits = refusal->waits;
}

static bool is_covered(const struct cr_budget_question *q)
{
    for (size_t i = 0; i < q->world->budgets_len; i++)
        if (cr_budget_selected_pods(&q->world->budgets[i], q->workload))
            return true;
    return false;
}

static void roll(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    const struct cr_worst_case *worst = q->workload->worst;
    int taken = cr_budget_taken_at_worst(q->workload);
    if (!taken)
        decide(out, CR_BUDGET_ROLL, CR_BUDGET_FREE,
               cr_asprintf("a rollout takes no pod away before another is ready (%s)", worst->text));
    else if (!is_covered(q))
        decide(out, CR_BUDGET_ROLL, CR_BUDGET_FREE, cr_strdup("no PodDisruptionBudget selects its pods"));
    else
        decide(out, CR_BUDGET_ROLL, CR_BUDGET_FITS,
               cr_asprintf("a rollout may take %d of %d pods away at once (%s), which the PodDisruptionBudgets allow",
                           taken, worst->desired, worst->text));
}

/* Takes the refusal. */
static void roll_past(struct cr_budget_verdict *out, struct cr_budget_refusal *refusal)
{
    cr_autofree char *why = cr_steal(&refusal->text);
    decide(out, CR_BUDGET_ROLL, CR_BUDGET_BEYOND,
           cr_asprintf("restart.method: Rollout goes past what budgets allow: %s", why));
    out->warning = true;
}

static void evict(const struct cr_budget_question *q, size_t pod, struct cr_budget_verdict *out)
{
    if (pod == SIZE_MAX) {
        decide(out, CR_BUDGET_EVICT, CR_BUDGET_FREE, cr_strdup("no pod is left to evict"));
        return;
    }
    const struct cr_budget *found[2] = {NULL, NULL};
    const struct cr_budget_pod *chosen = &q->workload->pods[pod];
    decide(out, CR_BUDGET_EVICT, cr_budgets_of(q, chosen, found) ? CR_BUDGET_FITS : CR_BUDGET_FREE,
           cr_asprintf("pod %s may be evicted", chosen->name));
    out->pod = pod;
}

/* Either may be waited for; the rollout rather than the eviction, so its reason comes first then. */
static void block_both(struct cr_budget_refusal *rollout, struct cr_budget_refusal *eviction,
                       struct cr_budget_verdict *out)
{
    bool waits = rollout->waits || eviction->waits;
    if (rollout->reason == eviction->reason) {
        block(out, rollout);
    } else {
        enum cr_budget_reason reason = rollout->waits ? rollout->reason : eviction->reason;
        decide(out, CR_BUDGET_BLOCKED, reason,
               cr_asprintf("%s; and no pod may be evicted: %s", rollout->text, eviction->text));
    }
    out->waits = waits;
}

static void judge_auto(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal rollout = {0};
    CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal eviction = {0};
    size_t pod = SIZE_MAX;
    if (cr_budget_may_roll(q, &rollout)) {
        roll(q, out);
    } else if (rollout.reason == CR_BUDGET_UNSEEN) {
        block(out, &rollout); /* a missing right must be reported, not worked around */
    } else if (cr_budget_may_evict(q, &pod, &eviction)) {
        evict(q, pod, out);
        cr_autofree char *chosen = cr_steal(&out->text);
        out->text = cr_asprintf("%s; %s", rollout.text, chosen);
    } else {
        block_both(&rollout, &eviction, out);
    }
}

static void judge_rollout(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal refusal = {0};
    if (cr_budget_may_roll(q, &refusal))
        roll(q, out);
    else if (refusal.reason == CR_BUDGET_NOTHING_ROLLS || q->workload->worst->way == CR_WORST_EVICTS)
        block(out, &refusal); /* nothing to go past */
    else
        roll_past(out, &refusal);
}

static void judge_evict(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal refusal = {0};
    size_t pod = SIZE_MAX;
    if (cr_budget_may_evict(q, &pod, &refusal))
        evict(q, pod, out);
    else
        block(out, &refusal);
}

static void judge_never(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    (void)q;
    decide(out, CR_BUDGET_BLOCKED, CR_BUDGET_NEVER, cr_strdup("restart.method: Never"));
}

/* --- a single replica --- */

static bool takes_the_only_pod(const struct cr_budget_question *q, const struct cr_budget_verdict *verdict)
{
    if (!cr_budget_is_single(q) || !q->workload->pods_len)
        return false;
    if (verdict->way == CR_BUDGET_ROLL)
        return q->workload->worst->unavailable > 0;
    return verdict->way == CR_BUDGET_EVICT && verdict->pod != SIZE_MAX && q->workload->pods[verdict->pod].ready;
}

static void judge_the_only_pod(const struct cr_budget_question *q, struct cr_budget_verdict *out)
{
    bool evicts = out->way == CR_BUDGET_EVICT;
    const char *how = evicts ? "an eviction" : "a rollout";
    switch (q->world->single) {
    case CR_SINGLE_SURGE:
        if (evicts)
            decide(out, CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA,
                   cr_strdup("restart.singleReplica: Surge, and an eviction takes the only pod away before another is "
                             "ready: let a rollout do it (restart.method, and a strategy that surges), or accept the "
                             "gap with singleReplica: Warn"));
        return;
    case CR_SINGLE_WARN: {
        cr_autofree char *text = cr_steal(&out->text);
        out->text = cr_asprintf("%s takes the only pod away before another is ready; %s", how, text);
        out->warning = true;
        return;
    }
    case CR_SINGLE_BLOCK:
        decide(out, CR_BUDGET_BLOCKED, CR_BUDGET_SINGLE_REPLICA,
               cr_asprintf("restart.singleReplica: Block, and %s takes the only pod away before another is ready (%s)",
                           how, q->workload->worst->text));
        return;
    }
}

void cr_budget_judge(const struct cr_budget_workload *workload, const struct cr_budget_world *world,
                     struct cr_budget_verdict *out)
{
    static void (*const methods[])(const struct cr_budget_question *, struct cr_budget_verdict *) = {
        [CR_RESTART_AUTO] = judge_auto,
        [CR_RESTART_ROLLOUT] = judge_rollout,
        [CR_RESTART_EVICT] = judge_evict,
        [CR_RESTART_NEVER] = judge_never,
    };
    const struct cr_budget_question q = {.workload = workload, .world = world};
    *out = (struct cr_budget_verdict){0};
    methods[world->method](&q, out);
    if (takes_the_only_pod(&q, out))
        judge_the_only_pod(&q, out);
}
