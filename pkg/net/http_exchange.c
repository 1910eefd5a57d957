/* One request and its answer in libcurl: its options, limits and deadlines, the same for streams and blocking
 * requests. */
#include "net/http_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/tls_limits.h"

enum {
    /* A dead path is found in 25 s, as measured; nothing else finds it, since libcurl 7.88 sends no HTTP/2 pings. */
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    USER_TIMEOUT_MS = 25 * 1000,
    /* The least that curl takes: its own 64 KiB are allocated, and wiped, for each write, of a Lease as of anything. */
    SEND_SIZE = 16 * 1024,
};

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

/* Whether its Content-Length is said: of POST, PUT and PATCH without a body it is 0 (RFC 9110, section 8.6). */
static bool has_content(const struct cr_http_request *request)
{
    const char *method = request->method;
    return request->body || cr_streq(method, "POST") || cr_streq(method, "PUT") || cr_streq(method, "PATCH");
}

static void set_method(struct cr_http_exchange *x, const struct cr_http_request *request)
{
    const char *method = request->method;
    if (cr_streq(method, "HEAD")) {
        curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (has_content(request))
        set_body(x, request);
    curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, method);
}

/* CURLOPT_SOCKOPTFUNCTION: what curl has no options for. */
static int on_new_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    struct cr_http_exchange *x = arg;
    (void)purpose;
    x->fd = fd;
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
    struct cr_http_exchange *x = arg;
    x->begun = !x->begin_by_ms || cr_clock_boot_ms() < x->begin_by_ms;
    return x->begun ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void set_connection_options(struct cr_http_exchange *x)
{
    CURL *easy = x->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CR_HTTP_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, x);
    /* A request that is given up while its name is resolved would otherwise stop the loop until the resolver answers.
     */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)CR_HTTP_READ_SIZE);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_SIZE);
}

bool cr_http_exchange_init(struct cr_http_exchange *x, const struct cr_http_request *request, const char *user_agent,
                           struct cr_error *err)
{
    x->fd = -1;
    x->secret = request->secret;
    x->begin_by_ms = request->begin_by_ms;
    if (!cr_http_head_init(&x->head, request, err))
        return false;
    x->easy = curl_easy_init();
    if (!x->easy)
        return cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot be initialised");
    set_connection_options(x);
    /* Streams wait for a handshake under way, and share the connection when it brings HTTP/2. Without TLS there is none
     * to share, and curl would wait for the first response. */
    x->waits = x->head.https;
    curl_easy_setopt(x->easy, CURLOPT_PIPEWAIT, x->waits ? 1L : 0L);
    set_method(x, request);
    curl_easy_setopt(x->easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(x->easy, CURLOPT_USERAGENT, user_agent);
    curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->problem);
    curl_easy_setopt(x->easy, CURLOPT_PREREQFUNCTION, may_begin);
    curl_easy_setopt(x->easy, CURLOPT_PREREQDATA, x);
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
    if (retry_after_s > CR_HTTP_LONGEST_RETRY_AFTER_S)
        retry_after_s = CR_HTTP_LONGEST_RETRY_AFTER_S;
    *status = (int)code;
    *retry_after_ms = retry_after_s > 0 ? (int)retry_after_s * 1000 : 0;
}

bool cr_http_field_differs(const char *line, size_t len, const char *field, const char *value)
{
    size_t field_len = strlen(field);
    if (len < field_len || strncasecmp(line, field, field_len) != 0)
        return false;
    for (line += field_len, len -= field_len; len && strchr(" \t", *line); len--)
        line++;
    while (len && strchr(" \t\r\n", line[len - 1]))
        len--;
    return len != strlen(value) || strncasecmp(line, value, len) != 0;
}

static void set_blob(CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = {.data = pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy, option, &blob);
}

/* OpenSSL builds a chain of what is shown even where the result is not used. */
static int take_any_chain(X509_STORE_CTX *chain, void *arg)
{
    (void)arg;
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
}

/* CURLOPT_SSL_CTX_FUNCTION. What was decrypted does not stay in OpenSSL's buffer until the next record comes. */
static CURLcode keep_nothing(CURL *easy, void *ctx, void *arg)
{
    (void)easy;
    (void)arg;
    SSL_CTX_set_options(ctx, SSL_OP_CLEANSE_PLAINTEXT);
    return CURLE_OK;
}

/* Likewise, for a server that is not verified: any program may have answered. */
static CURLcode limit_cost(CURL *easy, void *ctx, void *arg)
{
    (void)keep_nothing(easy, ctx, arg);
    SSL_CTX_set_cert_verify_callback(ctx, take_any_chain, NULL);
    return cr_tls_limit_context(ctx) ? CURLE_OK : CURLE_SSL_CONNECT_ERROR;
}

static void set_trust(CURL *easy, const struct cr_http_identity *identity)
{
    if (identity->ca_pem) {
        set_blob(easy, CURLOPT_CAINFO_BLOB, identity->ca_pem);
        /* Otherwise the system's folder of CAs counts, too. */
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, keep_nothing);
    if (identity->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, limit_cost);
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
    curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (unsigned long)CURLAUTH_BASIC); /* no Kerberos */
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
    if (!cr_http_head_use(&x->head, identity, err))
        return false;
    curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->head.lines);
    curl_easy_setopt(x->easy, CURLOPT_CONNECT_TO, x->head.connect_to);
    curl_easy_setopt(x->easy, CURLOPT_CURLU, x->head.url);
    return true;
}

void cr_http_exchange_dispose(struct cr_http_exchange *x)
{
    if (x->easy)
        curl_easy_cleanup(x->easy);
    cr_http_head_dispose(&x->head);
    drop_body(x);
    *x = (struct cr_http_exchange){0};
}
