#include "policy/controller/policy_metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "evidence/evidence.h"
#include "policy/rules/expiry.h"

enum { STATES = CR_CONSUMER_ABSENT + 1, DECISIONS = CR_DECISION_RESTART + 1, EVIDENCE = CR_EVIDENCE_UNKNOWN + 1 };

/* --- what is shown --- */

/* The series that have words as labels beside namespace and policy: which of them a policy has must be remembered. */
enum series { LEAF_END, CA_END, EXPIRED_CAS, SECRET_PROBLEM, CONDITION, SERIES };

struct tally {
    int states[STATES];
    int blocked[CR_HOLDS];
    int decisions[DECISIONS];
    int pods[EVIDENCE];
    int pending;
};

/* Of one policy. */
struct shown {
    struct tally tally;
    struct cr_strvec series; /* of its Secrets and conditions: "metric\nlabel[\nlabel]" */
};

/* Of one namespace: the sums over its policies. */
struct namespace_totals {
    struct tally sums;
    size_t policies;
    struct cr_strvec restarted; /* "kind/workload" that are counted by name: CR_RESTARTED_NAMES_MAX */
};

struct cr_policy_metrics {
    struct cr_metric *of_series[SERIES];
    struct cr_metric *consumers;
    struct cr_metric *blocked;
    struct cr_metric *decisions;
    struct cr_metric *pods;
    struct cr_metric *pending;
    struct cr_metric *restarts;
    struct cr_metric *workload_restarts;
    struct cr_metric *rotation_seconds;
    struct cr_metric *restart_seconds;

    pthread_mutex_t lock;    /* guards what is below */
    struct cr_strmap *shown; /* by namespace/name */
    struct cr_strmap *totals;
};

static void shown_free(void *value)
{
    struct shown *shown = value;
    cr_strvec_dispose(&shown->series);
    free(shown);
}

static void totals_free(void *value)
{
    struct namespace_totals *totals = value;
    cr_strvec_dispose(&totals->restarted);
    free(totals);
}

static void register_gauges(struct cr_policy_metrics *m, struct cr_metrics *metrics)
{
    m->consumers = cr_metrics_gauge(metrics, "certroll_consumers", "Consumers of a policy by their state.",
                                    CR_LABELS("namespace", "policy", "state"));
    m->blocked = cr_metrics_gauge(metrics, "certroll_consumers_blocked",
                                  "Consumers of a policy for which something stands in the way, by what that is.",
                                  CR_LABELS("namespace", "policy", "reason"));
    m->decisions = cr_metrics_gauge(metrics, "certroll_consumers_by_decision",
                                    "Consumers of all policies of a namespace by what was decided for them.",
                                    CR_LABELS("namespace", "decision"));
    m->pods = cr_metrics_gauge(metrics, "certroll_pods_by_evidence",
                               "Pods of all consumers in a namespace by the evidence that they have the new material.",
                               CR_LABELS("namespace", "evidence"));
    m->pending =
        cr_metrics_gauge(metrics, "certroll_pending_rotations",
                         "Changes of Secrets that not all consumers in a namespace have yet.", CR_LABELS("namespace"));
}

static void register_series(struct cr_policy_metrics *m, struct cr_metrics *metrics)
{
    m->of_series[LEAF_END] =
        cr_metrics_gauge(metrics, "certroll_secret_not_after_timestamp_seconds",
                         "When the first of a Secret's leaves ends that pods may serve, in seconds since the epoch.",
                         CR_LABELS("namespace", "policy", "secret"));
    m->of_series[CA_END] =
        cr_metrics_gauge(metrics, "certroll_secret_ca_not_after_timestamp_seconds",
                         "When the first of a Secret's CAs ends that has not yet, in seconds since the epoch.",
                         CR_LABELS("namespace", "policy", "secret"));
    m->of_series[EXPIRED_CAS] =
        cr_metrics_gauge(metrics, "certroll_secret_expired_cas", "CAs of a Secret that have expired.",
                         CR_LABELS("namespace", "policy", "secret"));
    m->of_series[SECRET_PROBLEM] =
        cr_metrics_gauge(metrics, "certroll_secret_problem", "Why what a Secret holds cannot be used; always 1.",
                         CR_LABELS("namespace", "policy", "secret", "reason"));
    m->of_series[CONDITION] =
        cr_metrics_gauge(metrics, "certroll_policy_condition",
                         "A condition of a policy that is not as it should be: 1 when it is True, 0 when it is False.",
                         CR_LABELS("namespace", "policy", "type", "reason"));
}

