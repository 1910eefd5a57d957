#include "net/probe_bio.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

static void remember(struct cr_probe_wire *wire, const char *data, size_t len)
{
    size_t room = sizeof wire->first - wire->first_len;
    size_t take = len < room ? len : room;
    memcpy(wire->first + wire->first_len, data, take);
    wire->first_len += take;
}

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int wire_read(BIO *bio, char *data, int size)
{
    struct cr_probe_wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (cr_clock_monotonic_ms() >= wire->end_ms) {
        BIO_set_retry_read(bio);
        return -1;
    }
    wire->over = wire->left == 0;
    if (wire->over)
        return -1;
    ssize_t n = recv(wire->fd, data, (size_t)size < wire->left ? (size_t)size : wire->left, 0);
    if (n > 0) {
        wire->left -= (size_t)n;
        remember(wire, data, (size_t)n);
        return (int)n;
    }
    if (n == 0)
        wire->closed = true;
    else if (is_later(errno))
        BIO_set_retry_read(bio);
    else
        wire->error = errno;
    return n == 0 ? 0 : -1;
}

static int wire_write(BIO *bio, const char *data, int len)
{
    struct cr_probe_wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = send(wire->fd, data, (size_t)len, MSG_NOSIGNAL);
    if (n >= 0)
        return (int)n;
    if (is_later(errno))
        BIO_set_retry_write(bio);
    else
        wire->error = errno;
    return -1;
}

static long wire_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    const struct cr_probe_wire *wire = BIO_get_data(bio);
    if (command == BIO_CTRL_EOF)
        return wire->closed;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "certroll probe");
    BIO_meth_set_read(method, wire_read);
    BIO_meth_set_write(method, wire_write);
    BIO_meth_set_ctrl(method, wire_ctrl);
}

BIO *cr_probe_bio_new(struct cr_probe_wire *wire)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    BIO *bio = BIO_new(method);
    BIO_set_data(bio, wire);
    BIO_set_init(bio, 1);
    return bio;
}

void cr_probe_wire_peek(struct cr_probe_wire *wire)
{
    ssize_t n = recv(wire->fd, wire->first + wire->first_len, sizeof wire->first - wire->first_len, 0);
    if (n > 0)
        wire->first_len += (size_t)n;
}

bool cr_probe_wire_is_tls(const struct cr_probe_wire *wire)
{
    enum { FIRST_TYPE = 20, LAST_TYPE = 24, MAJOR = 3 };
    if (wire->first_len == 0 || wire->first[0] < FIRST_TYPE || wire->first[0] > LAST_TYPE)
        return false;
    return wire->first_len == 1 || wire->first[1] == MAJOR;
}
