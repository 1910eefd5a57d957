/* libcurl's multi interface on our event loop: its sockets and timers, and what it has finished. */
#include "net/http_internal.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"

enum {
    /* Idle connections that are kept: curl's default is four times what runs just now, so over HTTP/1.1 streams that
     * end would close each other's. */
    KEPT_CONNECTIONS = 32,
    /* The API server takes 100 streams on an HTTP/2 connection. Once they are used up, libcurl 7.88 opens one
     * connection for each further request: so the rest goes to a pool of its own before. */
    MOST_EXCHANGES = 90,
};

/* A socket that curl wants to be notified about. */
struct watched {
    LIST_ENTRY(watched) link;
    struct cr_http_pool *pool;
    struct event *event;
    int what; /* CURL_POLL_… */
};

struct cr_http_pool {
    TAILQ_ENTRY(cr_http_pool) link; /* in the client's, unless retired */
    struct cr_http_client *client;  /* borrowed: pools end before their client */
    struct cr_loop *loop;
    struct cr_http_identity *identity;
    CURLM *multi;
    struct cr_timer *timer;
    struct cr_timer *flush;
    struct cr_timer *look_again;
    struct cr_timer *wake;
    LIST_HEAD(, watched) sockets;
    size_t exchanges;
    bool retired;
    int64_t last_byte_ms;
    bool starting; /* some of its streams have not begun */
    bool looking;  /* for what curl holds back */
    bool may_hold; /* bytes came that curl may hold others behind */
};

static void collect(struct cr_http_pool *pool)
{
    int left = 0;
    for (CURLMsg *msg; (msg = curl_multi_info_read(pool->multi, &left));) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode result = msg->data.result;
        struct cr_http_stream *stream = NULL;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &stream);
        cr_http_stream_complete(stream, result);
    }
}

static void let_work(struct cr_http_pool *pool, curl_socket_t fd, int events)
{
    int running = 0;
    curl_multi_socket_action(pool->multi, fd, events, &running);
}

/* What curl has brought. The pool, and even the client, may be gone afterwards. */
static void hand_over(struct cr_http_pool *pool)
{
    struct cr_http_client *client = pool->client;
    cr_http_client_ref(client);
    collect(pool);
    if (pool->may_hold)
        cr_timer_arm(pool->look_again, 0);
    pool->may_hold = false;
    cr_http_stream_deliver_all(client);
    cr_http_client_unref(client);
}

static void act(struct cr_http_pool *pool, curl_socket_t fd, int events)
{
    let_work(pool, fd, events);
    if (pool->starting)
        cr_timer_arm(pool->wake, 0);
    hand_over(pool);
}

static void on_timer(void *arg)
{
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct watched *watched = arg;
    int events = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    act(watched->pool, fd, events);
}

static void unwatch(struct watched *watched)
{
    LIST_REMOVE(watched, link);
    if (watched->event)
        event_free(watched->event);
    free(watched);
}

static struct watched *watch_new(struct cr_http_pool *pool, curl_socket_t fd)
{
    struct watched *watched = cr_new(struct watched);
    watched->pool = pool;
    LIST_INSERT_HEAD(&pool->sockets, watched, link);
    curl_multi_assign(pool->multi, fd, watched);
    return watched;
}

static void watch_for(struct watched *watched, curl_socket_t fd, int what)
{
    if (watched->what == what && watched->event)
        return;
    if (watched->event)
        event_free(watched->event);
    short events = (short)(EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    watched->what = what;
    watched->event = event_new(cr_loop_base(watched->pool->loop), fd, events, on_socket, watched);
    if (watched->event)
        event_add(watched->event, NULL);
}

#ifdef __SANITIZE_THREAD__
/* libcurl 7.88 closes the socket of a connection that is not made yet before it says that it is not to be watched
 * (cf_socket_close, a socket that is "not active"). Another thread may have been given the number by then, and
 * epoll_ctl takes it out of this loop's set, where it is not any more: EBADF or ENOENT, which libevent passes over.
 * libcurl's own functions have no names where its symbols are not installed. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:on_watch\n";
}
#endif

/* CURLMOPT_SOCKETFUNCTION */
static int on_watch(CURL *easy, curl_socket_t fd, int what, void *pool_arg, void *socket_arg)
{
    (void)easy;
    struct cr_http_pool *pool = pool_arg;
    struct watched *watched = socket_arg;
    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            curl_multi_assign(pool->multi, fd, NULL);
            unwatch(watched);
        }
        return 0;
    }
    watch_for(watched ? watched : watch_new(pool, fd), fd, what);
    return 0;
}

