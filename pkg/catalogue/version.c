#include "catalogue/version.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/strings.h"

/* A first number of four digits is a date ("2024.05.06"), not a version to compare with. */
enum { RELEASE = 3, MAX_DIGITS = 5, MAX_MAJOR = 999 };

static int compare(const struct cr_version *a, const struct cr_version *b)
{
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    return (a->stage > b->stage) - (a->stage < b->stage);
}

static bool read_number(const char **p, int *out)
{
    int value = 0;
    int digits = 0;
    while (isdigit((unsigned char)**p)) {
        if (++digits > MAX_DIGITS)
            return false;
        value = value * 10 + (*(*p)++ - '0');
    }
    *out = value;
    return digits > 0;
}

/* Up to three numbers with dots between; how many, 0 when the text does not begin with one. */
static int read_numbers(const char **p, int part[3])
{
    int count = 0;
    const char *next = *p;
    while (count < 3 && read_number(&next, &part[count])) {
        count++;
        *p = next;
        if (*next != '.')
            break;
        next++;
    }
    return count;
}

/* The pre-release word of "-rc.1", "-beta3"; "-alpine" is none. */
static int read_stage(const char *suffix)
{
    static const char *const words[] = {"alpha", "beta", "rc"};
    for (size_t i = 0; *suffix == '-' && i < cr_array_len(words); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(suffix + 1, words[i], len) == 0 && !isalpha((unsigned char)suffix[1 + len]))
            return (int)i;
    }
    return RELEASE;
}

/* Past words that some images put before the version ("distroless-v1.31.0", "contrib-v1.31.0"), and past the "v". */
static const char *skip_words(const char *tag)
{
    for (;;) {
        size_t letters = 0;
        while (isalpha((unsigned char)tag[letters]))
            letters++;
        if (letters == 1 && (*tag == 'v' || *tag == 'V') && isdigit((unsigned char)tag[1]))
            return tag + 1;
        if (letters == 0 || tag[letters] != '-')
            return tag;
        tag += letters + 1;
    }
}

bool cr_version_from_tag(const char *tag, struct cr_version_span *out)
{
    if (!tag)
        return false;
    const char *p = skip_words(tag);
    struct cr_version version = {0};
    int count = read_numbers(&p, version.part);
    /* A fourth number or a letter glued on is no version that we can order. */
    if (count < 2 || version.part[0] > MAX_MAJOR || (*p != '\0' && *p != '-' && *p != '+' && *p != '_'))
        return false;
    version.stage = read_stage(p);
    out->low = version;
    out->high = version;
    if (count == 2) {
        out->high.part[2] = INT_MAX;
        out->high.stage = RELEASE;
    }
    return true;
}

static const struct operator_word {
    const char *word;
    enum cr_version_operator op;
} operators[] = {{">=", CR_VERSION_GE}, {"<=", CR_VERSION_LE}, {">", CR_VERSION_GT}, {"<", CR_VERSION_LT}};

static bool read_comparator(const char **p, struct cr_version_range *out)
{
    for (size_t i = 0; i < cr_array_len(operators); i++) {
        if (!cr_starts_with(*p, operators[i].word))
            continue;
        *p += strlen(operators[i].word);
        struct cr_version version = {.stage = RELEASE};
        if (read_numbers(p, version.part) < 2 || (**p != '\0' && **p != ','))
            return false;
        out->items[out->len].op = operators[i].op;
        out->items[out->len++].version = version;
        return true;
    }
    return false;
}

bool cr_version_range_parse(const char *text, struct cr_version_range *out, struct cr_error *err)
{
    *out = (struct cr_version_range){0};
    for (const char *p = text;; p++) {
        if (out->len == CR_VERSION_COMPARATORS || !read_comparator(&p, out))
            return cr_error_set(err, CR_ERR_INVALID,
                                "\"%s\" is no version range; write it as \">=1.17,<1.23\", at most %d comparisons",
                                text, CR_VERSION_COMPARATORS);
        if (*p == '\0')
            return true;
    }
}

static bool holds(enum cr_version_operator op, int order)
{
    switch (op) {
    case CR_VERSION_GE:
        return order >= 0;
    case CR_VERSION_GT:
        return order > 0;
    case CR_VERSION_LE:
        return order <= 0;
    case CR_VERSION_LT:
        return order < 0;
    }
    return false;
}

enum cr_tri cr_version_in_range(const struct cr_version_range *range, const struct cr_version_span *span)
{
    enum cr_tri all = CR_YES;
    for (size_t i = 0; i < range->len; i++) {
        bool low = holds(range->items[i].op, compare(&span->low, &range->items[i].version));
        bool high = holds(range->items[i].op, compare(&span->high, &range->items[i].version));
        if (!low && !high)
            return CR_NO;
        if (low != high)
            all = CR_MAYBE;
    }
    return all;
}