static void register_totals(struct cr_policy_metrics *m, struct cr_metrics *metrics)
{
    static const double rotation[] = {1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600};
    static const double restart[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                     1,     5,      10,    30,   60,    300,  1800, 3600, 24 * 3600};
    m->restarts = cr_metrics_counter(metrics, "certroll_restarts_total", "Restarts of workloads by their result.",
                                     CR_LABELS("namespace", "kind", "result"));
    m->workload_restarts =
        cr_metrics_counter(metrics, "certroll_workload_restarts_total", "Restarts of each workload that were accepted.",
                           CR_LABELS("namespace", "kind", "workload"));
    m->rotation_seconds = cr_metrics_histogram(
        metrics, "certroll_rotation_duration_seconds",
        "From the moment a change was seen until all pods were verified or inferred to have it, or it was overtaken.",
        CR_LABELS("outcome"), rotation, cr_array_len(rotation));
    m->restart_seconds = cr_metrics_histogram(metrics, "certroll_change_to_restart_seconds",
                                              "From the moment a change was seen until a restart for it was accepted.",
                                              NULL, restart, cr_array_len(restart));
}

struct cr_policy_metrics *cr_policy_metrics_new(struct cr_metrics *metrics)
{
    struct cr_policy_metrics *m = cr_new(struct cr_policy_metrics);
    register_gauges(m, metrics);
    register_series(m, metrics);
    register_totals(m, metrics);
    pthread_mutex_init(&m->lock, NULL);
    m->shown = cr_strmap_new(shown_free);
    m->totals = cr_strmap_new(totals_free);
    return m;
}

void cr_policy_metrics_free(struct cr_policy_metrics *m)
{
    if (!m)
        return;
    cr_strmap_free(m->shown);
    cr_strmap_free(m->totals);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- counting --- */

static void count_consumer(const struct cr_consumer_status *consumer, struct tally *tally)
{
    tally->states[consumer->state]++;
    tally->decisions[consumer->decision]++;
    tally->blocked[consumer->gate.hold] += cr_hold_is_counted(consumer->gate.hold);
    tally->pods[CR_EVIDENCE_VERIFIED] += consumer->pods.verified;
    tally->pods[CR_EVIDENCE_INFERRED] += consumer->pods.inferred;
    tally->pods[CR_EVIDENCE_STALE] += consumer->pods.stale;
    tally->pods[CR_EVIDENCE_UNKNOWN] += consumer->pods.unknown;
}

static void count(const struct cr_policy_status *status, struct tally *tally)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        count_consumer(&status->consumers[i], tally);
    for (size_t i = 0; i < status->secrets_len; i++)
        tally->pending += status->secrets[i].pending.set;
}

/* --- with the lock held --- */

/* A value of 0 has no series: most policies are in one state and not blocked. */
static void set_or_remove(struct cr_metric *metric, const char *const *labels, int before, int after)
{
    if (after)
        cr_metric_set(metric, labels, after);
    else if (before)
        cr_metric_remove(metric, labels);
}

static void show_policy(const struct cr_policy_metrics *m, const char *ns, const char *name, const struct tally *before,
                        const struct tally *after)
{
    for (size_t i = 0; i < STATES; i++)
        set_or_remove(m->consumers, CR_LABELS(ns, name, cr_consumer_state_name((enum cr_consumer_state)i)),
                      before->states[i], after->states[i]);
    for (size_t i = 0; i < CR_HOLDS; i++)
        set_or_remove(m->blocked, CR_LABELS(ns, name, cr_hold_name((enum cr_hold)i)), before->blocked[i],
                      after->blocked[i]);
}

