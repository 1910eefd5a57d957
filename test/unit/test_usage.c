#include "catalogue/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/buffer.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "support/yamltext.h"

/* All usages as text, a line each: container kind directory key=path,…; "init" behind containers that run once. */
static char *as_text(const struct cr_usage_list *list)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < list->len; i++) {
        const struct cr_usage *u = &list->items[i];
        cr_buf_printf(&buf, "%s%s%s %s %s", i ? "\n" : "", u->container, u->init ? "(init)" : "",
                      cr_usage_kind_name(u->kind), u->directory ? u->directory : "-");
        assert_int_equal(u->keys.len, u->paths.len);
        for (size_t k = 0; k < u->keys.len; k++)
            cr_buf_printf(&buf, "%s%s=%s", k ? "," : " ", u->keys.items[k], u->paths.items[k]);
    }
    return cr_buf_steal(&buf);
}

/* clang-format off */
static const struct usage_case {
    const char *rule;
    const char *pod_spec;
    const char *usages; /* of Secret "tls" */
} cases[] = {
    {"an empty pod uses nothing", "{}", ""},
    {"a Secret volume without items brings all keys",
     "containers: [{name: app, image: a, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /certs"},
    {"a slash at the end of the mount path says nothing",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs/}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /certs"},
    {"items rename keys",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, defaultMode: 256, items: [{key: tls.crt, path: server.pem}, "
     "{key: tls.key, path: private/server.key, mode: 256}]}}]",
     "app Volume /certs tls.crt=/certs/server.pem,tls.key=/certs/private/server.key"},
    {"another Secret is no usage",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls2}}]",
     ""},
    {"a ConfigMap of the same name is no usage",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, configMap: {name: tls}}]",
     ""},
    {"a volume that nobody mounts is no usage",
     "containers: [{name: app}]\nvolumes: [{name: v, secret: {secretName: tls}}]", ""},
    {"a mount without its volume is no usage",
     "containers: [{name: app, volumeMounts: [{name: w, mountPath: /certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     ""},
    {"an optional Secret counts like any other",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, optional: true}}]",
     "app Volume /certs"},
    {"one volume mounted twice is two usages",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /a\napp Volume /b"},
    {"several containers, each by itself",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /a}]}, {name: proxy, volumeMounts: [{name: v, "
     "mountPath: /b}]}, {name: log}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /a\nproxy Volume /b"},
    {"a projected volume with items",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token}}, {secret: {name: tls, items: "
     "[{key: ca.crt, path: trust/ca.pem}]}}, {configMap: {name: tls}}]}}]",
     "app Projected /certs ca.crt=/certs/trust/ca.pem"},
    {"a projected volume without items, and the same Secret twice",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /certs}]}]\n"
     "volumes: [{name: v, projected: {sources: [{secret: {name: tls}}, {secret: {name: tls, items: [{key: ca.crt, "
     "path: x}]}}]}}]",
     "app Projected /certs\napp Projected /certs ca.crt=/certs/x"},
    {"subPath mounts one key as a file, for ever",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/app/server.crt, subPath: tls.crt}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app SubPath /etc/app/server.crt tls.crt=/etc/app/server.crt"},
    {"subPath of a projected volume never refreshes either",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /etc/app/server.crt, subPath: tls.crt}]}]\n"
     "volumes: [{name: v, projected: {sources: [{secret: {name: tls}}]}}]",
     "app SubPath /etc/app/server.crt tls.crt=/etc/app/server.crt"},
    {"subPath names the path of an item, not the key",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: server.pem}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: tls.key, path: tls.crt}, {key: tls.crt, path: "
     "server.pem}]}}]",
     "app SubPath /x tls.crt=/x"},
    {"subPath of a folder of items",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: server/}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: server/crt}, {key: tls.key, path: "
     "server/key}, {key: ca.crt, path: servers/ca}]}}]",
     "app SubPath /x tls.crt=/x/crt,tls.key=/x/key"},
    {"subPath with a dot or through ..data names the same file",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: ./tls.crt}, {name: v, mountPath: /y, "
     "subPath: ..data/tls.key}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app SubPath /x tls.crt=/x\napp SubPath /y tls.key=/y"},
    {"subPath ..data is the whole volume, frozen",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: ..data}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app SubPath /x"},
    {"subPath of something else in the volume: its keys cannot be told",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: other}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls, items: [{key: tls.crt, path: crt}]}}]",
     "app SubPath /x"},
    {"subPathExpr with a variable cannot be told",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPathExpr: $(POD_NAME)}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app SubPath /x"},
    {"subPathExpr without a variable is a subPath",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPathExpr: tls.crt}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app SubPath /x tls.crt=/x"},
    {"an empty subPath is the whole volume",
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /x, subPath: ''}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /x"},
    {"variables of one container are one usage",
     "containers: [{name: app, env: [{name: A, value: x}, {name: CERT, valueFrom: {secretKeyRef: {name: tls, key: "
     "tls.crt}}}, {name: O, valueFrom: {secretKeyRef: {name: tls2, key: tls.crt}}}, {name: KEY, valueFrom: "
     "{secretKeyRef: {name: tls, key: tls.key}}}]}]",
     "app Env - tls.crt=CERT,tls.key=KEY"},
    {"envFrom brings all keys, with its prefix",
     "containers: [{name: app, envFrom: [{configMapRef: {name: tls}}, {prefix: TLS_, secretRef: {name: tls}}]}, {name: b, "
     "envFrom: [{secretRef: {name: tls}}]}]",
     "app Env TLS_\nb Env "},
    {"a volume and a variable of one container are two usages",
     "containers: [{name: app, env: [{name: CERT, valueFrom: {secretKeyRef: {name: tls, key: tls.crt}}}], volumeMounts: "
     "[{name: v, mountPath: /x}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "app Volume /x\napp Env - tls.crt=CERT"},
    {"an init container runs once, a sidecar does not",
     "initContainers: [{name: prepare, volumeMounts: [{name: v, mountPath: /a}]}, {name: side, restartPolicy: Always, "
     "volumeMounts: [{name: v, mountPath: /b}]}]\n"
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /c}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     "prepare(init) Volume /a\nside Volume /b\napp Volume /c"},
    {"ephemeral containers are no consumers",
     "ephemeralContainers: [{name: debug, volumeMounts: [{name: v, mountPath: /a}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}]",
     ""},
    {"a Secret that only a driver or the kubelet reads is no usage",
     "imagePullSecrets: [{name: tls}]\n"
     "containers: [{name: app, volumeMounts: [{name: v, mountPath: /a}]}]\n"
     "volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, nodePublishSecretRef: {name: tls}}}]",
     ""},
};
/* clang-format on */

