/* What a restart must pass: one table, in the order in which its gates are asked. A gate looks and answers; what
 * follows from the answer is its caller's. */
#include "policy/rules/plan_internal.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

/* So many times restart.coalesce, while changes go on coming. As the CRD says. */
enum { COALESCE_TIMES_MAX = 6 };

/* --- what a person says --- */

static struct cr_gate deleting(const struct plan_question *q)
{
    return q->ctx->world->policy->deleting ? cr_gate_make(CR_HOLD_DELETING, "the policy is being deleted")
                                           : CR_GATE_OPEN;
}

static struct cr_gate suspended(const struct plan_question *q)
{
    return q->ctx->world->policy->suspend ? cr_gate_make(CR_HOLD_SUSPENDED, "suspend") : CR_GATE_OPEN;
}

static struct cr_gate plan_mode(const struct plan_question *q)
{
    return q->ctx->world->policy->mode == CR_MODE_PLAN ? cr_gate_make(CR_HOLD_PLAN_MODE, "mode: Plan") : CR_GATE_OPEN;
}

static struct cr_gate restart_never(const struct plan_question *q)
{
    return q->ctx->world->policy->restart.method == CR_RESTART_NEVER
               ? cr_gate_make(CR_HOLD_RESTART_NEVER, "restart.method: Never")
               : CR_GATE_OPEN;
}

static struct cr_gate unknown_software(const struct plan_question *q)
{
    if (!q->consumer->decision.unknown || q->ctx->world->policy->discover.unknown != CR_UNKNOWN_REPORT)
        return CR_GATE_OPEN;
    return cr_gate_make(CR_HOLD_UNKNOWN_SOFTWARE,
                        "its software is not in the catalogue, or not verified there, and discover.unknown is Report: "
                        "restart it by hand, or say in reload how it takes up new material");
}

/* --- what the Secrets and the workload are --- */

static struct cr_gate unusable_secret(const struct plan_question *q)
{
    return cr_gate_copy(&q->consumer->held_by);
}

struct cr_gate cr_plan_paused(void)
{
    return cr_gate_make(CR_HOLD_PAUSED, "the workload is paused");
}

/* A paused Deployment may be complete as it stands; a new template would wait until it is resumed. */
static struct cr_gate paused(const struct plan_question *q)
{
    return cr_json_bool_at(q->consumer->world->workload, false, "spec", "paused") ? cr_plan_paused() : CR_GATE_OPEN;
}

/* What forbids a restart now for workloads of its kind. */
static struct cr_gate kind(const struct plan_question *q)
{
    const struct plan_consumer *consumer = q->consumer;
    const struct cr_rollout *rollout = &consumer->rollout;
    if (cr_consumer_kind_of(consumer->spec->kind)->update == CR_UPDATE_NOTHING &&
        q->ctx->world->policy->restart.method == CR_RESTART_ROLLOUT)
        return cr_gate_make(CR_HOLD_BARE_REPLICA_SET,
                            "a ReplicaSet without a Deployment replaces no pod by itself: set restart.method: Auto to "
                            "have its old pods evicted, or delete them by hand, one after the other");
    if (!cr_plan_restarts_by_time(consumer) || !rollout->busy)
        return CR_GATE_OPEN;
    if (rollout->state == CR_ROLLOUT_PAUSED)
        return cr_plan_paused();
    return cr_gate_make(rollout->state == CR_ROLLOUT_PROGRESSING ? CR_HOLD_UPDATING : CR_HOLD_UPDATE_FAILED,
                        "the Rollout is busy: %s", rollout->message);
}

/* --- windows: when restarts may begin --- */

struct cr_schedule cr_plan_schedule(const struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_window windows[CR_POLICY_WINDOWS_MAX];
    for (size_t i = 0; i < policy->restart.windows_len; i++)
        windows[i] = (struct cr_window){.cron = &policy->restart.windows[i].opens,
                                        .zone = ctx->world->zones[i],
                                        .duration_ms = policy->restart.windows[i].duration_ms};
    return cr_schedule_judge(windows, policy->restart.windows_len, policy->uid, ctx->world->now_ms);
}

