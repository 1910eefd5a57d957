#include "workload/sidecar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/yamltext.h"

#define PORT    "ports: [{name: metrics, containerPort: 1}, {name: certroll-reload, containerPort: 9950}]"
#define SIDECAR "{name: sidecar, image: 'r:1', " PORT "}"

static void test_a_sidecar_is_known_by_its_port(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod;
        const char *container; /* NULL: there is none */
        int port;
    } cases[] = {
        {"a container", "containers: [{name: app}, " SIDECAR "]", "sidecar", 9950},
        {"an init container that keeps running",
         "initContainers: [{name: a}, {name: side, restartPolicy: Always, " PORT "}]\ncontainers: [{name: app}]",
         "side", 9950},
        {"an init container that ends", "initContainers: [{name: a, " PORT "}]\ncontainers: [{name: app}]", NULL, 0},
        {"one that is restarted on failure ends, too",
         "initContainers: [{name: a, restartPolicy: OnFailure, " PORT "}]\ncontainers: [{name: app}]", NULL, 0},
        {"the first of two", "containers: [{name: one, " PORT "}, " SIDECAR "]", "one", 9950},
        {"containers before init containers",
         "initContainers: [{name: side, restartPolicy: Always, " PORT "}]\ncontainers: [" SIDECAR "]", "sidecar", 9950},
        {"a port without a number", "containers: [{name: a, ports: [{name: certroll-reload, containerPort: metrics}]}]",
         NULL, 0},
        {"a number that is no port", "containers: [{name: a, ports: [{name: certroll-reload, containerPort: 65536}]}]",
         NULL, 0},
        {"a container without a name", "containers: [{" PORT "}]", NULL, 0},
        {"ports that are none", "containers: [{name: a, ports: {name: certroll-reload}}]", NULL, 0},
        {"no containers", "volumes: []", NULL, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        struct cr_sidecar_container sidecar = cr_sidecar_find(pod);
        if (!cr_streq(sidecar.container, cases[i].container) || sidecar.port != cases[i].port)
            fail_msg("%s: %s, port %d", cases[i].rule, cr_or_empty(sidecar.container), sidecar.port);
    }
    assert_null(cr_sidecar_find(NULL).container);
}

/* --- what it has --- */

#define WITH(mounts)                                                                                                   \
    "containers: [{name: sidecar, " PORT ", volumeMounts: [" mounts "]}, {name: app, volumeMounts: "                   \
    "[{name: all, mountPath: /app}]}]\nvolumes: [{name: all, secret: {secretName: tls}}, {name: crt, secret: "         \
    "{secretName: tls, items: "                                                                                        \
    "[{key: tls.crt, path: c}]}}, {name: key, secret: {secretName: tls, items: [{key: tls.key, path: k}]}}, "          \
    "{name: ca, projected: {sources: [{secret: {name: tls, items: [{key: ca.crt, path: ca}]}}]}}, {name: other, "      \
    "secret: {secretName: other}}]"
#define MOUNT(volume) "{name: " volume ", mountPath: /" volume "}"

static void test_what_a_sidecar_has_of_a_secret(void **state)
{
    (void)state;
    enum { L = CR_CLASS_LEAF, T = CR_CLASS_TRUST };
    static const struct {
        const char *rule, *pod;
        unsigned classes;
    } cases[] = {
        {"a volume with all keys", WITH(MOUNT("all")), L | T},
        {"certificate and key of two volumes", WITH(MOUNT("crt") ", " MOUNT("key")), L},
        {"a certificate alone", WITH(MOUNT("crt")), 0},
        {"a key alone", WITH(MOUNT("key")), 0},
        {"CAs alone, projected", WITH(MOUNT("ca")), T},
        {"another Secret", WITH(MOUNT("other")), 0},
        {"by subPath", WITH("{name: all, mountPath: /x, subPath: ca.crt}"), 0},
        {"a volume that is not there", WITH(MOUNT("gone")), 0},
        {"no sidecar",
         "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x}]}]\nvolumes: [{name: v, secret: "
         "{secretName: tls}}]",
         0},
    };
    char name[] = "tls", crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = ca};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        struct cr_sidecar_container sidecar = cr_sidecar_find(pod);
        unsigned classes = cr_sidecar_classes(pod, &sidecar, &secret);
        if (classes != cases[i].classes)
            fail_msg("%s: %u", cases[i].rule, classes);
    }
}

