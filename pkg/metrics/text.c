/* The text format: names, escapes, numbers and the page. */
#include "metrics/metrics_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

static const char dropped_name[] = "certroll_metrics_dropped_updates_total";

/* --- names and labels --- */

bool cr_metrics_name_valid(const char *name, bool label)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (!name || !*name || !strchr(first, *name))
        return false;
    /* two underscores in front are Prometheus' own, and le is the histogram's */
    if (label && (cr_starts_with(name, "__") || cr_streq(name, "le")))
        return false;
    for (const char *c = name + 1; *c; c++)
        if (!strchr(first, *c) && !(*c >= '0' && *c <= '9') && (label || *c != ':'))
            return false;
    return true;
}

static void append(struct cr_buf *out, char c)
{
    bool fits = cr_buf_append(out, &c, 1); /* no cap */
    (void)fits;
}

/* Room for one more and the end. */
static char *room(struct label_text *text)
{
    if (!text->large && text->len + 1 < sizeof text->small)
        return text->small;
    if (!text->large) {
        text->cap = 2 * sizeof text->small;
        text->large = cr_calloc(text->cap, 1);
        memcpy(text->large, text->small, text->len);
    } else if (text->len + 1 == text->cap) {
        text->cap *= 2;
        text->large = cr_reallocarray(text->large, text->cap, 1);
    }
    return text->large;
}

static void put(struct label_text *text, char c)
{
    char *at = room(text) + text->len++;
    at[0] = c;
    at[1] = '\0';
}

static void put_text(struct label_text *text, const char *more)
{
    for (; *more; more++)
        put(text, *more);
}

static void put_value(struct label_text *text, const char *value)
{
    for (size_t i = 0; value[i] && i < CR_METRICS_MAX_VALUE; i++) {
        char c = value[i];
        if (c == '\\' || c == '"')
            put(text, '\\');
        if (c == '\n')
            put_text(text, "\\n");
        else
            put(text, (char)(c >= 0x20 && c < 0x7F ? c : '?'));
    }
}

void cr_metrics_label_text(const struct cr_metric *metric, const char *const *values, struct label_text *out)
{
    bool more = values != NULL;
    for (size_t i = 0; i < metric->label_count; i++) {
        more = more && values[i];
        put_text(out, i ? "," : "");
        put_text(out, metric->labels[i]);
        put_text(out, "=\"");
        put_value(out, more ? values[i] : "");
        put(out, '"');
    }
}

void cr_metrics_label_text_dispose(struct label_text *text)
{
    free(text->large);
}

/* --- numbers --- */

static void append_number(struct cr_buf *out, double d)
{
    char text[40];
    if (isnan(d))
        cr_buf_puts(out, "NaN");
    else if (isinf(d))
        cr_buf_puts(out, d > 0 ? "+Inf" : "-Inf");
    else {
        for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back as the same */
            (void)snprintf(text, sizeof text, "%.*g", digits, d);
            if (strtod(text, NULL) == d)
                break;
        }
        cr_buf_puts(out, text);
    }
}

/* --- the page --- */

static void append_head(struct cr_buf *out, const char *name, const char *help, const char *type)
{
    cr_buf_printf(out, "# HELP %s ", name);
    for (const char *c = cr_or_empty(help); *c; c++) {
        if (*c == '\n')
            cr_buf_puts(out, "\\n");
        else if (*c == '\\')
            cr_buf_puts(out, "\\\\");
        else
            append(out, *c);
    }
    cr_buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

static void append_sample(struct cr_buf *out, const char *name, const char *suffix, const char *labels, double value)
{
    cr_buf_printf(out, *labels ? "%s%s{%s} " : "%s%s%s ", name, suffix, labels);
    append_number(out, value);
    append(out, '\n');
}

static void append_bucket(struct cr_buf *out, const struct cr_metric *m, const char *labels, double bound,
                          uint64_t count)
{
    cr_buf_printf(out, "%s_bucket{%s%sle=\"", m->name, labels, *labels ? "," : "");
    append_number(out, bound);
    cr_buf_printf(out, "\"} %llu\n", (unsigned long long)count);
}

static void append_histogram(struct cr_buf *out, const struct cr_metric *m, const char *labels, const struct series *s)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= m->bound_count; i++) {
        count += s->buckets[i];
        append_bucket(out, m, labels, i < m->bound_count ? m->bounds[i] : INFINITY, count);
    }
    append_sample(out, m->name, "_sum", labels, s->value);
    cr_buf_printf(out, *labels ? "%s_count{%s} %llu\n" : "%s_count%s %llu\n", m->name, labels,
                  (unsigned long long)count);
}

struct entry {
    const char *labels;
    const struct series *series;
};

static int by_labels(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->labels, ((const struct entry *)b)->labels);
}

static void append_metric(struct cr_buf *out, const struct cr_metric *m)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t count = 0;
    cr_autofree struct entry *entries = cr_calloc(cr_strmap_len(m->series), sizeof *entries);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(m->series, &it);)
        entries[count++] = (struct entry){it.key, it.value};
    qsort(entries, count, sizeof *entries, by_labels);
    append_head(out, m->name, m->help, types[m->kind]);
    for (size_t i = 0; i < count; i++) {
        if (m->kind == HISTOGRAM)
            append_histogram(out, m, entries[i].labels, entries[i].series);
        else
            append_sample(out, m->name, "", entries[i].labels, entries[i].series->value);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct cr_metric *const *)a)->name, (*(struct cr_metric *const *)b)->name);
}

void cr_metrics_write(struct cr_metrics *metrics, struct cr_buf *out)
{
    for (size_t i = 0; i < metrics->collectors_len; i++)
        metrics->collectors[i].fn(metrics->collectors[i].arg);
    pthread_mutex_lock(&metrics->lock);
    if (metrics->len)
        qsort(metrics->metrics, metrics->len, sizeof(struct cr_metric *), by_name);
    for (size_t i = 0; i < metrics->len; i++)
        append_metric(out, metrics->metrics[i]);
    append_head(out, dropped_name, "Updates dropped because a metric has too many series.", "counter");
    append_sample(out, dropped_name, "", "", metrics->dropped);
    pthread_mutex_unlock(&metrics->lock);
}