static void show_totals(const struct cr_policy_metrics *m, const char *ns, const struct namespace_totals *totals)
{
    for (size_t i = 0; i < DECISIONS; i++)
        cr_metric_set(m->decisions, CR_LABELS(ns, cr_decision_name((enum cr_decision_kind)i)),
                      totals->sums.decisions[i]);
    for (size_t i = 0; i < EVIDENCE; i++)
        cr_metric_set(m->pods, CR_LABELS(ns, cr_evidence_name((enum cr_evidence)i)), totals->sums.pods[i]);
    cr_metric_set(m->pending, CR_LABELS(ns), totals->sums.pending);
}

static void hide_restarted(const struct cr_policy_metrics *m, const char *ns, const struct cr_strvec *restarted)
{
    for (size_t i = 0; i < restarted->len; i++) {
        const char *workload = strchr(restarted->items[i], '/') + 1;
        cr_autofree char *kind = cr_strndup(restarted->items[i], (size_t)(workload - 1 - restarted->items[i]));
        cr_metric_remove(m->workload_restarts, CR_LABELS(ns, kind, workload));
    }
    cr_metric_remove(m->workload_restarts, CR_LABELS(ns, "", ""));
}

static void hide_totals(const struct cr_policy_metrics *m, const char *ns)
{
    for (size_t i = 0; i < DECISIONS; i++)
        cr_metric_remove(m->decisions, CR_LABELS(ns, cr_decision_name((enum cr_decision_kind)i)));
    for (size_t i = 0; i < EVIDENCE; i++)
        cr_metric_remove(m->pods, CR_LABELS(ns, cr_evidence_name((enum cr_evidence)i)));
    cr_metric_remove(m->pending, CR_LABELS(ns));
}

static struct namespace_totals *totals_of(struct cr_policy_metrics *m, const char *ns)
{
    struct namespace_totals *totals = cr_strmap_get(m->totals, ns);
    if (totals)
        return totals;
    totals = cr_new(struct namespace_totals);
    cr_strmap_set(m->totals, ns, totals);
    return totals;
}

static void move_sums(struct tally *sums, const struct tally *before, const struct tally *after)
{
    for (size_t i = 0; i < DECISIONS; i++)
        sums->decisions[i] += after->decisions[i] - before->decisions[i];
    for (size_t i = 0; i < EVIDENCE; i++)
        sums->pods[i] += after->pods[i] - before->pods[i];
    sums->pending += after->pending - before->pending;
}

/* The policy that gets its series set again. */
struct showing {
    const struct cr_policy_metrics *metrics;
    const char *ns, *policy;
    struct cr_strvec *series;
};

/* reason: NULL where there is no such label. */
static void show_series(const struct showing *to, enum series which, const char *word, const char *reason, double value)
{
    cr_autofree char *key = cr_asprintf("%d\n%s%s%s", which, word, reason ? "\n" : "", cr_or_empty(reason));
    cr_strvec_add(to->series, key);
    cr_metric_set(to->metrics->of_series[which], CR_LABELS(to->ns, to->policy, word, reason), value);
}

static void hide_series(const struct showing *to, const char *key)
{
    char *end = NULL;
    enum series which = (enum series)strtol(key, &end, 10);
    cr_autofree char *word = cr_strdup(end + 1);
    char *reason = strchr(word, '\n');
    if (reason)
        *reason++ = '\0';
    cr_metric_remove(to->metrics->of_series[which], CR_LABELS(to->ns, to->policy, word, reason));
}

/* What the Secret holds; nothing where that is not known. */
static struct cr_world_secret held(const struct cr_world *world, const char *name)
{
    for (size_t i = 0; world && i < world->policy->secrets_len; i++)
        if (cr_streq(world->policy->secrets[i].name, name))
            return world->secrets[i];
    return (struct cr_world_secret){0};
}

