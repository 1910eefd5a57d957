#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "support/testserver.h"
#include "support/testsocket.h"
#include "support/triggerscene.h"

/* What the program of the test does: it keeps what it receives, line by line, and answers each with the next text. */
struct program {
    const char *answers[4];
    struct cr_buf received;
    atomic_size_t answered;
};

static void program_dispose(struct program *p)
{
    cr_buf_dispose(&p->received);
}
CR_DEFINE_DISPOSE(program, struct program, program_dispose)

static void serve_lines(int fd, unsigned number, void *arg)
{
    struct program *p = arg;
    (void)number;
    while (test_socket_read(fd, "\n", &p->received)) {
        const char *answer = p->answers[atomic_fetch_add(&p->answered, 1)];
        if (answer)
            test_socket_puts(fd, answer);
    }
}

static struct trigger_scene socket_scene(char *address, struct cr_exchange *exchanges, size_t len)
{
    struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    s.spec.socket.address = address;
    s.spec.socket.exchanges = exchanges;
    s.spec.socket.exchanges_len = len;
    return s;
}

static char *path_of(const struct test_socket *server)
{
    static char path[128];
    strcpy(path, test_socket_path(server));
    return path;
}

static char reload[] = "reload\n", key[] = "key ${privateKey.path}\n", ok[] = "OK", done[] = "done";

static void an_answer_with_the_expected_text_is_success(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program p = {.answers = {"well, OK then\n", "all of it is done\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_lines, &p);
    struct cr_exchange exchanges[] = {{reload, ok}, {key, done}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 2);
    scene_must_pull(&s);
    assert_int_equal(test_socket_accepted(server), 1);
    test_socket_free(cr_steal(&server));
    assert_string_equal(cr_buf_text(&p.received), "reload\nkey /certs/tls.key\n");
}

static void each_exchange_may_have_a_connection_of_its_own(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program p = {.answers = {"OK\n", "done\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_lines, &p);
    struct cr_exchange exchanges[] = {{reload, ok}, {key, done}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 2);
    s.spec.socket.reconnect_each = true;
    scene_must_pull(&s);
    assert_int_equal(test_socket_accepted(server), 2);
}

static void an_answer_is_of_one_exchange_only(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program p = {.answers = {"OK\n", "no\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_lines, &p);
    struct cr_exchange exchanges[] = {{reload, ok}, {key, ok}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 2);
    s.spec.timeout_ms = 300;
    scene_must_fail(&s, CR_ERR_TRANSIENT, "the answer to exchange 2 does not hold 'OK': no");
}

static void no_answer_is_waited_for_where_none_is_expected(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program p = {0};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_lines, &p);
    struct cr_exchange exchanges[] = {{reload, NULL}, {key, NULL}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 2);
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    assert_string_equal(cr_buf_text(&p.received), "reload\nkey /certs/tls.key\n"); /* all of it has arrived */
}

static void a_refusal_is_reported_in_the_programs_words(void **state)
{
    (void)state;
    CR_CLEANUP(program) struct program p = {.answers = {"ERR no\nsuch file\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve_lines, &p);
    struct cr_exchange exchanges[] = {{reload, ok}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 1);
    s.spec.timeout_ms = 300;
    scene_must_fail(&s, CR_ERR_TRANSIENT, "does not hold 'OK': ERR no such file");
}

static void hang_up(int fd, unsigned number, void *arg)
{
    (void)number;
    test_socket_puts(fd, arg);
}

static void who_hangs_up_is_not_waited_for(void **state)
{
    static char last_words[] = "bye\n", none[] = "";
    static const struct {
        char *said;
        const char *words;
    } cases[] = {{last_words, "does not hold 'OK': bye"}, {none, "does not hold 'OK': nothing was said"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(hang_up, cases[i].said);
        struct cr_exchange exchanges[] = {{reload, ok}};
        CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 1);
        int64_t begun = cr_clock_monotonic_ms();
        scene_must_fail(&s, CR_ERR_TRANSIENT, cases[i].words);
        assert_true(cr_clock_monotonic_ms() - begun < PATIENCE_MS);
    }
}

static void flood(int fd, unsigned number, void *arg)
{
    static const char line[] = "a line of many, none of which is the one that is waited for\n";
    (void)number;
    atomic_bool *ended = arg;
    while (!*ended && send(fd, line, sizeof line - 1, MSG_NOSIGNAL) > 0)
        ;
}

static void answers_have_a_cap(void **state)
{
    (void)state;
    atomic_bool ended = false;
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(flood, &ended);
    struct cr_exchange exchanges[] = {{reload, ok}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 1);
    scene_must_fail(&s, CR_ERR_TRANSIENT, "does not hold 'OK'");
    ended = true;
}

static void where_nothing_listens_is_said(void **state)
{
    static char nowhere[] = "/tmp/certroll-socket/of/nobody", elsewhere[] = "10.0.0.1:80", closed[] = "127.0.0.1:1";
    static const struct {
        char *address;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {{nowhere, CR_ERR_NOT_FOUND, "cannot connect: No such file"},
                 {elsewhere, CR_ERR_INVALID, "loopback"},
                 {closed, CR_ERR_TRANSIENT, "cannot connect: Connection refused"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_exchange exchanges[] = {{reload, ok}};
        CR_CLEANUP(scene) struct trigger_scene s = socket_scene(cases[i].address, exchanges, 1);
        scene_must_fail(&s, cases[i].kind, cases[i].words);
    }
}

static void say_nothing(int fd, unsigned number, void *arg)
{
    CR_CLEANUP(cr_buf) struct cr_buf ignored = {0};
    (void)number;
    (void)arg;
    test_socket_read(fd, "", &ignored);
}

static void it_can_be_cancelled(void **state)
{
    (void)state;
    cr_autofd int cancel = eventfd(1, EFD_CLOEXEC);
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(say_nothing, NULL);
    struct cr_exchange exchanges[] = {{reload, ok}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(path_of(server), exchanges, 1);
    assert_false(cr_trigger_pull(&s.spec, &s.material, &s.reading, 0, cancel, &s.err));
    assert_int_equal(s.err.kind, CR_ERR_CANCELLED);
}

static void answer_on_tcp(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_read(conn, strlen(reload)))
        test_conn_puts(conn, "OK\n");
}

static void loopback_does_as_well(void **state)
{
    (void)state;
    const struct test_server_options options = {.serve = answer_on_tcp};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", test_server_port(server));
    struct cr_exchange exchanges[] = {{reload, ok}};
    CR_CLEANUP(scene) struct trigger_scene s = socket_scene(address, exchanges, 1);
    scene_must_pull(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_with_the_expected_text_is_success),
        cmocka_unit_test(each_exchange_may_have_a_connection_of_its_own),
        cmocka_unit_test(an_answer_is_of_one_exchange_only),
        cmocka_unit_test(no_answer_is_waited_for_where_none_is_expected),
        cmocka_unit_test(a_refusal_is_reported_in_the_programs_words),
        cmocka_unit_test(who_hangs_up_is_not_waited_for),
        cmocka_unit_test(answers_have_a_cap),
        cmocka_unit_test(where_nothing_listens_is_said),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(loopback_does_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
