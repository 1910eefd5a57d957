#include "net/http_link.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"

enum { LONGEST_POLL_MS = 60 * 1000 };

void cr_http_link_init(struct cr_http_link *link, int wake_fd)
{
    *link = (struct cr_http_link){.fd = CURL_SOCKET_BAD, .wake_fd = wake_fd};
}

void cr_http_link_close(struct cr_http_link *link)
{
    if (link->multi && link->opener.easy)
        curl_multi_remove_handle(link->multi, link->opener.easy);
    cr_http_exchange_dispose(&link->opener);
    curl_multi_cleanup(link->multi);
    link->multi = NULL;
    link->fd = CURL_SOCKET_BAD;
}

static int64_t left_ms(const struct cr_http_link *link)
{
    int64_t left = link->deadline_ms - cr_clock_monotonic_ms();
    return left > 0 ? left : 0;
}

static int poll_ms(const struct cr_http_link *link)
{
    int64_t left = left_ms(link);
    return left < LONGEST_POLL_MS ? (int)left : LONGEST_POLL_MS;
}

/* --- opening --- */

/* As curl has it, where 0 is for ever. */
static long open_within_ms(const struct cr_http_link *link)
{
    int64_t left = left_ms(link);
    if (link->deadline_ms == INT64_MAX)
        return 0;
    return left > 0 ? (long)left : 1;
}

static bool prepare(struct cr_http_link *link, const struct cr_http_request *request, const char *user_agent,
                    const struct cr_http_identity *identity, struct cr_error *err)
{
    /* Neither its token nor its body: they would stay as long as the connection. */
    const struct cr_http_request bare = {
        .method = request->method, .url = request->url, .begin_by_ms = request->begin_by_ms};
    if (!cr_http_exchange_init(&link->opener, &bare, user_agent, err) ||
        !cr_http_exchange_use(&link->opener, identity, err))
        return false;
    CURL *easy = link->opener.easy;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L); /* to reach the server itself, whatever its scheme */
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, open_within_ms(link));
    link->multi = curl_multi_init();
    return link->multi && curl_multi_add_handle(link->multi, easy) == CURLM_OK
               ? true
               : cr_error_set(err, CR_ERR_INTERNAL, "libcurl cannot be initialised");
}

static CURLcode result_of(CURLM *multi)
{
    int left = 0;
    const CURLMsg *msg = curl_multi_info_read(multi, &left);
    return msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_FAILED_INIT;
}

/* False: it was cancelled. */
static bool reach(const struct cr_http_link *link, CURLcode *result)
{
    int running = 1;
    while (curl_multi_perform(link->multi, &running) == CURLM_OK && running) {
        struct curl_waitfd wake = {.fd = link->wake_fd, .events = CURL_WAIT_POLLIN};
        curl_multi_poll(link->multi, &wake, 1, LONGEST_POLL_MS, NULL);
        if (wake.revents)
            return false;
    }
    *result = running ? CURLE_FAILED_INIT : result_of(link->multi);
    return true;
}

static bool judge(const struct cr_http_link *link, CURLcode result, int timeout_ms, struct cr_error *err)
{
    enum {
        CONNECTED = 200, /* as if there were an answer already */
        ROUNDED_MS = 2,  /* libcurl's clock is another one */
    };
    if (result == CURLE_OPERATION_TIMEDOUT && left_ms(link) <= ROUNDED_MS) /* not only of the attempt to connect */
        return cr_http_exchange_timed_out(&link->opener, timeout_ms, err);
    return cr_http_exchange_ended(&link->opener, result, CONNECTED, err);
}

static bool open_new(struct cr_http_link *link, const struct cr_http_request *request, const char *user_agent,
                     const struct cr_http_identity *identity, struct cr_error *err)
{
    CURLcode result = CURLE_OK;
    if (!prepare(link, request, user_agent, identity, err))
        return false;
    if (!reach(link, &result))
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    if (!judge(link, result, request->timeout_ms, err))
        return false;
    curl_easy_getinfo(link->opener.easy, CURLINFO_ACTIVESOCKET, &link->fd);
    return link->fd != CURL_SOCKET_BAD || cr_error_set(err, CR_ERR_TRANSIENT, "the connection was lost at once");
}

bool cr_http_link_open(struct cr_http_link *link, const struct cr_http_request *request, const char *user_agent,
                       const struct cr_http_identity *identity, struct cr_error *err)
{
    if (link->fd != CURL_SOCKET_BAD || open_new(link, request, user_agent, identity, err))
        return true;
    cr_http_link_close(link);
    return false;
}

bool cr_http_link_is_quiet(struct cr_http_link *link)
{
    char byte = 0;
    size_t len = 0;
    if (link->fd == CURL_SOCKET_BAD)
        return false;
    if (curl_easy_recv(link->opener.easy, &byte, sizeof byte, &len) == CURLE_AGAIN)
        return true;
    cr_http_link_close(link);
    return false;
}

/* --- sending and receiving --- */

static enum cr_http_link_end wait_for(const struct cr_http_link *link, short events)
{
    struct pollfd fds[] = {{.fd = link->fd, .events = events}, {.fd = link->wake_fd, .events = POLLIN}};
    int ready = poll(fds, 2, poll_ms(link));
    if (fds[1].revents)
        return CR_HTTP_LINK_CANCELLED;
    if (ready < 0 && errno != EINTR)
        return CR_HTTP_LINK_BROKEN;
    return ready > 0 || left_ms(link) > 0 ? CR_HTTP_LINK_OK : CR_HTTP_LINK_LATE;
}

enum cr_http_link_end cr_http_link_send(struct cr_http_link *link, const char *data, size_t len)
{
    while (len) {
        size_t sent = 0;
        CURLcode code = curl_easy_send(link->opener.easy, data, len, &sent);
        if (code != CURLE_OK && code != CURLE_AGAIN)
            return CR_HTTP_LINK_BROKEN;
        data += sent;
        len -= sent;
        enum cr_http_link_end end = code == CURLE_AGAIN ? wait_for(link, POLLOUT) : CR_HTTP_LINK_OK;
        if (end != CR_HTTP_LINK_OK)
            return end;
    }
    return CR_HTTP_LINK_OK;
}

/* Asked before it is waited for: TLS may have read it already. A server that never stops sending is never waited for,
 * so the time is looked at first. */
enum cr_http_link_end cr_http_link_receive(struct cr_http_link *link, char *data, size_t size, size_t *len)
{
    while (left_ms(link)) {
        *len = 0;
        CURLcode code = curl_easy_recv(link->opener.easy, data, size, len);
        if (code == CURLE_OK)
            return CR_HTTP_LINK_OK;
        if (code != CURLE_AGAIN)
            return CR_HTTP_LINK_BROKEN;
        enum cr_http_link_end end = wait_for(link, POLLIN);
        if (end != CR_HTTP_LINK_OK)
            return end;
    }
    return CR_HTTP_LINK_LATE;
}
