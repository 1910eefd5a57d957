#include "base/strings.h"
#include "support/triggerscene.h"

static bool expand(struct trigger_scene *s, const char *text, enum cr_trigger_secrecy secrecy, struct cr_buf *out)
{
    const struct cr_trigger_job job = {.spec = &s->spec, .material = &s->material, .reading = &s->reading};
    s->err = (struct cr_error){0};
    return cr_trigger_text(&job, text, secrecy, out, &s->err);
}

static void placeholders_stand_for_the_material(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"reload\n", "reload\n"},
        {"set <<\n${certificate}\n", "set <<\nCERT 1\nCERT 2\n\n"},
        {"${privateKey}", "THE PRIVATE KEY\n"},
        {"${trust}${trust}", "TRUST\nTRUST\n"},
        {"${combined}", "CERT 1\nCERT 2\nTHE PRIVATE KEY\n"},
        {"${certificate.path} ${privateKey.path} ${trust.path}", "/certs/tls.crt /certs/tls.key /certs/ca.crt"},
        {"{\"cert\": \"${certificate.json}\"}", "{\"cert\": \"CERT 1\\nCERT 2\\n\"}"},
        {"${combined.json}", "CERT 1\\nCERT 2\\nTHE PRIVATE KEY\\n"},
        {"$ {x} $$ }", "$ {x} $$ }"},
    };
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
        if (!expand(&s, cases[i].text, CR_TRIGGER_SECRET, &out))
            fail_msg("%s: %s", cases[i].text, s.err.text);
        assert_string_equal(cr_buf_text(&out), cases[i].expected);
    }
}

static void pem_without_a_last_line_break_is_not_joined_to_the_next(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
    scene_text(&s.reading.certificate, "CERT");
    assert_true(expand(&s, "${combined}", CR_TRIGGER_SECRET, &out));
    assert_string_equal(cr_buf_text(&out), "CERT\nTHE PRIVATE KEY\n");
}

static void what_json_cannot_hold_is_escaped(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
    scene_text(&s.reading.trust, "# \"a\\b\"\r\n");
    assert_true(expand(&s, "${trust.json}", CR_TRIGGER_SECRET, &out));
    assert_string_equal(cr_buf_text(&out), "# \\\"a\\\\b\\\"\\u000d\\n");
}

static void what_cannot_be_meant_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum cr_trigger_secrecy secrecy;
        const char *words;
    } cases[] = {
        {"${cert}", CR_TRIGGER_SECRET, "${cert} is no placeholder"},
        {"${certificate.pem}", CR_TRIGGER_SECRET, "no placeholder"},
        {"${combined.path}", CR_TRIGGER_SECRET, "no placeholder"},
        {"${certificate", CR_TRIGGER_SECRET, "not closed"},
        {"${a placeholder of a name that is longer than any of them could ever be}", CR_TRIGGER_SECRET,
         "no placeholder"},
        {"${privateKey}", CR_TRIGGER_SEEN, "${privateKey.path}"},
        {"${privateKey.json}", CR_TRIGGER_SEEN, "${privateKey.path}"},
        {"${combined}", CR_TRIGGER_SEEN, "${privateKey.path}"},
        {"${trust}", CR_TRIGGER_SECRET, "the material web has no such part"},
        {"${trust.path}", CR_TRIGGER_SECRET, "the material web has no such part"},
    };
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    cr_buf_reset(&s.reading.trust);
    s.material.trust = NULL;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
        assert_false(expand(&s, cases[i].text, cases[i].secrecy, &out));
        assert_int_equal(s.err.kind, CR_ERR_INVALID);
        if (!strstr(s.err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].text, s.err.text);
    }
}

static void lines_lose_what_would_end_a_payload(void **state)
{
    static const struct {
        const char *pem;
        const char *expected;
    } cases[] = {
        {"", ""}, {"A\nB\n", "A\nB\n"}, {"A\n\n\nB", "A\nB\n"}, {"\r\nA\r\n\r\nB\r\n", "A\nB\n"}, {"\n\n", ""},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
        CR_CLEANUP(cr_buf) struct cr_buf out = {0};
        cr_buf_puts(&pem, cases[i].pem);
        cr_trigger_add_lines(&out, &pem);
        assert_string_equal(cr_buf_text(&out), cases[i].expected);
    }
}

static void what_a_program_says_is_one_line_without_the_key(void **state)
{
    static const struct {
        const char *said;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"\n\n", ""},
        {"No such\r\n  certificate!\n\n", "No such certificate!"},
        {"\x1b[31mred \xc3\xa9", "[31mred ??"},
        {"Unknown command: 'THE PRIVATE KEY', but maybe", "(it repeats the private key, so it is not shown)"},
        {"unexpected \"HE PRIVATE\"", "(it repeats the private key, so it is not shown)"},
        {"a PRIVATE thing", "a PRIVATE thing"},
    };
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = scene_of(CR_TRIGGER_SOCKET);
    const struct cr_trigger_job job = {.spec = &s.spec, .material = &s.material, .reading = &s.reading};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char words[CR_TRIGGER_WORDS];
        cr_trigger_words(&job, cases[i].said, strlen(cases[i].said), words);
        assert_string_equal(words, cases[i].expected);
    }
}

static void names_have_no_secrets(void **state)
{
    char url[] = "https://127.0.0.1:2019/load?token=abc", address[] = "/run/app.sock", process[] = "nginx",
         pid_file[] = "/run/nginx.pid", method[] = "PUT";
    char *argv[] = {(char[]){"/bin/app"}, (char[]){"--password=abc"}};
    const struct {
        struct cr_trigger_spec spec;
        const char *name;
    } cases[] = {
        {{.type = CR_TRIGGER_SIGNAL, .signal = {.number = 1, .process = process}}, "SIGHUP to nginx"},
        {{.type = CR_TRIGGER_SIGNAL, .signal = {.number = 12, .pid_file = pid_file}},
         "SIGUSR2 to the process of /run/nginx.pid"},
        {{.type = CR_TRIGGER_HTTP, .http = {.url = url}}, "POST https://127.0.0.1:2019/load"},
        {{.type = CR_TRIGGER_HTTP, .http = {.url = url, .method = method}}, "PUT https://127.0.0.1:2019/load"},
        {{.type = CR_TRIGGER_SOCKET, .socket = {.address = address}}, "socket /run/app.sock"},
        {{.type = CR_TRIGGER_COMMAND, .command = {.argv = {.items = argv, .len = 2}}}, "command /bin/app"},
        {{.type = CR_TRIGGER_HAPROXY, .haproxy = {.address = address}}, "HAProxy at /run/app.sock"},
        {{.type = CR_TRIGGER_REDIS, .redis = {.address = address}}, "Redis at /run/app.sock"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char name[128];
        cr_trigger_name(&cases[i].spec, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders_stand_for_the_material),
        cmocka_unit_test(pem_without_a_last_line_break_is_not_joined_to_the_next),
        cmocka_unit_test(what_json_cannot_hold_is_escaped),
        cmocka_unit_test(what_cannot_be_meant_is_refused),
        cmocka_unit_test(lines_lose_what_would_end_a_payload),
        cmocka_unit_test(what_a_program_says_is_one_line_without_the_key),
        cmocka_unit_test(names_have_no_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
