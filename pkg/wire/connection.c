#include "wire/connection.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "wire/address.h"

enum { PIECE = 4096, FINISH_MS = 500 };

/* --- waiting --- */

/* revents of the socket; 0 with an error. */
static short wait_for(struct cr_connection *connection, short events, const char *doing, struct cr_error *err)
{
    for (;;) {
        int64_t left = connection->deadline_ms - cr_clock_monotonic_ms();
        int wait = left < INT_MAX ? (int)left : INT_MAX;
        struct pollfd fds[] = {{.fd = connection->fd, .events = events},
                               {.fd = connection->cancel_fd, .events = POLLIN}};
        int n = left > 0 ? poll(fds, cr_array_len(fds), wait) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && !fds[1].revents)
            return fds[0].revents;
        if (n > 0)
            cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
        else
            cr_error_set(err, CR_ERR_TRANSIENT, "%s: the time is over while %s", connection->address, doing);
        return 0;
    }
}

/* --- the connection --- */

static bool not_connected(const char *address, int error, struct cr_error *err)
{
    enum cr_error_kind kind = CR_ERR_TRANSIENT;
    const char *advice = "";
    if (error == ENOENT || error == ENOTDIR) {
        kind = CR_ERR_NOT_FOUND;
    } else if (error == EACCES || error == EPERM) {
        kind = CR_ERR_FORBIDDEN;
        advice = ": this process needs a user or group that may write to it";
    }
    return cr_error_set(err, kind, "%s: cannot connect: %s%s", address, strerror(error), advice);
}

static bool connect_to(struct cr_connection *connection, const struct cr_address *address, struct cr_error *err)
{
    connection->fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        return not_connected(connection->address, errno, err);
    if (connect(connection->fd, (const struct sockaddr *)&address->sockaddr, address->len) == 0)
        return true;
    if (errno != EINPROGRESS) /* EAGAIN of a Unix socket: its queue is full */
        return not_connected(connection->address, errno, err);
    if (!wait_for(connection, POLLOUT, "connecting", err))
        return false;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return !error || not_connected(connection->address, error, err);
}

/* In a cluster without IPv4 a program listens on [::1] alone. When no program listens, the error is that of the first
 * try. */
static bool connect_to_other_localhost(struct cr_connection *connection)
{
    static const char name[] = "localhost:";
    struct cr_address where;
    if (!cr_starts_with(connection->address, name))
        return false;
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    cr_autofree char *other = cr_asprintf("[::1]:%s", connection->address + strlen(name));
    return cr_address_parse(other, &where, NULL) && connect_to(connection, &where, NULL);
}

bool cr_connection_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_connection *out,
                        struct cr_error *err)
{
    struct cr_address where;
    *out = (struct cr_connection){.received = {.max = CR_CONNECTION_MAX, .secret = true},
                                  .fd = -1,
                                  .cancel_fd = cancel_fd,
                                  .deadline_ms = deadline_ms,
                                  .address = address};
    if (!cr_address_parse(address, &where, err))
        return false;
    struct cr_error first = {0};
    if (connect_to(out, &where, &first) || connect_to_other_localhost(out))
        return true;
    cr_connection_close(out);
    return cr_error_set(err, first.kind, "%s", first.text);
}

bool cr_connection_send(struct cr_connection *connection, const void *data, size_t len, struct cr_error *err)
{
    const char *rest = data;
    while (len) {
        if (!wait_for(connection, POLLOUT, "sending", err))
            return false;
        ssize_t n = send(connection->fd, rest, len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return true;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: cannot send: %s", connection->address, strerror(errno));
        rest += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cr_connection_receive(struct cr_connection *connection, struct cr_error *err)
{
    char piece[PIECE];
    if (!wait_for(connection, POLLIN, "waiting for an answer", err))
        return false;
    ssize_t n = recv(connection->fd, piece, sizeof piece, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true; /* the caller asks for more again */
    connection->ended = n <= 0;
    connection->broken = n < 0;
    bool fits = n <= 0 || cr_buf_append(&connection->received, piece, (size_t)n);
    explicit_bzero(piece, sizeof piece);
    return fits || cr_error_set(err, CR_ERR_INVALID, "%s: the answer is longer than %zu bytes", connection->address,
                                connection->received.max);
}

void cr_connection_finish(struct cr_connection *connection)
{
    int64_t latest_ms = cr_clock_monotonic_ms() + FINISH_MS;
    if (connection->deadline_ms > latest_ms)
        connection->deadline_ms = latest_ms;
    shutdown(connection->fd, SHUT_WR);
    while (!connection->ended && cr_connection_receive(connection, NULL))
        cr_buf_reset(&connection->received);
}

void cr_connection_close(struct cr_connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    cr_buf_dispose(&connection->received);
}
