#include "base/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/strvec.h"

enum { NAME_MAX_LEN = 48, FLAG_TEXT = NAME_MAX_LEN + 3 };

struct parse {
    const struct cr_flags *flags;
    int argc;
    char **argv;
    int at; /* the argument in hand */
    void *out;
};

/* --- values --- */

static bool take_bool(const char *flag, const char *value, bool *out, struct cr_error *err)
{
    if (value && !cr_streq(value, "true") && !cr_streq(value, "false"))
        return cr_error_set(err, CR_ERR_INVALID, "%s must be true or false, not '%s'", flag, value);
    *out = !cr_streq(value, "false");
    return true;
}

static bool take_number(const struct cr_flag *flag, const char *name, const char *value, int *out, struct cr_error *err)
{
    char *end = NULL;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (*end || end == value || errno || n < flag->least || n > flag->most)
        return cr_error_set(err, CR_ERR_INVALID, "%s must be a number from %d to %d, not '%s'", name, flag->least,
                            flag->most, value);
    *out = (int)n;
    return true;
}

static bool is_plain_number(const char *value)
{
    enum { DIGITS_MAX = 9 };
    size_t len = strlen(value);
    return len && len <= DIGITS_MAX && strspn(value, "0123456789") == len;
}

static bool take_duration(const struct cr_flag *flag, const char *name, const char *value, int64_t *out,
                          struct cr_error *err)
{
    int64_t ms = 0;
    char least[CR_TIME_TEXT];
    if (flag->kind == CR_FLAG_SECONDS && is_plain_number(value))
        ms = strtol(value, NULL, 10) * 1000;
    else if (!cr_duration_parse(value, &ms, err))
        return cr_error_wrap(err, "%s", name);
    if (!ms && flag->least == 1)
        return cr_error_set(err, CR_ERR_INVALID, "%s must be longer than nothing", name);
    cr_duration_format(flag->least, least);
    if (ms < flag->least)
        return cr_error_set(err, CR_ERR_INVALID, "%s must be at least %s, not '%s'", name, least, value);
    *out = ms;
    return true;
}

/* "a, b or c" */
static void list_choices(const char *const *choices, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; choices[i] && n < size; i++) {
        const char *before = !i ? "" : choices[i + 1] ? ", " : " or ";
        n += (size_t)snprintf(out + n, size - n, "%s%s", before, choices[i]);
    }
}

static bool take_choice(const struct cr_flag *flag, const char *name, const char *value, int *out, struct cr_error *err)
{
    char all[128] = "";
    for (int i = 0; flag->choices[i]; i++) {
        if (cr_streq(value, flag->choices[i])) {
            *out = i;
            return true;
        }
    }
    list_choices(flag->choices, all, sizeof all);
    return cr_error_set(err, CR_ERR_INVALID, "%s must be %s, not '%s'", name, all, value);
}

/* value: NULL where none was given; then the kind needs none. */
static bool take(const struct parse *p, const struct cr_flag *flag, const char *name, const char *value,
                 struct cr_error *err)
{
    void *field = (char *)p->out + flag->offset;
    const char *needed = cr_or_empty(value);
    if (p->flags->seen && !p->flags->seen(p->out, flag, err))
        return false;
    if (flag->check && !flag->check(name, value, err))
        return false;
    switch (flag->kind) {
    case CR_FLAG_TEXT:
        *(const char **)field = value;
        return true;
    case CR_FLAG_TEXTS:
        cr_strvec_add_unique(field, value);
        return true;
    case CR_FLAG_SWITCH:
        *(bool *)field = true;
        return true;
    case CR_FLAG_BOOL:
        return take_bool(name, value, field, err);
    case CR_FLAG_DURATION:
    case CR_FLAG_SECONDS:
        return take_duration(flag, name, needed, field, err);
    case CR_FLAG_NUMBER:
        return take_number(flag, name, needed, field, err);
    case CR_FLAG_CHOICE:
        return take_choice(flag, name, needed, field, err);
    case CR_FLAG_LOG_LEVEL:
        return cr_log_level_parse(needed, field, err);
    case CR_FLAG_OWN:
        return flag->take(field, name, value, err);
    default:
        return true;
    }
}

