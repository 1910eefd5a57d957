#include "base/flags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/strvec.h"

enum { ARGS_MAX = 8 };
enum colour { RED, GREEN, BLUE };

struct options {
    const char *config;
    struct cr_strvec namespaces;
    bool once;
    bool elect;
    int64_t timeout_ms;
    int64_t grace_ms;
    int workers;
    enum colour colour;
    enum cr_log_level level;
    char first; /* of --own */
    /* what the hooks saw */
    struct cr_strvec words;
    struct cr_strvec wrong;
    unsigned tags;
};

static void options_dispose(struct options *options)
{
    cr_strvec_dispose(&options->namespaces);
    cr_strvec_dispose(&options->words);
    cr_strvec_dispose(&options->wrong);
}
CR_DEFINE_DISPOSE(options, struct options, options_dispose)

static bool check_absolute(const char *flag, const char *value, struct cr_error *err)
{
    return *value == '/' || cr_error_set(err, CR_ERR_INVALID, "%s must be an absolute path", flag);
}

static bool take_first(void *field, const char *flag, const char *value, struct cr_error *err)
{
    *(char *)field = *value;
    return *value || cr_error_set(err, CR_ERR_INVALID, "%s has no first letter", flag);
}

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct cr_flag table[] = {
    CR_FLAG(TEXT, "config", struct options, config),
    CR_FLAG(TEXT, "folder", struct options, config, .check = check_absolute),
    CR_FLAG(TEXTS, "namespace", struct options, namespaces, .letter = 'n'),
    CR_FLAG(SWITCH, "once", struct options, once, .letter = 'o', .tag = 4),
    CR_FLAG(BOOL, "leader-elect", struct options, elect, .letter = 'e'),
    CR_FLAG(DURATION, "timeout", struct options, timeout_ms),
    CR_FLAG(SECONDS, "grace", struct options, grace_ms),
    CR_FLAG(DURATION, "patience", struct options, grace_ms, .least = 1),
    CR_FLAG(SECONDS, "interval", struct options, grace_ms, .least = 100),
    CR_FLAG(NUMBER, "workers", struct options, workers, .least = 1, .most = 64),
    CR_FLAG(CHOICE, "colour", struct options, colour, .choices = colours),
    CR_FLAG(CHOICE, "color", struct options, colour, .choices = colours),
    CR_FLAG(LOG_LEVEL, "log-level", struct options, level),
    CR_FLAG(OWN, "own", struct options, first, .take = take_first),
    {.name = "old", .kind = CR_FLAG_IGNORED},
    {.name = "older", .kind = CR_FLAG_NOTHING},
};

static const struct cr_flags plain = {.program = "prog", .table = table, .len = cr_array_len(table)};

static struct options defaults(void)
{
    return (struct options){.config = "file", .elect = true, .workers = 4, .colour = GREEN, .level = CR_LOG_INFO};
}

