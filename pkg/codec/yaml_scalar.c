#include "codec/yaml_scalar.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_one_of(text, words);
}

static bool is_true(const char *text)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};
    return is_one_of(text, words);
}

static bool is_false(const char *text)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};
    return is_one_of(text, words);
}

/* Booleans of YAML 1.1, which kubectl reads; strings of YAML 1.2. */
static bool is_boolean_of_1_1(const char *text)
{
    static const char *const words[] = {"yes", "Yes", "YES", "no",  "No",  "NO", "on",
                                        "On",  "ON",  "off", "Off", "OFF", NULL};
    return is_one_of(text, words);
}

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

/* .inf, -.Inf, .NaN, … */
static bool is_not_finite(const char *text)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    return is_one_of(skip_sign(text), infinities) || is_one_of(text, nans);
}

static bool only(const char *text, const char *digits)
{
    return *text && text[strspn(text, digits)] == '\0';
}

/* 0 when text is no integer of the core schema, else its base; *digits is where the digits begin. */
static int integer_base(const char *text, const char **digits)
{
    *digits = text + 2;
    if (cr_starts_with(text, "0o"))
        return only(*digits, "01234567") ? 8 : 0;
    if (cr_starts_with(text, "0x"))
        return only(*digits, "0123456789abcdefABCDEF") ? 16 : 0;
    *digits = skip_sign(text);
    return only(*digits, "0123456789") ? 10 : 0;
}

static struct cr_json *integer(const char *text, const char *digits, int base, const char **problem)
{
    if (base == 10 && digits[0] == '0' && digits[1]) {
        *problem = "a number with leading zeros: quote it, or drop the zeros";
        return NULL;
    }
    errno = 0;
    long long n = strtoll(digits, NULL, base);
    if (errno || n > CR_JSON_MAX_INT) {
        *problem = "an integer beyond 2^53: quote it";
        return NULL;
    }
    return cr_json_new_int(*text == '-' ? -n : n);
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *text)
{
    static const char digits[] = "0123456789";
    const char *p = skip_sign(text);
    size_t whole = strspn(p, digits);
    p += whole;
    size_t fraction = 0;
    if (*p == '.') {
        fraction = strspn(p + 1, digits);
        p += 1 + fraction;
    }
    if (!whole && !fraction)
        return false;
    if (*p == 'e' || *p == 'E')
        return only(skip_sign(p + 1), digits);
    return !*p;
}

static struct cr_json *floating(const char *text, const char **problem)
{
    double d = strtod(text, NULL);
    if (isfinite(d))
        return cr_json_new_double(d);
    *problem = "a number out of range";
    return NULL;
}

struct cr_json *cr_yaml_plain_scalar(const char *text, const char **problem)
{
    const char *digits;
    int base = integer_base(text, &digits);
    *problem = NULL;
    if (is_null(text))
        return cr_json_new_null();
    if (is_true(text) || is_false(text))
        return cr_json_new_bool(is_true(text));
    if (base)
        return integer(text, digits, base, problem);
    if (is_float(text))
        return floating(text, problem);
    if (is_boolean_of_1_1(text))
        *problem = "yes, no, on or off: write true or false, or quote it";
    else if (is_not_finite(text))
        *problem = "an infinity or not-a-number, which JSON does not have";
    return *problem ? NULL : cr_json_new_string(text);
}
