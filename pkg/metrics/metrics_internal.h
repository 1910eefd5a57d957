/* What the registry and the text writer share. Private to pkg/metrics. */
#ifndef CR_METRICS_METRICS_INTERNAL_H
#define CR_METRICS_METRICS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strmap.h"
#include "metrics/metrics.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct series {
    double value;       /* counter, gauge; the sum of a histogram */
    uint64_t buckets[]; /* of a histogram: one per bound and one for +Inf, not cumulated */
};

/* A text that is on the heap only when it is long: one is made for each update. Zeroed at first. */
struct label_text {
    char small[256];
    char *large; /* owned; NULL: small has it */
    size_t len;
    size_t cap; /* of large */
};

struct cr_metric {
    struct cr_metrics *registry;
    enum kind kind;
    const char *name;
    const char *help;
    const char *labels[CR_METRICS_MAX_LABELS];
    size_t label_count;
    double *bounds; /* owned */
    size_t bound_count;
    struct cr_strmap *series; /* by their labels as text: a="x",b="y" */
    struct series *only;      /* of a metric without labels: that of no labels */
    bool dropping;            /* was logged to drop updates */
};

struct collector {
    void (*fn)(void *arg);
    void *arg;
};

struct cr_metrics {
    struct collector *collectors;
    size_t collectors_len;
    pthread_mutex_t lock; /* guards everything below, and every metric's series */
    struct cr_metric **metrics;
    size_t len;
    double dropped;
};

/* The labels as the format writes them. text: zeroed. */
void cr_metrics_label_text(const struct cr_metric *metric, const char *const *values, struct label_text *text);
void cr_metrics_label_text_dispose(struct label_text *text);
CR_DEFINE_DISPOSE(label_text, struct label_text, cr_metrics_label_text_dispose)
/* Whether a name follows the rules of the format and Prometheus' naming rules. */
bool cr_metrics_name_valid(const char *name, bool label);

#endif
