#include "trust/controller/domain_metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"

enum { STAGES = CR_STAGE_HELD + 1, PARTS = CR_CA_PREVIOUS + 1 };

/* Of one domain: what has a series. */
struct shown {
    enum cr_stage stage;
    bool parts[PARTS];
    bool reasons[CR_TRUST_REASONS];
    struct cr_strvec leaves;     /* "ns/name" */
    struct cr_strvec conditions; /* "type\nreason" */
};

struct cr_domain_metrics {
    struct cr_metric *stage;
    struct cr_metric *refused;
    struct cr_metric *condition;
    struct cr_metric *ca_not_after;
    struct cr_metric *leaf_not_after;
    struct cr_metric *stage_seconds;
    struct cr_metric *rotation_seconds;

    pthread_mutex_t lock;
    struct cr_strmap *shown; /* by "ns/name" */
};

static void shown_free(void *value)
{
    struct shown *shown = value;
    cr_strvec_dispose(&shown->leaves);
    cr_strvec_dispose(&shown->conditions);
    free(shown);
}

struct cr_domain_metrics *cr_domain_metrics_new(struct cr_metrics *metrics)
{
    static const double bounds[] = {0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600};
    struct cr_domain_metrics *m = cr_new(struct cr_domain_metrics);
    m->stage = cr_metrics_gauge(metrics, "certroll_domain_stage", "The stage that a trust domain is in; always 1.",
                                CR_LABELS("namespace", "domain", "stage"));
    m->refused =
        cr_metrics_gauge(metrics, "certroll_domain_objects_refused",
                         "Objects of a trust domain that are not written as they should be, since something about them "
                         "is refused, by the reason.",
                         CR_LABELS("namespace", "domain", "reason"));
    m->condition = cr_metrics_gauge(
        metrics, "certroll_domain_condition",
        "A condition of a trust domain that is not as it should be: 1 when it is True, 0 when it is False.",
        CR_LABELS("namespace", "domain", "type", "reason"));
    m->ca_not_after = cr_metrics_gauge(metrics, "certroll_domain_ca_not_after_timestamp_seconds",
                                       "When the CA of a trust domain ends, in seconds since the epoch; of several the "
                                       "first.",
                                       CR_LABELS("namespace", "domain", "part"));
    m->leaf_not_after = cr_metrics_gauge(metrics, "certroll_domain_leaf_not_after_timestamp_seconds",
                                         "When a leaf that a trust domain publishes ends, in seconds since the epoch.",
                                         CR_LABELS("namespace", "secret"));
    m->stage_seconds = cr_metrics_histogram(metrics, "certroll_domain_stage_duration_seconds",
                                            "How long the stages of rotations took that have come to their end.",
                                            CR_LABELS("stage", "restarted"), bounds, cr_array_len(bounds));
    m->rotation_seconds = cr_metrics_histogram(metrics, "certroll_domain_rotation_duration_seconds",
                                               "How long rotations of trust domains took.",
                                               CR_LABELS("what", "outcome"), bounds, cr_array_len(bounds));
    pthread_mutex_init(&m->lock, NULL);
    m->shown = cr_strmap_new(shown_free);
    return m;
}

void cr_domain_metrics_free(struct cr_domain_metrics *m)
{
    if (!m)
        return;
    cr_strmap_free(m->shown);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- gauges, with the lock held --- */

static void show_stage(const struct cr_domain_metrics *m, const char *ns, const char *name, struct shown *shown,
                       enum cr_stage stage)
{
    if (shown->stage != stage)
        cr_metric_remove(m->stage, CR_LABELS(ns, name, cr_stage_name(shown->stage)));
    cr_metric_set(m->stage, CR_LABELS(ns, name, cr_stage_name(stage)), 1);
    shown->stage = stage;
}

static void show_cas(const struct cr_domain_metrics *m, const char *ns, const char *name, struct shown *shown,
                     const struct cr_domain_status *status)
{
    int64_t ends[PARTS] = {0};
    for (size_t i = 0; i < status->cas_len; i++) {
        const struct cr_domain_ca_status *ca = &status->cas[i];
        if (!ends[ca->part] || ca->not_after_ms < ends[ca->part])
            ends[ca->part] = ca->not_after_ms;
    }
    for (size_t part = 0; part < PARTS; part++) {
        const char *const *labels = CR_LABELS(ns, name, cr_ca_part_name((enum cr_ca_part)part));
        if (ends[part])
            cr_metric_set(m->ca_not_after, labels, (double)ends[part] / 1000.0);
        else if (shown->parts[part])
            cr_metric_remove(m->ca_not_after, labels);
        shown->parts[part] = ends[part] != 0;
    }
}

static void remove_leaf(const struct cr_domain_metrics *m, const char *leaf)
{
    cr_autofree char *ns = cr_strndup(leaf, strcspn(leaf, "/"));
    cr_metric_remove(m->leaf_not_after, CR_LABELS(ns, leaf + strlen(ns) + 1));
}

static void show_leaves(const struct cr_domain_metrics *m, struct shown *shown, const struct cr_domain_status *status)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec before = shown->leaves;
    shown->leaves = (struct cr_strvec){0};
    for (size_t i = 0; i < status->objects_len; i++) {
        const struct cr_domain_object_status *object = &status->objects[i];
        if (!object->leaf_not_after_ms || !object->ns)
            continue;
        cr_autofree char *leaf = cr_asprintf("%s/%s", object->ns, object->name);
        cr_strvec_add(&shown->leaves, leaf);
        cr_metric_set(m->leaf_not_after, CR_LABELS(object->ns, object->name),
                      (double)object->leaf_not_after_ms / 1000.0);
    }
    for (size_t i = 0; i < before.len; i++)
        if (!cr_strvec_has(&shown->leaves, before.items[i]))
            remove_leaf(m, before.items[i]);
}

