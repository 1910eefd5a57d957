#include "trust/controller/domain_forecast.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "evidence/evidence.h"

enum {
    STAGES = 3, /* trust, leaves, retirement: a consumer is restarted once for each at most */
    /* The default of a Deployment's progressDeadlineSeconds, and what other kinds have for each new pod. */
    ROLLOUT_MS = 10 * 60 * 1000,
};

/* What a consumer does by itself is known from the last change. */
static bool may_restart(const struct cr_consumer_status *consumer)
{
    return consumer->state != CR_CONSUMER_ABSENT && consumer->kind && !cr_policy_kind_by_api(consumer->kind) &&
           !cr_policy_kind_runs_to_end(consumer->kind) && consumer->decision != CR_DECISION_HOT_RELOAD &&
           consumer->decision != CR_DECISION_TRIGGER;
}

/* How many of its consumers may be restarted; each workload is put into the list once. */
static int count_consumers(const struct cr_covering_policy *covering, struct cr_strmap *workloads)
{
    int found = 0;
    for (size_t i = 0; i < covering->status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &covering->status->consumers[i];
        if (!may_restart(consumer))
            continue;
        cr_autofree char *key =
            cr_asprintf("%s/%s/%s", covering->policy->ns, consumer->kind, cr_or_empty(consumer->target));
        cr_strmap_set(workloads, key, NULL);
        found++;
    }
    return found;
}

/* Policies restart in parallel; each restarts as many of its consumers at a time as it says. */
static int64_t rollouts_ms(const struct cr_covering_policy *covering, int consumers)
{
    int at_a_time = covering->policy->restart.max_concurrent > 0 ? covering->policy->restart.max_concurrent : 1;
    return (int64_t)((consumers + at_a_time - 1) / at_a_time) * ROLLOUT_MS;
}

static int64_t last_rotation_ms(const struct cr_domain_status *status)
{
    for (size_t i = 0; i < status->history_len; i++)
        if (cr_streq(status->history[i].what, "CA") && cr_streq(status->history[i].outcome, "Converged"))
            return status->history[i].finished_ms - status->history[i].started_ms;
    return 0;
}

void cr_domain_forecast_add(struct cr_domain_forecast_sum *sum, const struct cr_covering_policies *covering,
                            bool is_read_by_api)
{
    bool covered = is_read_by_api;
    if (!sum->workloads)
        sum->workloads = cr_strmap_new(NULL);
    for (size_t i = 0; i < covering->len; i++) {
        const struct cr_covering_policy *policy = &covering->items[i];
        int64_t needed_ms = rollouts_ms(policy, count_consumers(policy, sum->workloads));
        sum->longest_ms = needed_ms > sum->longest_ms ? needed_ms : sum->longest_ms;
        covered = covered || cr_domain_policy_counts(policy->policy);
    }
    sum->uncovered = sum->uncovered || !covered;
}

void cr_domain_forecast_make(const struct cr_domain_world *world, const struct cr_domain_forecast_sum *sum,
                             struct cr_domain_forecast *out)
{
    bool waits = sum->uncovered && world->domain->evidence.uncovered == CR_UNCOVERED_WAIT;
    int count = sum->workloads ? (int)cr_strmap_len(sum->workloads) : 0;
    *out = (struct cr_domain_forecast){.workloads = count,
                                       .restarts = STAGES * count,
                                       .expected_ms = last_rotation_ms(world->status),
                                       .at_most_ms = STAGES * (CR_KUBELET_REFRESH_MS + sum->longest_ms) +
                                                     (waits ? world->domain->evidence.stage_deadline_ms : 0)};
}

void cr_domain_forecast_sum_dispose(struct cr_domain_forecast_sum *sum)
{
    cr_strmap_free(sum->workloads);
    *sum = (struct cr_domain_forecast_sum){0};
}
