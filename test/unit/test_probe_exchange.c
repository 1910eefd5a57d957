/* Servers that do wrong what a database does before TLS. That the right ones are understood is seen with the real ones:
 * test/integration/test_probe.py. */
#include "net/tls_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 10 * 1000 };

/* What a server says, in pieces: to "ask" it waits for the request before it says the first. */
struct script {
    bool ask;
    size_t request_len;
    const char *says;
    size_t says_len;
    bool stays; /* waits for us to end; else it hangs up */
    size_t piece;
};

static void act(struct test_conn *conn, void *arg)
{
    const struct script *script = arg;
    size_t piece = script->piece ? script->piece : script->says_len;
    if (script->ask && !test_conn_read(conn, script->request_len))
        return;
    for (size_t at = 0; at < script->says_len; at += piece) {
        size_t len = script->says_len - at < piece ? script->says_len - at : piece;
        if (!test_conn_write(conn, script->says + at, len))
            return;
    }
    if (script->stays)
        test_conn_wait_closed(conn);
}

#define BYTES(text) .says = (text), .says_len = sizeof(text) - 1

#define GREETING_HEAD                                                                                                  \
    "\x4a\0\0\0\x0a"                                                                                                   \
    "8.0.33\0\x0b\0\0\0SALTSALT\0"
#define GREETING_TAIL "\0\0\0\0\0\0\0\0\0\0saltsaltsalt\0mysql_native_password\0"
#define WITH_TLS      GREETING_HEAD "\xff\xff\x2d\x02\0\xff\xc1\x15" GREETING_TAIL
#define WITHOUT_TLS   GREETING_HEAD "\xff\xf7\x2d\x02\0\xff\xc1\x15" GREETING_TAIL

#define PG_ERROR "E\0\0\0\x1dMsorry, too many clients\0\0"