/* args: after the program's name, NULL at the end. */
static bool parse(const struct cr_flags *flags, const char *const *args, struct options *out, int *rest,
                  struct cr_error *err)
{
    char *argv[ARGS_MAX + 2] = {(char *)(uintptr_t) "prog"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    *out = defaults();
    return cr_flags_parse(flags, argc, argv, out, rest, err);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void what_is_not_given_stays(void **state)
{
    (void)state;
    CR_CLEANUP(options) struct options out;
    assert_true(parse(&plain, ARGS(), &out, NULL, NULL));
    assert_string_equal(out.config, "file");
    assert_true(out.elect && out.workers == 4 && out.colour == GREEN && out.namespaces.len == 0);
}

static void a_value_is_joined_or_follows(void **state)
{
    static const char *const cases[][4] = {
        {"--config=a", NULL},
        {"--config", "a", NULL},
        {"--config=b", "--config=a", NULL}, /* the last one counts */
        {"--old=x", "--config=a", NULL},
        {"--older", "--config=a", NULL},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(options) struct options out;
        assert_true(parse(&plain, cases[i], &out, NULL, NULL));
        assert_string_equal(out.config, "a");
    }
}

static void a_value_may_be_empty_or_look_like_a_flag(void **state)
{
    (void)state;
    CR_CLEANUP(options) struct options out;
    assert_true(parse(&plain, ARGS("--config="), &out, NULL, NULL));
    assert_string_equal(out.config, "");
    options_dispose(&out);
    assert_true(parse(&plain, ARGS("--config", "--once"), &out, NULL, NULL));
    assert_string_equal(out.config, "--once");
    assert_false(out.once);
}

static void each_kind_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(options) struct options out;
    assert_true(parse(&plain,
                      ARGS("--once", "--leader-elect=false", "--timeout=1m30s", "--workers=64", "--color", "blue",
                           "--log-level=warn"),
                      &out, NULL, NULL));
    assert_true(out.once && !out.elect && out.timeout_ms == 90000 && out.workers == 64);
    assert_true(out.colour == BLUE && out.level == CR_LOG_WARN);
    assert_true(parse(&plain, ARGS("--own", "xyz", "--leader-elect"), &out, NULL, NULL));
    assert_true(out.first == 'x' && out.elect);
}

static void a_plain_number_is_seconds_where_the_flag_says_so(void **state)
{
    static const struct {
        const char *value;
        int64_t ms;
    } cases[] = {{"30", 30000}, {"0", 0}, {"30s", 30000}, {"2m", 120000}, {"500ms", 500}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(options) struct options out;
        assert_true(parse(&plain, ARGS("--grace", cases[i].value), &out, NULL, NULL));
        assert_int_equal(out.grace_ms, cases[i].ms);
    }
}

static void letters_stand_for_names(void **state)
{
    static const char *const cases[][4] = {
        {"-n", "a", "-nb", NULL}, {"--namespace=a", "-n", "b", NULL}, {"-ona", "-nb", "-na", NULL}, /* each once */
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(options) struct options out;
        assert_true(parse(&plain, cases[i], &out, NULL, NULL));
        cr_autofree char *all = cr_strvec_join(&out.namespaces, ",");
        assert_string_equal(all, "a,b");
        assert_int_equal(out.once, i == 2);
    }
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *args[3];
        const char *says;
    } cases[] = {
        {{"--confg=x"}, "unknown flag '--confg': is it --config; see prog --help"},
        {{"--work", "5"}, "unknown flag '--work': is it --workers; see prog --help"},
        {{"--namespaces=a"}, "unknown flag '--namespaces': is it --namespace; see prog --help"},
        {{"--zebra"}, "unknown flag '--zebra'; see prog --help"},
        {{"--=x"}, "unknown flag '--'; see prog --help"},
        {{"-x"}, "unknown flag '-x'; see prog --help"},
        {{"-config", "x"}, "'-config': the flag is --config, with two dashes"},
        {{"-namespace=x"}, "'-namespace': the flag is --namespace, with two dashes"},
        {{"-oz"}, "unknown flag '-oz'; see prog --help"},
        {{"--config"}, "--config needs a value"},
        {{"-n"}, "--namespace needs a value"},
        {{"--once=true"}, "--once takes no value"},
        {{"--older=x"}, "--older takes no value"},
        {{"--leader-elect=maybe"}, "--leader-elect must be true or false, not 'maybe'"},
        {{"--leader-elect", "false"}, "unexpected argument 'false'; see prog --help"},
        {{"--timeout=5"}, "--timeout: '5' is not a duration such as 10s, 5m or 1h30m"},
        {{"--timeout="}, "--timeout: '' is not a duration such as 10s, 5m or 1h30m"},
        {{"--grace=-5"}, "--grace: '-5' is not a duration such as 10s, 5m or 1h30m"},
        {{"--grace=9999999999"}, "--grace: '9999999999' is not a duration such as 10s, 5m or 1h30m"},
        {{"--interval=99ms"}, "--interval must be at least 100ms, not '99ms'"},
        {{"--patience=0s"}, "--patience must be longer than nothing"},
        {{"--interval=0"}, "--interval must be at least 100ms, not '0'"},
        {{"--workers=0"}, "--workers must be a number from 1 to 64, not '0'"},
        {{"--workers=65"}, "--workers must be a number from 1 to 64, not '65'"},
        {{"--workers=4x"}, "--workers must be a number from 1 to 64, not '4x'"},
        {{"--workers="}, "--workers must be a number from 1 to 64, not ''"},
        {{"--workers=99999999999999999999"}, "--workers must be a number from 1 to 64, not '99999999999999999999'"},
        {{"--colour=pink"}, "--colour must be red, green or blue, not 'pink'"},
        {{"--log-level=loud"}, "log level 'loud' is not one of debug, info, warn, error"},
        {{"--folder", "here"}, "--folder must be an absolute path"},
        {{"--own="}, "--own has no first letter"},
        {{"serve"}, "unexpected argument 'serve'; see prog --help"},
        {{"-"}, "unexpected argument '-'; see prog --help"},
        {{"--", "--once"}, "unexpected argument '--once'; see prog --help"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(options) struct options out;
        struct cr_error err = {0};
        assert_false(parse(&plain, cases[i].args, &out, NULL, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_string_equal(err.text, cases[i].says);
    }
}

static bool keep_word(void *out, const char *word, struct cr_error *err)
{
    struct options *options = out;
    (void)err;
    cr_strvec_add(&options->words, word);
    return true;
}

static bool no_twos(void *out, const struct cr_flag *flag, struct cr_error *err)
{
    struct options *options = out;
    options->tags |= flag->tag;
    return !cr_streq(flag->name, "color") || cr_error_set(err, CR_ERR_INVALID, "no --%s here", flag->name);
}

static void keep_wrong(void *out, const struct cr_error *wrong)
{
    struct options *options = out;
    cr_strvec_add(&options->wrong, wrong->text);
}

static const struct cr_flags hooked = {.program = "prog",
                                       .table = table,
                                       .len = cr_array_len(table),
                                       .word = keep_word,
                                       .seen = no_twos,
                                       .wrong = keep_wrong};

static void words_stand_anywhere_and_the_rest_behind_two_dashes(void **state)
{
    (void)state;
    CR_CLEANUP(options) struct options out;
    int rest = 0;
    assert_true(parse(&hooked, ARGS("--once", "envoy", "-", "--config=a", "stop", "--", "--once"), &out, &rest, NULL));
    cr_autofree char *words = cr_strvec_join(&out.words, ",");
    assert_string_equal(words, "envoy,-,stop");
    assert_int_equal(rest, 7);
    assert_int_equal(out.tags, 4);
    options_dispose(&out);
    assert_true(parse(&hooked, ARGS("stop"), &out, &rest, NULL));
    assert_int_equal(rest, 2); /* argc: nothing */
}

static void where_errors_are_kept_the_others_count(void **state)
{
    (void)state;
    CR_CLEANUP(options) struct options out;
    struct cr_error err = {0};
    assert_true(parse(&hooked,
                      ARGS("--workers=many", "--zebra", "--config=a", "--color=red", "--workers=7", "--timeout"), &out,
                      NULL, &err));
    cr_autofree char *wrong = cr_strvec_join(&out.wrong, "|");
    assert_string_equal(wrong, "--workers must be a number from 1 to 64, not 'many'|unknown flag '--zebra'; see prog "
                               "--help|no --color here|--timeout needs a value");
    assert_true(out.workers == 7 && out.colour == GREEN && out.timeout_ms == 0);
    assert_string_equal(out.config, "a");
    assert_int_equal(err.kind, CR_ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_stays),
        cmocka_unit_test(a_value_is_joined_or_follows),
        cmocka_unit_test(a_value_may_be_empty_or_look_like_a_flag),
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(a_plain_number_is_seconds_where_the_flag_says_so),
        cmocka_unit_test(letters_stand_for_names),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(words_stand_anywhere_and_the_rest_behind_two_dashes),
        cmocka_unit_test(where_errors_are_kept_the_others_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
