#include "wire/http_call.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "wire/http_field.h"
#include "wire/http_parse.h"
#include "wire/connection.h"

/* Nothing that ends the request line, or begins another one. */
static bool is_target(const char *target)
{
    if (target[0] != '/')
        return false;
    for (const char *c = target; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return false;
    return true;
}

static bool check(const struct cr_http_call *call, struct cr_error *err)
{
    if (!cr_http_is_token(call->method, strlen(call->method)))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a method of HTTP", call->method);
    return is_target(call->target) ||
           cr_error_set(err, CR_ERR_INVALID, "'%s' is not a path of HTTP: it begins with / and has no spaces",
                        call->target);
}

/* RFC 9110, section 8.6: a client that sends nothing with them says so. */
static bool may_have_content(const char *method)
{
    return cr_streq(method, "POST") || cr_streq(method, "PUT") || cr_streq(method, "PATCH");
}

/* RFC 9110, section 7.2: of a Unix socket nothing is known that could stand there. */
static void write_host(const char *address, struct cr_buf *out)
{
    if (address[0] == '/' || cr_starts_with(address, "unix:"))
        cr_buf_puts(out, "Host: localhost\r\n");
    else
        cr_buf_printf(out, "Host: %s%s\r\n", address[0] == ':' ? "localhost" : "", address);
}

static void write_request(const struct cr_http_call *call, struct cr_buf *out)
{
    cr_buf_printf(out, "%s %s HTTP/1.1\r\n", call->method, call->target);
    write_host(call->address, out);
    cr_buf_puts(out, "User-Agent: certroll\r\nAccept-Encoding: identity\r\nConnection: close\r\n");
    if (may_have_content(call->method))
        cr_buf_puts(out, "Content-Length: 0\r\n");
    cr_buf_puts(out, "\r\n");
}

static bool receive_all(struct cr_connection *connection, struct cr_http_parse *parse, struct cr_buf *body,
                        struct cr_error *err)
{
    while (!cr_http_parse_is_done(parse)) {
        if (!cr_connection_receive(connection, err))
            return false;
        bool ok = cr_http_parse_feed(parse, cr_buf_text(&connection->received), connection->received.len, body, err) &&
                  (!connection->ended || cr_http_parse_end(parse, connection->broken, err));
        if (!ok)
            return cr_error_wrap(err, "%s", connection->address);
        cr_buf_reset(&connection->received);
    }
    return true;
}

bool cr_http_call(const struct cr_http_call *call, int *status, struct cr_buf *body, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf request = CR_BUF_INIT(0);
    CR_CLEANUP(cr_http_parse) struct cr_http_parse parse;
    size_t before = body->len;
    cr_http_parse_init(&parse, call->method, call->max_body);
    CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
    if (!check(call, err) || !cr_connection_open(call->address, call->cancel_fd, call->deadline_ms, &connection, err))
        return false;
    write_request(call, &request);
    if (!cr_connection_send(&connection, request.data, request.len, err) ||
        !receive_all(&connection, &parse, body, err)) {
        cr_buf_cut(body, before);
        return false;
    }
    *status = parse.status;
    return true;
}
