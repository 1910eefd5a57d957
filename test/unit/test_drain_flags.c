#include "drain/flags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

enum { ARGS_MAX = 24, S = 1000 };

/* line: words with one space between them, the program's name first. buf: where they are cut apart. */
static bool parse_in(const char *line, char *buf, size_t size, struct cr_drain_flags *out, struct cr_error *err)
{
    char *argv[ARGS_MAX + 1] = {NULL};
    int argc = 0;
    assert_true(strlen(line) < size);
    strcpy(buf, line);
    for (char *rest = NULL, *word = strtok_r(buf, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = word;
    }
    return cr_drain_flags_parse(argc, argv, out, err);
}

#define parse(line, out, err) parse_in((line), (char[512]){0}, 512, (out), (err))

static void must_parse(const char *line, char *buf, size_t size, struct cr_drain_flags *out)
{
    struct cr_error err = {0};
    if (!parse_in(line, buf, size, out, &err))
        fail_msg("%s: %s", line, err.text);
}

#define parsed(line, out) must_parse((line), (char[512]){0}, 512, (out))

/* --- defaults --- */

static void a_hook_has_what_needs_no_flags(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog shutdown", &flags);
    assert_int_equal(flags.command, CR_DRAIN_COMMAND_SHUTDOWN);
    assert_ptr_equal(flags.strategy, &cr_drain_envoy);
    assert_string_equal(flags.target.address, "127.0.0.1:9901");
    assert_false(flags.target.listeners);
    assert_int_equal(flags.rules.delay_ms, 0);
    assert_int_equal(flags.rules.min_duration_ms, 5 * S);
    assert_int_equal(flags.rules.timeout_ms, 25 * S);
    assert_int_equal(flags.rules.interval_ms, 1 * S);
    assert_int_equal(flags.rules.min_open, 0);
    assert_int_equal(flags.grace_ms, -1);
    assert_int_equal(flags.attempt_ms, 2 * S);
    assert_null(flags.address);
    assert_null(flags.ready_file);
    assert_string_equal(flags.log_file, "/proc/1/fd/2");
    assert_int_equal(flags.log_level, CR_LOG_INFO);
    assert_int_equal(flags.ignored.kind, CR_ERR_NONE);
}

static void a_sidecar_serves(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog serve", &flags);
    assert_int_equal(flags.command, CR_DRAIN_COMMAND_SERVE);
    assert_string_equal(flags.address, ":8090");
    assert_null(flags.ready_file);
    assert_int_equal(flags.ready_timeout_ms, -1);
    assert_false(flags.waits_for_file);
    assert_null(flags.log_file);
}

static void each_flag_has_its_place(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog shutdown --admin-address /run/admin.sock --drain-listeners --ignore-listener a --ignore-listener=b "
           "--attempt-timeout 500ms --address :1 --ready-file /r --log-file none --log-level debug",
           &flags);
    assert_string_equal(flags.target.address, "/run/admin.sock");
    assert_true(flags.target.listeners);
    cr_autofree char *ignored = cr_strvec_join(&flags.target.ignored, ",");
    assert_string_equal(ignored, "a,b");
    assert_int_equal(flags.attempt_ms, 500);
    assert_string_equal(flags.address, ":1");
    assert_string_equal(flags.ready_file, "/r");
    assert_null(flags.log_file);
    assert_int_equal(flags.log_level, CR_LOG_DEBUG);
}

static void times_and_numbers_have_theirs(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog serve --drain-delay 2s --min-drain-duration 3s --drain-timeout 2m --check-interval 250ms "
           "--min-open-connections 7 --ready-timeout 9s",
           &flags);
    assert_int_equal(flags.rules.delay_ms, 2 * S);
    assert_int_equal(flags.rules.min_duration_ms, 3 * S);
    assert_int_equal(flags.rules.timeout_ms, 120 * S);
    assert_int_equal(flags.rules.interval_ms, 250);
    assert_int_equal(flags.rules.min_open, 7);
    assert_int_equal(flags.ready_timeout_ms, 9 * S);
}

static void a_port_alone_is_on_loopback(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog shutdown --admin-port 9001", &flags);
    assert_string_equal(flags.target.address, "127.0.0.1:9001");
}

