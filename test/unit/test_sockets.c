#include "drain/sockets.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/strings.h"

/* --- rows --- */

static void rows_are_read(void **state)
{
    static const struct {
        const char *table, *line, *where; /* NULL: nothing that matters */
        bool listens;
        uint64_t inode;
    } cases[] = {
        {"tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"},
        {"tcp",
         "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20013 1 0 100\n",
         "0100007F:1F90", true, 20013},
        {"tcp",
         "  12: 0100007F:1F90 0100007F:A0BC 01 00000000:00000000 02:000005A3 00000000   101        0 31 2 0 20 4\n",
         "0100007F:1F90", false, 31},
        {"tcp",
         "  13: 0100007F:1F90 0100007F:A0BC 08 00000000:00000000 00:00000000 00000000   101        0 32 1 0 20 4\n",
         "0100007F:1F90", false, 32},
        {"tcp6",
         "1234: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:E2A4 01 00000000:00000000 "
         "00:00000000 00000000     0        0 18446744073709551615 1\n",
         "0000000000000000FFFF00000100007F:0050", false, UINT64_MAX},
        {"unix", "Num       RefCount Protocol Flags    Type St Inode Path\n"},
        {"unix", "0000000000000000: 00000002 00000000 00010000 0001 01 20345 /run/a b.sock\n", "/run/a b.sock", true,
         20345},
        {"unix", "ffff9e1c4a2b0000: 00000003 00000000 00000000 0001 03 20346 /run/web.sock\n", "/run/web.sock", false,
         20346},
        {"unix", "0000000000000000: 00000003 00000000 00000000 0001 03 20347\n"},
        {"unix", "0000000000000000: 00000002 00000000 00000000 0002 01 20348 /run/log\n"}, /* bound, not connected */
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_socket_row row;
        bool understood = false;
        bool matters = cr_socket_row_read(cases[i].table, cases[i].line, &row, &understood);
        if (!understood || matters != !!cases[i].where)
            fail_msg("%zu: %s", i, cases[i].line);
        if (!matters)
            continue;
        assert_string_equal(row.where, cases[i].where);
        assert_int_equal(row.listens, cases[i].listens);
        assert_true(row.inode == cases[i].inode);
    }
}

static void what_is_no_row_is_not_skipped(void **state)
{
    static const struct {
        const char *table, *line;
    } cases[] = {
        {"tcp", ""},
        {"tcp", "\n"},
        {"tcp", "Permission denied\n"},
        {"tcp", "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n"},
        {"tcp", "   0: 0100007F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20013\n"},
        {"unix", "nonsense\n"},
        {"unix", "0000000000000000: 00000002 00000000\n"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_socket_row row;
        bool understood = true;
        if (cr_socket_row_read(cases[i].table, cases[i].line, &row, &understood) || understood)
            fail_msg("%zu: %s", i, cases[i].line);
    }
}

static void a_connection_is_of_who_has_accepted_it(void **state)
{
    static const struct {
        const char *table, *where, *listener;
        bool is;
    } cases[] = {
        {"tcp", "0100007F:1F90", "tcp 0100007F:1F90", true},
        {"tcp", "0A00000A:1F90", "tcp 00000000:1F90", true},
        {"tcp", "0A00000A:1F90", "tcp 0100007F:1F90", false},
        {"tcp", "0A00000A:1F91", "tcp 00000000:1F90", false},
        {"tcp6", "0A00000A:1F90", "tcp 00000000:1F90", false},
        {"tcp6", "0000000000000000FFFF00000100007F:0050", "tcp6 00000000000000000000000000000000:0050", true},
        {"tcp6", "00000000000000000000000001000000:0050", "tcp6 00000000000000000000000000000000:0051", false},
        {"unix", "/run/a.sock", "unix /run/a.sock", true},
        {"unix", "/run/a.sock", "unix /run/b.sock", false},
        {"unix", "/0:80", "unix 0:80", false},
        {"tcp", "0100007F:1F90", "process 7 1234", false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_socket_row row = {0};
        strcpy(row.where, cases[i].where);
        if (cr_socket_is_of(cases[i].table, &row, cases[i].listener) != cases[i].is)
            fail_msg("%zu: %s of %s", i, cases[i].where, cases[i].listener);
    }
}

/* --- the kernel's --- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

static int listen_at(union address *address, socklen_t *len)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    assert_int_equal(bind(fd, &address->any, *len), 0);
    assert_int_equal(listen(fd, 8), 0);
    if (address->any.sa_family != AF_UNIX)
        assert_int_equal(getsockname(fd, &address->any, len), 0);
    return fd;
}

static int connect_to(const union address *address, socklen_t len)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &address->any, len), 0);
    return fd;
}

static uint64_t count(const struct cr_strvec *listeners)
{
    struct cr_error err = {0};
    uint64_t open = 0;
    if (!cr_sockets_count(getpid(), listeners, &open, &err))
        fail_msg("%s", err.text);
    return open;
}

/* Accepted, half closed by the other side, closed by it, closed by us; and one of ours to elsewhere. */
static void check_listener(union address address, socklen_t len)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec listeners = {0};
    struct cr_error err = {0};
    int listener = listen_at(&address, &len);
    if (listener < 0)
        return; /* no IPv6 here */
    if (!cr_sockets_listeners(getpid(), &listeners, &err))
        fail_msg("%s", err.text);
    assert_int_equal(listeners.len, 1);
    assert_int_equal(count(&listeners), 0);
    if (address.any.sa_family == AF_INET6)
        address.v6.sin6_addr = in6addr_loopback;
    int client = connect_to(&address, len);
    assert_int_equal(count(&listeners), 0); /* no process has accepted it */
    int server = accept(listener, NULL, NULL);
    assert_int_equal(count(&listeners), 1);
    close(listener); /* as nginx does at SIGQUIT */
    assert_int_equal(count(&listeners), 1);
    shutdown(client, SHUT_WR);
    assert_int_equal(count(&listeners), 1);
    close(server);
    assert_int_equal(count(&listeners), 0);
    close(client);
}

static void connections_are_counted_by_where_they_came_in(void **state)
{
    union address v4 = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    union address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT}};
    union address path = {.path = {.sun_family = AF_UNIX}};
    char folder[] = "/tmp/certroll-sockets-XXXXXX";
    (void)state;
    check_listener(v4, sizeof v4.v4);
    check_listener(v6, sizeof v6.v6);
    assert_non_null(mkdtemp(folder));
    strcpy(path.path.sun_path, folder);
    strcat(path.path.sun_path, "/s");
    check_listener(path, sizeof path.path);
    unlink(path.path.sun_path);
    rmdir(folder);
}

static void who_listens_nowhere_is_known(void **state)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec listeners = {0};
    struct cr_error err = {0};
    (void)state;
    assert_false(cr_sockets_listeners(getpid(), &listeners, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_int_equal(listeners.len, 0);
}

/* --- rights --- */

enum { OTHER_USER = 65532 };

static void what_may_not_be_seen_is_explained(void **state)
{
    int status = 0;
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        struct cr_strvec listeners = {0};
        struct cr_error err = {0};
        if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0)
            _exit(2);
        bool seen = cr_sockets_listeners(getppid(), &listeners, &err);
        _exit(!seen && err.kind == CR_ERR_FORBIDDEN && strstr(err.text, "must be the same user") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(what_is_no_row_is_not_skipped),
        cmocka_unit_test(a_connection_is_of_who_has_accepted_it),
        cmocka_unit_test(connections_are_counted_by_where_they_came_in),
        cmocka_unit_test(who_listens_nowhere_is_known),
        cmocka_unit_test(what_may_not_be_seen_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
