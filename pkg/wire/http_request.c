#include "wire/http_request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "wire/http_field.h"

enum { EMPTY_LINES = 4, BAD_REQUEST = 400, HEAD_TOO_LARGE = 431, OTHER_VERSION = 505 };

void cr_http_ask_init(struct cr_http_ask *ask)
{
    *ask = (struct cr_http_ask){.text = CR_BUF_INIT(CR_HTTP_REQUEST_MAX)};
    ask->text.secret = true;
}

void cr_http_ask_dispose(struct cr_http_ask *ask)
{
    cr_buf_dispose(&ask->text);
}

static bool refuse(struct cr_http_ask *ask, int status, const char *problem)
{
    ask->refused = status;
    ask->problem = problem;
    return false;
}

/* --- the first line --- */

/* Visible ASCII: a URI has nothing else (RFC 3986, section 2). */
static bool is_visible(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* "host:80", "[::1]". */
static bool is_authority(const char *text, size_t len)
{
    const char *close = *text == '[' ? memchr(text, ']', len) : NULL;
    return len && (*text != '[' || (close && (close + 1 == text + len || close[1] == ':')));
}

/* "http://host/path" counts as "/path" (RFC 9112, section 3.2.2). NULL: it is no URI. */
static char *path_of(char *target)
{
    if (strncasecmp(target, "http://", strlen("http://")) == 0 ||
        strncasecmp(target, "https://", strlen("https://")) == 0) {
        char *authority = strstr(target, "://") + strlen("://");
        size_t len = strcspn(authority, "/?#");
        if (!is_authority(authority, len))
            return NULL;
        target = authority + len;
    }
    target[strcspn(target, "?#")] = '\0';
    return target;
}

static bool take_version(struct cr_http_ask *ask, const char *version)
{
    static const char form[] = "HTTP/0.0";
    bool ok = strlen(version) == sizeof form - 1;
    for (size_t i = 0; ok && form[i]; i++)
        ok = form[i] == '0' ? version[i] >= '0' && version[i] <= '9' : version[i] == form[i];
    if (!ok)
        return refuse(ask, BAD_REQUEST, "this is not a request of HTTP/1");
    if (!cr_starts_with(version, "HTTP/1."))
        return refuse(ask, OTHER_VERSION, "only HTTP/1 is spoken here");
    ask->last = cr_streq(version, "HTTP/1.0");
    return true;
}

/* Cuts line in place. */
static bool take_request_line(struct cr_http_ask *ask, char *line, size_t len)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;
    if (strlen(line) != len || !version)
        return refuse(ask, BAD_REQUEST, "this is not a request of HTTP/1");
    *target++ = '\0';
    *version++ = '\0';
    if (!cr_http_is_token(line, strlen(line)) || !*target || !is_visible(target))
        return refuse(ask, BAD_REQUEST, "this is not a request of HTTP/1");
    ask->method = line;
    ask->path = path_of(target);
    if (!ask->path)
        return refuse(ask, BAD_REQUEST, "this is not a request of HTTP/1");
    return take_version(ask, version);
}

/* --- fields --- */

static bool is_named(const char *line, size_t name_len, const char *name)
{
    return name_len == strlen(name) && strncasecmp(line, name, name_len) == 0;
}

static bool take_length(struct cr_http_ask *ask, const char *value)
{
    uint64_t length = 0;
    if (!cr_http_length(value, &length, NULL))
        return refuse(ask, BAD_REQUEST, "its Content-Length is not a number");
    ask->has_body = ask->has_body || length;
    return true;
}

/* A line that begins with white space is refused (RFC 9112, section 5.2), since it has no name. */
static bool take_field(struct cr_http_ask *ask, char *line, size_t len)
{
    size_t name_len = 0;
    const char *value = NULL;
    if (!cr_http_field(line, len, &name_len, &value, NULL))
        return refuse(ask, BAD_REQUEST, "a line of its head is not one of HTTP");
    if (is_named(line, name_len, "Content-Length"))
        return take_length(ask, value);
    if (is_named(line, name_len, "Transfer-Encoding"))
        ask->has_body = true;
    else if (is_named(line, name_len, "Connection"))
        ask->last = ask->last || cr_http_has_option(value, "close");
    else if (is_named(line, name_len, "Authorization") && ask->authorization)
        return refuse(ask, BAD_REQUEST, "it has two Authorizations");
    else if (is_named(line, name_len, "Authorization"))
        ask->authorization = value;
    return true;
}

/* --- the whole --- */

static void read_lines(struct cr_http_ask *ask)
{
    char *end = ask->text.data + ask->text.len;
    bool is_first = true;
    for (char *line = ask->text.data; line < end; is_first = false) {
        char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)(feed - line);
        if (len && line[len - 1] == '\r')
            len--;
        line[len] = '\0';
        if (!len)
            break;
        if (!(is_first ? take_request_line(ask, line, len) : take_field(ask, line, len)))
            return;
        line = feed + 1;
    }
    ask->whole = true;
}

/* The text ends with a line feed. True: its last line is empty. */
static bool ends_with_empty_line(const struct cr_buf *text)
{
    const char *end = text->data + text->len;
    return (text->len == 1 || end[-2] == '\n') || (end[-2] == '\r' && (text->len == 2 || end[-3] == '\n'));
}

/* Empty lines before a request are passed over (RFC 9112, section 2.2). */
static void end_line(struct cr_http_ask *ask)
{
    enum { CRLF = 2 };
    if (!ends_with_empty_line(&ask->text))
        return;
    if (ask->text.len > CRLF)
        read_lines(ask);
    else if (++ask->empty_lines > EMPTY_LINES)
        refuse(ask, BAD_REQUEST, "this is not a request of HTTP/1");
    else
        cr_buf_reset(&ask->text);
}

size_t cr_http_ask_feed(struct cr_http_ask *ask, const char *data, size_t len)
{
    size_t taken = 0;
    while (taken < len && !ask->whole && !ask->refused) {
        const char *feed = memchr(data + taken, '\n', len - taken);
        size_t part = feed ? (size_t)(feed + 1 - (data + taken)) : len - taken;
        if (!cr_buf_append(&ask->text, data + taken, part))
            refuse(ask, HEAD_TOO_LARGE, "its head is longer than 16384 bytes");
        else if (feed)
            end_line(ask);
        taken += part;
    }
    return taken;
}