/* CURLMOPT_TIMERFUNCTION. Also with 0 by the loop: curl may not be entered again from here. */
static int on_timeout_change(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct cr_http_pool *pool = arg;
    if (timeout_ms < 0)
        cr_timer_disarm(pool->timer);
    else
        cr_timer_arm(pool->timer, timeout_ms);
    return 0;
}

static void flush_connection_of(const struct cr_http_stream *stream)
{
    CURL *easy = stream->exchange.easy;
    long version = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    if (version != CURL_HTTP_VERSION_2_0)
        return;
    curl_easy_pause(easy, CURLPAUSE_RECV);
    curl_easy_pause(easy, CURLPAUSE_CONT);
}

/* libcurl 7.88 keeps the RST_STREAM of a transfer that is taken away (RFC 9113, section 5.4.2), and what it had read
 * for others by then, until the next bytes go out or come in: on a quiet connection of watches for minutes, in which
 * the server goes on with the stream and counts it. It sends what it has kept back when another transfer goes on after
 * a pause, and looks for what is to be read. */
static void on_flush(void *arg)
{
    struct cr_http_pool *pool = arg;
    struct cr_http_stream *stream = NULL;
    TAILQ_FOREACH(stream, &pool->client->running, link)
    if (stream->pool == pool && stream->status && !stream->complete)
        flush_connection_of(stream);
}

static size_t list_sockets(const struct cr_http_pool *pool, curl_socket_t **fds)
{
    const struct watched *watched = NULL;
    size_t len = 0;
    LIST_FOREACH(watched, &pool->sockets, link)
    len++;
    *fds = cr_calloc(len + 1, sizeof **fds);
    len = 0;
    LIST_FOREACH(watched, &pool->sockets, link)
    if (watched->event)
        (*fds)[len++] = event_get_fd(watched->event);
    return len;
}

/* libcurl 7.88 stops reading what a connection brought for all its streams where the buffer of one of them is full. It
 * then hands that one's rest out, and goes on only when the socket has something new: events of other watches that came
 * in the same moment would lie there until the next bookmark, for a minute. When it is notified that the socket can be
 * read, it goes on; that is repeated until nothing comes of it. */
static void on_look_again(void *arg)
{
    struct cr_http_pool *pool = arg;
    cr_autofree curl_socket_t *fds = NULL;
    size_t len = list_sockets(pool, &fds);
    pool->looking = true;
    for (size_t i = 0; i < len; i++)
        let_work(pool, fds[i], CURL_CSELECT_IN);
    pool->looking = false;
    hand_over(pool);
}

/* It has not begun, and no connection is made for it. */
static bool is_waiting(const struct cr_http_pool *pool, const struct cr_http_stream *stream)
{
    const struct cr_http_exchange *x = &stream->exchange;
    return stream->pool == pool && !stream->complete && x->waits && !x->begun && x->fd < 0;
}

/* On a connection of its own where there is none to share. */
static void start_again(struct cr_http_pool *pool, struct cr_http_exchange *x)
{
    curl_multi_remove_handle(pool->multi, x->easy);
    x->waits = false;
    curl_easy_setopt(x->easy, CURLOPT_PIPEWAIT, 0L);
    curl_multi_add_handle(pool->multi, x->easy);
}

static void start_waiting(struct cr_http_pool *pool)
{
    struct cr_http_stream *stream = NULL;
    TAILQ_FOREACH(stream, &pool->client->running, link)
    if (is_waiting(pool, stream))
        start_again(pool, &stream->exchange);
}

/* libcurl 8.14 forgets a stream that waits for the connection of another when that one turns out to be HTTP/1.1
 * (multi.c, MSTATE_CONNECTING): it would begin with the next thing that ends. Once libcurl has done all that it does by
 * itself, those that still wait while another has begun go on. */
