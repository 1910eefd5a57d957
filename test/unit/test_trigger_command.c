#include "base/strings.h"
#include "support/triggerscene.h"

static struct trigger_scene command_scene(char **argv, size_t len)
{
    struct trigger_scene s = scene_of(CR_TRIGGER_COMMAND);
    s.spec.command.argv = (struct cr_strvec){.items = argv, .len = len};
    return s;
}

static void its_status_decides(void **state)
{
    static const struct {
        const char *script;
        const char *words; /* NULL: success */
    } cases[] = {
        {"exit 0", NULL},
        {"echo much; exit 0", NULL},
        {"test \"$1\" = /certs/tls.key", NULL},
        {"exit 3", "sh ended with status 3"},
        {"echo first >&2; echo 'cannot reload' >&2; exit 1", "sh ended with status 1: cannot reload"},
        {"echo 'THE PRIVATE KEY' >&2; exit 1", "(it repeats the private key"},
        {"kill -9 $$", "was ended by signal 9"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char script[128];
        strcpy(script, cases[i].script);
        char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, script, (char[]){"sh"}, (char[]){"${privateKey.path}"}};
        CR_CLEANUP(scene) struct trigger_scene s = command_scene(argv, cr_array_len(argv));
        if (cases[i].words)
            scene_must_fail(&s, CR_ERR_TRANSIENT, cases[i].words);
        else
            scene_must_pull(&s);
    }
}

static void no_shell_looks_at_it(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"test"}, (char[]){"$HOME; exit 1"}, (char[]){"="}, (char[]){"$HOME; exit 1"}};
    CR_CLEANUP(scene) struct trigger_scene s = command_scene(argv, cr_array_len(argv));
    scene_must_pull(&s);
}

static void a_key_is_no_argument(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"true"}, (char[]){"${privateKey}"}};
    CR_CLEANUP(scene) struct trigger_scene s = command_scene(argv, cr_array_len(argv));
    scene_must_fail(&s, CR_ERR_INVALID, "${privateKey.path}");
}

static void what_cannot_run_is_said(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"certroll-no-such-program"}};
    CR_CLEANUP(scene) struct trigger_scene s = command_scene(argv, 1);
    scene_must_fail(&s, CR_ERR_NOT_FOUND, "certroll-no-such-program");
}

static void it_has_its_time(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"sleep"}, (char[]){"600"}};
    CR_CLEANUP(scene) struct trigger_scene s = command_scene(argv, 2);
    s.spec.timeout_ms = 1000;
    scene_must_fail(&s, CR_ERR_TRANSIENT, "sleep: it did not end within 1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_status_decides),   cmocka_unit_test(no_shell_looks_at_it),
        cmocka_unit_test(a_key_is_no_argument), cmocka_unit_test(what_cannot_run_is_said),
        cmocka_unit_test(it_has_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
