#include "workload/shutdown_hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "support/yamltext.h"

enum { U = CR_SHUTDOWN_UNKNOWN_MS };

#define OURS              "/certroll/certroll-shutdown-manager, shutdown"
#define EXEC(name, words) "{name: " name ", image: 'x:1', lifecycle: {preStop: {exec: {command: [" words "]}}}}"
#define GET(name, path, port)                                                                                          \
    "{name: " name ", image: 'x:1', ports: [{name: http, containerPort: 8090}], lifecycle: {preStop: {httpGet: {"      \
    "path: " path ", port: " port "}}}}"
#define RUNS(name, image, more) "{name: " name ", image: '" image "', " more "}"
#define POD(grace, containers)  "terminationGracePeriodSeconds: " grace "\ncontainers: [" containers "]"

/* "envoy, manager" */
static char *containers_of(const struct cr_shutdown_hooks *hooks)
{
    struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < hooks->len; i++)
        cr_buf_printf(&text, "%s%s", i ? ", " : "", hooks->items[i].container);
    return cr_buf_steal(&text);
}

struct found {
    const char *rule, *pod;
    const char *containers; /* that have a hook */
    int64_t most_ms;
};

static void assert_found(const struct found *cases, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
        cr_shutdown_hooks_find(pod, &hooks);
        cr_autofree char *containers = containers_of(&hooks);
        cr_autofree char *misfit = cr_shutdown_hooks_misfit(&hooks);
        if (!cr_streq(containers, cases[i].containers) || cr_shutdown_hooks_most_ms(&hooks) != cases[i].most_ms ||
            misfit)
            fail_msg("%s: [%s], %lld ms, %s", cases[i].rule, containers, (long long)cr_shutdown_hooks_most_ms(&hooks),
                     cr_or_empty(misfit));
    }
}

static void a_hook_that_runs_a_shutdown_manager(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"ours, with its defaults", POD("30", EXEC("envoy", OURS)), "envoy", 25000},
        {"with a time-out", POD("600", EXEC("envoy", OURS ", '--drain-timeout=5m'")), "envoy", 300000},
        {"with the grace period that the pod has", POD("300", EXEC("envoy", OURS ", --termination-grace-period=300s")),
         "envoy", 295000},
        {"of a pod that says nothing of its grace period", "containers: [" EXEC("envoy", OURS) "]", "envoy", 25000},
        {"in a sidecar",
         "initContainers: [{name: side, restartPolicy: Always, lifecycle: {preStop: {exec: {command: [" OURS
         "]}}}}]\ncontainers: [{name: app}]",
         "side", 25000},
        {"Envoy Gateway's original",
         POD("360",
             EXEC("manager", "envoy-gateway, envoy, shutdown, '--drain-timeout=70s', '--min-drain-duration=5s'")),
         "manager", 70000},
        {"with what it takes when it is told nothing", POD("360", EXEC("manager", "envoy-gateway, envoy, shutdown")),
         "manager", 60000},
        {"Contour's original has no time-out", POD("300", EXEC("manager", "/bin/contour, envoy, shutdown")), "manager",
         U},
        {"ours in its place, with one",
         POD("300", EXEC("manager", "/bin/contour, envoy, shutdown, --drain-timeout=2m")), "manager", 120000},
        {"through a shell nothing is known of its times",
         POD("300", EXEC("envoy", "/bin/sh, -c, 'exec /x/certroll-shutdown-manager shutdown --drain-timeout=1m'")),
         "envoy", U},
        {"through another program", POD("300", EXEC("envoy", "timeout, '60', certroll-shutdown-manager, shutdown")),
         "envoy", U},
        {"Contour's through a shell", POD("300", EXEC("envoy", "sh, -c, 'contour envoy shutdown; sleep 1'")), "envoy",
         U},
        {"a variable that nobody expands", POD("300", EXEC("envoy", OURS ", '--drain-timeout=$(TIMEOUT)'")), "envoy",
         U},
        {"two of them: the longest counts",
         POD("300", EXEC("envoy", OURS ", --drain-timeout=1m") ", " EXEC("other", OURS ", --drain-timeout=2m")),
         "envoy, other", 120000},
        {"one of them without an end", POD("300", EXEC("envoy", OURS) ", " EXEC("m", "contour, envoy, shutdown")),
         "envoy, m", U},
        {"a sleep lets nothing go", POD("300", EXEC("envoy", "sleep, '15'")), "", 0},
        {"nor does a quit", POD("300", EXEC("nginx", "sh, -c, 'nginx -s quit; sleep 5'")), "", 0},
        {"a shell that shuts something else down", POD("300", EXEC("app", "sh, -c, 'curl localhost/shutdown'")), "", 0},
        {"another command of ours", POD("300", EXEC("envoy", "certroll-shutdown-manager, serve")), "", 0},
        {"Contour itself", POD("300", EXEC("contour", "contour, shutdown")), "", 0},
        {"a postStart hook", "containers: [{name: envoy, lifecycle: {postStart: {exec: {command: [" OURS "]}}}}]", "",
         0},
        {"an init container that ends",
         "initContainers: [{name: init, lifecycle: {preStop: {exec: {command: [" OURS "]}}}}]", "", 0},
        {"no hook at all", POD("300", "{name: app, image: 'x:1'}"), "", 0},
        {"no words", POD("300", EXEC("envoy", "")), "", 0},
    };
    assert_found(cases, cr_array_len(cases));
}