/* When what the old pods have in use ends, of what a restart would replace: a leaf, or the CA that lasts longest. 0: no
 * certificate is. */
static int64_t in_use_until_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t first_ms = 0;
    for (size_t k = 0; k < ctx->changes_len; k++) {
        const struct cr_material *settled = &ctx->pending[k]->settled;
        unsigned classes = consumer->changes[k].classes;
        int64_t end_ms = 0;
        if ((classes & CR_CLASS_LEAF) && settled->has_leaf)
            end_ms = settled->not_after_ms;
        else if (classes & CR_CLASS_TRUST)
            end_ms = cr_material_summarize_trust(settled).not_after_ms;
        if (end_ms && (!first_ms || end_ms < first_ms))
            first_ms = end_ms;
    }
    return first_ms;
}

static char *opens_at(const struct plan_ctx *ctx, const struct cr_schedule *schedule)
{
    return cr_schedule_time(ctx->world->zones[schedule->window],
                            ctx->world->policy->restart.windows[schedule->window].time_zone, schedule->next_ms);
}

/* Time alone would let the certificate end: a person should know. */
static struct cr_gate closed(const struct plan_ctx *ctx, const struct cr_schedule *schedule, int64_t end_ms,
                             int64_t lifted_ms)
{
    if (schedule->next_ms == CR_SCHEDULE_NEVER)
        return cr_gate_make(CR_HOLD_WINDOW_NEVER, "restart.windows: none of them opens any more");
    cr_autofree char *opens = opens_at(ctx, schedule);
    if (!end_ms || schedule->next_ms < end_ms || lifted_ms < end_ms)
        return cr_gate_make(CR_HOLD_WINDOW, "restart.windows: opens at %s", opens);
    char end[CR_TIME_TEXT];
    cr_time_format(end_ms, end);
    return cr_gate_make(CR_HOLD_WINDOW_TOO_LATE,
                        "restart.windows: the certificate in use ends at %s, and the next opens at %s: set "
                        "restart.overrideWindowBeforeExpiry to have it replaced before",
                        end, opens);
}

static struct cr_gate window(const struct plan_question *q)
{
    const struct cr_policy_restart *restart = &q->ctx->world->policy->restart;
    const struct cr_schedule *schedule = &q->ctx->schedule;
    int64_t now = q->ctx->world->now_ms;
    if (!restart->windows_len)
        return CR_GATE_OPEN;
    int64_t end_ms = in_use_until_ms(q->ctx, q->consumer);
    int64_t lifted_ms = CR_SCHEDULE_NEVER;
    if (end_ms && restart->override_window_ms != CR_POLICY_NO_OVERRIDE)
        lifted_ms = end_ms - restart->override_window_ms;
    if (schedule->open || lifted_ms <= now)
        return CR_GATE_OPEN;
    int64_t due = schedule->next_ms < lifted_ms ? schedule->next_ms : lifted_ms;
    struct cr_gate gate = closed(q->ctx, schedule, end_ms, lifted_ms);
    gate.look_again_ms = cr_plan_by_clock_ms(due - now);
    return gate;
}

/* --- time and order --- */

static const struct plan_consumer *listed(const struct plan_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (!ctx->consumers[i].spec->found && cr_streq(ctx->consumers[i].spec->name, name))
            return &ctx->consumers[i];
    return NULL;
}

/* All that is pending, whichever Secret it is about: an order is often one between Secrets. */
static bool has_finished(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (!cr_plan_has(ctx, consumer, k))
            return false;
    return true;
}

/* spec.consumers[].after: a consumer is restarted when those that it comes after have finished. */
static struct cr_gate order(const struct plan_question *q)
{
    const struct cr_strvec *after = &q->consumer->spec->after;
    for (size_t i = 0; i < after->len; i++) {
        const struct plan_consumer *before = listed(q->ctx, after->items[i]);
        if (!before)
            return cr_gate_make(CR_HOLD_ORDER_UNKNOWN,
                                "after: nobody can tell when %s has finished: it is of a kind that is not acted on",
                                after->items[i]);
        if (!has_finished(q->ctx, before))
            return cr_gate_make(CR_HOLD_ORDER, "after: waits for %s", after->items[i]);
    }
    return CR_GATE_OPEN;
}

