/* What holds a restart back: what a rollout may take from a budget, what a budget allows, which pod may be evicted.
 * Nothing else holds a rollout to a budget, so it is judged by what it may take away at worst, not by what is away now:
 * a pod that is not ready may be ready again while it goes on. */
#include <stdint.h>

#include "base/alloc.h"
#include "api/consumer_kind.h"
#include "base/strings.h"
#include "workload/budget_internal.h"

void cr_budget_refusal_dispose(struct cr_budget_refusal *refusal)
{
    free(refusal->text);
    *refusal = (struct cr_budget_refusal){0};
}
bool cr_budget_refuse(struct cr_budget_refusal *out, enum cr_budget_reason reason, char *text)
{
    free(out->text);
    *out = (struct cr_budget_refusal){.reason = reason, .text = text};
    return false;
}

static bool refuse_for_now(struct cr_budget_refusal *out, enum cr_budget_reason reason, char *text)
{
    (void)cr_budget_refuse(out, reason, text);
    out->waits = true;
    return false;
}

/* --- what a rollout takes away --- */

int cr_budget_selected_pods(const struct cr_budget *budget, const struct cr_budget_workload *workload)
{
    int n = 0;
    for (size_t i = 0; i < workload->pods_len; i++)
        n += cr_budget_selects(budget, workload->pods[i].labels);
    return n;
}

int cr_budget_taken_at_worst(const struct cr_budget_workload *workload)
{
    const struct cr_worst_case *worst = workload->worst;
    int ready = 0;
    for (size_t i = 0; i < workload->pods_len; i++)
        ready += workload->pods[i].ready;
    int beyond = ready > worst->desired ? ready - worst->desired : 0;
    return worst->unavailable + beyond;
}

/* How many pods of one budget it takes. Which of several pods go first is not known, nor whether what replaces them is
 * selected again: it is when all of them are, by labels that outlive a rollout. */
static int taken_from(const struct cr_budget *budget, const struct cr_budget_workload *workload)
{
    int selected = cr_budget_selected_pods(budget, workload);
    bool follows = selected == (int)workload->pods_len && !budget->of_generation;
    return selected && follows ? cr_budget_taken_at_worst(workload) : selected;
}

static int taken_by(const struct cr_budget_workload *other, const struct cr_budget *budget, bool evicts)
{
    if (other->evicts)
        return !evicts && cr_budget_selected_pods(budget, other) ? 1 : 0;
    switch (other->worst->way) {
    case CR_WORST_NOTHING:
        return 0;
    case CR_WORST_EVICTS:
        return evicts ? 0 : taken_from(budget, other);
    case CR_WORST_ROLLS:
    case CR_WORST_UNKNOWN:
        break;
    }
    return taken_from(budget, other);
}

/* For an eviction, or a rollout. first: the first of them, NULL: none. */
static int taken_by_others(const struct cr_budget_question *q, const struct cr_budget *budget, bool evicts,
                           const struct cr_budget_workload **first)
{
    int sum = 0;
    *first = NULL;
    for (size_t i = 0; i < q->world->others_len; i++) {
        const struct cr_budget_workload *other = &q->world->others[i];
        int taken = taken_by(other, budget, evicts);
        if (taken && !*first)
            *first = other;
        sum += taken;
    }
    return sum;
}

/* --- what a budget allows --- */

bool cr_budget_is_single(const struct cr_budget_question *q)
{
    return q->workload->worst->desired == 1 && !cr_consumer_kind_of(q->workload->kind)->per_node;
}

/* Its status says nothing, or nothing yet. */
static bool is_known(const struct cr_budget_question *q, const struct cr_budget *budget, struct cr_budget_refusal *out)
{
    if (budget->by_scale && cr_consumer_kind_of(q->workload->kind)->per_node)
        return cr_budget_refuse(
            out, CR_BUDGET_DAEMON_SET,
            cr_asprintf("PodDisruptionBudget '%s' (%s) covers a %s, whose scale its controller cannot "
                        "ask for, so it allows nothing: give it a minAvailable that is a number",
                        budget->name, budget->demand, q->workload->kind));
    if (budget->sync_failure)
        return cr_budget_refuse(
            out, CR_BUDGET_SYNC_FAILED,
            cr_asprintf("PodDisruptionBudget '%s' (%s) allows nothing, since its controller cannot compute "
                        "it: %s",
                        budget->name, budget->demand, budget->sync_failure));
    if (!budget->observed)
        return refuse_for_now(out, CR_BUDGET_STALE,
                              cr_asprintf("the status of PodDisruptionBudget '%s' (%s) is not yet of its present spec",
                                          budget->name, budget->demand));
    return true;
}

