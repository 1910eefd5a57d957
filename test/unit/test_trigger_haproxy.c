#include <stdio.h>

#include "base/strings.h"
#include "support/testsocket.h"
#include "support/triggerscene.h"

/* HAProxy's runtime API as far as its transactions go: one command a connection; one transaction of each kind. */
struct haproxy {
    struct cr_buf received; /* first lines of the commands, payloads indented */
    const char *version;
    char open[64];      /* the file of the transaction under way */
    const char *commit; /* what a commit says */
    const char *other;  /* what anything else says; NULL: as it is */
};

static void haproxy_dispose(struct haproxy *h)
{
    cr_buf_dispose(&h->received);
}
CR_DEFINE_DISPOSE(haproxy, struct haproxy, haproxy_dispose)

static void keep_payload(int fd, struct haproxy *h)
{
    for (;;) {
        CR_CLEANUP(cr_buf) struct cr_buf line = {0};
        if (!test_socket_read(fd, "\n", &line) || line.len == 1)
            return;
        cr_buf_printf(&h->received, "  %s", cr_buf_text(&line));
    }
}

static void answer(int fd, struct haproxy *h, const char *verb, const char *path)
{
    if (h->other)
        test_socket_puts(fd, h->other);
    else if (cr_streq(verb, "abort"))
        test_socket_puts(fd, cr_streq(h->open, path) ? "Transaction aborted!\n" : "No ongoing transaction!\n");
    else if (cr_streq(verb, "commit"))
        test_socket_puts(fd, h->commit);
    else if (h->open[0] && !cr_streq(h->open, path))
        test_socket_puts(fd, "The ongoing transaction is about another file\n");
    else
        test_socket_puts(fd, h->open[0] ? "Transaction updated!\n" : "Transaction created!\n");
    bool over = cr_streq(verb, "commit") ? strstr(h->commit, "Success") != NULL
                                         : cr_streq(verb, "abort") && cr_streq(h->open, path);
    if (over)
        h->open[0] = '\0';
    else if (cr_streq(verb, "set") && !h->open[0])
        snprintf(h->open, sizeof h->open, "%s", path);
}

static void serve(int fd, unsigned number, void *arg)
{
    struct haproxy *h = arg;
    CR_CLEANUP(cr_buf) struct cr_buf line = {0};
    char verb[16];
    char kind[16];
    char path[64];
    (void)number;
    if (!test_socket_read(fd, "\n", &line))
        return;
    if (cr_streq(cr_buf_text(&line), "show info\n")) {
        test_socket_puts(fd, "Name: HAProxy\nVersion: ");
        test_socket_puts(fd, h->version ? h->version : "3.3.0-1");
        test_socket_puts(fd, "\nRelease_date: 2025/11/26\n\n");
        return;
    }
    if (sscanf(cr_buf_text(&line), "%15s ssl %15s %63s", verb, kind, path) != 3)
        return;
    bool payload = strstr(cr_buf_text(&line), " <<\n") != NULL;
    cr_buf_puts(&h->received, cr_buf_text(&line));
    if (payload)
        keep_payload(fd, h);
    answer(fd, h, verb, path);
}

static char *one[] = {(char[]){"/a.pem"}}, *two[] = {(char[]){"/a.pem"}, (char[]){"/b.pem"}},
            *cas[] = {(char[]){"/ca.crt"}};

static struct trigger_scene haproxy_scene(const struct test_socket *server, char **certificates, size_t len)
{
    static char address[128];
    strcpy(address, test_socket_path(server));
    struct trigger_scene s = scene_of(CR_TRIGGER_HAPROXY);
    s.spec.haproxy.address = address;
    s.spec.haproxy.certificates = (struct cr_strvec){.items = certificates, .len = len};
    return s;
}

static void files_are_replaced_in_transactions(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing /a.pem.\nSuccess!\n"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
    s.spec.haproxy.ca_files = (struct cr_strvec){.items = cas, .len = 1};
    scene_text(&s.reading.certificate, "CERT 1\r\n\r\n\nCERT 2"); /* an empty line would end the payload */
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    assert_string_equal(cr_buf_text(&h.received), "set ssl ca-file /ca.crt <<\n  TRUST\ncommit ssl ca-file /ca.crt\n"
                                                  "set ssl cert /a.pem <<\n  CERT 1\n  CERT 2\n  THE PRIVATE KEY\n"
                                                  "commit ssl cert /a.pem\n");
}

static void a_transaction_that_fails_is_aborted(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "The certificate is inconsistent\nFailed!\n"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
    scene_must_fail(&s, CR_ERR_TRANSIENT, "refused commit ssl cert /a.pem: The certificate is inconsistent Failed!");
    test_socket_free(cr_steal(&server));
    assert_true(cr_ends_with(cr_buf_text(&h.received), "commit ssl cert /a.pem\nabort ssl cert /a.pem\n"));
    assert_string_equal(h.open, "");
}

/* Between set and commit of its second file this program was killed. */
static void what_a_crash_left_behind_is_aborted(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing.\nSuccess!\n", .open = "/b.pem"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, two, 2);
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    assert_string_equal(h.open, "");
}

