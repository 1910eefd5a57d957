/* What the files of the HTTP client share. A client has a pool of connections per set of credentials (one curl multi
 * handle each); a stream is one exchange on such a pool. Requests that a thread waits for have multi handles of their
 * own (http_requests.h), and are the same kind of exchange.
 *
 * Handlers never run inside of a curl callback: bytes are put into the stream's inbox, and delivered once curl has
 * returned. curl refuses to add or remove handles from within its callbacks, handlers may do both. */
#ifndef CR_NET_HTTP_INTERNAL_H
#define CR_NET_HTTP_INTERNAL_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "net/http.h"
#include "net/http_head.h"

enum {
    CR_HTTP_MAX_BODY = 64 * 1024 * 1024, /* of a blocking request's answer, when it says nothing else */
    /* curl reads up to 100 of these before it returns, all of which lie in an inbox then: with its own 16 KiB that may
     * be 1.6 MB of what the receiver would have dropped. */
    CR_HTTP_READ_SIZE = 4 * 1024,
    CR_HTTP_CONNECT_TIMEOUT_MS = 10 * 1000,
    CR_HTTP_REFUSED = 400,                /* the least status of a refusal */
    CR_HTTP_LONGEST_RETRY_AFTER_S = 3600, /* longer is taken for that */
};

/* Credentials, shared by a client and the pools made with them. Immutable, counted. */
struct cr_http_identity {
    atomic_uint refs;
    char *ca_pem;
    char *cert_pem;
    char *key_pem; /* wiped */
    char *server_name;
    char *proxy; /* wiped */
    bool insecure;
};
struct cr_http_identity *cr_http_identity_new(const struct cr_http_tls *tls);
struct cr_http_identity *cr_http_identity_ref(struct cr_http_identity *identity);
void cr_http_identity_unref(struct cr_http_identity *identity);
/* Wiped. */
void cr_http_free_secret(char *text);
/* True: *newest and *other differed, and have changed places. */
bool cr_http_identity_renew(struct cr_http_identity **newest, struct cr_http_identity **other);

/* One request as curl wants it. */
struct cr_http_exchange {
    CURL *easy;
    struct cr_http_head head;
    char *body;
    size_t body_len;
    bool secret;
    int64_t begin_by_ms; /* 0: whenever */
    bool begun;          /* connected, and not too late: it is being sent */
    bool waits;          /* rather than connect, for a connection under way that it may share */
    int fd;              /* of the connection that was opened last for it; -1: none */
    char problem[CURL_ERROR_SIZE];
};
/* All that does not depend on the credentials. Any thread. */
bool cr_http_exchange_init(struct cr_http_exchange *x, const struct cr_http_request *request, const char *user_agent,
                           struct cr_error *err) CR_MUST_USE;
/* identity must live until the exchange is disposed. */
bool cr_http_exchange_use(struct cr_http_exchange *x, const struct cr_http_identity *identity,
                          struct cr_error *err) CR_MUST_USE;
void cr_http_exchange_dispose(struct cr_http_exchange *x);
/* The status and Retry-After of the answer; 0 as long as there is none. */
void cr_http_exchange_status(const struct cr_http_exchange *x, int *status, int *retry_after_ms);
/* Whether a line of an answer's head is this field ("Name:"), and says anything but the one value. */
bool cr_http_field_differs(const char *line, size_t len, const char *field, const char *value);
/* What became of it once curl is done; true: there is an answer. status: as cr_http_exchange_status gives it. */
bool cr_http_exchange_ended(const struct cr_http_exchange *x, CURLcode result, int status,
                            struct cr_error *err) CR_MUST_USE;
/* False, for the caller to return. */
bool cr_http_exchange_over_cap(const struct cr_http_exchange *x, size_t cap, struct cr_error *err);
bool cr_http_answer_packed(const char *origin, struct cr_error *err);
bool cr_http_exchange_timed_out(const struct cr_http_exchange *x, int timeout_ms, struct cr_error *err);
/* What the exchange was doing: "connecting", "waiting for the response", … */
const char *cr_http_exchange_phase(const struct cr_http_exchange *x);