static void test_usages(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(cases[i].pod_spec);
        CR_CLEANUP(cr_usage_list) struct cr_usage_list list = {0};
        cr_usage_collect(spec, "tls", &list);
        cr_autofree char *text = as_text(&list);
        if (!cr_streq(text, cases[i].usages))
            fail_msg("%s:\nwanted\n%s\nhave\n%s", cases[i].rule, cases[i].usages, text);
    }
}

static void test_image_is_taken_along(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *spec =
        test_yaml("containers: [{name: app, image: 'nginx:1.27', volumeMounts: [{name: v, mountPath: "
                  "/a}]}]\nvolumes: [{name: v, secret: {secretName: tls}}]");
    CR_CLEANUP(cr_usage_list) struct cr_usage_list list = {0};
    cr_usage_collect(spec, "tls", &list);
    assert_int_equal(list.len, 1);
    assert_string_equal(list.items[0].image, "nginx:1.27");
}

static void test_only_volumes_refresh(void **state)
{
    (void)state;
    assert_true(cr_usage_refreshes(CR_USAGE_VOLUME));
    assert_true(cr_usage_refreshes(CR_USAGE_PROJECTED));
    assert_false(cr_usage_refreshes(CR_USAGE_SUBPATH));
    assert_false(cr_usage_refreshes(CR_USAGE_ENV));
}

static void test_nothing_breaks_on_nonsense(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "containers: app",
        "containers: [app, {name: [1]}, {volumeMounts: {name: v}}, {volumeMounts: [v, {name: 7}]}, {env: x, envFrom: "
        "3}]\n"
        "volumes: [v, {name: v}, {name: v, secret: tls}, {name: w, projected: {sources: {a: b}}}]",
        "containers: [{volumeMounts: [{name: v}]}]\nvolumes: [{name: v, secret: {secretName: tls, items: [x, {path: "
        "p}]}}]",
        "containers: [{env: [{valueFrom: {secretKeyRef: {name: tls}}}, x]}]",
    };
    for (size_t i = 0; i < cr_array_len(specs); i++) {
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(specs[i]);
        CR_CLEANUP(cr_usage_list) struct cr_usage_list list = {0};
        CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
        cr_usage_collect(spec, "tls", &list);
        cr_usage_secrets(spec, &names);
    }
    CR_CLEANUP(cr_usage_list) struct cr_usage_list list = {0};
    cr_usage_collect(NULL, "tls", &list);
    assert_int_equal(list.len, 0);
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_usage_secrets(NULL, &names);
    assert_int_equal(names.len, 0);
}