static void a_transaction_of_another_tool_is_left_alone(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing.\nSuccess!\n", .open = "/other.pem"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
    scene_must_fail(&s, CR_ERR_TRANSIENT, "The ongoing transaction is about another file");
    test_socket_free(cr_steal(&server));
    assert_string_equal(h.open, "/other.pem");
}

static void refusals_are_explained(void **state)
{
    static const struct {
        const char *answer;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"Permission denied\n", CR_ERR_FORBIDDEN, "its socket needs \"level admin\""},
        {"Can't replace a certificate which is not referenced by the configuration!\n", CR_ERR_TRANSIENT,
         "refused set ssl cert /a.pem: Can't replace a certificate"},
        {"Unknown command: 'THE PRIVATE KEY'\n", CR_ERR_TRANSIENT, "(it repeats the private key"},
        {"", CR_ERR_TRANSIENT, "longer than tune.bufsize"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(haproxy) struct haproxy h = {.other = cases[i].answer};
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
        CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
        scene_must_fail(&s, cases[i].kind, cases[i].words);
        assert_null(strstr(s.err.text, "THE PRIVATE"));
    }
}

/* As 2.6.12 says it of a certificate when its CA file was replaced before. */
static void a_commit_that_renewed_nothing_is_no_success(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing /a.pem\nSuccess!\n"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
    scene_must_fail(&s, CR_ERR_TRANSIENT, "renewed nothing with /a.pem");
}

static void versions_that_a_ca_file_would_break_get_none(void **state)
{
    static const struct {
        const char *version;
        enum cr_error_kind kind; /* None: it gets them */
    } cases[] = {{"2.6.12-1+deb12u4", CR_ERR_INVALID},
                 {"3.2.9", CR_ERR_INVALID},
                 {"3.3.0", CR_ERR_NONE},
                 {"3.5-dev4", CR_ERR_NONE},
                 {"4.0.1", CR_ERR_NONE},
                 {"unknown", CR_ERR_TRANSIENT}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing.\nSuccess!\n", .version = cases[i].version};
        CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
        CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
        scene_must_pull(&s); /* a certificate alone is as well with all of them */
        s.spec.haproxy.ca_files = (struct cr_strvec){.items = cas, .len = 1};
        if (cases[i].kind == CR_ERR_NONE)
            scene_must_pull(&s);
        else
            scene_must_fail(&s, cases[i].kind, cases[i].kind == CR_ERR_INVALID ? "SIGUSR2" : "its version");
    }
}

static void what_the_material_lacks_is_not_sent(void **state)
{
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing.\nSuccess!\n"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, one, 1);
    s.spec.haproxy.ca_files = (struct cr_strvec){.items = cas, .len = 1};
    cr_buf_reset(&s.reading.trust);
    scene_must_fail(&s, CR_ERR_INVALID, "the material web has none");
    assert_int_equal(test_socket_accepted(server), 0);
}

/* A command must fit into a buffer of HAProxy's. */
static void many_cas_go_in_pieces(void **state)
{
    enum { CAS = 40, LINES = 20 };
    (void)state;
    CR_CLEANUP(haproxy) struct haproxy h = {.commit = "Committing.\nSuccess!\n"};
    CR_CLEANUP(test_socket) struct test_socket *server = test_socket_new(serve, &h);
    CR_CLEANUP(scene) struct trigger_scene s = haproxy_scene(server, NULL, 0);
    s.spec.haproxy.ca_files = (struct cr_strvec){.items = cas, .len = 1};
    cr_buf_reset(&s.reading.trust);
    for (int i = 0; i < CAS; i++) {
        cr_buf_printf(&s.reading.trust, "-----BEGIN CERTIFICATE-----\n");
        for (int line = 0; line < LINES; line++)
            cr_buf_printf(&s.reading.trust, "CA%04d%058d\n", i, line);
        cr_buf_printf(&s.reading.trust, "-----END CERTIFICATE-----\n");
    }
    scene_must_pull(&s);
    test_socket_free(cr_steal(&server));
    size_t pieces = 0;
    size_t blocks = 0;
    size_t begun = 0;
    for (const char *line = cr_buf_text(&h.received); *line; line = strchr(line, '\n') + 1) {
        bool command = line[0] != ' ';
        if (command) {
            assert_true(cr_starts_with(line, pieces ? pieces < 5 ? "add ssl" : "commit" : "set ssl"));
            pieces++;
            begun = (size_t)(line - cr_buf_text(&h.received));
        }
        blocks += cr_starts_with(line, "  -----END");
        assert_true((size_t)(line - cr_buf_text(&h.received)) - begun < 16 * 1024);
    }
    assert_int_equal(blocks, CAS);
    assert_int_equal(pieces, 6); /* of 12 KiB at most, and the commit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_replaced_in_transactions),
        cmocka_unit_test(a_transaction_that_fails_is_aborted),
        cmocka_unit_test(what_a_crash_left_behind_is_aborted),
        cmocka_unit_test(a_transaction_of_another_tool_is_left_alone),
        cmocka_unit_test(refusals_are_explained),
        cmocka_unit_test(a_commit_that_renewed_nothing_is_no_success),
        cmocka_unit_test(versions_that_a_ca_file_would_break_get_none),
        cmocka_unit_test(what_the_material_lacks_is_not_sent),
        cmocka_unit_test(many_cas_go_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
