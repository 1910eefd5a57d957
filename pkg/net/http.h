/* Streams over HTTP: libcurl's multi interface on the event loop, HTTP/2 where the server has it. A multi handle
 * belongs to the loop: other threads queue and wake it. Requests that a thread waits for have multi handles of
 * their own (http_requests.h). */
#ifndef CR_NET_HTTP_H
#define CR_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "sys/loop.h"

/* Who the other side is and who we are. All strings are copied; PEM data, not paths. Nothing else is trusted: with
 * ca_pem the system's CAs do not count, and no proxy is taken from the environment (API servers are reached directly,
 * unless proxy says otherwise). */
struct cr_http_tls {
    const char *ca_pem;      /* verifies the server; NULL: the system's CAs */
    const char *cert_pem;    /* client certificate chain; NULL: none */
    const char *key_pem;     /* its key */
    const char *server_name; /* overrides the name that is verified (kubeconfig's tls-server-name); NULL: the URL's */
    bool insecure;           /* insecure-skip-tls-verify */
    const char *proxy;       /* "http://", "https://" (verified with the system's CAs) or "socks5://", with user and
                              * password if need be; https goes through it as a tunnel, as do all requests that a
                              * thread waits for, and socks5 gets the name, not an
                              * address, as in client-go; NULL: none */
};

struct cr_http_client;

/* A client is one connection pool: streams of one client share connections. Any thread. */
struct cr_http_client *cr_http_client_new(struct cr_loop *loop, const struct cr_http_tls *tls, const char *user_agent);
/* The first step of a shutdown. Any thread: streams end with Cancelled in the loop's thread (before this returns when
 * called there); whatever is started later ends likewise. The client still has to be freed. */
void cr_http_client_cancel(struct cr_http_client *client);
/* Cancels it, and ends the streams before it returns. Loop thread, or after the loop has ended but before cr_loop_free.
 * Other threads that use the client must have ended: cr_http_client_cancel, join them, then free. */
void cr_http_client_free(struct cr_http_client *client);
CR_DEFINE_CLEANUP(cr_http_client, struct cr_http_client, cr_http_client_free)
/* New credentials or CA: later requests open new connections, those under way go on. The same ones again change
 * nothing. Any thread. */
void cr_http_client_set_tls(struct cr_http_client *client, const struct cr_http_tls *tls);

struct cr_http_request {
    const char *method; /* "GET", "PATCH", … */
    const char *url;    /* absolute, already percent-encoded */
    const char *bearer; /* token for Authorization; NULL: none */
    const char *content_type;
    const char *accept;
    const char *const *headers; /* more of them, "Name: value"; they win over those that are made of the above */
    size_t headers_len;
    const char *body; /* NULL: none */
    size_t body_len;
    int timeout_ms;      /* of the whole request, with the wait for a connection; 0: none (streams) */
    int64_t begin_by_ms; /* of cr_clock_boot_ms: not sent at all if it would begin later: Transient; 0: always sent */
    size_t max_body;     /* of the response; 0: 64 MiB, for streams no cap. More is Invalid */
    bool secret;         /* request and response bodies are wiped */
};

struct cr_http_response {
    int status;
    int retry_after_ms; /* from Retry-After (seconds or HTTP date), 0 when absent, at most an hour */
    struct cr_buf body;
};
void cr_http_response_dispose(struct cr_http_response *response);
CR_DEFINE_DISPOSE(cr_http_response, struct cr_http_response, cr_http_response_dispose)

/* A response that is consumed as it arrives. The callbacks run in the loop's thread and may call anything, also
 * cr_http_stream_cancel of their own stream. */
struct cr_http_stream_handler {
    /* The status line and headers came; false refuses the rest: on_end follows, with Cancelled. */
    bool (*on_status)(void *arg, int status, int retry_after_ms);
    /* Bytes of the body as they come, in any cut. False ends the stream: on_end follows, with Cancelled. */
    bool (*on_data)(void *arg, const char *data, size_t len);
    /* Exactly once, last; err is NULL when the server ended the body properly. The stream is freed after it. Another
     * may be started from here, but not after Cancelled: on a client that is being freed that would never end. */
    void (*on_end)(void *arg, const struct cr_error *err);
    void *arg;
};
struct cr_http_stream;
/* Any thread; the request is copied. idle_ms: ended with Transient when no byte came for so long, counted from now (0:
 * never). A request that cannot be sent ends in on_end, too: the result is never NULL. Other threads than the loop's
 * may not use the result, since the stream may have ended. */
struct cr_http_stream *cr_http_stream_start(struct cr_http_client *client, const struct cr_http_request *request,
                                            const struct cr_http_stream_handler *handler, int idle_ms);
/* Loop thread, or after the loop has ended: ends it; on_end is called with Cancelled before this returns. Not from
 * on_end. */
void cr_http_stream_cancel(struct cr_http_stream *stream);

/* Percent-encodes one path segment or query value (RFC 3986, unreserved stay, but "." and ".." are encoded since they
 * would climb). Owned. */
char *cr_http_escape(const char *value);

#endif