static void test_names_of_all_secrets(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *spec = test_yaml(
        "imagePullSecrets: [{name: pull}]\n"
        "initContainers: [{name: i, envFrom: [{secretRef: {name: init}}]}]\n"
        "containers: [{name: app, env: [{name: A, valueFrom: {secretKeyRef: {name: env, key: k}}}, {name: B, value: "
        "x}], "
        "envFrom: [{secretRef: {name: all}}, {configMapRef: {name: map}}]}]\n"
        "volumes: [{name: a, secret: {secretName: unmounted}}, {name: b, projected: {sources: [{secret: {name: "
        "projected}}, {configMap: {name: map}}]}}, {name: c, secret: {secretName: env}}, {name: d, emptyDir: {}}]");
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_usage_secrets(spec, &names);
    cr_strvec_sort(&names);
    cr_autofree char *text = cr_strvec_join(&names, " ");
    assert_string_equal(text, "all env init projected unmounted");
}

/* What each kind of object uses, as "a b"; what it only mentions does not count. */
static void test_what_an_object_uses(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *kind;
        const char *object;
        const char *uses;
    } objects[] = {
        {"a volume", "Deployment",
         "spec: {template: {spec: {containers: [{name: c, volumeMounts: [{name: v, mountPath: /c}]}], volumes: [{name: "
         "v, "
         "secret: {secretName: a}}]}}}",
         "a"},
        {"scaled to 0", "Deployment",
         "spec: {replicas: 0, template: {spec: {containers: [{name: c, volumeMounts: [{name: v, mountPath: /c}]}], "
         "volumes: [{name: v, secret: {secretName: a}}]}}}",
         "a"},
        {"a volume that nobody mounts", "Deployment",
         "spec: {template: {spec: {containers: [{name: c}], volumes: [{name: v, secret: {secretName: a}}]}}}", ""},
        {"a projected volume with items", "StatefulSet",
         "spec: {template: {spec: {containers: [{name: c, volumeMounts: [{name: v, mountPath: /c}]}], volumes: [{name: "
         "v, "
         "projected: {sources: [{configMap: {name: x}}, {secret: {name: a, items: [{key: tls.crt, path: crt}]}}, "
         "{secret: {name: b}}]}}]}}}",
         "a b"},
        {"subPath and subPathExpr", "DaemonSet",
         "spec: {template: {spec: {containers: [{name: c, volumeMounts: [{name: v, mountPath: /c, subPath: tls.crt}, "
         "{name: w, mountPath: /d, subPathExpr: $(X)}]}], volumes: [{name: v, secret: {secretName: a}}, {name: w, "
         "secret: "
         "{secretName: b}}]}}}",
         "a b"},
        {"env and envFrom", "Deployment",
         "spec: {template: {spec: {containers: [{name: c, env: [{name: X, valueFrom: {secretKeyRef: {name: a, key: "
         "k}}}, "
         "{name: Y, value: b}], envFrom: [{configMapRef: {name: d}}, {secretRef: {name: e}}]}]}}}",
         "a e"},
        {"an init container and a sidecar", "Deployment",
         "spec: {template: {spec: {initContainers: [{name: i, envFrom: [{secretRef: {name: a}}]}, {name: s, "
         "restartPolicy: Always, volumeMounts: [{name: v, mountPath: /c}]}], containers: [{name: c}], volumes: [{name: "
         "v, "
         "secret: {secretName: b}}]}}}",
         "b a"},
        {"several containers, one Secret", "Deployment",
         "spec: {template: {spec: {containers: [{name: c, envFrom: [{secretRef: {name: a}}]}, {name: d, volumeMounts: "
         "[{name: v, mountPath: /c}]}], volumes: [{name: v, secret: {secretName: a}}]}}}",
         "a"},
        {"the kubelet's own and a driver's", "Deployment",
         "spec: {template: {spec: {imagePullSecrets: [{name: a}], containers: [{name: c, volumeMounts: [{name: v, "
         "mountPath: /c}]}], volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, nodePublishSecretRef: {name: "
         "b}}}]}}}",
         ""},
        {"a ReplicaSet", "ReplicaSet",
         "spec: {template: {spec: {containers: [{name: c, envFrom: [{secretRef: {name: a}}]}]}}}", "a"},
        {"an Argo Rollout", "Rollout",
         "spec: {template: {spec: {containers: [{name: c, envFrom: [{secretRef: {name: a}}]}]}}}", "a"},
        {"an Argo Rollout whose template is a Deployment's", "Rollout",
         "spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}}", ""},
        {"an Ingress", "Ingress",
         "spec: {tls: [{hosts: [x], secretName: a}, {hosts: [y]}, {secretName: b}, {secretName: a}]}", "a b"},
        {"an Ingress without TLS", "Ingress", "spec: {rules: []}", ""},
        {"a Gateway's own Secrets", "Gateway",
         "{metadata: {namespace: ns}, spec: {listeners: [{tls: {certificateRefs: [{name: a}, {kind: Secret, group: '', "
         "name: "
         "b, namespace: ns}, {name: c, namespace: other}, {kind: ConfigMap, name: d}, {group: acme.org, kind: Secret, "
         "name: "
         "e}]}}, {name: plain}]}}",
         "a b"},
        {"a kind that is none", "CronJob", "spec: {tls: [{secretName: a}]}", ""},
        {"nonsense", "Ingress", "spec: {tls: {secretName: a}}", ""},
    };
    for (size_t i = 0; i < cr_array_len(objects); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse(objects[i].object, strlen(objects[i].object), &err);
        if (!object)
            fail_msg("%s: %s", objects[i].rule, err.text);
        CR_CLEANUP(cr_strvec) struct cr_strvec uses = {0};
        cr_usage_of_object(objects[i].kind, object, &uses);
        cr_autofree char *text = cr_strvec_join(&uses, " ");
        if (!cr_streq(text, objects[i].uses))
            fail_msg("%s: '%s'", objects[i].rule, text);
    }
}

