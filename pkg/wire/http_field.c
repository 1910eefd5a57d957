#include "wire/http_field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/text.h"

enum { SHOWN = 60 /* bytes of the peer's words */, HEX = 16 };

static const char beginning[] = "HTTP/1.";

static bool refuse(const char *what, const char *line, struct cr_error *err)
{
    cr_autofree char *shown = cr_text_clip(line, SHOWN);
    return cr_error_set(err, CR_ERR_INVALID, "%s: '%s'", what, shown);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool cr_http_is_token(const char *text, size_t len)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < len; i++) {
        char lower = (char)(text[i] | 0x20);
        if (!is_digit(text[i]) && !(lower >= 'a' && lower <= 'z') && (!text[i] || !strchr(others, text[i])))
            return false;
    }
    return len > 0;
}

/* Both would be read in two ways by two readers (RFC 9110, section 5.5; RFC 9112, section 2.2). */
static bool has_nul_or_cr(const char *line, size_t len)
{
    return memchr(line, '\0', len) || memchr(line, '\r', len);
}

/* --- the status line --- */

bool cr_http_may_be_status_line(const char *line, size_t len)
{
    size_t known = strlen(beginning);
    return memcmp(line, beginning, len < known ? len : known) == 0;
}

bool cr_http_status_line(const char *line, size_t len, int *status, bool *is_1_0, struct cr_error *err)
{
    enum { VERSION = sizeof "HTTP/1.1" - 1, CODE = VERSION + 1, CODE_END = CODE + 3 };
    bool ok = len >= CODE_END && !has_nul_or_cr(line, len) && cr_starts_with(line, beginning) &&
              is_digit(line[VERSION - 1]) && line[VERSION] == ' ' && line[CODE] >= '1' && is_digit(line[CODE]) &&
              is_digit(line[CODE + 1]) && is_digit(line[CODE + 2]) && (!line[CODE_END] || line[CODE_END] == ' ');
    if (!ok)
        return refuse("it answers with something that is not HTTP/1", line, err);
    *status = ((line[CODE] - '0') * 10 + (line[CODE + 1] - '0')) * 10 + (line[CODE + 2] - '0');
    *is_1_0 = line[VERSION - 1] == '0';
    return true;
}

/* --- fields --- */

bool cr_http_field(char *line, size_t len, size_t *name_len, const char **value, struct cr_error *err)
{
    const char *colon = memchr(line, ':', len);
    *name_len = colon ? (size_t)(colon - line) : 0;
    if (has_nul_or_cr(line, len) || !cr_http_is_token(line, *name_len))
        return refuse("a line of its head is not one of HTTP", line, err);
    while (is_blank(line[len - 1]))
        line[--len] = '\0';
    *value = colon + 1;
    while (is_blank(**value))
        (*value)++;
    return true;
}

/* Digits alone: strtoull would take signs and spaces. */
static const char *read_number(const char *text, uint64_t *out)
{
    *out = 0;
    const char *c = text;
    for (; is_digit(*c); c++) {
        uint64_t digit = (uint64_t)(*c - '0');
        if (*out > (UINT64_MAX - digit) / 10)
            return NULL;
        *out = *out * 10 + digit;
    }
    return c > text ? c : NULL;
}

static const char *skip_blanks(const char *text)
{
    while (is_blank(*text))
        text++;
    return text;
}

bool cr_http_length(const char *value, uint64_t *out, struct cr_error *err)
{
    uint64_t other = 0;
    const char *rest = read_number(value, out);
    while (rest && *(rest = skip_blanks(rest)) == ',') {
        rest = read_number(skip_blanks(rest + 1), &other);
        if (other != *out)
            rest = NULL;
    }
    return (rest && !*rest) || refuse("its Content-Length is not a number", value, err);
}

bool cr_http_has_option(const char *list, const char *option)
{
    static const char between[] = ", \t";
    size_t len = strlen(option);
    for (const char *at = list + strspn(list, between); *at; at += strspn(at, between)) {
        size_t part = strcspn(at, between);
        if (part == len && strncasecmp(at, option, len) == 0)
            return true;
        at += part;
    }
    return false;
}

/* --- chunks --- */

static int hex_value(char c)
{
    char lower = (char)(c | 0x20);
    if (is_digit(c))
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool cr_http_chunk_size(const char *line, size_t len, uint64_t *out, struct cr_error *err)
{
    const char *c = line;
    bool overflows = false;
    *out = 0;
    for (; hex_value(*c) >= 0; c++) {
        overflows = overflows || *out > UINT64_MAX / HEX;
        *out = *out * HEX + (uint64_t)hex_value(*c);
    }
    const char *rest = skip_blanks(c);
    bool ok = c > line && !overflows && (!*rest || *rest == ';') && !has_nul_or_cr(line, len);
    return ok || refuse("a chunk of its body does not begin with its size", line, err);
}