static void show_secret(const struct showing *to, const struct cr_world_secret *now,
                        const struct cr_policy_status *status, const struct cr_secret_status *secret)
{
    const struct cr_expiry expiry = cr_expiry_of(now, status, secret, cr_clock_wall_ms());
    if (expiry.leaf_ms)
        show_series(to, LEAF_END, secret->name, NULL, (double)expiry.leaf_ms / 1000.0);
    if (expiry.ca_ms)
        show_series(to, CA_END, secret->name, NULL, (double)expiry.ca_ms / 1000.0);
    if (expiry.expired)
        show_series(to, EXPIRED_CAS, secret->name, NULL, (double)expiry.expired);
    if (secret->problem_reason)
        show_series(to, SECRET_PROBLEM, secret->name, secret->problem_reason, 1);
}

static void show_all_series(const struct showing *to, const struct cr_world *world,
                            const struct cr_policy_status *status)
{
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_world_secret now = held(world, status->secrets[i].name);
        show_secret(to, &now, status, &status->secrets[i]);
    }
    for (size_t i = 0; i < CR_CONDITIONS; i++) {
        const struct cr_condition *condition = &status->conditions[i];
        if (cr_condition_is_trouble(condition))
            show_series(to, CONDITION, condition->type, condition->reason, condition->status);
    }
    cr_strvec_sort(to->series);
}

/* Both sorted. */
static void hide_what_is_over(const struct showing *to, const struct cr_strvec *before)
{
    size_t k = 0;
    for (size_t i = 0; i < before->len; i++) {
        while (k < to->series->len && strcmp(to->series->items[k], before->items[i]) < 0)
            k++;
        if (k == to->series->len || strcmp(to->series->items[k], before->items[i]) != 0)
            hide_series(to, before->items[i]);
    }
}

/* status NULL: the policy no longer has one. An alert on something that no policy has would never end. */
static void move_series(struct cr_policy_metrics *m, const char *ns, const char *policy, struct shown *shown,
                        const struct cr_world *world, const struct cr_policy_status *status)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec before = shown->series;
    shown->series = (struct cr_strvec){0};
    const struct showing to = {.metrics = m, .ns = ns, .policy = policy, .series = &shown->series};
    if (status)
        show_all_series(&to, world, status);
    hide_what_is_over(&to, &before);
}

/* What was shown of the policy before; nothing for a new policy. */
static struct shown *shown_of(struct cr_policy_metrics *m, const char *ns, const char *key)
{
    struct shown *shown = cr_strmap_get(m->shown, key);
    if (shown)
        return shown;
    shown = cr_new(struct shown);
    cr_strmap_set(m->shown, key, shown);
    totals_of(m, ns)->policies++;
    return shown;
}

/* --- gauges --- */

void cr_policy_metrics_show(struct cr_policy_metrics *m, const char *ns, const char *name, const struct cr_world *world,
                            const struct cr_policy_status *status)
{
    if (!m)
        return;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    struct tally tally = {0};
    count(status, &tally);
    pthread_mutex_lock(&m->lock);
    struct shown *shown = shown_of(m, ns, key);
    struct namespace_totals *totals = totals_of(m, ns);
    show_policy(m, ns, name, &shown->tally, &tally);
    move_sums(&totals->sums, &shown->tally, &tally);
    show_totals(m, ns, totals);
    move_series(m, ns, name, shown, world, status);
    shown->tally = tally;
    pthread_mutex_unlock(&m->lock);
}

