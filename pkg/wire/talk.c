#include "wire/talk.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "wire/address.h"

enum { PIECE = 4096, PARTING_MS = 500 };

/* --- waiting --- */

/* revents of the socket; 0 with an error. */
static short wait_for(struct cr_talk *talk, short events, const char *doing, struct cr_error *err)
{
    for (;;) {
        int64_t left = talk->deadline_ms - cr_clock_monotonic_ms();
        int wait = left < INT_MAX ? (int)left : INT_MAX;
        struct pollfd fds[] = {{.fd = talk->fd, .events = events}, {.fd = talk->cancel_fd, .events = POLLIN}};
        int n = left > 0 ? poll(fds, cr_array_len(fds), wait) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && !fds[1].revents)
            return fds[0].revents;
        if (n > 0)
            cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
        else
            cr_error_set(err, CR_ERR_TRANSIENT, "%s: the time is over while %s", talk->address, doing);
        return 0;
    }
}

/* --- the talk --- */

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

static bool connect_to(struct cr_talk *talk, const struct cr_address *address, struct cr_error *err)
{
    talk->fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (talk->fd < 0)
        return not_connected(talk->address, errno, err);
    if (connect(talk->fd, (const struct sockaddr *)&address->sockaddr, address->len) == 0)
        return true;
    if (errno != EINPROGRESS) /* EAGAIN of a Unix socket: its queue is full */
        return not_connected(talk->address, errno, err);
    if (!wait_for(talk, POLLOUT, "connecting", err))
        return false;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return !error || not_connected(talk->address, error, err);
}

/* In a cluster without IPv4 a program listens on [::1] alone. What is said when nobody does is of the first try. */
static bool connect_to_other_localhost(struct cr_talk *talk)
{
    static const char name[] = "localhost:";
    struct cr_address where;
    if (!cr_starts_with(talk->address, name))
        return false;
    if (talk->fd >= 0)
        close(talk->fd);
    talk->fd = -1;
    cr_autofree char *other = cr_asprintf("[::1]:%s", talk->address + strlen(name));
    return cr_address_parse(other, &where, NULL) && connect_to(talk, &where, NULL);
}

bool cr_talk_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_talk *out, struct cr_error *err)
{
    struct cr_address where;
    *out = (struct cr_talk){.heard = {.max = CR_TALK_MAX, .secret = true},
                            .fd = -1,
                            .cancel_fd = cancel_fd,
                            .deadline_ms = deadline_ms,
                            .address = address};
    if (!cr_address_parse(address, &where, err))
        return false;
    struct cr_error first = {0};
    if (connect_to(out, &where, &first) || connect_to_other_localhost(out))
        return true;
    cr_talk_close(out);
    return cr_error_set(err, first.kind, "%s", first.text);
}

bool cr_talk_say(struct cr_talk *talk, const void *data, size_t len, struct cr_error *err)
{
    const char *rest = data;
    while (len) {
        if (!wait_for(talk, POLLOUT, "sending", err))
            return false;
        ssize_t n = send(talk->fd, rest, len, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return true;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: cannot send: %s", talk->address, strerror(errno));
        rest += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool cr_talk_hear(struct cr_talk *talk, struct cr_error *err)
{
    char piece[PIECE];
    if (!wait_for(talk, POLLIN, "waiting for an answer", err))
        return false;
    ssize_t n = recv(talk->fd, piece, sizeof piece, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true; /* the caller asks for more again */
    talk->ended = n <= 0;
    talk->broken = n < 0;
    bool fits = n <= 0 || cr_buf_append(&talk->heard, piece, (size_t)n);
    explicit_bzero(piece, sizeof piece);
    return fits ||
           cr_error_set(err, CR_ERR_INVALID, "%s: the answer is longer than %zu bytes", talk->address, talk->heard.max);
}

void cr_talk_part(struct cr_talk *talk)
{
    int64_t latest_ms = cr_clock_monotonic_ms() + PARTING_MS;
    if (talk->deadline_ms > latest_ms)
        talk->deadline_ms = latest_ms;
    shutdown(talk->fd, SHUT_WR);
    while (!talk->ended && cr_talk_hear(talk, NULL))
        cr_buf_reset(&talk->heard);
}

void cr_talk_close(struct cr_talk *talk)
{
    if (talk->fd >= 0)
        close(talk->fd);
    talk->fd = -1;
    cr_buf_dispose(&talk->heard);
}