static void test_hosts_of_a_secrets_leaf(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *kind, *object, *hosts; /* of the Secret a */
    } objects[] = {
        {"an Ingress", "Ingress",
         "spec: {tls: [{hosts: [x, '*.y'], secretName: a}, {hosts: [z], secretName: b}, {hosts: [x, w], secretName: "
         "a}, "
         "{hosts: [v]}, {secretName: a}]}",
         "x *.y w"},
        {"a Gateway", "Gateway",
         "{metadata: {namespace: ns}, spec: {listeners: [{hostname: x, tls: {certificateRefs: [{name: a}]}}, "
         "{hostname: "
         "y, tls: {certificateRefs: [{name: b}]}}, {tls: {certificateRefs: [{name: a}]}}, {hostname: z}]}}",
         "x"},
        {"a listener with several", "Gateway",
         "{metadata: {namespace: ns}, spec: {listeners: [{hostname: x, tls: {certificateRefs: [{name: a}, {name: "
         "b}]}}]}}",
         ""},
        {"another namespace's", "Gateway",
         "{metadata: {namespace: ns}, spec: {listeners: [{hostname: x, tls: {certificateRefs: [{name: a, namespace: "
         "other}]}}]}}",
         ""},
        {"a kind that is none", "Deployment", "spec: {tls: [{hosts: [x], secretName: a}]}", ""},
        {"nonsense", "Ingress", "spec: {tls: [{hosts: {a: b}, secretName: a}, {hosts: [7, ''], secretName: a}, 7]}",
         "b"},
    };
    for (size_t i = 0; i < cr_array_len(objects); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse(objects[i].object, strlen(objects[i].object), &err);
        if (!object)
            fail_msg("%s: %s", objects[i].rule, err.text);
        CR_CLEANUP(cr_strvec) struct cr_strvec hosts = {0};
        cr_usage_hosts(objects[i].kind, object, "a", &hosts);
        cr_autofree char *text = cr_strvec_join(&hosts, " ");
        if (!cr_streq(text, objects[i].hosts))
            fail_msg("%s: '%s'", objects[i].rule, text);
    }
}

static void test_only_so_many_hosts_are_looked_at(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    struct cr_json *entry =
        cr_json_add(cr_json_array_in(cr_json_object_in(object, "spec"), "tls"), cr_json_new_object());
    cr_json_set_string(entry, "secretName", "a");
    struct cr_json *list = cr_json_array_in(entry, "hosts");
    for (int i = 0; i < CR_USAGE_HOSTS_MAX + 1; i++) {
        cr_autofree char *host = cr_asprintf("h%d", i);
        cr_json_add_string(list, host);
    }
    CR_CLEANUP(cr_strvec) struct cr_strvec hosts = {0};
    cr_usage_hosts("Ingress", object, "a", &hosts);
    assert_int_equal(hosts.len, CR_USAGE_HOSTS_MAX);
}