void cr_policy_metrics_forget(struct cr_policy_metrics *m, const char *ns, const char *name)
{
    if (!m)
        return;
    static const struct tally none = {0};
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    pthread_mutex_lock(&m->lock);
    struct shown *shown = cr_strmap_get(m->shown, key);
    if (shown) {
        struct namespace_totals *totals = totals_of(m, ns);
        show_policy(m, ns, name, &shown->tally, &none);
        move_sums(&totals->sums, &shown->tally, &none);
        move_series(m, ns, name, shown, NULL, NULL);
        cr_strmap_remove(m->shown, key);
        if (--totals->policies) {
            show_totals(m, ns, totals);
        } else {
            hide_totals(m, ns);
            hide_restarted(m, ns, &totals->restarted);
            cr_strmap_remove(m->totals, ns);
        }
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- counters and histograms --- */

static const char *result_of(const struct cr_error *failed)
{
    switch (failed ? failed->kind : CR_ERR_NONE) {
    case CR_ERR_NONE:
        return "success";
    case CR_ERR_CONFLICT:
        return "conflict";
    case CR_ERR_TRANSIENT:
    case CR_ERR_CANCELLED:
    case CR_ERR_INTERNAL:
        return "error";
    default:
        return "refused"; /* the API server says no */
    }
}

/* With the lock held. By name as long as there are not too many; empty labels stand for all that came later. */
static void count_workload(const struct cr_policy_metrics *m, const char *ns, const struct cr_policy_consumer *consumer,
                           struct cr_strvec *named)
{
    cr_autofree char *key = cr_asprintf("%s/%s", consumer->kind, consumer->target);
    bool has_name = named->len < CR_RESTARTED_NAMES_MAX || cr_strvec_has(named, key);
    if (has_name)
        cr_strvec_add_unique(named, key);
    cr_metric_add(m->workload_restarts,
                  has_name ? CR_LABELS(ns, consumer->kind, consumer->target) : CR_LABELS(ns, "", ""), 1);
}

static void restarted(struct cr_policy_metrics *m, const char *ns, const struct cr_policy_consumer *consumer)
{
    pthread_mutex_lock(&m->lock);
    struct namespace_totals *totals = cr_strmap_get(m->totals, ns);
    if (totals) /* its policy has not gone meanwhile */
        count_workload(m, ns, consumer, &totals->restarted);
    pthread_mutex_unlock(&m->lock);
}

/* The earliest of the changes that the restart was for; 0: none is known. */
static int64_t earliest_change_ms(const struct cr_policy_status *status, const char *rotations)
{
    int64_t earliest_ms = 0;
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_pending_change *pending = &status->secrets[i].pending;
        if (pending->set && pending->id[0] && strstr(cr_or_empty(rotations), pending->id) &&
            (!earliest_ms || pending->since_ms < earliest_ms))
            earliest_ms = pending->since_ms;
    }
    return earliest_ms;
}

/* Wall clocks can be set back. */
static double seconds_between(int64_t from_ms, int64_t to_ms)
{
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1000.0 : 0;
}

void cr_policy_metrics_restarted(struct cr_policy_metrics *m, const struct cr_policy *policy,
                                 const struct cr_policy_status *status, const struct cr_plan_restart *restart,
                                 const struct cr_error *failed)
{
    if (!m)
        return;
    const struct cr_policy_consumer *consumer = &policy->consumers[restart->consumer];
    cr_metric_add(m->restarts, CR_LABELS(policy->ns, consumer->kind, result_of(failed)), 1);
    if (!failed)
        restarted(m, policy->ns, consumer);
    int64_t since_ms = failed ? 0 : earliest_change_ms(status, restart->rotations);
    if (since_ms)
        cr_metric_observe(m->restart_seconds, NULL, seconds_between(since_ms, cr_clock_wall_ms()));
}

/* Times of a status that was read have lost their milliseconds. */
static bool had(const struct cr_policy_status *before, const struct cr_rotation_record *record)
{
    for (size_t i = 0; i < before->history_len; i++)
        if (cr_streq(before->history[i].id, record->id) &&
            before->history[i].finished_ms / 1000 == record->finished_ms / 1000)
            return true;
    return false;
}

void cr_policy_metrics_recorded(struct cr_policy_metrics *m, const struct cr_policy_status *before,
                                const struct cr_policy_status *after)
{
    for (size_t i = 0; m && i < after->history_len; i++) {
        const struct cr_rotation_record *record = &after->history[i];
        if (!had(before, record))
            cr_metric_observe(m->rotation_seconds, CR_LABELS(record->outcome),
                              seconds_between(record->started_ms, record->finished_ms));
    }
}
