#include "policy/rules/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/builtin.h"
#include "support/yamltext.h"

enum {
    LEAF = CR_CHANGE_LEAF_RENEWED,
    ADDED = CR_CHANGE_TRUST_ADDED,
    OPAQUE = CR_CHANGE_OPAQUE,
    BOTH = LEAF | ADDED,
};
enum {
    NONE = CR_DECISION_NONE,
    RELOAD = CR_DECISION_HOT_RELOAD,
    TRIGGER = CR_DECISION_TRIGGER,
    RESTART = CR_DECISION_RESTART,
};
enum { L = CR_CLASS_LEAF, T = CR_CLASS_TRUST, O = CR_CLASS_OPAQUE };
enum { NOTIFIED_MS = 30 * 1000 };

#define PORT         "ports: [{name: certroll-reload, containerPort: 9950}]"
#define AT(path)     "volumeMounts: [{name: v, mountPath: " path "}]"
#define SIDECAR(how) "{name: sidecar, image: 'certroll.dev/sidecar:0.1.0', " PORT ", " how "}"
#define VOLUMES                                                                                                        \
    "\nvolumes: [{name: v, secret: {secretName: tls}}, {name: run, emptyDir: {}}, {name: other, secret: {secretName: " \
    "tls2}}, {name: conf, configMap: {name: x}}]"
#define ITEMS(items)                                                                                                   \
    "\nvolumes: [{name: v, secret: {secretName: tls}}, {name: w, secret: {secretName: tls, items: [" items "]}}]"
#define CRT               "{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}"
#define NGINX(how)        "{name: nginx, image: 'nginx:1.27.4', " how "}"
#define POD(app, sidecar) "containers: [" app ", " sidecar "]" VOLUMES
#define HAPROXY           "{name: lb, image: 'haproxy:3.0', volumeMounts: [{name: run, mountPath: /run/tls}]}"
#define MAKES             "volumeMounts: [{name: v, mountPath: /certs}, {name: run, mountPath: /run/tls}]"
#define REDIS                                                                                                          \
    "{name: redis, image: 'redis:7.2.4', args: [--tls-cert-file, /certs/tls.crt, --tls-key-file, /certs/tls.key, "     \
    "--tls-ca-cert-file, /certs/ca.crt], " AT("/certs") "}"
#define PREPARE(image, args) "initContainers: [{name: prepare, image: '" image "', args: [" args "], " MAKES "}]\n"

struct override {
    enum cr_role role;
    enum cr_method method;
    int64_t max_delay_ms;
};

