#include "drain/stats_text.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/text.h"

enum { SHOWN = 80 /* bytes of a foreign text in an error */ };

static const char before[] = "listener.";
static const char behind[] = ".downstream_cx_active";

struct stat_line {
    char *name; /* owned: between before and behind */
    uint64_t value;
};

/* --- numbers --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_number(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    if (!len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(text[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

static bool not_understood(const char *what, const char *text, size_t len, struct cr_error *err)
{
    cr_autofree char *copy = cr_strndup(text, len);
    cr_autofree char *shown = cr_text_clip(copy, SHOWN);
    return cr_error_set(err, CR_ERR_INVALID, "%s: '%s'", what, shown);
}

bool cr_stats_number(const char *text, size_t len, uint64_t *open, struct cr_error *err)
{
    const char *from = text;
    size_t rest = len;
    while (rest && isspace((unsigned char)*from)) {
        from++;
        rest--;
    }
    while (rest && isspace((unsigned char)from[rest - 1]))
        rest--;
    return parse_number(from, rest, open) || not_understood("the answer is no number of connections", text, len, err);
}

/* --- Envoy's lines --- */

/* Nothing that a name in a line of text could hold: it would be another line, or end the name early. */
static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (iscntrl((unsigned char)text[i]))
            return false;
    }
    return len > 0;
}

/* line: without its newline. False: it is another one. */
static bool parse_line(const char *line, size_t len, struct stat_line *out)
{
    static const char separator[] = ": ";
    const size_t frame = strlen(before) + strlen(behind);
    const char *value = memrchr(line, ' ', len);
    if (!value || value - line < 1 || value[-1] != separator[0])
        return false;
    size_t name_len = (size_t)(value - 1 - line);
    size_t value_len = len - name_len - strlen(separator);
    if (name_len <= frame || memcmp(line, before, strlen(before)) != 0 ||
        memcmp(line + name_len - strlen(behind), behind, strlen(behind)) != 0)
        return false;
    if (!is_plain(line, name_len) || !parse_number(value + 1, value_len, &out->value))
        return false;
    out->name = cr_strndup(line + strlen(before), name_len - frame);
    return true;
}

/* The length of the listener's own name when this is that of one of its threads; 0: it is none. */
static size_t whole_len(const char *name)
{
    static const char main_thread[] = ".main_thread";
    static const char worker[] = ".worker_";
    size_t len = strlen(name);
    if (cr_ends_with(name, main_thread))
        return len - strlen(main_thread);
    size_t stem = len;
    while (stem && is_digit(name[stem - 1]))
        stem--;
    bool numbered = stem < len && stem >= strlen(worker);
    return numbered && memcmp(name + stem - strlen(worker), worker, strlen(worker)) == 0 ? stem - strlen(worker) : 0;
}

static bool is_part(const char *name, const struct cr_strmap *names)
{
    size_t len = whole_len(name);
    if (!len)
        return false;
    cr_autofree char *whole = cr_strndup(name, len);
    return cr_strmap_get(names, whole) != NULL;
}

static bool read_lines(const char *text, size_t len, struct cr_strmap *lines, struct cr_error *err)
{
    const char *end = text + len;
    if (!len)
        return cr_error_set(err, CR_ERR_INVALID,
                            "there are no statistics of listeners: stats_config must not exclude listener.*");
    while (text < end) {
        struct stat_line line = {0};
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            return not_understood("the statistics end within a line", text, (size_t)(end - text), err);
        if (!parse_line(text, (size_t)(stop - text), &line))
            return not_understood("among the statistics of listeners is another line", text, (size_t)(stop - text),
                                  err);
        cr_strmap_set(lines, line.name, cr_memdup(&line.value, sizeof line.value));
        free(line.name);
        text = stop + 1;
    }
    return true;
}

bool cr_stats_envoy(const char *text, size_t len, const struct cr_strvec *left_out, uint64_t *open,
                    struct cr_error *err)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *lines = cr_strmap_new(free);
    uint64_t sum = 0;
    if (!read_lines(text, len, lines, err))
        return false;
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(lines, &it);) {
        const uint64_t *value = it.value;
        if (cr_streq(it.key, "admin") || cr_strvec_has(left_out, it.key) || is_part(it.key, lines))
            continue;
        if (__builtin_add_overflow(sum, *value, &sum))
            return cr_error_set(err, CR_ERR_INVALID, "there cannot be so many connections");
    }
    *open = sum;
    return true;
}