static void other_proxies_have_no_address_of_envoys(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog shutdown --proxy generic --begin-url http://127.0.0.1:8080/drain --count-url "
           "http://127.0.0.1:8080/metrics --count-metric open --begin-method PUT",
           &flags);
    assert_ptr_equal(flags.strategy, &cr_drain_generic);
    assert_null(flags.target.address);
    assert_string_equal(flags.target.begin_url, "http://127.0.0.1:8080/drain");
    assert_string_equal(flags.target.count_url, "http://127.0.0.1:8080/metrics");
    assert_string_equal(flags.target.count_metric, "open");
    assert_string_equal(flags.target.begin_method, "PUT");
    assert_int_equal(flags.ignored.kind, CR_ERR_NONE);
}

/* --- the grace period --- */

static void the_time_out_stays_below_the_grace_period(void **state)
{
    static const struct {
        const char *line;
        int64_t timeout_ms;
        int64_t min_duration_ms;
    } cases[] = {
        {"prog serve --termination-grace-period 60", 55 * S, 5 * S},
        {"prog serve --termination-grace-period 5m", 295 * S, 5 * S},
        {"prog serve --termination-grace-period 11", 6 * S, 3 * S},
        {"prog serve --termination-grace-period 8", 4 * S, 2 * S}, /* 5s is more than there is to spare */
        {"prog serve --termination-grace-period 60 --drain-timeout 30s", 30 * S, 5 * S},
        {"prog serve --drain-timeout 4s", 4 * S, 2 * S}, /* a default gives way */
        {"prog serve --drain-timeout 8s --drain-delay 6s", 8 * S, 1 * S},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        parsed(cases[i].line, &flags);
        assert_int_equal(flags.rules.timeout_ms, cases[i].timeout_ms);
        assert_int_equal(flags.rules.min_duration_ms, cases[i].min_duration_ms);
    }
}

/* --- the hook takes the default for what is wrong --- */

