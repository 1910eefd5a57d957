#include "net/http_internal.h"

#include <ctype.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum {
    CONNECT_TIMEOUT_MS = 10 * 1000,
    /* A dead path is found in 25 s, as measured; nothing else tells us, since libcurl 7.88 sends no HTTP/2 pings. */
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    USER_TIMEOUT_MS = 25 * 1000,
    /* The least that curl takes: its own 64 KiB are allocated, and wiped, for each write, of a Lease as of anything. */
    SEND_SIZE = 16 * 1024,
    LONGEST_RETRY_AFTER_S = 3600,
};

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

static void add_line(struct cr_http_exchange *x, const char *line)
{
    x->headers = curl_slist_append(x->headers, line);
}

/* RFC 9110, section 5.1: a token. */
static bool is_header_name(const char *name, size_t len)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return len && strspn(name, allowed) >= len;
}

bool cr_http_exchange_has_header(const struct cr_http_exchange *x, const char *name)
{
    size_t len = strlen(name);
    for (const struct curl_slist *line = x->headers; line; line = line->next)
        if (strncasecmp(line->data, name, len) == 0 && line->data[len] == ':')
            return true;
    return false;
}

static bool add_header(struct cr_http_exchange *x, const char *name, const char *prefix, const char *value,
                       struct cr_error *err)
{
    if (!value || cr_http_exchange_has_header(x, name))
        return true;
    if (!is_header_text(value))
        return cr_error_set(err, CR_ERR_INVALID, "the value for the header %s holds a line break or control character",
                            name);
    char *line = cr_asprintf("%s: %s%s", name, prefix, value);
    add_line(x, line);
    explicit_bzero(line, strlen(line));
    free(line);
    return true;
}

static bool add_own(struct cr_http_exchange *x, const struct cr_http_request *request, struct cr_error *err)
{
    for (size_t i = 0; i < request->headers_len; i++) {
        const char *line = request->headers[i];
        size_t name = strcspn(line, ":");
        if (line[name] != ':' || !is_header_name(line, name) || !is_header_text(line + name))
            return cr_error_set(err, CR_ERR_INVALID, "header %zu is not of the form 'Name: value' on one line", i + 1);
        add_line(x, line);
    }
    return true;
}

static bool add_headers(struct cr_http_exchange *x, const struct cr_http_request *request, struct cr_error *err)
{
    const char *bearer = request->bearer && *request->bearer ? request->bearer : NULL;
    if (!add_own(x, request, err))
        return false;
    /* Without this curl waits up to a second for "100 Continue" before it sends a big body. */
    add_line(x, "Expect:");
    if (!request->content_type && !cr_http_exchange_has_header(x, "Content-Type"))
        add_line(x, "Content-Type:"); /* curl would call it a form */
    return add_header(x, "Accept", "", request->accept, err) &&
           add_header(x, "Content-Type", "", request->content_type, err) &&
           add_header(x, "Authorization", "Bearer ", bearer, err);
}

static void drop_body(struct cr_http_exchange *x)
{
    if (x->body && x->secret)
        explicit_bzero(x->body, x->body_len);
    free(x->body);
    x->body = NULL;
}

static void set_body(struct cr_http_exchange *x, const struct cr_http_request *request)
{
    drop_body(x);
    x->body_len = request->body ? request->body_len : 0;
    x->body = cr_malloc(x->body_len + 1);
    if (x->body_len)
        memcpy(x->body, request->body, x->body_len);
    x->body[x->body_len] = '\0';
    curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, x->body);
    curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_len);
}

static void set_method(struct cr_http_exchange *x, const struct cr_http_request *request)
{
    const char *method = request->method;
    if (cr_streq(method, "HEAD")) {
        curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
        return;
    }
    /* POST, PUT and PATCH without a body still say Content-Length: 0. */
    if (request->body || cr_streq(method, "POST") || cr_streq(method, "PUT") || cr_streq(method, "PATCH"))
        set_body(x, request);
    curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, method);
}

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

