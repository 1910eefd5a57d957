#include "drain/stats_text.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/text.h"

enum { SHOWN = 80 /* bytes of a foreign text in an error */ };

static const char before[] = "listener.";
static const char connected[] = ".downstream_cx_active";
static const char arriving[] = ".downstream_pre_cx_active"; /* its listener filters wait for a first word */

struct stat_line {
    char *name; /* owned: between before and one of these */
    uint64_t value;
    bool arriving;
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
    cr_error_set(err, CR_ERR_INVALID, "%s: '%s'", what, shown);
    return false;
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

/* The length of the listener's name in the statistic's; 0: it is another statistic. */
static size_t listener_len(const char *stat, size_t len, const char *behind)
{
    size_t frame = strlen(before) + strlen(behind);
    bool is_it = len > frame && memcmp(stat, before, strlen(before)) == 0 &&
                 memcmp(stat + len - strlen(behind), behind, strlen(behind)) == 0;
    return is_it ? len - frame : 0;
}

/* line: without its newline. False: it is another one. */
static bool parse_line(const char *line, size_t len, struct stat_line *out)
{
    static const char separator[] = ": ";
    const char *value = memrchr(line, ' ', len);
    if (!value || value - line < 1 || value[-1] != separator[0])
        return false;
    size_t stat_len = (size_t)(value - 1 - line);
    size_t value_len = len - stat_len - strlen(separator);
    size_t name_len = listener_len(line, stat_len, connected);
    out->arriving = !name_len;
    if (!name_len)
        name_len = listener_len(line, stat_len, arriving);
    if (!is_plain(line + strlen(before), name_len) || !parse_number(value + 1, value_len, &out->value))
        return false;
    out->name = cr_strndup(line + strlen(before), name_len);
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

/* Names are few, lines are many: each worker has one of each listener. So only names are kept. */
struct tally {
    const struct cr_strvec *left_out;
    struct cr_strmap *names; /* of listeners; the values mean nothing */
    uint64_t sum;
};

static bool is_part(const struct tally *tally, const char *name)
{
    size_t len = whole_len(name);
    if (!len)
        return false;
    cr_autofree char *whole = cr_strndup(name, len);
    return cr_strmap_get(tally->names, whole) != NULL;
}

static bool add(struct tally *tally, const struct stat_line *line, struct cr_error *err)
{
    if (cr_streq(line->name, "admin") || cr_strvec_has(tally->left_out, line->name))
        return true;
    return !__builtin_add_overflow(tally->sum, line->value, &tally->sum) ||
           cr_error_set(err, CR_ERR_INVALID, "there cannot be so many connections");
}

/* Those of whole listeners. */
static bool add_whole(struct tally *tally, const struct stat_line *line, struct cr_error *err)
{
    if (line->arriving || whole_len(line->name))
        return true;
    cr_strmap_set(tally->names, line->name, tally);
    return add(tally, line, err);
}

/* The others, when all listeners that they could be of are known. */
static bool add_rest(struct tally *tally, const struct stat_line *line, struct cr_error *err)
{
    if (line->arriving)
        return cr_strmap_get(tally->names, line->name)
                   ? add(tally, line, err)
                   : cr_error_set(err, CR_ERR_INVALID, "there is no downstream_cx_active of the listener %s",
                                  line->name);
    if (!whole_len(line->name) || is_part(tally, line->name))
        return true;
    cr_strmap_set(tally->names, line->name, tally);
    return add(tally, line, err);
}

static bool take_line(const char **text, const char *end, struct stat_line *line, struct cr_error *err)
{
    const char *from = *text;
    const char *stop = memchr(from, '\n', (size_t)(end - from));
    if (!stop)
        return not_understood("the statistics end within a line", from, (size_t)(end - from), err);
    if (!parse_line(from, (size_t)(stop - from), line))
        return not_understood("among the statistics of listeners is another line", from, (size_t)(stop - from), err);
    *text = stop + 1;
    return true;
}

static bool each_line(struct tally *tally, const char *text, size_t len,
                      bool (*take)(struct tally *, const struct stat_line *, struct cr_error *), struct cr_error *err)
{
    const char *end = text + len;
    bool ok = true;
    while (ok && text < end) {
        struct stat_line line = {0};
        if (!take_line(&text, end, &line, err))
            return false;
        ok = take(tally, &line, err);
        free(line.name);
    }
    return ok;
}

bool cr_stats_envoy(const char *text, size_t len, const struct cr_strvec *left_out, uint64_t *open,
                    struct cr_error *err)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *names = cr_strmap_new(NULL);
    struct tally tally = {.left_out = left_out, .names = names};
    if (!len)
        return cr_error_set(err, CR_ERR_INVALID,
                            "there are no statistics of listeners: stats_config must not exclude listener.*");
    if (!each_line(&tally, text, len, add_whole, err) || !each_line(&tally, text, len, add_rest, err))
        return false;
    *open = tally.sum;
    return true;
}