static void add_numbered(struct cr_buf *text, const char *before, const char *behind, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_buf_printf(text, "%s%s%zu%s", i ? "," : "", before, i, behind);
}

/* Of a pod with one container, which mounts one volume so often. */
static struct cr_json *pod_of_mounts(size_t image_len, size_t sources, size_t items, size_t mounts)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf source = CR_BUF_INIT(0);
    struct cr_error err = {0};
    cr_buf_puts(&source, ",\"items\":[");
    add_numbered(&source, "{\"key\":\"k\",\"path\":\"p", "\"}", items);
    cr_buf_puts(&source, "]}}");
    cr_buf_puts(&text, "{\"volumes\":[{\"name\":\"v\",\"projected\":{\"sources\":[");
    add_numbered(&text, "{\"secret\":{\"name\":\"tls\",\"n\":", cr_buf_text(&source), sources);
    cr_buf_printf(&text, "]}}],\"containers\":[{\"name\":\"app\",\"image\":\"%0*d\",\"volumeMounts\":[", (int)image_len,
                  0);
    add_numbered(&text, "{\"name\":\"v\",\"mountPath\":\"/m", "\"}", mounts);
    cr_buf_puts(&text, "]}]}");
    struct cr_json *pod = cr_json_parse(cr_buf_text(&text), text.len, &err);
    if (!pod)
        fail_msg("%s", err.text);
    return pod;
}

static size_t bytes_of(const struct cr_usage_list *list)
{
    size_t bytes = 0;
    for (size_t i = 0; i < list->len; i++) {
        bytes += strlen(list->items[i].image) + strlen(list->items[i].container) +
                 strlen(cr_or_empty(list->items[i].directory));
        for (size_t k = 0; k < list->items[i].keys.len; k++)
            bytes += strlen(list->items[i].keys.items[k]) + strlen(list->items[i].paths.items[k]);
    }
    return bytes;
}

static void test_only_so_much_is_looked_at_and_what_never_refreshes_decides(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        size_t image_len, sources, items, mounts;
        bool whole;
    } pods[] = {
        {"as many mounts as are looked at", 10, 1, 1, CR_USAGES_MAX - 1, true},
        {"more of them", 10, 1, 1, 4 * CR_USAGES_MAX, false},
        {"many sources, mounted often", 10, 500, 0, 500, false},
        {"many items, mounted often", 10, 1, 5000, 200, false},
        {"a long name of an image, mounted often", 500 * 1000, 1, 0, 200, false},
    };
    for (size_t i = 0; i < cr_array_len(pods); i++) {
        CR_CLEANUP(cr_json)
        struct cr_json *pod = pod_of_mounts(pods[i].image_len, pods[i].sources, pods[i].items, pods[i].mounts);
        CR_CLEANUP(cr_usage_list) struct cr_usage_list list = {0};
        cr_usage_collect(pod, "tls", &list);
        const struct cr_usage *last = &list.items[list.len - 1];
        bool whole = last->kind == CR_USAGE_PROJECTED;
        if (whole != pods[i].whole || (!whole && (last->kind != CR_USAGE_SUBPATH || last->keys.len)))
            fail_msg("%s: the last of %zu is %s", pods[i].rule, list.len, cr_usage_kind_name(last->kind));
        if (list.len > CR_USAGES_MAX + 1 || bytes_of(&list) > CR_USAGES_BYTES_MAX + 2 * pods[i].image_len + 100)
            fail_msg("%s: %zu usages, %zu bytes", pods[i].rule, list.len, bytes_of(&list));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_of_a_secrets_leaf),
        cmocka_unit_test(test_only_so_many_hosts_are_looked_at),
        cmocka_unit_test(test_what_an_object_uses),
        cmocka_unit_test(test_usages),
        cmocka_unit_test(test_image_is_taken_along),
        cmocka_unit_test(test_only_volumes_refresh),
        cmocka_unit_test(test_nothing_breaks_on_nonsense),
        cmocka_unit_test(test_names_of_all_secrets),
        cmocka_unit_test(test_only_so_much_is_looked_at_and_what_never_refreshes_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
