#include "metrics/metrics.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "metrics/metrics_internal.h"

/* --- the registry --- */

struct cr_metrics *cr_metrics_new(void)
{
    struct cr_metrics *metrics = cr_new(struct cr_metrics);
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

static void metric_free(struct cr_metric *m)
{
    if (!m)
        return;
    cr_strmap_free(m->series);
    free(m->bounds);
    free(m);
}

CR_DEFINE_CLEANUP(metric, struct cr_metric, metric_free)

void cr_metrics_free(struct cr_metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->len; i++)
        metric_free(metrics->metrics[i]);
    free(metrics->metrics);
    free(metrics->collectors);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

/* --- registering --- */

static struct cr_metric *broken(const char *name, const char *rule)
{
    cr_log(CR_LOG_ERROR, "metric not registered", {"metric", cr_or_empty(name)}, {"reason", rule});
    return NULL;
}

static bool set_labels(struct cr_metric *m, const char *const *labels)
{
    for (; labels && *labels; labels++) {
        if (m->label_count == CR_METRICS_MAX_LABELS || !cr_metrics_name_valid(*labels, true))
            return false;
        m->labels[m->label_count++] = *labels;
    }
    return true;
}

static bool set_bounds(struct cr_metric *m, const double *bounds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(bounds[i]) || (i && bounds[i] <= bounds[i - 1]))
            return false;
    m->bounds = count ? cr_memdup(bounds, count * sizeof *bounds) : NULL;
    m->bound_count = count;
    return true;
}

static bool same(const struct cr_metric *a, const struct cr_metric *b)
{
    if (a->kind != b->kind || a->label_count != b->label_count || a->bound_count != b->bound_count)
        return false;
    for (size_t i = 0; i < a->label_count; i++)
        if (strcmp(a->labels[i], b->labels[i]) != 0)
            return false;
    return !a->bound_count || memcmp(a->bounds, b->bounds, a->bound_count * sizeof *a->bounds) == 0;
}

static struct cr_metric *find(const struct cr_metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->len; i++)
        if (strcmp(metrics->metrics[i]->name, name) == 0)
            return metrics->metrics[i];
    return NULL;
}

static struct series *series_of(struct cr_metric *m, const char *const *values);

/* Takes m. */
static struct cr_metric *enter(struct cr_metrics *metrics, struct cr_metric *m)
{
    CR_CLEANUP(metric) struct cr_metric *own = m;
    pthread_mutex_lock(&metrics->lock);
    struct cr_metric *there = find(metrics, m->name);
    bool clash = there && !same(there, m);
    if (!there) {
        metrics->metrics = cr_reallocarray(metrics->metrics, metrics->len + 1, sizeof(struct cr_metric *));
        there = metrics->metrics[metrics->len++] = cr_steal(&own);
        if (!there->label_count)
            there->only = series_of(there, NULL);
    }
    pthread_mutex_unlock(&metrics->lock);
    return clash ? broken(m->name, "the name is taken by a metric of another kind") : there;
}

static struct cr_metric *add_metric(struct cr_metrics *metrics, enum kind kind, const char *name, const char *help,
                                    const char *const *labels, const double *bounds, size_t count)
{
    if (!metrics)
        return NULL;
    CR_CLEANUP(metric) struct cr_metric *m = cr_new(struct cr_metric);
    *m = (struct cr_metric){.registry = metrics, .kind = kind, .name = name, .help = help};
    m->series = cr_strmap_new(free);
    if (!cr_metrics_name_valid(name, false))
        return broken(name, "not a name of a metric");
    if (!set_labels(m, labels))
        return broken(name, "too many labels, or not a name of a label");
    if (!set_bounds(m, bounds, count))
        return broken(name, "bounds that do not ascend");
    return enter(metrics, cr_steal(&m));
}

struct cr_metric *cr_metrics_counter(struct cr_metrics *metrics, const char *name, const char *help,
                                     const char *const *labels)
{
    return add_metric(metrics, COUNTER, name, help, labels, NULL, 0);
}

struct cr_metric *cr_metrics_gauge(struct cr_metrics *metrics, const char *name, const char *help,
                                   const char *const *labels)
{
    return add_metric(metrics, GAUGE, name, help, labels, NULL, 0);
}

struct cr_metric *cr_metrics_histogram(struct cr_metrics *metrics, const char *name, const char *help,
                                       const char *const *labels, const double *bounds, size_t count)
{
    return add_metric(metrics, HISTOGRAM, name, help, labels, bounds, count);
}

void cr_metrics_collect(struct cr_metrics *metrics, void (*fn)(void *arg), void *arg)
{
    if (!metrics)
        return;
    metrics->collectors =
        cr_reallocarray(metrics->collectors, metrics->collectors_len + 1, sizeof *metrics->collectors);
    metrics->collectors[metrics->collectors_len++] = (struct collector){fn, arg};
}

/* --- updating; the registry's lock is held --- */

static void drop(struct cr_metric *m)
{
    m->registry->dropped++;
    if (m->dropping)
        return;
    m->dropping = true;
    cr_log(CR_LOG_WARN, "metric has too many series; more are dropped", {"metric", m->name});
}

/* NULL when there are too many. */
static struct series *series_of(struct cr_metric *m, const char *const *values)
{
    if (m->only)
        return m->only;
    CR_CLEANUP(label_text) struct label_text text = {0};
    cr_metrics_label_text(m, values, &text);
    const char *labels = text.large ? text.large : text.small;
    struct series *s = cr_strmap_get(m->series, labels);
    if (s)
        return s;
    if (cr_strmap_len(m->series) >= CR_METRICS_MAX_SERIES) {
        drop(m);
        return NULL;
    }
    size_t buckets = m->kind == HISTOGRAM ? m->bound_count + 1 : 0;
    s = cr_calloc(1, sizeof *s + buckets * sizeof s->buckets[0]);
    cr_strmap_set(m->series, labels, s);
    return s;
}

void cr_metric_add(struct cr_metric *metric, const char *const *values, double amount)
{
    if (!metric || metric->kind == HISTOGRAM || (metric->kind == COUNTER && !(amount >= 0)))
        return;
    pthread_mutex_lock(&metric->registry->lock);
    struct series *s = series_of(metric, values);
    if (s)
        s->value += amount;
    pthread_mutex_unlock(&metric->registry->lock);
}

void cr_metric_set(struct cr_metric *metric, const char *const *values, double value)
{
    if (!metric || metric->kind != GAUGE)
        return;
    pthread_mutex_lock(&metric->registry->lock);
    struct series *s = series_of(metric, values);
    if (s)
        s->value = value;
    pthread_mutex_unlock(&metric->registry->lock);
}

void cr_metric_observe(struct cr_metric *metric, const char *const *values, double value)
{
    if (!metric || metric->kind != HISTOGRAM || isnan(value))
        return;
    size_t bucket = 0;
    while (bucket < metric->bound_count && value > metric->bounds[bucket])
        bucket++;
    pthread_mutex_lock(&metric->registry->lock);
    struct series *s = series_of(metric, values);
    if (s) {
        s->value += value;
        s->buckets[bucket]++;
    }
    pthread_mutex_unlock(&metric->registry->lock);
}

void cr_metric_remove(struct cr_metric *metric, const char *const *values)
{
    if (!metric || metric->only) /* which is always there */
        return;
    CR_CLEANUP(label_text) struct label_text text = {0};
    cr_metrics_label_text(metric, values, &text);
    pthread_mutex_lock(&metric->registry->lock);
    cr_strmap_remove(metric->series, text.large ? text.large : text.small);
    pthread_mutex_unlock(&metric->registry->lock);
}