/* --- names --- */

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be changed, put in or taken out (Levenshtein). */
static size_t distance(const char *a, size_t a_len, const char *b)
{
    size_t row[NAME_MAX_LEN + 1];
    size_t b_len = least_of(strlen(b), NAME_MAX_LEN);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t changed = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = least_of(changed, least_of(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_len];
}

/* What was meant, most likely; NULL: nothing is near. */
static const char *nearest(const struct cr_flags *flags, const char *name, size_t len)
{
    enum { NEAR = 2, PART = 3 };
    const char *best = NULL;
    if (len > NAME_MAX_LEN)
        return NULL;
    size_t most = len / PART > NEAR ? len / PART : NEAR;
    for (size_t i = 0; i < flags->len; i++) {
        size_t far = distance(name, len, flags->table[i].name);
        /* A name that goes on counts as near: getopt takes it for the whole one. */
        bool begins = len >= PART && strncmp(flags->table[i].name, name, len) == 0;
        if (begins || (far <= most && far < len)) {
            most = begins ? 0 : far - (far > 0);
            best = flags->table[i].name;
        }
    }
    return best;
}

static bool unknown(const struct cr_flags *flags, const char *given, const char *name, struct cr_error *err)
{
    size_t len = strcspn(name, "=");
    size_t dashes = (size_t)(name - given);
    const char *near = nearest(flags, name, len);
    if (near && strlen(near) == len && strncmp(near, name, len) == 0)
        return cr_error_set(err, CR_ERR_INVALID, "'%.*s': the flag is --%s, with two dashes", (int)(dashes + len),
                            given, near);
    return cr_error_set(err, CR_ERR_INVALID, "unknown flag '%.*s'%s%s; see %s --help", (int)(dashes + len), given,
                        near ? ": is it --" : "", near ? near : "", flags->program);
}

static const struct cr_flag *find(const struct cr_flags *flags, const char *name, size_t len)
{
    for (size_t i = 0; i < flags->len; i++)
        if (strlen(flags->table[i].name) == len && strncmp(flags->table[i].name, name, len) == 0)
            return &flags->table[i];
    return NULL;
}

static const struct cr_flag *find_letter(const struct cr_flags *flags, char letter)
{
    for (size_t i = 0; letter && i < flags->len; i++)
        if (flags->table[i].letter == letter)
            return &flags->table[i];
    return NULL;
}

/* --- arguments --- */

static bool has_value(const struct cr_flag *flag)
{
    return flag->kind != CR_FLAG_SWITCH && flag->kind != CR_FLAG_BOOL && flag->kind != CR_FLAG_NOTHING;
}

/* value: what was joined to the flag, NULL when nothing was. */
static bool take_with_value(struct parse *p, const struct cr_flag *flag, const char *name, const char *value,
                            struct cr_error *err)
{
    if (!has_value(flag) && flag->kind != CR_FLAG_BOOL && value)
        return cr_error_set(err, CR_ERR_INVALID, "%s takes no value", name);
    if (has_value(flag) && !value) {
        if (p->at + 1 >= p->argc)
            return cr_error_set(err, CR_ERR_INVALID, "%s needs a value", name);
        value = p->argv[++p->at];
    }
    return take(p, flag, name, value, err);
}

/* Errors name a flag as the documentation does, also one that was given by its letter. */
static void print_name(const struct cr_flag *flag, char out[FLAG_TEXT])
{
    snprintf(out, FLAG_TEXT, "--%s", flag->name);
}

static bool take_long(struct parse *p, const char *argument, struct cr_error *err)
{
    char name[FLAG_TEXT];
    size_t len = strcspn(argument + 2, "=");
    const struct cr_flag *flag = find(p->flags, argument + 2, len);
    if (!flag)
        return unknown(p->flags, argument, argument + 2, err);
    print_name(flag, name);
    return take_with_value(p, flag, name, argument[2 + len] ? argument + 2 + len + 1 : NULL, err);
}

/* "-o", "-n value", "-nvalue", "-oh". A long name behind one dash would be read as letters: it is refused. */
static bool take_letters(struct parse *p, const char *argument, struct cr_error *err)
{
    size_t len = strcspn(argument + 1, "=");
    if (len > 1 && find(p->flags, argument + 1, len))
        return unknown(p->flags, argument, argument + 1, err);
    for (const char *at = argument + 1; *at; at++) {
        const struct cr_flag *flag = find_letter(p->flags, *at);
        char name[FLAG_TEXT];
        if (!flag)
            return unknown(p->flags, argument, argument + 1, err);
        print_name(flag, name);
        if (has_value(flag))
            return take_with_value(p, flag, name, at[1] ? at + 1 : NULL, err);
        if (!take(p, flag, name, NULL, err))
            return false;
    }
    return true;
}

static bool take_word(struct parse *p, const char *word, struct cr_error *err)
{
    if (p->flags->word)
        return p->flags->word(p->out, word, err);
    return cr_error_set(err, CR_ERR_INVALID, "unexpected argument '%s'; see %s --help", word, p->flags->program);
}

static bool take_argument(struct parse *p, bool words_only, struct cr_error *err)
{
    const char *argument = p->argv[p->at];
    if (words_only || argument[0] != '-' || !argument[1])
        return take_word(p, argument, err);
    return argument[1] == '-' ? take_long(p, argument, err) : take_letters(p, argument, err);
}

bool cr_flags_parse(const struct cr_flags *flags, int argc, char **argv, void *out, int *rest, struct cr_error *err)
{
    struct parse p = {flags, argc, argv, 1, out};
    bool words_only = false;
    if (rest)
        *rest = argc;
    for (; p.at < argc; p.at++) {
        struct cr_error wrong = {0};
        if (!words_only && cr_streq(argv[p.at], "--")) {
            words_only = true;
            if (!rest)
                continue;
            *rest = p.at + 1;
            return true;
        }
        if (take_argument(&p, words_only, &wrong))
            continue;
        if (!flags->wrong)
            return cr_error_set(err, wrong.kind, "%s", wrong.text);
        flags->wrong(out, &wrong);
    }
    return true;
}