/* Connections opened with one identity, for at most so many exchanges at a time that they fit on one HTTP/2 connection.
 * Loop thread. */
struct cr_http_pool;
struct cr_http_pool *cr_http_pool_new(struct cr_http_client *client, struct cr_loop *loop,
                                      struct cr_http_identity *identity);
const struct cr_http_identity *cr_http_pool_identity(const struct cr_http_pool *pool);
bool cr_http_pool_add(struct cr_http_pool *pool, CURL *easy, struct cr_error *err) CR_MUST_USE;
/* broken_off: before curl was done with it; then the server is notified. */
void cr_http_pool_remove(struct cr_http_pool *pool, CURL *easy, bool broken_off);
bool cr_http_pool_is_full(const struct cr_http_pool *pool);
struct cr_http_pool *cr_http_pool_next(const struct cr_http_pool *pool);
void cr_http_pool_note_byte(struct cr_http_pool *pool, int64_t now_ms);
/* Bytes of a body came; filled: they may have filled curl's buffer. */
void cr_http_pool_note_body(struct cr_http_pool *pool, bool filled);
int64_t cr_http_pool_last_byte_ms(const struct cr_http_pool *pool);

/* The pools of a client that take new exchanges. One that is taken out is freed when its last exchange has left. */
TAILQ_HEAD(cr_http_pool_list, cr_http_pool);
void cr_http_pool_list_add(struct cr_http_pool_list *list, struct cr_http_pool *pool);
void cr_http_pool_retire(struct cr_http_pool *pool);

TAILQ_HEAD(cr_http_stream_list, cr_http_stream);

struct cr_http_client {
    struct cr_loop *loop;
    char *user_agent;

    pthread_mutex_t lock;
    /* Guarded by lock. */
    unsigned refs; /* the owner, posts and streams */
    bool cancelled;
    bool start_posted;
    struct cr_http_identity *identity;
    struct cr_http_stream_list waiting;

    /* Loop thread only. */
    struct cr_http_pool_list pools; /* all made with the same identity */
    struct cr_http_stream_list running;
    struct cr_http_stream_list ready; /* have something to deliver */
};
void cr_http_client_ref(struct cr_http_client *client);
void cr_http_client_unref(struct cr_http_client *client);
bool cr_http_client_cancelled(struct cr_http_client *client);
/* The pool for a new stream, made with the newest credentials. */
struct cr_http_pool *cr_http_client_pool(struct cr_http_client *client);

enum cr_http_stream_state { CR_HTTP_WAITING, CR_HTTP_RUNNING, CR_HTTP_ENDED };

struct cr_http_stream {
    struct cr_http_client *client; /* counted */
    enum cr_http_stream_state state;
    TAILQ_ENTRY(cr_http_stream) link;       /* in waiting or running */
    TAILQ_ENTRY(cr_http_stream) ready_link; /* in ready */
    bool ready;
    bool delivering; /* a callback is on the stack: its end frees the stream */
    struct cr_http_stream_handler handler;
    struct cr_http_exchange exchange;
    struct cr_error broken; /* why it cannot be sent; kind None: it can */
    struct cr_http_pool *pool;
    bool added; /* to the pool */

    int status; /* 0: not yet */
    int retry_after_ms;
    bool status_notified;
    struct cr_buf inbox;
    size_t received;
    size_t max_body; /* 0: no cap */
    bool over_cap;
    bool packed;   /* the answer is compressed */
    bool complete; /* curl is done with it, with result */
    CURLcode result;

    struct cr_timer *timer;
    int64_t started_ms;
    int64_t last_byte_ms;
    int timeout_ms;
    int idle_ms;
};
/* Any thread. */
void cr_http_stream_queue(struct cr_http_stream *stream);
/* The rest: loop thread. */
void cr_http_stream_begin(struct cr_http_stream *stream);
/* Ends it with Cancelled and this text. */
void cr_http_stream_abort(struct cr_http_stream *stream, const char *why);
void cr_http_stream_complete(struct cr_http_stream *stream, CURLcode result);
/* Hands over what came; with it the client may go. */
void cr_http_stream_deliver_all(struct cr_http_client *client);

#endif