#define MANAGER(more) RUNS("manager", "certroll.dev/shutdown-manager:0.1.0", "args: [serve" more "]")

static void a_hook_that_asks_a_shutdown_manager(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"ours beside it", POD("30", GET("envoy", "/shutdown", "8090") ", " MANAGER("")), "envoy", 25000},
        {"as a sidecar",
         "terminationGracePeriodSeconds: 300\ninitContainers: [{name: m, restartPolicy: Always, image: "
         "'r/shutdown-manager', "
         "args: [serve, --termination-grace-period=300s]}]\ncontainers: [" GET("envoy", "/shutdown", "8090") "]",
         "envoy", 295000},
        {"by its port's name", POD("30", GET("envoy", "/shutdown", "http") ", " MANAGER("")), "envoy", 25000},
        {"by a text of digits", POD("30", GET("envoy", "/shutdown", "'8090'") ", " MANAGER("")), "envoy", 25000},
        {"with a query", POD("30", GET("envoy", "'/shutdown?x=1'", "8090") ", " MANAGER("")), "envoy", 25000},
        {"at another address", POD("30", GET("envoy", "/shutdown", "9000") ", " MANAGER(", '--address=[::]:9000'")),
         "envoy", 25000},
        {"of the two that there are, the one with that port",
         POD("300", GET("envoy", "/shutdown", "9000") ", " MANAGER(", --drain-timeout=1m") ", " RUNS(
                        "other", "shutdown-manager", "args: [serve, '--address=:9000', --drain-timeout=2m]")),
         "envoy", 120000},
        {"a variable of the template's",
         POD("300", GET("envoy", "/shutdown", "8090") ", " RUNS("m", "r/shutdown-manager@sha256:00",
                                                                "env: [{name: T, value: 3m}], args: [serve, "
                                                                "'--drain-timeout=$(T)']")),
         "envoy", 180000},
        {"a variable from elsewhere",
         POD("30", GET("envoy", "/shutdown", "9999") ", " RUNS("m", "r/shutdown-manager",
                                                               "env: [{name: T, valueFrom: {}}], args: [serve, "
                                                               "'--drain-timeout=$(T)']")),
         "envoy", U},
        {"through a shell",
         POD("30", GET("envoy", "/shutdown", "9999") ", " RUNS("m", "x",
                                                               "command: [sh, -c, 'exec "
                                                               "certroll-shutdown-manager serve']")),
         "envoy", U},
        {"flags that it does not take, so that it never runs",
         POD("30", GET("envoy", "/shutdown", "8090") ", " MANAGER(", --nonsense")), "envoy", U},
        {"Contour's waits for a file without an end",
         POD("300", GET("envoy", "/shutdown", "8090") ", " RUNS("m", "ghcr.io/projectcontour/contour:v1.33.8",
                                                                "command: [/bin/contour], args: [envoy, "
                                                                "shutdown-manager]")),
         "envoy", U},
        {"by its image alone",
         POD("300", GET("envoy", "/shutdown", "8100") ", " RUNS("m", "ghcr.io/projectcontour/contour:v1.33.8",
                                                                "args: [envoy, shutdown-manager, --serve-port=8100]")),
         "envoy", U},
        {"of an image that nobody knows, by its words",
         POD("300", GET("envoy", "/shutdown", "8090") ", " RUNS("m", "r/gw", "args: [envoy, shutdown-manager]")),
         "envoy", U},
        {"Envoy Gateway's, which has an end",
         POD("360", GET("envoy", "/shutdown/ready", "19002") ", " RUNS("m", "docker.io/envoyproxy/gateway:v1.9.1",
                                                                       "command: [envoy-gateway], args: [envoy, "
                                                                       "shutdown-manager, --ready-timeout=80s]")),
         "envoy", 80000},
        {"the end of the hook that it waits for is its own",
         POD("360",
             GET("envoy", "/shutdown/ready", "19002") ", {name: m, image: 'envoyproxy/gateway:v1', args: [envoy, "
                                                      "shutdown-manager, --ready-timeout=80s], lifecycle: "
                                                      "{preStop: {exec: {command: [envoy-gateway, envoy, "
                                                      "shutdown, --drain-timeout=70s]}}}}"),
         "envoy, m", 70000},
        {"another port", POD("30", GET("envoy", "/shutdown", "8091") ", " MANAGER("")), "", 0},
        {"another path", POD("30", GET("envoy", "/shutdowns", "8090") ", " MANAGER("")), "", 0},
        {"nobody who serves it", POD("30", GET("app", "/shutdown", "8090")), "", 0},
        {"Contour itself serves something else",
         POD("30", GET("app", "/shutdown", "8090") ", " RUNS("contour", "contour", "args: [serve, --incluster]")), "",
         0},
        {"an init container that ends",
         "initContainers: [{name: m, image: 'r/shutdown-manager', args: [serve]}]\ncontainers: [" GET(
             "envoy", "/shutdown", "8090") "]",
         "", 0},
    };
    assert_found(cases, cr_array_len(cases));
}

