#include "wire/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "wire/listen.h"

enum { PATIENCE_MS = 20 * 1000 };

static bool opens(const char *host, int port, struct cr_error *err)
{
    cr_autofree char *address = cr_asprintf("%s:%d", host, port);
    CR_CLEANUP(cr_connection) struct cr_connection connection;
    if (!cr_connection_open(address, -1, cr_clock_monotonic_ms() + PATIENCE_MS, &connection, err))
        return false;
    assert_true(connection.fd >= 0);
    return true;
}

/* -1: the machine has no such address. */
static int listen_at(const char *host, int *port)
{
    cr_autofree char *address = cr_asprintf("%s:%d", host, *port);
    return cr_listen(address, port, NULL);
}

static void localhost_is_who_listens_there(void **state)
{
    static const struct {
        const char *listens;
        const char *other;
    } cases[] = {{"127.0.0.1", "[::1]"}, {"[::1]", "127.0.0.1"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int port = 0;
        struct cr_error err = {0};
        cr_autofd int fd = listen_at(cases[i].listens, &port);
        if (fd < 0)
            skip();
        if (!opens("localhost", port, &err))
            fail_msg("%s: %s", cases[i].listens, err.text);
        assert_true(opens(cases[i].listens, port, &err));
        assert_false(opens(cases[i].other, port, &err)); /* an address is that address */
    }
}

static void where_nothing_listens_the_address_is_named_as_given(void **state)
{
    int port = 0;
    struct cr_error err = {0};
    (void)state;
    int fd = listen_at("127.0.0.1", &port);
    assert_true(fd >= 0);
    close(fd);
    assert_false(opens("localhost", port, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    cr_autofree char *says = cr_asprintf("localhost:%d: cannot connect: Connection refused", port);
    assert_string_equal(err.text, says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(localhost_is_who_listens_there),
        cmocka_unit_test(where_nothing_listens_the_address_is_named_as_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