static void on_wake(void *arg)
{
    struct cr_http_pool *pool = arg;
    const struct cr_http_stream *stream = NULL;
    bool begun = false;
    pool->starting = false;
    TAILQ_FOREACH(stream, &pool->client->running, link)
    if (stream->pool == pool) {
        begun = begun || stream->exchange.begun;
        pool->starting = pool->starting || !stream->exchange.begun;
    }
    if (begun && pool->starting)
        start_waiting(pool);
}

struct cr_http_pool *cr_http_pool_new(struct cr_http_client *client, struct cr_loop *loop,
                                      struct cr_http_identity *identity)
{
    struct cr_http_pool *pool = cr_new(struct cr_http_pool);
    pool->client = client;
    pool->loop = loop;
    pool->identity = cr_http_identity_ref(identity);
    pool->timer = cr_timer_new(loop, on_timer, pool);
    pool->flush = cr_timer_new(loop, on_flush, pool);
    pool->look_again = cr_timer_new(loop, on_look_again, pool);
    pool->wake = cr_timer_new(loop, on_wake, pool);
    LIST_INIT(&pool->sockets);
    pool->multi = curl_multi_init();
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_watch);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timeout_change);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
    return pool;
}

static void pool_free(struct cr_http_pool *pool)
{
    curl_multi_cleanup(pool->multi);
    for (struct watched *watched = LIST_FIRST(&pool->sockets), *next = NULL; watched; watched = next) {
        next = LIST_NEXT(watched, link);
        unwatch(watched);
    }
    cr_timer_free(pool->timer);
    cr_timer_free(pool->flush);
    cr_timer_free(pool->look_again);
    cr_timer_free(pool->wake);
    cr_http_identity_unref(pool->identity);
    free(pool);
}

const struct cr_http_identity *cr_http_pool_identity(const struct cr_http_pool *pool)
{
    return pool->identity;
}

bool cr_http_pool_add(struct cr_http_pool *pool, CURL *easy, struct cr_error *err)
{
    CURLMcode code = curl_multi_add_handle(pool->multi, easy);
    if (code != CURLM_OK)
        return cr_error_set(err, CR_ERR_INTERNAL, "cannot start the request: %s", curl_multi_strerror(code));
    pool->exchanges++;
    pool->starting = true;
    return true;
}

static void free_when_unused(struct cr_http_pool *pool)
{
    if (pool->retired && pool->exchanges == 0)
        pool_free(pool);
}

/* The first pool stays, with its connection, for what comes next. Those for a rush go with it, and so does one with a
 * stream broken off, when nothing is left to notify the server of its end. */
static bool is_spare(const struct cr_http_pool *pool, bool broken_off)
{
    return !pool->retired && pool->exchanges == 0 && (broken_off || pool != TAILQ_FIRST(&pool->client->pools));
}

void cr_http_pool_remove(struct cr_http_pool *pool, CURL *easy, bool broken_off)
{
    curl_multi_remove_handle(pool->multi, easy);
    curl_easy_cleanup(easy); /* while the credentials it points to are certainly there */
    pool->exchanges--;
    if (broken_off)
        cr_timer_arm(pool->flush, 0);
    if (is_spare(pool, broken_off))
        cr_http_pool_retire(pool);
    else
        free_when_unused(pool);
}

bool cr_http_pool_is_full(const struct cr_http_pool *pool)
{
    return pool->exchanges >= MOST_EXCHANGES;
}

struct cr_http_pool *cr_http_pool_next(const struct cr_http_pool *pool)
{
    return TAILQ_NEXT(pool, link);
}

void cr_http_pool_list_add(struct cr_http_pool_list *list, struct cr_http_pool *pool)
{
    TAILQ_INSERT_TAIL(list, pool, link);
}

void cr_http_pool_retire(struct cr_http_pool *pool)
{
    if (pool->retired)
        return;
    pool->retired = true;
    TAILQ_REMOVE(&pool->client->pools, pool, link);
    free_when_unused(pool);
}

void cr_http_pool_note_byte(struct cr_http_pool *pool, int64_t now_ms)
{
    pool->last_byte_ms = now_ms;
}

void cr_http_pool_note_body(struct cr_http_pool *pool, bool filled)
{
    pool->may_hold = pool->may_hold || filled || pool->looking;
}

int64_t cr_http_pool_last_byte_ms(const struct cr_http_pool *pool)
{
    return pool->last_byte_ms;
}
