/* How connections come in, and which one goes for them. */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/http_server_internal.h"
#include "wire/listen.h"

enum {
    AT_ONCE = 64,    /* new ones in a pass of the loop, on each address */
    TLS_AT_ONCE = 4, /* each of them costs a signature sooner or later */
    PAUSE_MS = 100,
    YOUNG_MS = 25, /* so long a newcomer may ask before it can have to give way */
    /* The kernel's buffers for each connection: requests are small, and a client that does not read its answer must not
     * fill memory. */
    RECEIVE_BUFFER = 8 * 1024,
    SEND_BUFFER = 64 * 1024,
    VANISHED_S = 60,
    LOG_EACH_MS = 60 * 1000,
};

/* --- who gives way --- */

struct cr_http_connection *cr_http_server_victim(struct cr_http_server *server, enum cr_http_stage first,
                                                 enum cr_http_stage last, const struct cr_http_connection *except)
{
    struct cr_http_connection *found = NULL;
    struct cr_http_connection *at;
    LIST_FOREACH(at, &server->connections, all)
    if (at != except && at->place.stage >= first && at->place.stage <= last &&
        (!found || cr_http_place_gives_way(&at->place, &found->place)))
        found = at;
    return found;
}

/* At most once a minute. */
static void log_gave_way(struct cr_http_server *server)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    if (server->logged && now_ms - server->logged_ms < LOG_EACH_MS)
        return;
    char port[16];
    char number[32];
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(number, sizeof number, "%zu", server->counts.gave_way - server->logged);
    cr_log(CR_LOG_WARN, "too many connections: those that ask nothing or do not read give way to others",
           {"port", port}, {"closed", number});
    server->logged = server->counts.gave_way;
    server->logged_ms = now_ms;
}

/* It is not logged that a connection without a request goes for another. */
void cr_http_server_give_way(struct cr_http_connection *victim)
{
    struct cr_http_server *server = victim->server;
    bool idle = victim->place.stage == CR_HTTP_IDLE;
    server->counts.gave_way++;
    cr_http_connection_free(victim);
    if (!idle)
        log_gave_way(server);
}

/* --- new connections --- */

static void set_listening(struct cr_http_server *server, bool on)
{
    for (size_t i = 0; i < server->addresses; i++)
        (void)(on ? event_add(server->listeners[i].event, NULL) : event_del(server->listeners[i].event));
}

static void listen_again(void *arg)
{
    set_listening(arg, true);
}

void cr_http_server_keep_spare(struct cr_http_server *server)
{
    if (server->spare < 0)
        server->spare = eventfd(0, EFD_CLOEXEC);
}

static void pause_listening(struct cr_http_server *server, int64_t ms)
{
    set_listening(server, false);
    cr_timer_arm(server->pause, ms);
}

/* No descriptor is to be had: a connection gives way, or the spare descriptor does, or the newcomers wait. The
 * descriptor of a TLS connection comes back one pass later. */
static void make_descriptor(struct cr_http_server *server)
{
    struct cr_http_connection *victim = cr_http_server_victim(server, CR_HTTP_IDLE, CR_HTTP_READING, NULL);
    if (victim) {
        cr_http_server_give_way(victim);
    } else if (server->spare >= 0) {
        close(server->spare);
        server->spare = -1;
    } else {
        pause_listening(server, PAUSE_MS);
    }
}

/* False: the connection that would have to give way has just come. The others wait in the kernel: its queue is far
 * longer than what comes in that time. */
static bool make_room(struct cr_http_server *server)
{
    if (!cr_http_room_is_full(&server->room))
        return true;
    struct cr_http_connection *victim = cr_http_server_victim(server, CR_HTTP_IDLE, CR_HTTP_ASKED, NULL);
    int64_t young_ms = victim->came_ms + YOUNG_MS - cr_clock_monotonic_ms();
    if (victim->place.stage == CR_HTTP_READING && young_ms > 0) {
        pause_listening(server, young_ms);
        return false;
    }
    cr_http_server_give_way(victim);
    return true;
}

static void let_in(struct cr_http_server *server, int fd, const struct sockaddr *from)
{
    server->counts.accepted++;
    cr_http_connection_new(server, fd, from);
}

/* Looked at first: no connection gives way when none waits, and Linux says that descriptors are used up before it
 * looks. */
static bool has_newcomers(int listening)
{
    struct pollfd queue = {.fd = listening, .events = POLLIN};
    return poll(&queue, 1, 0) > 0;
}

static bool lacks_descriptors(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Errors of one connection are passed over (accept(2)): the next may be well. */
static void on_acceptable(evutil_socket_t listening, short what, void *arg)
{
    (void)what;
    struct cr_http_server *server = arg;
    int most = server->make ? TLS_AT_ONCE : AT_ONCE;
    for (int i = 0; i < most && has_newcomers(listening) && make_room(server); i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        int fd = accept4(listening, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            let_in(server, fd, (const struct sockaddr *)&from);
        } else if (lacks_descriptors(errno)) {
            make_descriptor(server);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* --- addresses --- */

/* Keep-alive of TCP finds who has vanished without a word, while he waits for us. */
static void set_options(int fd)
{
    int receive = RECEIVE_BUFFER;
    int send = SEND_BUFFER;
    int yes = 1;
    int silence_s = VANISHED_S;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silence_s, sizeof silence_s);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof send);
}

bool cr_http_server_listen(struct cr_http_server *server, const char *address, struct cr_error *err)
{
    int port = 0;
    if (server->addresses == CR_HTTP_MAX_ADDRESSES)
        return cr_error_set(err, CR_ERR_INVALID, "cannot listen on '%s': already on %d addresses", address,
                            CR_HTTP_MAX_ADDRESSES);
    int fd = cr_listen(address, &port, err);
    if (fd < 0)
        return false;
    set_options(fd); /* those of connections are the same */
    struct event *event = event_new(cr_loop_base(server->loop), fd, EV_READ | EV_PERSIST, on_acceptable, server);
    if (!event || event_add(event, NULL) != 0) {
        if (event)
            event_free(event);
        close(fd);
        return cr_error_set(err, CR_ERR_INTERNAL, "cannot accept connections on '%s'", address);
    }
    server->listeners[server->addresses++] = (struct cr_http_listener){.fd = fd, .event = event};
    if (!server->pause)
        server->pause = cr_timer_new(server->loop, listen_again, server);
    cr_http_server_keep_spare(server);
    server->port = port;
    return true;
}

void cr_http_server_free_listeners(struct cr_http_server *server)
{
    for (size_t i = 0; i < server->addresses; i++) {
        event_free(server->listeners[i].event);
        close(server->listeners[i].fd);
    }
    server->addresses = 0;
    cr_timer_free(server->pause);
    server->pause = NULL;
}