static bool parse_url(struct cr_http_exchange *x, const struct cr_http_request *request, struct cr_error *err)
{
    x->url = curl_url();
    CURLUcode code = curl_url_set(x->url, CURLUPART_URL, request->url, CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
    if (code == CURLUE_USER_NOT_ALLOWED) /* and not repeated in a log */
        return cr_error_set(err, CR_ERR_INVALID, "a URL may not hold a user name or password");
    if (code != CURLUE_OK)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a URL that can be used: %s", request->url,
                            curl_url_strerror(code));
    char *scheme = url_part(x->url, CURLUPART_SCHEME, 0);
    x->https = cr_streq(scheme, "https");
    bool known = x->https || cr_streq(scheme, "http");
    cr_autofree char *where = authority(x->url);
    x->origin = cr_asprintf("%s %s://%s", request->method, cr_or_empty(scheme), where);
    curl_free(scheme);
    return known || cr_error_set(err, CR_ERR_INVALID, "'%s' is neither an https nor an http URL", request->url);
}

/* CURLOPT_SOCKOPTFUNCTION: what curl has no options for. */
static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    (void)arg;
    (void)purpose;
    int probes = KEEPALIVE_COUNT;
    int timeout_ms = USER_TIMEOUT_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return CURL_SOCKOPT_OK;
}

/* CURLOPT_PREREQFUNCTION: connected, and the next thing is to send. Earlier would be too early for a process that may
 * be stopped at any moment. */
static int may_begin(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    const struct cr_http_exchange *x = arg;
    bool late = x->begin_by_ms && cr_clock_boot_ms() >= x->begin_by_ms;
    return late ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void set_connection_options(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
    /* A request that is given up while its name is resolved would otherwise stop the loop until the resolver answers.
     */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)CR_HTTP_READ_SIZE);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_SIZE);
}

bool cr_http_exchange_init(struct cr_http_exchange *x, const struct cr_http_request *request, const char *user_agent,
                           bool compressed, struct cr_error *err)
{
    x->secret = request->secret;
    x->begin_by_ms = request->begin_by_ms;
    if (!is_method(request->method))
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not an HTTP method", request->method);
    if (!parse_url(x, request, err))
        return false;
    x->easy = curl_easy_init();
    if (!x->easy || !add_headers(x, request, err))
        return x->easy ? false : cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot be initialised");
    set_connection_options(x->easy);
    /* Requests wait for a handshake under way, and share the connection when it brings HTTP/2. Without TLS there is
     * none to share, and curl would wait for the first response. */
    curl_easy_setopt(x->easy, CURLOPT_PIPEWAIT, x->https ? 1L : 0L);
    set_method(x, request);
    curl_easy_setopt(x->easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(x->easy, CURLOPT_USERAGENT, user_agent);
    curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->problem);
    curl_easy_setopt(x->easy, CURLOPT_PREREQFUNCTION, may_begin);
    curl_easy_setopt(x->easy, CURLOPT_PREREQDATA, x);
    /* Only gzip: the other decoders are code that hostile input need not reach. */
    if (compressed)
        curl_easy_setopt(x->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    return true;
}

void cr_http_exchange_status(const struct cr_http_exchange *x, int *status, int *retry_after_ms)
{
    long code = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &code);
    if (code < 200) /* 1xx: the response is still to come */
        return;
    curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (retry_after_s > LONGEST_RETRY_AFTER_S)
        retry_after_s = LONGEST_RETRY_AFTER_S;
    *status = (int)code;
    *retry_after_ms = retry_after_s > 0 ? (int)retry_after_s * 1000 : 0;
}

static void set_blob(CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = {.data = pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy, option, &blob);
}

static bool is_ip6(const char *host)
{
    return strchr(host, ':') && host[0] != '[';
}