/* Until when further changes are waited for: for so long after the last one. One that always comes would hold the
 * restart for ever, so there is an end to it, counted from the first that the workload was not restarted for. */
int64_t cr_plan_coalesced_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    int64_t pause_ms = ctx->world->policy->restart.coalesce_ms;
    int64_t restarted_ms = cr_restart_annotation_at_ms(consumer->world->workload);
    if (consumer->status->evicted_until_ms && consumer->status->last_restart_ms > restarted_ms)
        restarted_ms = consumer->status->last_restart_ms;
    int64_t first_ms = consumer->first_ms ? consumer->first_ms : consumer->since_ms; /* after a fall-back */
    if (restarted_ms > first_ms)
        first_ms = restarted_ms;
    int64_t last_ms = consumer->since_ms + pause_ms;
    int64_t end_ms = first_ms + COALESCE_TIMES_MAX * pause_ms;
    return end_ms < last_ms ? end_ms : last_ms;
}

static struct cr_gate coalesce(const struct plan_question *q)
{
    int64_t due = cr_plan_coalesced_ms(q->ctx, q->consumer);
    if (q->ctx->world->now_ms >= due)
        return CR_GATE_OPEN;
    struct cr_gate gate = cr_gate_make(CR_HOLD_COALESCE, "restart.coalesce");
    gate.look_again_ms = due - q->ctx->world->now_ms;
    return gate;
}

/* --- how many at a time: of this policy (restart.maxConcurrent), and of all --- */

/* The next one would likely fail the same way. */
static struct cr_gate other_failed(const struct plan_question *q)
{
    return q->ctx->rollout_failed ? cr_gate_make(CR_HOLD_OTHER_ROLLOUT_FAILED,
                                                 "restart.maxConcurrent: the rollout of another consumer has failed")
                                  : CR_GATE_OPEN;
}

/* A consumer that is restarted already, for an earlier change, has its place. */
static struct cr_gate concurrency(const struct plan_question *q)
{
    const char *first = NULL;
    int others = 0;
    for (size_t i = 0; i < q->ctx->consumers_len; i++) {
        const struct plan_consumer *other = &q->ctx->consumers[i];
        if (other == q->consumer || !other->under_way)
            continue;
        if (!others++)
            first = other->spec->name;
    }
    if (others < q->ctx->world->policy->restart.max_concurrent)
        return CR_GATE_OPEN;
    return cr_gate_make(CR_HOLD_MAX_CONCURRENT, "restart.maxConcurrent: waits for %s", first);
}

/* The numbers in it are the limits', so that it stays the same while others come and go. */
static struct cr_gate limit(const struct plan_question *q)
{
    const struct cr_world_limits *limits = &q->ctx->world->limits;
    if (q->consumer->under_way || q->consumer->world->claim.any)
        return CR_GATE_OPEN;
    if (limits->unknown)
        return cr_gate_make(CR_HOLD_LIMIT,
                            "limit: after a start of the operator, all policies are looked at before a restart begins");
    if (limits->total && limits->total_free <= q->ctx->begun)
        return cr_gate_make(CR_HOLD_LIMIT,
                            "limit: as many workloads are being restarted as may be at a time in all namespaces "
                            "(--max-restarts %d)",
                            limits->total);
    if (limits->per_namespace && limits->namespace_free <= q->ctx->begun)
        return cr_gate_make(CR_HOLD_LIMIT,
                            "limit: as many workloads are being restarted as may be at a time in this namespace "
                            "(--max-restarts-per-namespace %d)",
                            limits->per_namespace);
    return CR_GATE_OPEN;
}

/* --- the table --- */

/* What a person must know at once comes before what takes its time, and what depends on the way that budgets leave
 * comes behind them. The distrust of a CA waits neither for another time nor for another consumer; it does wait for
 * what a person says of all restarts, for budgets, and for what keeps the restart from being in vain. */