static void what_ends_serve_is_reported_to_the_hook(void **state)
{
    static const struct {
        const char *flags;
        const char *says;
    } cases[] = {
        {"--drain-timout 5s", "unknown flag '--drain-timout': is it --drain-timeout"},
        {"--drain-timeout soon", "--drain-timeout: 'soon' is not a duration"},
        {"--drain-timeout", "--drain-timeout needs a value"},
        {"--drain-timeout 0", "--drain-timeout must be at least 100ms, not '0'"},
        {"--check-interval 1ms", "--check-interval must be at least 100ms, not '1ms'"},
        {"--termination-grace-period 0", "--termination-grace-period must be at least 1s"},
        {"--min-open-connections -1", "--min-open-connections must be a number from 0"},
        {"--admin-port 99999", "--admin-port must be a number from 1 to 65535"},
        {"--admin-port 9001 --admin-address /a", "give either --admin-address or --admin-port"},
        {"--admin-address here", "'here' is neither the absolute path of a Unix socket nor an IP address"},
        {"--log-level loud", "log level 'loud'"},
        {"--drain-listeners=often", "--drain-listeners must be true or false"},
        {"-drain-timeout 5s", "the flag is --drain-timeout, with two dashes"},
        {"now", "unexpected argument 'now'"},
        {"-- --drain-timeout 5s", "unexpected argument '--drain-timeout' behind --"},
        {"--to /x", "--to is of no use here: it is a flag of install"},
        {"--serve-port 1", "--serve-port is Contour's or Envoy Gateway's"},
        {"--check-delay 1s", "--check-delay is Contour's or Envoy Gateway's"},
        {"--proxy envy", "--proxy: 'envy' is no proxy that can be drained: these are envoy"},
        {"--proxy generic", "--proxy generic needs --"},
        {"--drain-timeout 30s --termination-grace-period 30", "must be less than terminationGracePeriodSeconds 30s"},
        {"--drain-timeout 5s --min-drain-duration 5s", "must be less than --drain-timeout 5s"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char line[256];
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags serve;
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags hook;
        struct cr_error err = {0};
        snprintf(line, sizeof line, "prog serve %s", cases[i].flags);
        if (parse(line, &serve, &err))
            fail_msg("%s: was taken", line);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", line, err.text);
        snprintf(line, sizeof line, "prog shutdown %s", cases[i].flags);
        parsed(line, &hook);
        if (!strstr(hook.ignored.text, cases[i].says))
            fail_msg("%s: %s", line, hook.ignored.text);
    }
}

static void a_hook_keeps_what_is_right(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("prog shutdown --drain-timout=5s --check-interval often --drain-timeout 20s --admin-address [::1]:9 x",
           &flags);
    assert_int_equal(flags.rules.timeout_ms, 20 * S);
    assert_int_equal(flags.rules.interval_ms, 1 * S);
    assert_string_equal(flags.target.address, "[::1]:9");
    assert_true(cr_ends_with(flags.ignored.text, "; and 2 more"));
}

static void a_hook_clamps_times_that_do_not_fit(void **state)
{
    static const struct {
        const char *line;
        int64_t delay_ms;
        int64_t min_duration_ms;
        int64_t timeout_ms;
    } cases[] = {
        {"prog shutdown --drain-timeout 60s --termination-grace-period 30", 0, 5 * S, 25 * S},
        {"prog shutdown --drain-timeout 8s --termination-grace-period 8", 0, 4 * S - 2 * S, 4 * S},
        {"prog shutdown --drain-timeout 20s --min-drain-duration 1m", 0, 10 * S, 20 * S},
        {"prog shutdown --drain-timeout 20s --drain-delay 1m", 5 * S, 0, 20 * S},
        {"prog shutdown --drain-timeout 20s --drain-delay 1m --min-drain-duration 1m", 5 * S, 10 * S, 20 * S},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        parsed(cases[i].line, &flags);
        if (flags.rules.delay_ms != cases[i].delay_ms || flags.rules.min_duration_ms != cases[i].min_duration_ms ||
            flags.rules.timeout_ms != cases[i].timeout_ms)
            fail_msg("%s: %lld %lld %lld", cases[i].line, (long long)flags.rules.delay_ms,
                     (long long)flags.rules.min_duration_ms, (long long)flags.rules.timeout_ms);
        assert_int_not_equal(flags.ignored.kind, CR_ERR_NONE);
        struct cr_error err = {0};
        assert_true(cr_drain_rules_check(&flags.rules, flags.grace_ms < 0 ? INT64_MAX : flags.grace_ms, &err));
    }
}

/* Which proxy it was is not known then: neither is it asked to drain, nor does it count as drained. */
static void a_hook_that_cannot_reach_the_proxy_never_succeeds(void **state)
{
    static const char *const cases[] = {"prog shutdown --proxy envy", "prog shutdown --proxy generic",
                                        "prog shutdown --admin-address here"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        const struct cr_drain_attempt attempt = {.cancel_fd = -1};
        struct cr_drain_count count;
        struct cr_error err = {0};
        parsed(cases[i], &flags);
        assert_string_equal(flags.strategy->name, "none");
        assert_false(flags.strategy->begin(&flags.target, &attempt, &err));
        assert_false(flags.strategy->count(&flags.target, &attempt, &count, &err));
        assert_int_equal(flags.rules.timeout_ms, 25 * S);
    }
}

/* --- commands --- */

static void a_command_is_needed_and_known(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"prog", "a command is missing: serve, shutdown or install"},
        {"prog --drain-timeout 5s", "a command is missing"},
        {"prog shut", "unknown command 'shut': there are serve, shutdown and install"},
        {"prog shutdown-manager", "unknown command 'shutdown-manager'"},
        {"prog envoy", "a command is missing"},
        {"prog envoy serve", "unknown command 'serve': there are envoy shutdown-manager and envoy shutdown"},
        {"prog envoy install", "unknown command 'install'"},
        {"prog serve shutdown", "unexpected argument 'shutdown'"},
        {"prog serve --address 0", "serve needs an --address to serve at"},
        {"prog install", "install needs --to"},
        {"prog install --to here", "install needs --to and the absolute path"},
        {"prog install --to /x --drain-timeout 5s",
         "--drain-timeout is of no use here: it is a flag of serve and shut"},
        {"prog install --to /x --ready-timeout 5s", "it is a flag of serve"},
        {"prog shutdown --ready-timeout 5s", NULL},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        struct cr_error err = {0};
        bool ok = parse(cases[i].line, &flags, &err);
        assert_int_equal(ok, !cases[i].says);
        if (!ok && !strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].line, err.text);
    }
}

