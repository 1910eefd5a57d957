/* A program of a pod that listens on a Unix socket, for tests of whatever talks to one. Ends the test when it cannot
 * work. */
#ifndef TEST_SUPPORT_TESTSOCKET_H
#define TEST_SUPPORT_TESTSOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

struct test_socket;

/* serve has one connection after the other, numbered from 1, in a thread; the connection is closed when it returns. */
struct test_socket *test_socket_new(void (*serve)(int fd, unsigned number, void *arg), void *arg);
/* Waits for the connection under way. */
void test_socket_free(struct test_socket *socket);
CR_DEFINE_CLEANUP(test_socket, struct test_socket, test_socket_free)
const char *test_socket_path(const struct test_socket *socket);
/* Connections so far. */
unsigned test_socket_accepted(struct test_socket *socket);

/* Appends what comes until it ends with this text; false when the other side ended before. "": until it ends. */
bool test_socket_read(int fd, const char *end, struct cr_buf *out);
void test_socket_puts(int fd, const char *text);

#endif
