/* PodDisruptionBudgets as a gate: which way a restart may take now, if any (budget.h). Asked only when a restart is
 * due; where there are no budgets, and nothing else to choose by, it costs nothing. */
#include "policy/rules/plan_internal.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"

enum { LOOK_AGAIN_MS = 60 * 1000 };

/* A workload as budgets see it. */
struct seen {
    struct cr_worst_case worst;
    struct cr_budget_pod *pods; /* owned */
};

static struct cr_budget_pod view_pod(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t i)
{
    const struct cr_world_pod *pod = &consumer->world->pods[i];
    bool gone = cr_plan_pod_is_gone(ctx, pod);
    return (struct cr_budget_pod){.name = pod->name,
                                  .labels = cr_json_at(pod->pod, "metadata", "labels"),
                                  .phase = cr_json_string_at(pod->pod, "status", "phase"),
                                  .ready = pod->ready && !gone,
                                  .replaced = gone || !cr_plan_pod_must_go(ctx, consumer, i)};
}

static struct cr_budget_workload look_at(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                         struct seen *seen)
{
    size_t len = consumer->world->pods_len;
    cr_worst_case_of(consumer->spec->kind, consumer->world->workload, &seen->worst);
    seen->pods = cr_calloc(len, sizeof *seen->pods);
    for (size_t i = 0; i < len; i++)
        seen->pods[i] = view_pod(ctx, consumer, i);
    return (struct cr_budget_workload){.kind = consumer->spec->kind,
                                       .name = consumer->spec->target,
                                       .worst = &seen->worst,
                                       .pods = seen->pods,
                                       .pods_len = len};
}

/* --- others that take pods away --- */

static bool is_restarted_now(const struct plan_ctx *ctx, size_t index)
{
    for (size_t i = 0; i < ctx->plan->restarts_len; i++)
        if (ctx->plan->restarts[i].consumer == index)
            return true;
    return false;
}

/* Which the budgets' status, as it was gathered, cannot show yet. */
static bool is_evicted_now(const struct plan_ctx *ctx, size_t index)
{
    for (size_t i = 0; i < ctx->plan->evictions_len; i++)
        if (ctx->plan->evictions[i].consumer == index)
            return true;
    for (size_t i = 0; i < ctx->consumers[index].world->pods_len; i++)
        if (cr_plan_pod_is_gone(ctx, &ctx->consumers[index].world->pods[i]))
            return true;
    return false;
}

static bool is_rolling(const struct plan_consumer *consumer)
{
    return consumer->restarted &&
           (consumer->rollout.state == CR_ROLLOUT_PROGRESSING || consumer->rollout.state == CR_ROLLOUT_FAILED);
}

static bool is_the_same(const struct cr_budget_workload *workload, const struct plan_consumer *consumer)
{
    return cr_streq(workload->name, consumer->spec->target) && cr_streq(workload->kind, consumer->spec->kind);
}

/* Counted as one that rolls: one that evicts takes less. */
static bool is_listed(const struct cr_budget_workload *list, size_t len, const struct plan_consumer *consumer)
{
    for (size_t i = 0; i < len; i++)
        if (!list[i].evicts && is_the_same(&list[i], consumer))
            return true;
    return false;
}

/* others: room for all. seen: parallel to the consumers. */
static size_t find_others(const struct plan_ctx *ctx, const struct plan_consumer *consumer, struct seen *seen,
                          struct cr_budget_workload *others)
{
    const struct cr_world_budgets *budgets = &ctx->world->budgets;
    size_t len = 0;
    for (size_t i = 0; i < budgets->rolling_len; i++)
        if (!is_the_same(&budgets->rolling[i], consumer))
            others[len++] = budgets->rolling[i];
    for (size_t i = 0; i < ctx->consumers_len; i++) {
        const struct plan_consumer *other = &ctx->consumers[i];
        bool evicts = is_evicted_now(ctx, i);
        if (other == consumer || is_listed(others, len, other) ||
            !(evicts || is_rolling(other) || is_restarted_now(ctx, i)))
            continue;
        others[len++] = look_at(ctx, other, &seen[i]);
        if (evicts && !is_rolling(other)) {
            seen[i].worst.way = CR_WORST_ROLLS;
            seen[i].worst.unavailable = 1;
        }
    }
    return len;
}

/* --- the question --- */