/* clang-format off */
static const struct trigger_case {
    const char *rule;
    const char *component; /* of the policy */
    struct override override;
    const char *pod;
    unsigned changes; /* of Secret "tls" */
    int kind;
    unsigned restart, reload, trigger;
    int64_t delay_ms;
    const char *found;
    const char *reason; /* with a full stop at its end: all of it */
} cases[] = {
    {"a signal that the sidecar sends is no restart", NULL, {0}, POD(NGINX(AT("/certs")), SIDECAR(AT("/certs"))), LEAF,
     TRIGGER, 0, L, L, NOTIFIED_MS, "nginx",
     "nginx takes up on SIGHUP, which its certroll-sidecar sends, what changed: its server leaf within 30s, its client leaf "
     "within 30s; no restart."},
    {"one role", NULL, {0},
     "containers: [{name: dns, image: 'coredns/coredns:1.14.7', args: [-conf, /etc/coredns/Corefile], "
     AT("/certs") "}, " SIDECAR(AT("/certs")) "]" VOLUMES, ADDED, TRIGGER, 0, T, T, NOTIFIED_MS, "coredns", NULL},
    {"a command that the sidecar gives", NULL, {0}, POD(REDIS, SIDECAR(AT("/certs"))), BOTH, TRIGGER, 0, L | T, L | T,
     NOTIFIED_MS, "redis",
     "Redis (redis) takes up when its certroll-sidecar tells it what changed: its server leaf within 30s, its client leaf within "
     "30s, its client CA within 30s, its server CA within 30s; no restart."},
    {"a sidecar among the init containers", NULL, {0},
     "initContainers: [{name: sidecar, image: r, restartPolicy: Always, " PORT ", " AT("/certs") "}]\ncontainers: ["
     NGINX(AT("/certs")) "]" VOLUMES, LEAF, TRIGGER, 0, L, L, NOTIFIED_MS, "nginx", "which its certroll-sidecar sends"},
    {"an init container that runs once is no sidecar", NULL, {0},
     "initContainers: [{name: sidecar, image: r, " PORT "}]\ncontainers: [" NGINX(AT("/certs")) "]" VOLUMES, LEAF,
     RESTART, L, 0, 0, 0, "nginx",
     "nginx reads its server leaf again only on SIGHUP, which nothing in the pod sends, and the leaf was renewed: "
     "restart."},
    {"a port of another name is no sidecar", NULL, {0},
     "containers: [" NGINX(AT("/certs")) ", {name: sidecar, image: r, ports: [{name: certroll, containerPort: 9950}], "
     AT("/certs") "}]" VOLUMES, LEAF, RESTART, L, 0, 0, 0, "nginx", "which nothing in the pod sends"},

    /* --- what it does not have --- */
    {"it does not mount the Secret", NULL, {0}, POD(NGINX(AT("/certs")), SIDECAR("args: [x]")), LEAF, RESTART, L, 0, 0, 0,
     "nginx",
     "nginx reads its server leaf again only on SIGHUP, and the leaf was renewed: restart; its certroll-sidecar does not mount "
     "the leaf of Secret tls."},
    {"it mounts another one", NULL, {0},
     POD(NGINX(AT("/certs")), SIDECAR("volumeMounts: [{name: other, mountPath: /certs}]")), ADDED, RESTART, T, 0, 0, 0,
     "nginx",
     "nginx reads its client CA again only on SIGHUP, and a CA was added: restart; its certroll-sidecar does not mount the CAs "
     "of Secret tls."},
    {"it mounts the leaf alone: the CA", NULL, {0}, "containers: [" NGINX(AT("/certs")) ", "
     SIDECAR("volumeMounts: [{name: w, mountPath: /certs}]") "]" ITEMS(CRT), BOTH, RESTART, T, L, L, NOTIFIED_MS, "nginx",
     "nginx reads its client CA again only on SIGHUP, and a CA was added: restart; its certroll-sidecar does not mount the CAs "
     "of Secret tls; its server leaf and its client leaf would have been reloaded within 30s."},
    {"a certificate without its key is no leaf", NULL, {0}, "containers: [" NGINX(AT("/certs")) ", "
     SIDECAR("volumeMounts: [{name: w, mountPath: /certs}]") "]" ITEMS("{key: tls.crt, path: tls.crt}"), LEAF, RESTART,
     L, 0, 0, 0, "nginx", "does not mount the leaf"},
    {"by subPath it never sees a change: its pod is restarted", NULL, {0},
     POD(NGINX(AT("/certs")), SIDECAR("volumeMounts: [{name: v, mountPath: /c/tls.crt, subPath: tls.crt}]")), LEAF,
     RESTART, L, 0, 0, 0, "certroll/sidecar", "Container sidecar mounts tls.crt of Secret tls by subPath"},
    {"opaque material it does not pass on", NULL, {CR_ROLE_OPAQUE, CR_METHOD_SIGNAL, 0},
     POD(NGINX(AT("/certs")), SIDECAR(AT("/certs"))), OPAQUE, RESTART, O, 0, 0, 0, "nginx",
     "nginx reads its opaque material again only on a signal (so says the policy), and the opaque material was changed: "
     "restart; its certroll-sidecar passes no opaque material on."},
    {"what the program itself has by subPath stays old", NULL, {0},
     POD(NGINX("volumeMounts: [{name: v, mountPath: /x, subPath: tls.crt}]"), SIDECAR(AT("/certs"))), LEAF, RESTART, L,
     0, 0, 0, "nginx", "Container nginx mounts tls.crt of Secret tls by subPath"},
    {"what an init container has read stays old", NULL, {0},
     "initContainers: [{name: prepare, image: x, " AT("/certs") "}]\n" POD(NGINX(AT("/certs")), SIDECAR(AT("/certs"))),
     LEAF, RESTART, L, 0, 0, NOTIFIED_MS, NULL, "Init container prepare reads Secret tls once"},

    /* --- its own usage --- */
    {"of who reloads by itself it changes nothing", NULL, {0},
     POD("{name: envoy, image: 'envoyproxy/envoy:v1.40.0', args: ['/sds/xds-certificate.json'], " AT("/certs") "}", SIDECAR(AT("/certs"))),
     LEAF, RELOAD, 0, L, 0, 5000, "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) watches its files by SDS: the renewed leaf is taken up within 5s, no restart."},
    {"nor of unknown software", NULL, {0}, POD("{name: app, image: 'acme/app:1', " AT("/certs") "}", SIDECAR(AT("/certs"))),
     LEAF, RESTART, L, 0, 0, 0, NULL, "It is not known how container app (image acme/app:1) takes up a new server leaf"},
    {"nor of who reads once", NULL, {CR_ROLE_SERVER_LEAF, CR_METHOD_RESTART, 0},
     POD(NGINX(AT("/certs")), SIDECAR(AT("/certs"))), LEAF, RESTART, L, 0, 0, NOTIFIED_MS, "nginx",
     "nginx reads its server leaf once at start (so says the policy), and the leaf was renewed: restart; its client leaf "
     "would have been reloaded within 30s."},
    {"the certificate of its own page it watches", NULL, {0},
     POD("{name: app, image: 'acme/app:1'}",
         SIDECAR("args: ['--tls-cert-file=/certs/tls.crt', '--tls-private-key-file=/certs/tls.key'], " AT("/certs"))),
     LEAF, RELOAD, 0, L, 0, 5000, "certroll/sidecar",
     "certroll-sidecar (certroll/sidecar) watches its server leaf (--tls-cert-file): the renewed leaf is taken up within 5s, "
     "no restart."},

    /* --- what only it mounts --- */
    {"what only it mounts is of who shares a volume with it", NULL, {0},
     "containers: [{name: mesh, image: 'acme/mesh:1'}, " HAPROXY ", " SIDECAR(MAKES) "]" VOLUMES, LEAF, TRIGGER, 0, L, L,
     NOTIFIED_MS, "haproxy",
     "haproxy takes up on SIGUSR2, which its certroll-sidecar sends, what changed: its server leaf within 30s, its client leaf "
     "within 30s; no restart."},
    {"without such a volume, of all others", NULL, {0},
     POD("{name: web, image: 'nginx:1.27.4', volumeMounts: [{name: conf, mountPath: /etc/x}]}",
         SIDECAR("volumeMounts: [{name: v, mountPath: /certs}, {name: conf, mountPath: /etc/x}]")), LEAF, TRIGGER, 0, L, L,
     NOTIFIED_MS, "nginx", "which its certroll-sidecar sends"},
    {"who reads once is restarted for it", NULL, {0},
     POD("{name: app, image: 'acme/app:1', volumeMounts: [{name: run, mountPath: /run/tls}]}", SIDECAR(MAKES)), LEAF,
     RESTART, L, 0, 0, 0, NULL, "It is not known how container app (image acme/app:1) takes up a new server leaf"},
    {"its own init container made it once, and the sidecar makes it again", NULL, {0},
     PREPARE("certroll.dev/sidecar:0.1.0", "--once") POD(HAPROXY, SIDECAR(MAKES)), LEAF, TRIGGER, 0, L, L, NOTIFIED_MS,
     "haproxy", "which its certroll-sidecar sends"},
    {"another init container's work is not made again", NULL, {0},
     PREPARE("acme/prepare:1", "--once") POD(HAPROXY, SIDECAR(MAKES)), LEAF, RESTART, L, 0, 0, 0, NULL,
     "Init container prepare reads Secret tls once"},
    {"nor that of one without the word", NULL, {0},
     PREPARE("certroll.dev/sidecar:0.1.0", "--check") POD(HAPROXY, SIDECAR(MAKES)), LEAF, RESTART, L, 0, 0, 0, NULL,
     "Init container prepare reads Secret tls once"},
    {"nor where it is alone, in its own image", NULL, {0},
     PREPARE("certroll.dev/operator:0.1.0", "--once") "containers: [" HAPROXY "]" VOLUMES, LEAF, RESTART, L, 0, 0, 0, "certroll/operator",
     "Init container prepare reads Secret tls once"},
    {"nor where the sidecar does not have the Secret", NULL, {0},
     PREPARE("certroll.dev/sidecar:0.1.0", "--once") POD(HAPROXY, SIDECAR("args: [x]")), LEAF, RESTART, L, 0, 0, 0, NULL,
     "Init container prepare reads Secret tls once"},

    /* --- the policy's word --- */
    {"a policy can say that a signal does", NULL, {CR_ROLE_SERVER_LEAF, CR_METHOD_SIGNAL, 0},
     POD("{name: app, image: 'acme/app:1', args: [x], volumeMounts: [{name: v, mountPath: /certs}]}",
         SIDECAR(AT("/certs"))), LEAF, RESTART, L, 0, 0, NOTIFIED_MS, NULL,
     "It is not known how container app (image acme/app:1) takes up a new client leaf, and the leaf was renewed: restart; "
     "spec.consumers[].reload.clientLeaf can tell; its server leaf would have been reloaded within 30s."},
    {"and how long it takes", NULL, {CR_ROLE_CLIENT_CA, CR_METHOD_COMMAND, 120 * 1000},
     "containers: [{name: rl, image: 'envoyproxy/ratelimit:3fb70258', env: [{name: GRPC_CLIENT_TLS_CACERT, value: "
     "/certs/ca.crt}], " AT("/certs") "}, " SIDECAR(AT("/certs")) "]" VOLUMES, ADDED, TRIGGER, 0, T, T, 120 * 1000,
     "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) again on a command, which its certroll-sidecar "
     "gives (so says the policy): the new set of CAs is taken up within 2m, no restart."},
    {"the component that it names is not the sidecar", "nginx", {0},
     POD("{name: c, image: 'envoyproxy/envoy:v1.40.0', " AT("/certs") "}", SIDECAR(AT("/certs"))), LEAF, TRIGGER, 0, L, L,
     NOTIFIED_MS, "nginx", "which its certroll-sidecar sends"},

    /* --- several containers --- */
    {"one watches, one is told: Trigger", NULL, {0},
     "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', args: ['/sds/xds-certificate.json'], " AT("/certs") "}, " NGINX(AT("/certs"))
     ", " SIDECAR(AT("/certs")) "]" VOLUMES, LEAF, TRIGGER, 0, L, L, NOTIFIED_MS, "nginx",
     "The containers take up what changed, nginx when its certroll-sidecar tells it, within 30s; no restart."},
    {"one is told, one reads once: Restart", NULL, {0},
     "containers: [{name: app, image: 'acme/app:1', " AT("/certs") "}, " NGINX(AT("/certs")) ", " SIDECAR(AT("/certs"))
     "]" VOLUMES, LEAF, RESTART, L, 0, 0, NOTIFIED_MS, NULL, "It is not known how container app"},
    {"a Secret that nobody mounts", NULL, {0}, "containers: [" NGINX("args: [x]") ", " SIDECAR("args: [x]") "]" VOLUMES,
     LEAF, NONE, 0, 0, 0, 0, NULL, "The pod template does not use Secret tls, which changed: nothing to do."},
};
/* clang-format on */