static void times_that_cannot_hold_in_the_pod_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod;
        const char *says; /* NULL: nothing */
    } cases[] = {
        {"a time-out beyond the grace period", POD("30", EXEC("envoy", OURS ", --drain-timeout=5m")),
         "container envoy: --drain-timeout 5m must be less than terminationGracePeriodSeconds 30s"},
        {"beyond the one that a pod has by default", "containers: [" EXEC("envoy", OURS ", --drain-timeout=60") "]",
         "container envoy: --drain-timeout 1m must be less than terminationGracePeriodSeconds 30s"},
        {"as long as the grace period", POD("60", EXEC("envoy", OURS ", --drain-timeout=60")), "must be less than"},
        {"a second less", POD("61", EXEC("envoy", OURS ", --drain-timeout=60")), NULL},
        {"a grace period beyond the pod's", POD("30", EXEC("envoy", OURS ", --termination-grace-period=300s")),
         "container envoy: --termination-grace-period 5m is not what the pod has, terminationGracePeriodSeconds 30s: "
         "give both the same, or the kubelet ends the proxy in the midst of its drain"},
        {"one below", POD("300", EXEC("envoy", OURS ", --termination-grace-period=30s")),
         "or connections are given less time than there is"},
        {"flags that are not taken", POD("60", EXEC("envoy", OURS ", --drain-timeot=50s")),
         "container envoy: not all of its flags are taken: "},
        {"of the manager that it asks",
         POD("30", GET("envoy", "/shutdown", "8090") ", " MANAGER(", --drain-timeout=1m")),
         "container manager, which the preStop of envoy asks: --drain-timeout 1m must be less than"},
        {"one that two ask is told of each",
         POD("30",
             GET("a", "/shutdown", "8090") ", " GET("b", "/shutdown", "8090") ", " MANAGER(", --drain-timeout=1m")),
         "; container manager, which the preStop of b asks"},
        {"no time at all", POD("0", EXEC("envoy", OURS)), "must be less than terminationGracePeriodSeconds 0s"},
        {"a page that only waits for another hook drains nothing",
         POD("30", GET("envoy", "/shutdown/ready", "19002") ", " RUNS("m", "envoyproxy/gateway",
                                                                      "args: [envoy, shutdown-manager]")),
         NULL},
        {"no time-out of its own is none that is too long", POD("30", EXEC("m", "contour, envoy, shutdown")), NULL},
        {"of times that are not known nothing is wrong",
         POD("30", EXEC("envoy", OURS ", '--drain-timeout=$(X)', --termination-grace-period=1h")), NULL},
        {"nor of a shell's",
         POD("30", EXEC("envoy", "sh, -c, 'certroll-shutdown-manager shutdown --drain-timeout=1h'")), NULL},
        {"no hook", POD("0", "{name: app}"), NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
        cr_shutdown_hooks_find(pod, &hooks);
        cr_autofree char *misfit = cr_shutdown_hooks_misfit(&hooks);
        if (cases[i].says ? !misfit || !strstr(misfit, cases[i].says) : misfit != NULL)
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(misfit));
        assert_true(cr_shutdown_hooks_most_ms(&hooks) <= hooks.grace_ms);
    }
}

