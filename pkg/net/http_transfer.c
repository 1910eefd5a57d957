#include "net/http_transfer.h"

#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/http_memory.h"

enum {
    LONGEST_POLL_MS = 1000, /* libcurl knows when it wants to go on before that */
    LATER_MS = 200,         /* than the deadline, which is not libcurl's to find */
};

struct run {
    struct cr_http_transfer *transfer;
    struct cr_http_exchange exchange;
    struct cr_http_response *response;
    size_t max_body;
    bool added;    /* to the multi handle */
    bool opened;   /* it has a connection of its own */
    bool received; /* a line of an answer has come */
    bool encoded;  /* its body, if there is one, is compressed */
    bool packed;   /* the same, and so it is no answer */
    bool over_cap;
    bool repeats; /* libcurl would have sent the request once more */
    SSL *tls;     /* borrowed from the connection; NULL: it has none */
    CURLcode result;
};

CURLM *cr_http_transfer_multi(void)
{
    cr_http_global_init();
    CURLM *multi = curl_multi_init();
    if (multi)
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
    return multi;
}

/* --- called by libcurl --- */

/* libcurl has it only while the transfer runs. */
static SSL *tls_of(CURL *easy)
{
    const struct curl_tlssessioninfo *session = NULL;
    curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
    return session && session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/* An interim answer has its own fields. */
static void end_head(struct run *run)
{
    cr_http_exchange_status(&run->exchange, &run->response->status, &run->response->retry_after_ms);
    run->encoded = run->encoded && run->response->status;
    run->tls = tls_of(run->exchange.easy);
}

/* CURLOPT_HEADERFUNCTION: line by line; an empty one ends the head (and later the trailers). */
static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct run *run = arg;
    size_t len = size * count;
    run->received = true;
    if (run->response->status)
        return len;
    run->encoded =
        run->encoded || (run->transfer->keeps && cr_http_field_differs(line, len, "Content-Encoding:", "identity"));
    run->packed = cr_http_field_differs(line, len, "Transfer-Encoding:", "chunked");
    if (len && (line[0] == '\r' || line[0] == '\n'))
        end_head(run);
    return run->packed ? CURL_WRITEFUNC_ERROR : len;
}

/* Of a refusal the status says enough. */
static size_t pass_over(struct run *run, size_t len)
{
    run->packed = run->response->status < CR_HTTP_REFUSED;
    return run->packed ? CURL_WRITEFUNC_ERROR : len;
}

/* CURLOPT_WRITEFUNCTION. Anything but len makes libcurl end the transfer. */
static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct run *run = arg;
    struct cr_buf *body = &run->response->body;
    size_t len = size * count;
    if (run->encoded)
        return pass_over(run, len);
    run->over_cap = len > run->max_body - body->len;
    return !run->over_cap && cr_buf_append(body, data, len) ? len : CURL_WRITEFUNC_ERROR;
}

/* CURLOPT_OPENSOCKETFUNCTION. A connection that is wanted when the request has been sent is for a repetition: libcurl
 * repeats whatever got no answer on a used connection, a write as well, however long it took. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct run *run = arg;
    (void)purpose;
    run->repeats = run->exchange.begun;
    run->opened = !run->repeats;
    return run->repeats ? CURL_SOCKET_BAD
                        : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* --- */

static void set_kept_options(struct run *run)
{
    CURL *easy = run->exchange.easy;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L); /* to reach the server itself, whatever its scheme */
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, run);
}

static int64_t left_ms(const struct run *run)
{
    int64_t left = run->transfer->deadline_ms - cr_clock_monotonic_ms();
    return left > 0 ? left : 0;
}

/* Of two addresses of one kind libcurl gives the first half of the time to connect. */
static void set_connect_timeout(struct run *run)
{
    int64_t left = left_ms(run);
    if (left < CR_HTTP_CONNECT_TIMEOUT_MS)
        curl_easy_setopt(run->exchange.easy, CURLOPT_CONNECTTIMEOUT_MS, (long)left + LATER_MS);
}