static void decide(const struct trigger_case *c, const struct cr_json *spec, struct cr_decision *out)
{
    cr_autofree char *component = cr_strdup_or_null(c->component);
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", secret_name[] = "tls", name[] = "consumer";
    const struct cr_policy_secret secret = {.name = secret_name, .certificate = crt, .private_key = key, .trust = ca};
    struct cr_policy_consumer consumer = {.name = name, .component = component};
    if (c->override.method)
        consumer.reload[c->override.role] = (struct cr_reload_override){
            .set = true, .method = c->override.method, .max_delay_ms = c->override.max_delay_ms};
    const struct cr_secret_change change = {.secret = &secret, .changes = c->changes};
    cr_decide(
        &(struct cr_decide_input){
            .consumer = &consumer, .pod_spec = spec, .catalogue = builtin, .changes = &change, .changes_len = 1},
        out);
}

static void test_what_a_sidecar_makes_of_the_decision(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct trigger_case *c = &cases[i];
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(c->pod);
        CR_CLEANUP(cr_decision) struct cr_decision d = {0};
        decide(c, spec, &d);
        const struct cr_decision_secret *tls = &d.secrets[0];
        if ((int)d.kind != c->kind || (int)tls->kind != c->kind)
            fail_msg("%s: wanted %s, have %s: %s", c->rule, cr_decision_name((enum cr_decision_kind)c->kind),
                     cr_decision_name(d.kind), d.reason);
        if (tls->restart_classes != c->restart || tls->reload_classes != c->reload ||
            tls->trigger_classes != c->trigger)
            fail_msg("%s: restart %u, reload %u, trigger %u: %s", c->rule, tls->restart_classes, tls->reload_classes,
                     tls->trigger_classes, d.reason);
        if (tls->max_delay_ms != c->delay_ms)
            fail_msg("%s: within %lld", c->rule, (long long)tls->max_delay_ms);
        if (!cr_streq(d.component, c->found))
            fail_msg("%s: component %s", c->rule, cr_or_empty(d.component));
        bool whole = c->reason && cr_ends_with(c->reason, ".");
        if (c->reason && (whole ? !cr_streq(d.reason, c->reason) : !strstr(d.reason, c->reason)))
            fail_msg("%s:\nwanted %s\nhave   %s", c->rule, c->reason, d.reason);
        assert_true(strlen(d.reason) <= 400);
    }
}

static void test_what_only_the_sidecar_mounts_is_used_and_refreshes(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        bool used, refreshes;
    } expected[] = {
        {POD(HAPROXY, SIDECAR(MAKES)), true, true},
        {POD(HAPROXY, SIDECAR("volumeMounts: [{name: v, mountPath: /c, subPath: tls.crt}]")), true, false},
        {POD(HAPROXY, SIDECAR("args: [x]")), false, false},
    };
    for (size_t i = 0; i < cr_array_len(expected); i++) {
        const struct trigger_case c = {.changes = LEAF};
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(expected[i].pod);
        CR_CLEANUP(cr_decision) struct cr_decision d = {0};
        decide(&c, spec, &d);
        if (d.secrets[0].used != expected[i].used || d.secrets[0].refreshes != expected[i].refreshes)
            fail_msg("%zu: used %d, refreshes %d: %s", i, d.secrets[0].used, d.secrets[0].refreshes, d.reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_sidecar_makes_of_the_decision),
        cmocka_unit_test(test_what_only_the_sidecar_mounts_is_used_and_refreshes),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
