/* A network of the test's own: for what must not reach 127.0.0.1 and yet must not leave the test. */
#ifndef TEST_SUPPORT_OWNNET_H
#define TEST_SUPPORT_OWNNET_H

#include <stdbool.h>

/* Moves the process into a network namespace that has a loopback device only, with `address` (IPv4) on it as well. To
 * be called by main before there is any thread. False: not allowed here; then nothing has changed. */
bool test_own_network(const char *address);

#endif
