#include "drain/haproxy_stats.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/text.h"

enum {
    SHOWN = 80, /* bytes of a line that is not understood */
    COLUMNS_NEEDED = 4,
};

static const uint64_t most = (uint64_t)1 << 53; /* what JSON and Prometheus take unchanged */

/* By the first line, which names them: their order may change (though it never has). */
struct columns {
    size_t proxy, service, sessions, status;
};

void cr_haproxy_stats_dispose(struct cr_haproxy_stats *stats)
{
    cr_strvec_dispose(&stats->frontends);
    cr_strvec_dispose(&stats->running);
}

bool cr_haproxy_stats_counts(const char *frontend, const struct cr_strvec *ignored)
{
    static const char *const usual[] = {"stats", "healthz", "metrics", "prometheus"};
    for (size_t i = 0; i < cr_array_len(usual); i++)
        if (cr_streq(frontend, usual[i]))
            return false;
    return !cr_strvec_has(ignored, frontend);
}

/* --- lines --- */

static bool not_understood(const char *line, struct cr_error *err)
{
    cr_autofree char *first = cr_strndup(line, strcspn(line, "\n"));
    cr_autofree char *shown = cr_text_clip(first, SHOWN);
    return cr_error_set(err, CR_ERR_INVALID, "these are no statistics as HAProxy has them: '%s'",
                        shown[0] ? shown : "(nothing)");
}

/* The line without its end, and *text behind it; NULL: it has no end. Owned. */
static char *next_line(const char **text)
{
    const char *end = strchr(*text, '\n');
    if (!end)
        return NULL;
    char *line = cr_strndup(*text, (size_t)(end - *text));
    *text = end + 1;
    return line;
}

/* Names of proxies have letters, digits and "-_.:" only (configuration.txt, section 4), so that nothing is quoted. */
static void split(const char *line, struct cr_strvec *out)
{
    while (line) {
        size_t len = strcspn(line, ",");
        cr_autofree char *field = cr_strndup(line, len);
        cr_strvec_add(out, field);
        line = line[len] ? line + len + 1 : NULL;
    }
}

static bool find_columns(const char *line, struct columns *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    size_t found = 0;
    if (!cr_starts_with(line, "# "))
        return false;
    split(line + 2, &names);
    for (size_t i = 0; i < names.len; i++) {
        const struct {
            const char *name;
            size_t *at;
        } wanted[] = {
            {"pxname", &out->proxy}, {"svname", &out->service}, {"scur", &out->sessions}, {"status", &out->status}};
        for (size_t w = 0; w < cr_array_len(wanted); w++)
            if (cr_streq(names.items[i], wanted[w].name)) {
                *wanted[w].at = i;
                found++;
            }
    }
    return found == COLUMNS_NEEDED;
}

/* --- rows --- */

static const char *field(const struct cr_strvec *row, size_t column)
{
    return column < row->len ? row->items[column] : "";
}

static bool is_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    return *text && !text[strspn(text, allowed)];
}

static bool read_number(const char *text, uint64_t *out)
{
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0 && *out <= most;
}

static bool read_row(const char *line, const struct columns *columns, const struct cr_strvec *ignored,
                     struct cr_haproxy_stats *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec row = {0};
    uint64_t sessions = 0;
    split(line, &row);
    const char *name = field(&row, columns->proxy);
    const char *status = field(&row, columns->status);
    if (!is_name(name) || !cr_streq(field(&row, columns->service), "FRONTEND") || !*status ||
        !read_number(field(&row, columns->sessions), &sessions))
        return false;
    if (!cr_haproxy_stats_counts(name, ignored))
        return true;
    cr_strvec_add(&out->frontends, name);
    if (!cr_streq(status, "STOP"))
        cr_strvec_add(&out->running, name);
    out->open += sessions;
    return out->open <= most;
}

/* "Name: HAProxy" and so on, up to an empty line. *text is behind it then. */
static bool read_info(const char **text, pid_t *pid, struct cr_error *err)
{
    static const char first[] = "Name: ";
    static const char label[] = "Pid: ";
    uint64_t number = 0;
    if (strncmp(*text, first, strlen(first)) != 0)
        return not_understood(*text, err);
    for (;;) {
        cr_autofree char *line = next_line(text);
        if (!line)
            return cr_error_set(err, CR_ERR_INVALID, "HAProxy's answer to \"show info\" breaks off");
        if (!*line)
            break;
        if (cr_starts_with(line, label) && (!read_number(line + strlen(label), &number) || number > INT32_MAX))
            return not_understood(line, err);
    }
    *pid = (pid_t)number;
    return number > 0 || cr_error_set(err, CR_ERR_INVALID, "HAProxy's answer to \"show info\" has no pid");
}

static bool read_table(const char *text, const struct cr_strvec *ignored, struct cr_haproxy_stats *out,
                       struct cr_error *err)
{
    struct columns columns = {0};
    cr_autofree char *head = next_line(&text);
    if (!head || !find_columns(head, &columns))
        return not_understood(head ? head : text, err);
    for (;;) {
        cr_autofree char *line = next_line(&text);
        if (!line)
            return cr_error_set(err, CR_ERR_INVALID, "HAProxy's table of statistics breaks off");
        if (!*line)
            return true;
        if (!read_row(line, &columns, ignored, out))
            return not_understood(line, err);
    }
}

bool cr_haproxy_stats_read(const char *text, const struct cr_strvec *ignored, struct cr_haproxy_stats *out,
                           struct cr_error *err)
{
    return read_info(&text, &out->pid, err) && read_table(text, ignored, out, err);
}