/* The name to verify becomes the name in the URL, so that curl itself sends it as SNI and verifies it; the connection
 * goes to where the URL pointed, and the Host header stays, as kubectl does it. */
static bool rename_server(struct cr_http_exchange *x, const char *name, struct cr_error *err)
{
    cr_autofree char *real = authority(x->url);
    char *host = url_part(x->url, CURLUPART_HOST, 0);
    char *port = url_part(x->url, CURLUPART_PORT, 0);
    cr_autofree char *header = cr_asprintf(port ? "Host: %s:%s" : "Host: %s", cr_or_empty(host), port);
    cr_autofree char *bracketed = is_ip6(name) ? cr_asprintf("[%s]", name) : cr_strdup(name);
    cr_autofree char *connect_to = cr_asprintf("::%s", real);
    curl_free(host);
    curl_free(port);
    CURLUcode code = curl_url_set(x->url, CURLUPART_HOST, bracketed, 0);
    if (code != CURLUE_OK)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is not a server name for TLS: %s", name,
                            curl_url_strerror(code));
    x->connect_to = curl_slist_append(x->connect_to, connect_to);
    curl_easy_setopt(x->easy, CURLOPT_CONNECT_TO, x->connect_to);
    if (!cr_http_exchange_has_header(x, "Host"))
        add_line(x, header);
    curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
    return true;
}

static void set_trust(CURL *easy, const struct cr_http_identity *identity)
{
    if (identity->ca_pem) {
        set_blob(easy, CURLOPT_CAINFO_BLOB, identity->ca_pem);
        /* Otherwise the system's folder of CAs counts, too. */
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (identity->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* The name is resolved by the proxy: what is behind it may have names of its own. */
static bool set_proxy(CURL *easy, const char *proxy, struct cr_error *err)
{
    static const char socks[] = "socks5://";
    if (!proxy || !*proxy)
        return true;
    bool is_socks = cr_starts_with(proxy, socks);
    char *url = cr_asprintf("%s%s", is_socks ? "socks5h://" : "", is_socks ? proxy + strlen(socks) : proxy);
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PROXY, url);
    curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (unsigned long)CURLAUTH_BASIC); /* Kerberos is not linked */
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    explicit_bzero(url, strlen(url));
    free(url);
    return code == CURLE_OK ||
           cr_error_set(err, CR_ERR_INTERNAL, "the proxy cannot be set: %s", curl_easy_strerror(code));
}

static bool set_client_certificate(CURL *easy, const struct cr_http_identity *identity, struct cr_error *err)
{
    if (!identity->cert_pem && !identity->key_pem)
        return true;
    if (!identity->cert_pem || !identity->key_pem)
        return cr_error_set(err, CR_ERR_INVALID, "a client certificate and its key are only of use together");
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    set_blob(easy, CURLOPT_SSLCERT_BLOB, identity->cert_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, identity->key_pem);
    /* An encrypted key is refused; without this OpenSSL would ask on the terminal. */
    curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
    return true;
}

bool cr_http_exchange_use(struct cr_http_exchange *x, const struct cr_http_identity *identity, struct cr_error *err)
{
    set_trust(x->easy, identity);
    if (!set_proxy(x->easy, identity->proxy, err) || !set_client_certificate(x->easy, identity, err))
        return false;
    if (identity->server_name && *identity->server_name && !rename_server(x, identity->server_name, err))
        return false;
    curl_easy_setopt(x->easy, CURLOPT_CURLU, x->url);
    return true;
}

void cr_http_exchange_dispose(struct cr_http_exchange *x)
{
    if (x->easy)
        curl_easy_cleanup(x->easy);
    curl_url_cleanup(x->url);
    curl_slist_free_all(x->headers); /* wiped by our allocator, see http_memory.c */
    curl_slist_free_all(x->connect_to);
    drop_body(x);
    free(x->origin);
    *x = (struct cr_http_exchange){0};
}