static void help_and_version_win(void **state)
{
    static const char *const cases[] = {
        "prog --help",       "prog -h", "prog --version", "prog serve --nonsense --help", "prog shutdown --version",
        "prog frobnicate -h"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        parsed(cases[i], &flags);
        assert_int_equal(flags.command, CR_DRAIN_COMMAND_NONE);
        assert_int_equal(flags.help, !strstr(cases[i], "--version"));
        assert_int_equal(flags.version, strstr(cases[i], "--version") != NULL);
    }
}

static void install_holds_the_hook_to_its_flags(void **state)
{
    static const struct {
        const char *line;
        const char *says; /* NULL: nothing is wrong */
    } cases[] = {
        {"prog install --to /shared", NULL},
        {"prog install --to /shared --", NULL},
        {"prog install --to /shared -- --drain-timeout 20s", NULL},
        {"prog install --to /shared -- shutdown --drain-timeout 20s", NULL},
        {"prog install --to /shared -- envoy shutdown --exit-at-connections 3", NULL},
        {"prog install --to /shared -- --drain-timout 20s", "unknown flag '--drain-timout'"},
        {"prog install --to /shared -- --drain-timeout 30s --termination-grace-period 30", "must be less than"},
        {"prog install --to /shared -- --proxy generic", "--proxy generic needs"},
        {"prog install --to /shared -- serve", "unexpected argument 'serve'"},
        {"prog install --to /shared -- envoy shutdown-manager", "they are not those of shutdown"},
        {"prog install --to /shared -- envoy shut", "unknown command 'shut'"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        struct cr_error err = {0};
        bool ok = parse(cases[i].line, &flags, &err);
        if (ok != !cases[i].says || (!ok && !strstr(err.text, cases[i].says)))
            fail_msg("%s: %s", cases[i].line, err.text);
        if (ok)
            assert_string_equal(flags.install_to, "/shared");
        else
            assert_true(cr_starts_with(err.text, "the flags of the hook, behind --: "));
    }
}

/* --- Contour and Envoy Gateway --- */

static const char contour_socket[] = "/admin/admin.sock";
static const char gateway_admin[] = "localhost:19000";

static void the_name_or_the_first_flag_decides_which_program_it_replaces(void **state)
{
    static const struct {
        const char *line;
        const char *admin;
    } cases[] = {
        {"/bin/contour envoy shutdown", contour_socket},
        {"contour envoy shutdown --drain-timeout 9s", contour_socket}, /* which only the other has: an addition */
        {"/usr/local/bin/envoy-gateway envoy shutdown", gateway_admin},
        {"envoy-gateway envoy shutdown --check-interval 2s", gateway_admin},
        {"prog envoy shutdown", contour_socket},
        {"prog envoy shutdown --check-delay 2s", contour_socket},
        {"prog envoy shutdown --min-open-connections 2 --drain-timeout 9s", contour_socket},
        {"prog envoy shutdown --drain-timeout=60s --min-drain-duration=10s", gateway_admin},
        {"prog envoy shutdown --exit-at-connections 2", gateway_admin},
        {"prog shutdown", "127.0.0.1:9901"},
        {"envoy-gateway shutdown", "127.0.0.1:9901"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
        parsed(cases[i].line, &flags);
        if (!cr_streq(flags.target.address, cases[i].admin) || flags.ignored.kind != CR_ERR_NONE)
            fail_msg("%s: %s %s", cases[i].line, flags.target.address, flags.ignored.text);
    }
}

/* cmd/contour/shutdownmanager.go of Contour. */
static void contour_has_its_defaults(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags hook;
    parsed("contour envoy shutdown", &hook);
    assert_int_equal(hook.command, CR_DRAIN_COMMAND_SHUTDOWN);
    assert_int_equal(hook.rules.interval_ms, 5 * S);
    assert_int_equal(hook.rules.min_duration_ms, 0);
    assert_int_equal(hook.rules.timeout_ms, CR_DRAIN_UNBOUNDED_MS);
    assert_string_equal(hook.ready_file, "/admin/ok");
    assert_string_equal(hook.log_file, "/proc/1/fd/2");
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags sidecar;
    parsed("contour --log-format=json envoy shutdown-manager", &sidecar);
    assert_int_equal(sidecar.command, CR_DRAIN_COMMAND_SERVE);
    assert_string_equal(sidecar.address, ":8090");
    assert_string_equal(sidecar.ready_file, "/admin/ok");
    assert_int_equal(sidecar.ready_timeout_ms, -1);
    assert_true(sidecar.waits_for_file);
}

static void contour_has_its_flags(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags hook;
    parsed("contour envoy shutdown --admin-address /a.sock --admin-port 9001 --check-delay 4s --check-interval 2s "
           "--drain-delay 3s --min-open-connections 5 --ready-file /ok",
           &hook);
    assert_string_equal(hook.target.address, "/a.sock");
    assert_int_equal(hook.rules.min_duration_ms, 4 * S);
    assert_int_equal(hook.rules.interval_ms, 2 * S);
    assert_int_equal(hook.rules.delay_ms, 3 * S);
    assert_int_equal(hook.rules.min_open, 5);
    assert_string_equal(hook.ready_file, "/ok");
    assert_int_equal(hook.ignored.kind, CR_ERR_NONE);
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags sidecar;
    parsed("contour envoy shutdown-manager --serve-port 8099 --ready-file /ok", &sidecar);
    assert_string_equal(sidecar.address, ":8099");
    assert_string_equal(sidecar.ready_file, "/ok");
}

static void contours_time_out_is_that_of_the_pod_once_it_is_known(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    parsed("contour envoy shutdown --termination-grace-period 300", &flags);
    assert_int_equal(flags.rules.timeout_ms, 295 * S);
}

/* internal/cmd/envoy.go and internal/cmd/envoy/shutdown_manager.go of Envoy Gateway. */
static void envoy_gateway_has_its_defaults_and_flags(void **state)
{
    (void)state;
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags hook;
    parsed("envoy-gateway envoy shutdown", &hook);
    assert_int_equal(hook.rules.timeout_ms, 60 * S);
    assert_int_equal(hook.rules.min_duration_ms, 10 * S);
    assert_int_equal(hook.rules.interval_ms, 1 * S);
    assert_string_equal(hook.ready_file, "/tmp/shutdown-ready");
    assert_false(hook.target.listeners);
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags given;
    parsed("envoy-gateway envoy shutdown --drain-timeout=1m30s --min-drain-duration=15s --exit-at-connections=3 "
           "--health-check-failure-delay=5s",
           &given);
    assert_int_equal(given.rules.timeout_ms, 90 * S);
    assert_int_equal(given.rules.min_duration_ms, 15 * S);
    assert_int_equal(given.rules.min_open, 3);
    assert_true(given.target.listeners);
    assert_int_equal(given.ignored.kind, CR_ERR_NONE);
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags sidecar;
    parsed("envoy-gateway envoy shutdown-manager --ready-timeout=310s", &sidecar);
    assert_string_equal(sidecar.address, ":19002");
    assert_int_equal(sidecar.ready_timeout_ms, 310 * S);
    assert_true(sidecar.waits_for_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_has_what_needs_no_flags),
        cmocka_unit_test(a_sidecar_serves),
        cmocka_unit_test(each_flag_has_its_place),
        cmocka_unit_test(times_and_numbers_have_theirs),
        cmocka_unit_test(a_port_alone_is_on_loopback),
        cmocka_unit_test(other_proxies_have_no_address_of_envoys),
        cmocka_unit_test(the_time_out_stays_below_the_grace_period),
        cmocka_unit_test(what_ends_serve_is_reported_to_the_hook),
        cmocka_unit_test(a_hook_keeps_what_is_right),
        cmocka_unit_test(a_hook_clamps_times_that_do_not_fit),
        cmocka_unit_test(a_hook_that_cannot_reach_the_proxy_never_succeeds),
        cmocka_unit_test(a_command_is_needed_and_known),
        cmocka_unit_test(help_and_version_win),
        cmocka_unit_test(install_holds_the_hook_to_its_flags),
        cmocka_unit_test(the_name_or_the_first_flag_decides_which_program_it_replaces),
        cmocka_unit_test(contour_has_its_defaults),
        cmocka_unit_test(contour_has_its_flags),
        cmocka_unit_test(contours_time_out_is_that_of_the_pod_once_it_is_known),
        cmocka_unit_test(envoy_gateway_has_its_defaults_and_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
