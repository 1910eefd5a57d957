#include "net/http_head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "wire/http_field.h"

/* --- its lines --- */

/* What may stand in a header value (RFC 9110, section 5.5): anything else would let a value add headers. */
static bool is_header_text(const char *value)
{
    for (const unsigned char *p = (const unsigned char *)value; *p; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

static bool is_method(const char *method)
{
    const char *p = method;
    while (*p >= 'A' && *p <= 'Z')
        p++;
    return p != method && !*p;
}

static void add_line(struct cr_http_head *head, const char *line)
{
    head->lines = curl_slist_append(head->lines, line);
}

/* Whether the request has it already; names in any case (RFC 9110, section 5.1). */
static bool has_line(const struct cr_http_head *head, const char *name)
{
    size_t len = strlen(name);
    for (const struct curl_slist *line = head->lines; line; line = line->next)
        if (strncasecmp(line->data, name, len) == 0 && line->data[len] == ':')
            return true;
    return false;
}

static bool add_header(struct cr_http_head *head, const char *name, const char *prefix, const char *value,
                       struct cr_error *err)
{
    if (!value || has_line(head, name))
        return true;
    if (!is_header_text(value))
        return cr_error_set(err, CR_ERR_INVALID, "the value for the header %s holds a line break or control character",
                            name);
    char *line = cr_asprintf("%s: %s%s", name, prefix, value);
    add_line(head, line);
    explicit_bzero(line, strlen(line));
    free(line);
    return true;
}

static bool add_own(struct cr_http_head *head, const struct cr_http_request *request, struct cr_error *err)
{
    for (size_t i = 0; i < request->headers_len; i++) {
        const char *line = request->headers[i];
        size_t name = strcspn(line, ":");
        if (line[name] != ':' || !cr_http_is_token(line, name) || !is_header_text(line + name))
            return cr_error_set(err, CR_ERR_INVALID, "header %zu is not of the form 'Name: value' on one line", i + 1);
        add_line(head, line);
    }
    return true;
}

static bool add_headers(struct cr_http_head *head, const struct cr_http_request *request, struct cr_error *err)
{
    const char *bearer = request->bearer && *request->bearer ? request->bearer : NULL;
    if (!add_own(head, request, err))
        return false;
    /* Without this curl waits up to a second for "100 Continue" before it sends a big body. */
    add_line(head, "Expect:");
    if (!request->content_type && !has_line(head, "Content-Type"))
        add_line(head, "Content-Type:"); /* curl would call it a form */
    return add_header(head, "Accept", "", request->accept, err) &&
           add_header(head, "Content-Type", "", request->content_type, err) &&
           add_header(head, "Authorization", "Bearer ", bearer, err);
}

/* --- where it goes --- */

static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

/* "host:port" as in the URL; an IPv6 literal in brackets. Owned. */
static char *authority(CURLU *url)
{
    char *host = url_part(url, CURLUPART_HOST, 0);
    char *port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    char *text = cr_asprintf("%s:%s", cr_or_empty(host), cr_or_empty(port));
    curl_free(host);
    curl_free(port);
    return text;
}

static bool parse_url(struct cr_http_head *head, const struct cr_http_request *request, struct cr_error *err)
{
    const char *text = request->url;
    head->url = curl_url();
    CURLUcode code = curl_url_set(head->url, CURLUPART_URL, text, CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
    if (code == CURLUE_USER_NOT_ALLOWED) /* and not repeated in a log */
        return cr_error_set(err, CR_ERR_INVALID, "a URL may not hold a user name or password");
    if (code != CURLUE_OK)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a URL that can be used: %s", text,
                            curl_url_strerror(code));
    char *scheme = url_part(head->url, CURLUPART_SCHEME, 0);
    head->https = cr_streq(scheme, "https");
    bool known = head->https || cr_streq(scheme, "http");
    cr_autofree char *where = authority(head->url);
    head->origin = cr_asprintf("%s %s://%s", request->method, cr_or_empty(scheme), where);
    curl_free(scheme);
    return known || cr_error_set(err, CR_ERR_INVALID, "'%s' is neither an https nor an http URL", text);
}

bool cr_http_head_init(struct cr_http_head *head, const struct cr_http_request *request, struct cr_error *err)
{
    *head = (struct cr_http_head){0};
    if (!is_method(request->method))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not an HTTP method", request->method);
    return parse_url(head, request, err) && add_headers(head, request, err);
}

static bool is_ip6(const char *host)
{
    return strchr(host, ':') && host[0] != '[';
}

/* The name to verify becomes the name in the URL, so that curl itself sends it as SNI and verifies it; the connection
 * goes to where the URL pointed, and the Host header stays, as kubectl does it. */
static bool rename_server(struct cr_http_head *head, const char *name, struct cr_error *err)
{
    cr_autofree char *real = authority(head->url);
    char *host = url_part(head->url, CURLUPART_HOST, 0);
    char *port = url_part(head->url, CURLUPART_PORT, 0);
    cr_autofree char *header = cr_asprintf(port ? "Host: %s:%s" : "Host: %s", cr_or_empty(host), port);
    cr_autofree char *bracketed = is_ip6(name) ? cr_asprintf("[%s]", name) : cr_strdup(name);
    cr_autofree char *connect_to = cr_asprintf("::%s", real);
    curl_free(host);
    curl_free(port);
    CURLUcode code = curl_url_set(head->url, CURLUPART_HOST, bracketed, 0);
    if (code != CURLUE_OK)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a server name for TLS: %s", name,
                            curl_url_strerror(code));
    head->connect_to = curl_slist_append(head->connect_to, connect_to);
    if (!has_line(head, "Host"))
        add_line(head, header);
    return true;
}

bool cr_http_head_use(struct cr_http_head *head, const struct cr_http_identity *identity, struct cr_error *err)
{
    const char *name = identity->server_name;
    return !name || !*name || rename_server(head, name, err);
}

void cr_http_head_dispose(struct cr_http_head *head)
{
    curl_url_cleanup(head->url);
    curl_slist_free_all(head->lines); /* wiped by our allocator, see http_memory.c */
    curl_slist_free_all(head->connect_to);
    free(head->origin);
    *head = (struct cr_http_head){0};
}
