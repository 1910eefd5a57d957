#include "drain/metric_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/text.h"

enum {
    NUMBER_MAX = 64, /* bytes of a number: more than any printf writes */
    SHOWN = 80,      /* bytes of a foreign text in an error */
};
static const double most = 9007199254740992; /* 2^53: above it a double skips whole numbers */

/* What is still to be read. */
struct span {
    const char *at;
    const char *end;
};

struct label {
    struct span name;
    struct span value; /* between its quotes, escaped: each value has but one such form */
    bool negated;      /* != */
};

/* --- words --- */

static size_t span_len(struct span s)
{
    return (size_t)(s.end - s.at);
}

static bool span_equal(struct span a, struct span b)
{
    return span_len(a) == span_len(b) && (!span_len(a) || memcmp(a.at, b.at, span_len(a)) == 0);
}

static bool take_char(struct span *text, char c)
{
    bool there = text->at < text->end && *text->at == c;
    text->at += there;
    return there;
}

static void skip_blanks(struct span *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
        text->at++;
}

/* A name of letters, digits and '_', with ':' where it is a metric's; it begins with no digit. */
static bool take_name(struct span *text, bool colons, struct span *name)
{
    *name = (struct span){text->at, text->at};
    while (name->end < text->end &&
           (isalnum((unsigned char)*name->end) || *name->end == '_' || (colons && *name->end == ':')))
        name->end++;
    text->at = name->end;
    return span_len(*name) && !isdigit((unsigned char)*name->at);
}

static bool take_quoted(struct span *text, struct span *value)
{
    if (!take_char(text, '"'))
        return false;
    *value = (struct span){text->at, text->at};
    for (const char *c = text->at; c < text->end; c++) {
        bool escapes = *c == '\\';
        if (escapes && (c + 1 == text->end || !strchr("\\\"n", c[1]) || !c[1]))
            return false;
        if (*c == '"') {
            value->end = c;
            text->at = c + 1;
            return true;
        }
        c += escapes;
    }
    return false;
}

/* --- labels --- */

/* text: behind '{' or a label. True: label is the next one, or *closed: there is none and '}' is taken. */
static bool take_label(struct span *text, bool may_negate, struct label *label, bool *closed)
{
    *label = (struct label){0};
    skip_blanks(text);
    *closed = take_char(text, '}');
    if (*closed)
        return true;
    if (!take_name(text, false, &label->name))
        return false;
    skip_blanks(text);
    label->negated = may_negate && take_char(text, '!');
    if (!take_char(text, '='))
        return false;
    skip_blanks(text);
    if (!take_quoted(text, &label->value))
        return false;
    skip_blanks(text);
    return take_char(text, ',') || (text->at < text->end && *text->at == '}');
}

/* labels: from '{' to '}', or empty. */
static struct span value_of(struct span labels, struct span name)
{
    struct label label;
    bool closed = !take_char(&labels, '{');
    while (!closed && take_label(&labels, false, &label, &closed)) {
        if (!closed && span_equal(label.name, name))
            return label.value;
    }
    return (struct span){0};
}

/* Takes the labels, if there are any, and what they are. */
static bool take_labels(struct span *text, bool may_negate, struct span *labels)
{
    struct label label;
    *labels = (struct span){text->at, text->at};
    bool closed = !take_char(text, '{');
    while (!closed) {
        if (!take_label(text, may_negate, &label, &closed))
            return false;
    }
    labels->end = text->at;
    return true;
}

static bool matches(struct span wanted, struct span labels)
{
    struct label label;
    bool closed = !take_char(&wanted, '{');
    while (!closed && take_label(&wanted, true, &label, &closed)) {
        if (!closed && span_equal(value_of(labels, label.name), label.value) == label.negated)
            return false;
    }
    return true;
}

/* --- samples --- */

static bool parse_value(struct span word, double *value)
{
    char number[NUMBER_MAX];
    char *stop = NULL;
    size_t len = span_len(word);
    if (!len || len >= sizeof number || memchr(word.at, 'x', len) || memchr(word.at, 'X', len))
        return false;
    memcpy(number, word.at, len);
    number[len] = '\0';
    *value = strtod(number, &stop);
    return stop == number + len;
}

static struct span take_word(struct span *text)
{
    skip_blanks(text);
    struct span word = {text->at, text->at};
    while (word.end < text->end && *word.end != ' ' && *word.end != '\t')
        word.end++;
    text->at = word.end;
    return word;
}

struct sample {
    struct span name;
    struct span labels;
    double value;
};

/* line: neither empty nor a comment. */
static bool parse_sample(struct span line, struct sample *out)
{
    double timestamp;
    if (!take_name(&line, true, &out->name))
        return false;
    skip_blanks(&line);
    if (!take_labels(&line, false, &out->labels) || !parse_value(take_word(&line), &out->value))
        return false;
    struct span word = take_word(&line);
    if (span_len(word) && !parse_value(word, &timestamp))
        return false;
    skip_blanks(&line);
    return line.at == line.end;
}

static bool refuse(const char *what, struct span text, struct cr_error *err)
{
    cr_autofree char *copy = cr_strndup(text.at, span_len(text));
    cr_autofree char *shown = cr_text_clip(copy, SHOWN);
    return cr_error_set(err, CR_ERR_INVALID, "%s: '%s'", what, shown);
}

static bool take_line(struct span *text, struct span *line, struct cr_error *err)
{
    const char *stop = memchr(text->at, '\n', span_len(*text));
    if (!stop)
        return refuse("the metrics end within a line", *text, err);
    *line = (struct span){text->at, stop};
    text->at = stop + 1;
    skip_blanks(line);
    return true;
}

/* --- the metric that is asked for --- */

static bool parse_metric(const char *metric, struct span *name, struct span *labels, struct cr_error *err)
{
    struct span text = {metric, metric + strlen(metric)};
    bool read = take_name(&text, true, name) && take_labels(&text, true, labels) && text.at == text.end;
    return read || cr_error_set(err, CR_ERR_INVALID,
                                "'%s' is no metric: a name, or a name with labels as name{label=\"value\"} and "
                                "name{label!=\"value\"}",
                                metric);
}

bool cr_metric_check(const char *metric, struct cr_error *err)
{
    struct span name;
    struct span labels;
    return parse_metric(metric, &name, &labels, err);
}

bool cr_metric_sum(const char *text, size_t len, const char *metric, uint64_t *sum, struct cr_error *err)
{
    struct span name;
    struct span labels;
    struct span rest = {text, text + len};
    struct span line = {0};
    struct sample sample;
    double total = 0;
    bool found = false;
    if (!parse_metric(metric, &name, &labels, err))
        return false;
    while (rest.at < rest.end) {
        if (!take_line(&rest, &line, err))
            return false;
        if (line.at == line.end || *line.at == '#')
            continue;
        if (!parse_sample(line, &sample))
            return refuse("the answer is not in Prometheus' text format", line, err);
        if (!span_equal(sample.name, name) || !matches(labels, sample.labels))
            continue;
        found = true;
        total += sample.value;
        if (!(sample.value >= 0 && total <= most)) /* NaN is neither */
            return refuse("that is no number of connections", line, err);
    }
    if (!found)
        return cr_error_set(err, CR_ERR_INVALID, "there is no sample of %s among the metrics", metric);
    *sum = (uint64_t)ceil(total);
    return true;
}