/* --- what is made once --- */

static void test_its_init_container_is_of_its_image_and_says_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *init;
        bool prepares;
    } cases[] = {
        {"among the arguments", "{name: init, image: 'r:1', args: [--config, x, --once]}", true},
        {"in the command", "{name: init, image: 'r:1', command: [certroll-sidecar, --once]}", true},
        {"without the word", "{name: init, image: 'r:1', args: [--check]}", false},
        {"another image", "{name: init, image: 'r:2', args: [--once]}", false},
        {"no image", "{name: init, args: [--once]}", false},
        {"it keeps running", "{name: init, image: 'r:1', restartPolicy: Always, args: [--once]}", false},
        {"another name", "{name: other, image: 'r:1', args: [--once]}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_asprintf("initContainers: [%s]\ncontainers: [" SIDECAR "]", cases[i].init);
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(text);
        struct cr_sidecar_container sidecar = cr_sidecar_find(pod);
        if (cr_sidecar_prepares(pod, &sidecar, "init") != cases[i].prepares)
            fail_msg("%s", cases[i].rule);
    }
    CR_CLEANUP(cr_json) struct cr_json *alone = test_yaml("initContainers: [{name: init, image: r, args: [--once]}]");
    assert_false(cr_sidecar_prepares(alone, &(struct cr_sidecar_container){0}, "init"));
}

/* --- who reads what it makes --- */

static void test_readers_share_a_volume_with_it(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *pod;
        const char *readers; /* by spaces */
    } cases[] = {
        {"an empty volume",
         "containers: [{name: a}, {name: b, volumeMounts: [{name: run}]}, {name: r, " PORT
         ", volumeMounts: [{name: run}]}]\n"
         "volumes: [{name: run, emptyDir: {}}]",
         "b"},
        {"a Secret is no shared volume: all",
         "containers: [{name: a}, {name: b, volumeMounts: [{name: s}]}, {name: r, " PORT
         ", volumeMounts: [{name: s}]}]\n"
         "volumes: [{name: s, secret: {secretName: x}}]",
         "a b"},
        {"nor a ConfigMap, nor one that is not there",
         "containers: [{name: a, volumeMounts: [{name: c}, {name: gone}]}, {name: b}, {name: r, " PORT
         ", volumeMounts: [{name: c}, {name: gone}]}]\nvolumes: [{name: c, configMap: {name: x}}]",
         "a b"},
        {"sidecars among the init containers read, what ends does not",
         "initContainers: [{name: i, volumeMounts: [{name: run}]}, {name: s, restartPolicy: Always, volumeMounts: "
         "[{name: "
         "run}]}]\ncontainers: [{name: a}, {name: r, " PORT ", volumeMounts: [{name: run}]}]\n"
         "volumes: [{name: run, emptyDir: {}}]",
         "s"},
        {"alone in its pod", "containers: [{name: r, " PORT "}]", ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        size_t len = 0;
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(cases[i].pod);
        struct cr_sidecar_container sidecar = cr_sidecar_find(pod);
        cr_autofree const struct cr_json **readers = cr_sidecar_readers(pod, &sidecar, &len);
        CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
        for (size_t k = 0; k < len; k++)
            cr_strvec_add(&names, cr_json_string_at(readers[k], "name"));
        cr_autofree char *text = cr_strvec_join(&names, " ");
        if (!cr_streq(text, cases[i].readers))
            fail_msg("%s: %s", cases[i].rule, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sidecar_is_known_by_its_port),
        cmocka_unit_test(test_what_a_sidecar_has_of_a_secret),
        cmocka_unit_test(test_its_init_container_is_of_its_image_and_says_once),
        cmocka_unit_test(test_readers_share_a_volume_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
