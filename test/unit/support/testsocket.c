#include "support/testsocket.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #condition, strerror(errno));                \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct test_socket {
    char folder[32];
    char *path;
    int listener;
    pthread_t thread;
    atomic_uint accepted;
    void (*serve)(int fd, unsigned number, void *arg);
    void *arg;
};

static void *run(void *arg)
{
    struct test_socket *s = arg;
    for (int fd; (fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        s->serve(fd, atomic_fetch_add(&s->accepted, 1) + 1, s->arg);
        close(fd);
    }
    return NULL;
}

struct test_socket *test_socket_new(void (*serve)(int fd, unsigned number, void *arg), void *arg)
{
    struct test_socket *s = cr_new(struct test_socket);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    s->serve = serve;
    s->arg = arg;
    strcpy(s->folder, "/tmp/certroll-socket-XXXXXX");
    must(mkdtemp(s->folder));
    s->path = cr_asprintf("%s/s", s->folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(s->listener >= 0);
    must(bind(s->listener, (const struct sockaddr *)&address, sizeof address) == 0);
    must(listen(s->listener, 8) == 0);
    must(pthread_create(&s->thread, NULL, run, s) == 0);
    return s;
}

void test_socket_free(struct test_socket *s)
{
    if (!s)
        return;
    shutdown(s->listener, SHUT_RDWR); /* wakes accept */
    pthread_join(s->thread, NULL);
    close(s->listener);
    unlink(s->path);
    rmdir(s->folder);
    free(s->path);
    free(s);
}

const char *test_socket_path(const struct test_socket *s)
{
    return s->path;
}

unsigned test_socket_accepted(struct test_socket *s)
{
    return atomic_load(&s->accepted);
}

bool test_socket_read(int fd, const char *end, struct cr_buf *out)
{
    char c = 0;
    size_t len = strlen(end);
    while (read(fd, &c, 1) == 1) {
        must(cr_buf_append(out, &c, 1));
        if (len && out->len >= len && memcmp(out->data + out->len - len, end, len) == 0)
            return true;
    }
    return !len;
}

void test_socket_puts(int fd, const char *text)
{
    size_t len = strlen(text);
    must(send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len || errno == EPIPE || errno == ECONNRESET);
}