static const struct row {
    struct cr_gate (*ask)(const struct plan_question *q);
    unsigned asked; /* PLAN_TO_* */
    bool yields;    /* a restart, or its repair, need not pass it for the distrust of a CA */
    bool needs_way; /* it looks at the way that budgets leave */
} rows[] = {
    {deleting, PLAN_TO_ACT | PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {suspended, PLAN_TO_ACT | PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {plan_mode, PLAN_TO_ACT | PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {restart_never, PLAN_TO_PROPOSE | PLAN_TO_BEGIN | PLAN_TO_GO_ON | PLAN_TO_REPAIR},
    {unknown_software, PLAN_TO_PROPOSE | PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {unusable_secret, PLAN_TO_PROPOSE | PLAN_TO_BEGIN | PLAN_TO_GO_ON | PLAN_TO_REPAIR},
    {paused, PLAN_TO_PROPOSE | PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {kind, PLAN_TO_BEGIN},
    {cr_plan_only_pod, PLAN_TO_REPAIR},
    {window, PLAN_TO_BEGIN | PLAN_TO_REPAIR, .yields = true},
    {cr_plan_breaker, PLAN_TO_BEGIN, .yields = true},
    {order, PLAN_TO_BEGIN, .yields = true},
    {cr_plan_budget, PLAN_TO_BEGIN | PLAN_TO_EVICT_NEXT, .needs_way = true},
    {coalesce, PLAN_TO_BEGIN, .yields = true},
    {cr_plan_unverifiable_gate, PLAN_TO_BEGIN, .needs_way = true},
    {cr_plan_kubelet_cache_gate, PLAN_TO_BEGIN},
    {other_failed, PLAN_TO_BEGIN | PLAN_TO_GO_ON},
    {concurrency, PLAN_TO_BEGIN},
    {limit, PLAN_TO_BEGIN},
};

/* What would let a stage of a trust domain's rotation go may be on the domain's record a moment later. */
static void expect_record(const struct plan_question *q, struct cr_gate *gate)
{
    int64_t comes_ms = cr_plan_record_comes_ms(q->ctx, q->consumer);
    gate->look_again_ms = cr_plan_sooner_ms(gate->look_again_ms, comes_ms);
}

static struct plan_answer ask(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                              enum plan_occasion occasion, const struct cr_world_pod *pod)
{
    struct plan_answer answer = {.gate = CR_GATE_OPEN};
    struct plan_question q = {.ctx = ctx, .consumer = consumer, .pod = pod};
    bool begins = occasion == PLAN_TO_BEGIN;
    bool repairs = occasion == PLAN_TO_REPAIR;
    bool distrusts = (begins || repairs) && cr_plan_distrusts(ctx, consumer, repairs);
    for (size_t i = 0; i < cr_array_len(rows) && !answer.gate.hold; i++) {
        const struct row *row = &rows[i];
        if (!(row->asked & occasion) || (row->yields && distrusts))
            continue;
        if (row->needs_way && !q.way) {
            answer.way = cr_plan_way(ctx, consumer);
            q.way = &answer.way;
        }
        answer.gate = row->ask(&q);
        if (answer.gate.hold && row->yields && begins)
            expect_record(&q, &answer.gate);
    }
    return answer;
}

struct plan_answer cr_plan_ask(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                               enum plan_occasion occasion)
{
    return ask(ctx, consumer, occasion, NULL);
}

struct plan_answer cr_plan_ask_repair(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                      const struct cr_world_pod *pod)
{
    return ask(ctx, consumer, PLAN_TO_REPAIR, pod);
}

void cr_plan_answer_dispose(struct plan_answer *answer)
{
    cr_gate_dispose(&answer->gate);
    cr_budget_verdict_dispose(&answer->way);
}

bool cr_plan_may_act(const struct plan_ctx *ctx)
{
    CR_CLEANUP(plan_answer) struct plan_answer answer = cr_plan_ask(ctx, NULL, PLAN_TO_ACT);
    return !answer.gate.hold;
}