static void show_refused(const struct cr_domain_metrics *m, const char *ns, const char *name, struct shown *shown,
                         const struct cr_domain_status *status)
{
    size_t refused[CR_TRUST_REASONS] = {0};
    for (size_t i = 0; i < status->objects_len; i++)
        refused[status->objects[i].problem]++;
    for (int reason = CR_TRUST_FINE + 1; reason < CR_TRUST_REASONS; reason++) {
        const char *const *labels = CR_LABELS(ns, name, cr_trust_reason_name((enum cr_trust_reason)reason));
        if (refused[reason])
            cr_metric_set(m->refused, labels, (double)refused[reason]);
        else if (shown->reasons[reason])
            cr_metric_remove(m->refused, labels);
        shown->reasons[reason] = refused[reason];
    }
}

static void remove_condition(const struct cr_domain_metrics *m, const char *ns, const char *name, const char *condition)
{
    cr_autofree char *type = cr_strndup(condition, strcspn(condition, "\n"));
    cr_metric_remove(m->condition, CR_LABELS(ns, name, type, condition + strlen(type) + 1));
}

static void show_conditions(const struct cr_domain_metrics *m, const char *ns, const char *name, struct shown *shown,
                            const struct cr_domain_status *status)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec before = shown->conditions;
    shown->conditions = (struct cr_strvec){0};
    for (size_t i = 0; i < CR_DOMAIN_CONDITIONS; i++) {
        const struct cr_condition *condition = &status->conditions[i];
        if (!cr_condition_is_trouble(condition))
            continue;
        cr_autofree char *key = cr_asprintf("%s\n%s", condition->type, condition->reason);
        cr_strvec_add(&shown->conditions, key);
        cr_metric_set(m->condition, CR_LABELS(ns, name, condition->type, condition->reason), condition->status);
    }
    for (size_t i = 0; i < before.len; i++)
        if (!cr_strvec_has(&shown->conditions, before.items[i]))
            remove_condition(m, ns, name, before.items[i]);
}

void cr_domain_metrics_show(struct cr_domain_metrics *m, const struct cr_domain *domain,
                            const struct cr_domain_status *status)
{
    const char *ns = cr_or_empty(domain->ns);
    cr_autofree char *key = cr_asprintf("%s/%s", ns, domain->name);
    pthread_mutex_lock(&m->lock);
    struct shown *shown = cr_strmap_get(m->shown, key);
    if (!shown) {
        shown = cr_new(struct shown);
        cr_strmap_set(m->shown, key, shown);
    }
    show_stage(m, ns, domain->name, shown, status->stage);
    show_cas(m, ns, domain->name, shown, status);
    show_leaves(m, shown, status);
    show_refused(m, ns, domain->name, shown, status);
    show_conditions(m, ns, domain->name, shown, status);
    pthread_mutex_unlock(&m->lock);
}

void cr_domain_metrics_forget(struct cr_domain_metrics *m, const char *ns, const char *name)
{
    static const struct cr_domain_status nothing;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    pthread_mutex_lock(&m->lock);
    struct shown *shown = cr_strmap_take(m->shown, key);
    if (shown) {
        cr_metric_remove(m->stage, CR_LABELS(ns, name, cr_stage_name(shown->stage)));
        show_refused(m, ns, name, shown, &nothing);
        show_conditions(m, ns, name, shown, &nothing);
        show_cas(m, ns, name, shown, &nothing);
        show_leaves(m, shown, &nothing);
        shown_free(shown);
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- histograms --- */

/* Times of a status that was read have lost their milliseconds. */
static bool had(const struct cr_domain_status *before, const struct cr_domain_rotation *record)
{
    for (size_t i = 0; i < before->history_len; i++)
        if (cr_streq(before->history[i].id, record->id) &&
            before->history[i].finished_ms / 1000 == record->finished_ms / 1000)
            return true;
    return false;
}

static void observe_stage(const struct cr_domain_metrics *m, enum cr_stage stage, bool restarted, int64_t took_ms)
{
    if (took_ms > 0)
        cr_metric_observe(m->stage_seconds, CR_LABELS(cr_stage_name(stage), restarted ? "true" : "false"),
                          (double)took_ms / 1000.0);
}

void cr_domain_metrics_recorded(struct cr_domain_metrics *m, const struct cr_domain_status *before,
                                const struct cr_domain_status *after)
{
    for (size_t i = 0; i < after->history_len; i++) {
        const struct cr_domain_rotation *record = &after->history[i];
        if (had(before, record))
            continue;
        observe_stage(m, CR_STAGE_TRUSTING, record->restarted, record->trusting_ms);
        observe_stage(m, CR_STAGE_SWITCHING, record->restarted, record->switching_ms);
        observe_stage(m, CR_STAGE_RETIRING, record->restarted, record->retiring_ms);
        int64_t took_ms = record->finished_ms - record->started_ms; /* clocks can be set back */
        cr_metric_observe(m->rotation_seconds, CR_LABELS(record->what, record->outcome),
                          took_ms > 0 ? (double)took_ms / 1000.0 : 0);
    }
}
