#include "sidecar/resp.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 10 /* digits */, BULK_MAX = 1024 * 1024, CRLF = 2 };

void cr_resp_command(const char *const *words, size_t len, struct cr_buf *out)
{
    cr_buf_printf(out, "*%zu\r\n", len);
    for (size_t i = 0; i < len; i++)
        cr_buf_printf(out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
}

/* The number in the line behind the type. False: no number. */
static bool parse_number(const char *text, size_t len, long *out)
{
    char digits[LONGEST_NUMBER + 2];
    char *end = NULL;
    if (!len || len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    *out = strtol(digits, &end, 10);
    return !*end && (digits[0] == '-' || (digits[0] >= '0' && digits[0] <= '9'));
}

static enum cr_resp_step read_bulk(const char *data, size_t len, size_t *at, struct cr_resp_value *out)
{
    if (out->number == -1) {
        out->type = CR_RESP_NULL;
        return CR_RESP_READ;
    }
    if (out->number < 0 || out->number > BULK_MAX)
        return CR_RESP_BAD;
    size_t size = (size_t)out->number;
    if (len - *at < size + CRLF)
        return CR_RESP_MORE;
    if (memcmp(data + *at + size, "\r\n", CRLF) != 0)
        return CR_RESP_BAD;
    out->text = data + *at;
    out->len = size;
    *at += size + CRLF;
    return CR_RESP_READ;
}

static enum cr_resp_step read_rest(char type, const char *data, size_t len, size_t *at, struct cr_resp_value *out)
{
    if (type == '+' || type == '-') {
        out->type = type == '+' ? CR_RESP_OK : CR_RESP_ERROR;
        return CR_RESP_READ;
    }
    if (!parse_number(out->text, out->len, &out->number))
        return CR_RESP_BAD;
    switch (type) {
    case ':':
        out->type = CR_RESP_NUMBER;
        return CR_RESP_READ;
    case '$':
        out->type = CR_RESP_BULK;
        return read_bulk(data, len, at, out);
    case '*':
        out->type = CR_RESP_ARRAY;
        return out->number >= 0 ? CR_RESP_READ : CR_RESP_BAD;
    default:
        return CR_RESP_BAD;
    }
}

enum cr_resp_step cr_resp_read(const char *data, size_t len, size_t *at, struct cr_resp_value *out)
{
    *out = (struct cr_resp_value){0};
    if (*at >= len)
        return CR_RESP_MORE;
    const char *line = data + *at;
    if (!strchr("+-:$*", *line) || !*line)
        return CR_RESP_BAD;
    const char *end = memmem(line, len - *at, "\r\n", CRLF);
    if (!end)
        return CR_RESP_MORE;
    size_t next = (size_t)(end - data) + CRLF;
    out->text = line + 1;
    out->len = (size_t)(end - line) - 1;
    enum cr_resp_step step = read_rest(*line, data, len, &next, out);
    if (step == CR_RESP_READ)
        *at = next;
    return step;
}