static const struct {
    const char *rule;
    enum cr_probe_protocol protocol;
    struct script script;
    int timeout_ms; /* 0: patience */
    enum cr_probe_outcome outcome;
    const char *words;
} cases[] = {
    {"ssl = off",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES("N"), .stays = true},
     0,
     CR_PROBE_NOT_TLS,
     "PostgreSQL answered that it has no TLS"},
    {"an error",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES(PG_ERROR)},
     0,
     CR_PROBE_UNREACHABLE,
     "PostgreSQL answered with the error 'sorry, too many clients'"},
    {"an error, byte by byte",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES(PG_ERROR), .piece = 1},
     0,
     CR_PROBE_UNREACHABLE,
     "PostgreSQL answered with the error 'sorry, too many clients'"},
    {"an error of old, which ends with the connection",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES("Ecould not fork")},
     0,
     CR_PROBE_UNREACHABLE,
     "'could not fork'"},
    {"hung up at once", CR_PROBE_POSTGRESQL, {.ask = false}, 0, CR_PROBE_UNREACHABLE, ""},
    {"hung up after the request",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8},
     0,
     CR_PROBE_UNREACHABLE,
     "hung up before TLS"},
    {"silent",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, .stays = true},
     150,
     CR_PROBE_UNREACHABLE,
     "no answer in time"},
    {"another protocol",
     CR_PROBE_POSTGRESQL,
     {.ask = false, BYTES("220 mail.example ESMTP\r\n"), .stays = true},
     0,
     CR_PROBE_NOT_TLS,
     "does not speak PostgreSQL but '2'"},
    {"yes, and what is not TLS in the same breath",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES("Sforged"), .stays = true},
     0,
     CR_PROBE_NOT_TLS,
     "answered with 'forged', which is not TLS"},
    {"yes, and nothing more",
     CR_PROBE_POSTGRESQL,
     {.ask = true, .request_len = 8, BYTES("S"), .stays = true},
     150,
     CR_PROBE_UNREACHABLE,
     "no TLS answer in time"},

    {"no TLS",
     CR_PROBE_MYSQL,
     {BYTES(WITHOUT_TLS), .stays = true},
     0,
     CR_PROBE_NOT_TLS,
     "MySQL answered that it has no TLS"},
    {"no TLS, and hung up",
     CR_PROBE_MYSQL,
     {BYTES(WITHOUT_TLS)},
     0,
     CR_PROBE_NOT_TLS,
     "MySQL answered that it has no TLS"},
    {"blocked",
     CR_PROBE_MYSQL,
     {BYTES("\x1a\0\0\0\xff\x69\x04Host 'x' is blocked now")},
     0,
     CR_PROBE_UNREACHABLE,
     "MySQL answered with the error 'Host .x. is blocked now'"},
    {"full, byte by byte",
     CR_PROBE_MYSQL,
     {BYTES("\x1d\0\0\0\xff\x10\x04#08004Too many connections"), .piece = 1},
     0,
     CR_PROBE_UNREACHABLE,
     "'Too many connections'"},
    {"hung up at once", CR_PROBE_MYSQL, {.ask = false}, 0, CR_PROBE_UNREACHABLE, "hung up before TLS"},
    {"hung up in the middle", CR_PROBE_MYSQL, {BYTES(GREETING_HEAD)}, 0, CR_PROBE_UNREACHABLE, "hung up before TLS"},
    {"silent", CR_PROBE_MYSQL, {.stays = true}, 150, CR_PROBE_UNREACHABLE, "no answer in time"},
    {"silent in the middle",
     CR_PROBE_MYSQL,
     {BYTES(GREETING_HEAD), .stays = true},
     150,
     CR_PROBE_UNREACHABLE,
     "no answer in time"},
    {"another protocol",
     CR_PROBE_MYSQL,
     {BYTES("SSH-2.0-OpenSSH_9.2\r\n"), .stays = true},
     0,
     CR_PROBE_NOT_TLS,
     "does not speak MySQL but 'SSH-'"},
    {"TLS, and then nothing",
     CR_PROBE_MYSQL,
     {BYTES(WITH_TLS), .stays = true},
     150,
     CR_PROBE_UNREACHABLE,
     "no TLS answer in time"},
    {"TLS, and then hung up", CR_PROBE_MYSQL, {BYTES(WITH_TLS), .ask = false}, 0, CR_PROBE_UNREACHABLE, ""},
};

static void what_goes_wrong_before_tls_is_reported_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct script script = cases[i].script;
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(&(struct test_server_options){.serve = act, .arg = &script});
        const struct cr_probe_target target = {
            .address = "127.0.0.1", .port = test_server_port(server), .protocol = cases[i].protocol};
        struct cr_probe_result result;
        memset(&result, 0xaa, sizeof result);
        cr_tls_probe(&target, 1, cases[i].timeout_ms ? cases[i].timeout_ms : PATIENCE_MS, &result);
        if (result.outcome != cases[i].outcome || result.leaf[0] || !strstr(result.detail, cases[i].words) ||
            !result.detail[0])
            fail_msg("%s (%d): %d '%s'", cases[i].rule, (int)cases[i].protocol, (int)result.outcome, result.detail);
    }
}

/* A TLS server that does not greet is not taken for one that does. */
static void tls_at_once_is_no_database(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){0});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(&(struct test_server_options){.cert = cert});
    struct cr_probe_target target = {
        .address = "127.0.0.1", .port = test_server_port(server), .protocol = CR_PROBE_POSTGRESQL};
    struct cr_probe_result result;
    cr_tls_probe(&target, 1, PATIENCE_MS, &result);
    assert_int_not_equal(result.outcome, CR_PROBE_SERVED);
    target.protocol = CR_PROBE_MYSQL;
    cr_tls_probe(&target, 1, 200, &result);
    assert_int_equal(result.outcome, CR_PROBE_UNREACHABLE);
    assert_string_equal(result.detail, "no answer in time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_wrong_before_tls_is_reported_in_words),
        cmocka_unit_test(tls_at_once_is_no_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