/* Waiting will not help: nothing is missing, and still nothing may go. */
static bool needs_all(const struct cr_budget_question *q, const struct cr_budget *budget)
{
    return budget->allowed == 0 && budget->expected > 0 && budget->healthy >= budget->expected &&
           budget->needed >= budget->expected && (int)q->workload->pods_len >= q->workload->worst->desired;
}

static bool refuse_for_good(const struct cr_budget_question *q, const struct cr_budget *budget,
                            struct cr_budget_refusal *out)
{
    bool surges = cr_consumer_kind_of(q->workload->kind)->surges;
    return cr_budget_refuse(
        out, cr_budget_is_single(q) ? CR_BUDGET_NEEDS_ONLY : CR_BUDGET_NEEDS_ALL,
        cr_asprintf("PodDisruptionBudget '%s' (%s) needs %s, so none may ever go first: let the budget "
                    "allow one%s, or set restart.method: Rollout to go past it",
                    budget->name, budget->demand, cr_budget_is_single(q) ? "the only pod" : "all of its pods",
                    surges ? ", or the workload surge (maxSurge 1, maxUnavailable 0)" : ""));
}

/* Whether it lets so many pods go now, also when the restarts of others take all they may. */
static bool allows(const struct cr_budget_question *q, const struct cr_budget *budget, int taken, bool evicts,
                   struct cr_budget_refusal *out)
{
    const struct cr_budget_workload *other = NULL;
    if (!is_known(q, budget, out))
        return false;
    int elsewhere = taken_by_others(q, budget, evicts, &other);
    if (taken <= budget->allowed - elsewhere)
        return true;
    if (needs_all(q, budget))
        return refuse_for_good(q, budget, out);
    if (other && taken <= budget->allowed)
        return refuse_for_now(
            out, CR_BUDGET_OTHERS,
            cr_asprintf(
                "PodDisruptionBudget '%s' (%s) allows %d now, of which restarts under way may take %d, as that of "
                "%s %s",
                budget->name, budget->demand, budget->allowed, elsewhere, other->kind, other->name));
    cr_autofree char *now =
        cr_asprintf("%d of %d pods are healthy, needed are %d", budget->healthy, budget->expected, budget->needed);
    if (budget->allowed == 0)
        return refuse_for_now(out, CR_BUDGET_EXHAUSTED,
                              cr_asprintf("PodDisruptionBudget '%s' (%s) allows no disruption now: %s", budget->name,
                                          budget->demand, now));
    (void)cr_budget_refuse(out, CR_BUDGET_TOO_MANY,
                           cr_asprintf("PodDisruptionBudget '%s' (%s) allows %d now: %s", budget->name, budget->demand,
                                       budget->allowed, now));
    out->waits = budget->healthy < budget->expected;
    return false;
}

/* --- eviction: the rules of the API server, which has the last word --- */

size_t cr_budgets_of(const struct cr_budget_question *q, const struct cr_budget_pod *pod,
                     const struct cr_budget *found[2])
{
    size_t n = 0;
    for (size_t i = 0; i < q->world->budgets_len && n < 2; i++)
        if (cr_budget_selects(&q->world->budgets[i], pod->labels))
            found[n++] = &q->world->budgets[i];
    return n;
}

static bool never_ran_or_ended(const struct cr_budget_pod *pod)
{
    return cr_streq(pod->phase, "Pending") || cr_streq(pod->phase, "Succeeded") || cr_streq(pod->phase, "Failed");
}

/* A pod that is not ready counts for no budget. */
static bool unready_may_go(const struct cr_budget *budget, const struct cr_budget_pod *pod)
{
    return !pod->ready && (budget->unready_may_go || (budget->healthy >= budget->needed && budget->needed > 0));
}

/* The disruption controller follows the pods of one of the two only: the status of the other is of any age. */
static bool refuse_two(const struct cr_budget *const found[2], const struct cr_budget_pod *pod,
                       struct cr_budget_refusal *out)
{
    return cr_budget_refuse(out, CR_BUDGET_TWO,
                            cr_asprintf("the PodDisruptionBudgets '%s' and '%s' both select pod %s; the API server "
                                        "evicts no pod of two, nor are both counts kept: let one of them select it",
                                        found[0]->name, found[1]->name, pod->name));
}

static bool may_evict_pod(const struct cr_budget_question *q, const struct cr_budget_pod *pod,
                          struct cr_budget_refusal *out)
{
    const struct cr_budget *found[2] = {NULL, NULL};
    if (never_ran_or_ended(pod))
        return true;
    switch (cr_budgets_of(q, pod, found)) {
    case 0:
        return true;
    case 1:
        return unready_may_go(found[0], pod) || allows(q, found[0], 1, true, out);
    default:
        return refuse_two(found, pod, out);
    }
}

