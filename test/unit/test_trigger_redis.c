#include <stdlib.h>

#include "base/strings.h"
#include "support/testsocket.h"
#include "support/triggerscene.h"

/* What stands for Redis: it answers the commands by their number, and keeps their words, one line each. */
struct redis {
    const char *answers[5];
    struct cr_buf received;
};

static void redis_dispose(struct redis *r)
{
    cr_buf_dispose(&r->received);
}
CR_DEFINE_DISPOSE(redis, struct redis, redis_dispose)

/* "*2\r\n$3\r\nGET\r\n…" as "GET …". False: the other side has ended. */
static bool read_command(int fd, struct cr_buf *received)
{
    CR_CLEANUP(cr_buf) struct cr_buf head = {0};
    if (!test_socket_read(fd, "\r\n", &head))
        return false;
    int words = atoi(cr_buf_text(&head) + 1);
    for (int i = 0; i < words; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf word = {0};
        if (!test_socket_read(fd, "\r\n", &word)) /* its length */
            return false;
        cr_buf_reset(&word);
        if (!test_socket_read(fd, "\r\n", &word))
            return false;
        cr_buf_printf(received, "%s%.*s", i ? " " : "", (int)word.len - 2, cr_buf_text(&word));
    }
    cr_buf_puts(received, "\n");
    return true;
}

static void serve(int fd, unsigned number, void *arg)
{
    struct redis *r = arg;
    (void)number;
    for (size_t i = 0; r->answers[i] && read_command(fd, &r->received); i++)
        test_socket_puts(fd, r->answers[i]);
}

#define FILES                                                                                                          \
    "*8\r\n$13\r\ntls-cert-file\r\n$8\r\n/tls.crt\r\n$12\r\ntls-key-file\r\n$8\r\n/tls.key\r\n"                        \
    "$16\r\ntls-ca-cert-file\r\n$7\r\n/ca.crt\r\n$20\r\ntls-client-cert-file\r\n$0\r\n\r\n"
#define SET_ALL "CONFIG SET tls-cert-file /tls.crt tls-key-file /tls.key tls-ca-cert-file /ca.crt\n"

static struct trigger_scene redis_scene(const struct test_socket *server)
{
    static char address[128];
    strcpy(address, test_socket_path(server));
    struct trigger_scene s = scene_of(CR_TRIGGER_REDIS);
    s.spec.redis.address = address;
    return s;
}

static void the_paths_are_set_to_what_they_are(void **state)
{
    (void)state;
    CR_CLEANUP(redis) struct redis r = {.answers = {FILES, "+OK\r\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &r);
    CR_CLEANUP(scene) struct trigger_scene s = redis_scene(server);
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    assert_string_equal(cr_buf_text(&r.received), "CONFIG GET tls-*-file\n" SET_ALL);
}

/* Before 7.0. */
static void who_takes_one_option_only_gets_one(void **state)
{
    (void)state;
    CR_CLEANUP(redis)
    struct redis r = {.answers = {FILES, "-ERR wrong number of arguments for 'config|set' command\r\n", "+OK\r\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &r);
    CR_CLEANUP(scene) struct trigger_scene s = redis_scene(server);
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    assert_string_equal(cr_buf_text(&r.received),
                        "CONFIG GET tls-*-file\n" SET_ALL "CONFIG SET tls-cert-file /tls.crt\n");
}

static char *password_file(const char *text)
{
    static char path[40];
    strcpy(path, "/tmp/certroll-password-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void it_logs_in_first(void **state)
{
    static char user[] = "sidecar";
    static const struct {
        char *user;
        const char *received;
    } cases[] = {{NULL, "AUTH s3cr3t-word\n"}, {user, "AUTH sidecar s3cr3t-word\n"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(redis) struct redis r = {.answers = {"+OK\r\n", FILES, "+OK\r\n"}};
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &r);
        CR_CLEANUP(scene) struct trigger_scene s = redis_scene(server);
        s.spec.redis.user = cases[i].user;
        s.spec.redis.password_file = password_file("s3cr3t-word\n");
        scene_must_pull(&s);
        test_socket_free(cr_steal(&server));
        assert_true(cr_starts_with(cr_buf_text(&r.received), cases[i].received));
        unlink(s.spec.redis.password_file);
    }
}

static void refusals_are_reported_without_the_password(void **state)
{
    static const struct {
        const char *answers[3];
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {{"-WRONGPASS invalid username-password pair\r\n"}, CR_ERR_FORBIDDEN, "refused AUTH: WRONGPASS"},
        {{"-ERR unknown command 'AUTH', with args beginning with: 's3cr3t-word'\r\n"},
         CR_ERR_TRANSIENT,
         "refused AUTH: ERR"},
        {{"+OK\r\n", "-NOPERM this user has no permissions to run the 'config|get' command\r\n"},
         CR_ERR_FORBIDDEN,
         "refused CONFIG GET: NOPERM this user"},
        {{"+OK\r\n", FILES, "-ERR CONFIG SET failed - Unable to update TLS configuration\r\n"},
         CR_ERR_TRANSIENT,
         "refused CONFIG SET: ERR CONFIG SET failed"},
        {{"+OK\r\n", "*2\r\n$13\r\ntls-cert-file\r\n$0\r\n\r\n"}, CR_ERR_INVALID, "has no TLS files"},
        {{"+OK\r\n", "*0\r\n"}, CR_ERR_INVALID, "has no TLS files"},
        {{"HTTP/1.1 400 Bad Request\r\n"}, CR_ERR_TRANSIENT, "is not Redis"},
        {{""}, CR_ERR_TRANSIENT, "hung up without an answer"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(redis) struct redis r = {0};
        memcpy(r.answers, cases[i].answers, sizeof cases[i].answers);
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &r);
        CR_CLEANUP(scene) struct trigger_scene s = redis_scene(server);
        s.spec.redis.password_file = password_file("s3cr3t-word");
        scene_must_fail(&s, cases[i].kind, cases[i].words);
        assert_null(strstr(s.err.text, "s3cr3t"));
        unlink(s.spec.redis.password_file);
    }
}

static void a_password_is_needed_where_one_is_configured(void **state)
{
    static char missing[] = "/tmp/certroll-password/of/nobody";
    (void)state;
    CR_CLEANUP(redis) struct redis r = {.answers = {"+OK\r\n"}};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &r);
    CR_CLEANUP(scene) struct trigger_scene s = redis_scene(server);
    s.spec.redis.password_file = missing;
    scene_must_fail(&s, CR_ERR_NOT_FOUND, missing);
    s.spec.redis.password_file = password_file("\n");
    scene_must_fail(&s, CR_ERR_INVALID, "is empty");
    unlink(s.spec.redis.password_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_paths_are_set_to_what_they_are),
        cmocka_unit_test(who_takes_one_option_only_gets_one),
        cmocka_unit_test(it_logs_in_first),
        cmocka_unit_test(refusals_are_reported_without_the_password),
        cmocka_unit_test(a_password_is_needed_where_one_is_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