static void what_is_no_pod_has_none(void **state)
{
    (void)state;
    static const char *const pods[] = {"{}",
                                       "[]",
                                       "containers: x",
                                       "containers: [x, {name: y, lifecycle: z}]",
                                       "containers: [{lifecycle: {preStop: {exec: {command: [" OURS "]}}}}]",
                                       "{terminationGracePeriodSeconds: -1, containers: [{name: a, lifecycle: "
                                       "{preStop: {httpGet: {path: 1, port: {}}}}}]}"};
    for (size_t i = 0; i < cr_array_len(pods); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(pods[i]);
        CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
        cr_shutdown_hooks_find(pod, &hooks);
        assert_int_equal(hooks.len, 0);
        assert_int_equal(hooks.grace_ms, 30000);
    }
    CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
    cr_shutdown_hooks_find(NULL, &hooks);
    assert_int_equal(hooks.len, 0);
}

/* A template of others, as large as the API server takes it: each hook could ask each container. */
static void a_pod_of_thousands_of_containers_is_read_once(void **state)
{
    (void)state;
    enum { CONTAINERS = 3000, WORDS = 5000 };
    CR_CLEANUP(cr_json) struct cr_json *pod = cr_json_new_object();
    CR_CLEANUP(cr_json) struct cr_json *asks = test_yaml(GET("app", "/shutdown", "8090"));
    struct cr_json *containers = cr_json_new_array();
    for (int i = 0; i < CONTAINERS; i++)
        cr_json_add(containers, cr_json_copy(asks));
    CR_CLEANUP(cr_json) struct cr_json *wordy = test_yaml(EXEC("wordy", OURS));
    struct cr_json *hook = cr_json_edit(cr_json_edit(cr_json_edit(wordy, "lifecycle"), "preStop"), "exec");
    for (int i = 0; i < WORDS; i++)
        cr_json_add(cr_json_edit(hook, "command"), cr_json_new_string("--drain-timeot=1s"));
    cr_json_add(containers, cr_json_copy(wordy));
    cr_json_add(containers, test_yaml(MANAGER("")));
    cr_json_set(pod, "containers", containers);

    clock_t began = clock(); /* of the processor: a busy machine does not count */
    CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
    cr_shutdown_hooks_find(pod, &hooks);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    assert_int_equal(hooks.len, CONTAINERS + 1);
    assert_int_equal(cr_shutdown_hooks_most_ms(&hooks), U); /* so many words are not read */
    if (seconds > 2)
        fail_msg("%.1f s of the processor for one pod", seconds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_that_runs_a_shutdown_manager),
        cmocka_unit_test(a_hook_that_asks_a_shutdown_manager),
        cmocka_unit_test(times_that_cannot_hold_in_the_pod_are_reported),
        cmocka_unit_test(what_is_no_pod_has_none),
        cmocka_unit_test(a_pod_of_thousands_of_containers_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