/* One at a time: what was evicted last must be back before another that is ready goes. */
static bool is_whole(const struct cr_budget_workload *workload, struct cr_budget_refusal *out)
{
    int back = 0;
    for (size_t i = 0; i < workload->pods_len; i++)
        back += workload->pods[i].ready || !workload->pods[i].replaced;
    return back >= workload->worst->desired ||
           refuse_for_now(out, CR_BUDGET_REPLACEMENT,
                          cr_asprintf("%d of %d pods are there or ready again; the next is evicted when all are", back,
                                      workload->worst->desired));
}

static bool may_evict_next(const struct cr_budget_question *q, const struct cr_budget_pod *pod,
                           struct cr_budget_refusal *out)
{
    return (!pod->ready || is_whole(q->workload, out)) && may_evict_pod(q, pod, out);
}

/* The first that may go, pods that are not ready before those that are; SIZE_MAX: all are replaced. False: none may,
 * and out says why the first of them may not. */
bool cr_budget_may_evict(const struct cr_budget_question *q, size_t *pod, struct cr_budget_refusal *out)
{
    const struct cr_budget_workload *workload = q->workload;
    bool due = false;
    *pod = SIZE_MAX;
    for (int ready = 0; ready < 2; ready++) {
        for (size_t i = 0; i < workload->pods_len; i++) {
            CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal discarded = {0};
            if (workload->pods[i].replaced || workload->pods[i].ready != ready)
                continue;
            *pod = i;
            if (may_evict_next(q, &workload->pods[i], due ? &discarded : out))
                return true;
            due = true;
        }
    }
    *pod = SIZE_MAX;
    return !due;
}

/* --- rollout --- */

/* Says what it is that a budget refuses. */
static bool refuse_rollout(const struct cr_budget_question *q, const struct cr_budget_refusal *why, int taken,
                           struct cr_budget_refusal *out)
{
    const struct cr_worst_case *worst = q->workload->worst;
    (void)cr_budget_refuse(out, why->reason,
                           cr_asprintf("a rollout may take %d of %d pods away at once (%s); %s", taken, worst->desired,
                                       worst->text, why->text));
    out->waits = why->waits;
    return false;
}

static bool fits(const struct cr_budget_question *q, const struct cr_budget *budget, int *taken,
                 struct cr_budget_refusal *out)
{
    if (budget->problem) {
        *taken = cr_budget_taken_at_worst(q->workload);
        return *taken == 0 || cr_budget_refuse(out, CR_BUDGET_UNREADABLE,
                                               cr_asprintf("whom PodDisruptionBudget '%s' selects cannot be told: %s",
                                                           budget->name, budget->problem));
    }
    *taken = taken_from(budget, q->workload);
    return *taken == 0 || allows(q, budget, *taken, false, out);
}

static bool is_under_one_each(const struct cr_budget_question *q, struct cr_budget_refusal *out)
{
    for (size_t i = 0; i < q->workload->pods_len; i++) {
        const struct cr_budget *found[2] = {NULL, NULL};
        if (cr_budgets_of(q, &q->workload->pods[i], found) > 1)
            return refuse_two(found, &q->workload->pods[i], out);
    }
    return true;
}

static bool fits_all(const struct cr_budget_question *q, struct cr_budget_refusal *out)
{
    CR_CLEANUP(cr_budget_refusal) struct cr_budget_refusal why = {0};
    int taken = cr_budget_taken_at_worst(q->workload);
    if (q->world->unseen && taken) {
        cr_budget_refuse(&why, CR_BUDGET_UNSEEN,
                         cr_asprintf("PodDisruptionBudgets may not be seen (%s): grant list and watch on them, or set "
                                     "restart.method: Rollout to restart without a look at them",
                                     q->world->unseen));
        return refuse_rollout(q, &why, taken, out);
    }
    if (taken && !is_under_one_each(q, &why))
        return refuse_rollout(q, &why, taken, out);
    for (size_t i = 0; i < q->world->budgets_len; i++)
        if (!fits(q, &q->world->budgets[i], &taken, &why))
            return refuse_rollout(q, &why, taken, out);
    return true;
}

bool cr_budget_may_roll(const struct cr_budget_question *q, struct cr_budget_refusal *out)
{
    size_t pod = SIZE_MAX;
    switch (q->workload->worst->way) {
    case CR_WORST_NOTHING:
        return cr_budget_refuse(out, CR_BUDGET_NOTHING_ROLLS,
                                cr_asprintf("a rollout replaces nothing: %s", q->workload->worst->text));
    case CR_WORST_EVICTS:
        return cr_budget_may_evict(q, &pod, out);
    case CR_WORST_ROLLS:
    case CR_WORST_UNKNOWN:
        return fits_all(q, out);
    }
    return false;
}