static bool prepare(struct run *run, struct cr_error *err)
{
    const struct cr_http_transfer *transfer = run->transfer;
    if (!cr_http_exchange_init(&run->exchange, transfer->request, transfer->user_agent, err) ||
        !cr_http_exchange_use(&run->exchange, transfer->identity, err))
        return false;
    CURL *easy = run->exchange.easy;
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, run);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, run);
    set_connect_timeout(run);
    if (transfer->keeps)
        set_kept_options(run);
    run->added = transfer->multi && curl_multi_add_handle(transfer->multi, easy) == CURLM_OK;
    return run->added || cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot be initialised");
}

static bool is_done(struct run *run)
{
    int left = 0;
    for (const CURLMsg *message; (message = curl_multi_info_read(run->transfer->multi, &left));) {
        run->result = message->data.result;
        if (message->msg == CURLMSG_DONE)
            return true;
    }
    return false;
}

static int poll_ms(const struct run *run)
{
    int64_t left = left_ms(run);
    return left < LONGEST_POLL_MS ? (int)left : LONGEST_POLL_MS;
}

/* A refusal that is not whole in time is one all the same. */
static bool is_late(const struct run *run, struct cr_error *err)
{
    return run->response->status >= CR_HTTP_REFUSED ||
           cr_http_exchange_timed_out(&run->exchange, run->transfer->request->timeout_ms, err);
}

static bool judge(const struct run *run, struct cr_error *err)
{
    const char *origin = run->exchange.head.origin;
    if (run->over_cap)
        return cr_http_exchange_over_cap(&run->exchange, run->max_body, err);
    if (run->packed)
        return cr_http_answer_packed(origin, err);
    if (run->repeats)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s: no answer came", origin);
    return cr_http_exchange_ended(&run->exchange, run->result, run->response->status, err);
}

static bool drive(struct run *run, struct cr_error *err)
{
    CURLM *multi = run->transfer->multi;
    for (;;) {
        int ignored = 0;
        bool works = curl_multi_perform(multi, &ignored) == CURLM_OK;
        if (is_done(run))
            return judge(run, err);
        if (!left_ms(run))
            return is_late(run, err);
        struct curl_waitfd cancel = {.fd = run->transfer->cancel_fd, .events = CURL_WAIT_POLLIN};
        if (!works || curl_multi_poll(multi, &cancel, cancel.fd >= 0, poll_ms(run), NULL) != CURLM_OK)
            return cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot go on");
        if (cancel.revents)
            return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    }
}

static bool is_unanswered(const struct run *run)
{
    return run->exchange.begun && !run->opened && !run->received &&
           (run->repeats || run->result == CURLE_GOT_NOTHING || run->result == CURLE_SEND_ERROR ||
            run->result == CURLE_RECV_ERROR);
}

/* What OpenSSL has read and libcurl has not would be taken for the next answer. */
static curl_socket_t quiet_socket(const struct run *run)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    curl_easy_getinfo(run->exchange.easy, CURLINFO_ACTIVESOCKET, &fd);
    bool more = fd != CURL_SOCKET_BAD && run->tls && SSL_has_pending(run->tls);
    return more ? CURL_SOCKET_BAD : fd;
}

static void finish(struct run *run)
{
    struct cr_http_transfer *transfer = run->transfer;
    transfer->unanswered = is_unanswered(run);
    if (run->added) {
        transfer->fd = quiet_socket(run);
        curl_multi_remove_handle(transfer->multi, run->exchange.easy);
    }
    cr_http_exchange_dispose(&run->exchange);
}

bool cr_http_transfer_run(struct cr_http_transfer *transfer, struct cr_http_response *response, struct cr_error *err)
{
    const struct cr_http_request *request = transfer->request;
    transfer->fd = CURL_SOCKET_BAD;
    *response = (struct cr_http_response){.body = {.secret = request->secret}};
    struct run run = {.transfer = transfer,
                      .response = response,
                      .max_body = request->max_body ? request->max_body : CR_HTTP_MAX_BODY};
    bool ok = prepare(&run, err) && drive(&run, err);
    finish(&run);
    if (!ok)
        cr_http_response_dispose(response);
    return ok;
}