static void judge(const struct plan_ctx *ctx, const struct plan_consumer *consumer, struct cr_budget_verdict *out)
{
    const struct cr_world_budgets *budgets = &ctx->world->budgets;
    const struct cr_policy_restart *restart = &ctx->world->policy->restart;
    cr_autofree struct seen *seen = cr_calloc(ctx->consumers_len, sizeof *seen);
    cr_autofree struct cr_budget_workload *others =
        cr_calloc(budgets->rolling_len + ctx->consumers_len, sizeof *others);
    struct cr_budget_workload workload = look_at(ctx, consumer, &seen[consumer - ctx->consumers]);
    struct cr_budget_world world = {
        /* A restart that has begun by evictions goes on by evictions: a rollout would take the new pods as well. */
        .method = consumer->evicts ? CR_RESTART_EVICT : restart->method,
        .single = restart->single,
        .budgets = budgets->items,
        .budgets_len = budgets->len,
        .unseen = budgets->unseen,
        .others = others,
        .others_len = find_others(ctx, consumer, seen, others),
    };
    cr_budget_judge(&workload, &world, out);
    for (size_t i = 0; i < ctx->consumers_len; i++)
        free(seen[i].pods);
}

static bool is_single(const struct plan_consumer *consumer, const struct cr_worst_case *worst)
{
    return worst->desired == 1 && !cr_consumer_kind_of(consumer->spec->kind)->per_node;
}

/* There is nothing to choose by. Method Rollout changes a template also where that replaces no pod at once: pods that a
 * person deletes come up with it, and are recognised by it. */
static bool just_rolls(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_world_budgets *budgets = &ctx->world->budgets;
    const struct cr_policy_restart *restart = &ctx->world->policy->restart;
    struct cr_worst_case worst;
    if (consumer->evicts || restart->method == CR_RESTART_EVICT)
        return false;
    cr_worst_case_of(consumer->spec->kind, consumer->world->workload, &worst);
    if (worst.way == CR_WORST_NOTHING)
        return restart->method == CR_RESTART_ROLLOUT;
    return worst.way != CR_WORST_EVICTS && !budgets->len && !budgets->unseen &&
           !(is_single(consumer, &worst) && restart->single != CR_SINGLE_SURGE);
}

struct cr_budget_verdict cr_plan_way(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_budget_verdict way = {.way = CR_BUDGET_ROLL};
    if (!just_rolls(ctx, consumer))
        judge(ctx, consumer, &way);
    return way;
}

static struct cr_gate describe(const struct cr_budget_verdict *way)
{
    if (way->reason == CR_BUDGET_SINGLE_REPLICA)
        return cr_gate_make(CR_HOLD_SINGLE_REPLICA, "%s", way->text);
    return way->waits ? cr_gate_make(CR_HOLD_BUDGET_WAIT, "budget: waits: %s", way->text)
                      : cr_gate_make(CR_HOLD_BUDGET, "budget: %s", way->text);
}

struct cr_gate cr_plan_budget(const struct plan_question *q)
{
    if (q->way->way != CR_BUDGET_BLOCKED)
        return CR_GATE_OPEN;
    struct cr_gate gate = describe(q->way);
    /* Budgets, pods and the restarts of others wake the policy at once. Nothing does when budgets can be seen again
     * after the API server was silent. */
    gate.look_again_ms =
        q->way->reason == CR_BUDGET_UNSEEN ? LOOK_AGAIN_MS : cr_plan_precaution_ms(q->ctx, q->consumer, LOOK_AGAIN_MS);
    return gate;
}

bool cr_plan_leaves_gap(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_policy_restart *restart = &ctx->world->policy->restart;
    struct cr_worst_case worst;
    if (restart->single != CR_SINGLE_WARN || consumer->decision.kind != CR_DECISION_RESTART)
        return false;
    cr_worst_case_of(consumer->spec->kind, consumer->world->workload, &worst);
    bool evicts = consumer->evicts || restart->method == CR_RESTART_EVICT || worst.way == CR_WORST_NOTHING;
    return is_single(consumer, &worst) && restart->method != CR_RESTART_NEVER && (evicts || worst.unavailable);
}

/* --- the repair of a new pod --- */

bool cr_plan_can_spare_a_pod(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    struct cr_worst_case worst;
    cr_worst_case_of(consumer->spec->kind, consumer->world->workload, &worst);
    return worst.desired - cr_plan_ready_pods(ctx, consumer) < (worst.unavailable > 1 ? worst.unavailable : 1);
}

struct cr_gate cr_plan_only_pod(const struct plan_question *q)
{
    const struct cr_policy_restart *restart = &q->ctx->world->policy->restart;
    struct cr_worst_case worst;
    cr_worst_case_of(q->consumer->spec->kind, q->consumer->world->workload, &worst);
    bool serves_alone = q->pod->ready && cr_plan_ready_pods(q->ctx, q->consumer) == 1;
    if (restart->single == CR_SINGLE_WARN || !is_single(q->consumer, &worst) || !serves_alone)
        return CR_GATE_OPEN;
    /* No default holds the distrust of a CA. */
    if (restart->single == CR_SINGLE_SURGE && cr_plan_distrusts(q->ctx, q->consumer, true))
        return CR_GATE_OPEN;
    return cr_gate_make(CR_HOLD_SINGLE_REPLICA,
                        "the only pod came up with the old material, and an eviction takes it away before another is "
                        "ready: restart it by hand, or accept the gap with restart.singleReplica: Warn");
}
