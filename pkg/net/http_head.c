#include "net/http_internal.h"

#include <string.h>

#include "base/strings.h"

static void put_url_part(const struct cr_http_exchange *x, CURLUPart part, const char *before, struct cr_buf *out)
{
    char *text = NULL;
    if (curl_url_get(x->url, part, &text, 0) != CURLUE_OK)
        return;
    cr_buf_puts(out, before);
    cr_buf_puts(out, text);
    curl_free(text);
}

static void put_host(const struct cr_http_exchange *x, struct cr_buf *out)
{
    if (cr_http_exchange_has_header(x, "Host"))
        return;
    put_url_part(x, CURLUPART_HOST, "Host: ", out);
    put_url_part(x, CURLUPART_PORT, ":", out);
    cr_buf_puts(out, "\r\n");
}

/* libcurl takes a line without a value for one that is not to be sent. */
static void put_lines(const struct cr_http_exchange *x, struct cr_buf *out)
{
    for (const struct curl_slist *line = x->headers; line; line = line->next) {
        const char *colon = strchr(line->data, ':');
        if (!colon || !colon[1 + strspn(colon + 1, " \t")])
            continue;
        cr_buf_puts(out, line->data);
        cr_buf_puts(out, "\r\n");
    }
}

void cr_http_exchange_head(const struct cr_http_exchange *x, const char *method, const char *user_agent,
                           struct cr_buf *out)
{
    cr_buf_puts(out, method);
    put_url_part(x, CURLUPART_PATH, " ", out);
    put_url_part(x, CURLUPART_QUERY, "?", out);
    cr_buf_puts(out, " HTTP/1.1\r\n");
    put_host(x, out);
    if (!cr_http_exchange_has_header(x, "User-Agent")) {
        cr_buf_puts(out, "User-Agent: ");
        cr_buf_puts(out, user_agent);
        cr_buf_puts(out, "\r\n");
    }
    put_lines(x, out);
}
