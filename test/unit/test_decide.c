#include "policy/rules/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "support/builtin.h"
#include "support/yamltext.h"

enum {
    LEAF = CR_CHANGE_LEAF_RENEWED,
    NEW_KEY = CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED,
    ADDED = CR_CHANGE_TRUST_ADDED,
    REPLACED = CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED | CR_CHANGE_TRUST_REPLACED,
    OPAQUE = CR_CHANGE_OPAQUE,
    NAIVE = NEW_KEY | CR_CHANGE_ISSUER_CHANGED | REPLACED,
};

enum { NONE = CR_DECISION_NONE, RELOAD = CR_DECISION_HOT_RELOAD, RESTART = CR_DECISION_RESTART };
enum { L = CR_CLASS_LEAF, T = CR_CLASS_TRUST, O = CR_CLASS_OPAQUE };

#define MOUNT  "volumeMounts: [{name: v, mountPath: /certs}]"
#define VOLUME "\nvolumes: [{name: v, secret: {secretName: tls}}]"
/* Envoy Gateway's template: the bootstrap is an argument and names the SDS resources of /certs. */
#define GATEWAYS_BOOTSTRAP                                                                                             \
    "args: [--config-yaml, '[{path: /sds/xds-certificate.json}, {path: /sds/xds-trusted-ca.json}]']"
#define ENVOY        "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', " GATEWAYS_BOOTSTRAP ", " MOUNT "}]" VOLUME
#define OLD_ENVOY    "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.31.0', " MOUNT "}]" VOLUME
#define STATIC_ENVOY "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', " MOUNT "}]" VOLUME
#define RATELIMIT_OF(tag)                                                                                              \
    "containers: [{name: ratelimit, image: 'docker.io/envoyproxy/ratelimit:" tag "', env: [{name: "                    \
    "GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_KEY, value: /certs/tls.key}, {name: "        \
    "GRPC_CLIENT_TLS_CACERT, value: /certs/ca.crt}], " MOUNT "}]" VOLUME
#define RATELIMIT RATELIMIT_OF("3fb70258")
/* As Envoy Gateway deploys it: its leaf is its client's, too, and the name of its CA is one that it never reads. */
#define STOCK_RATELIMIT                                                                                                \
    "containers: [{name: ratelimit, image: 'docker.io/envoyproxy/ratelimit:99d85510', env: [{name: "                   \
    "GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_KEY, value: /certs/tls.key}, {name: "        \
    "GRPC_SERVER_TLS_CA_CERT, value: /certs/ca.crt}, {name: CONFIG_GRPC_XDS_CLIENT_TLS_CERT, value: /certs/tls.crt}, " \
    "{name: CONFIG_GRPC_XDS_CLIENT_TLS_KEY, value: /certs/tls.key}, {name: CONFIG_GRPC_XDS_SERVER_TLS_CACERT, value: " \
    "/certs/ca.crt}], " MOUNT "}]" VOLUME
#define NGINX          "containers: [{name: nginx, image: 'docker.io/library/nginx:1.22.1', " MOUNT "}]" VOLUME
#define APP_WITH(rest) "containers: [{name: app, image: 'acme/app:1', " rest "}]"
#define APP            APP_WITH(MOUNT) VOLUME
#define APISERVER(version, args)                                                                                       \
    "containers: [{name: api, image: 'registry.k8s.io/kube-apiserver:" version "', command: [kube-apiserver, " args    \
    "], " MOUNT "}]" VOLUME
/* projectcontour/contour examples/contour/03-envoy.yaml, what matters of it. */
#define CONTOUR_ENVOY(resources)                                                                                       \
    "initContainers: [{name: envoy-initconfig, image: 'ghcr.io/projectcontour/contour:v1.33.8', command: [contour], "  \
    "args: [bootstrap, /config/envoy.json, --xds-port=8001, " resources "--envoy-cafile=/certs/ca.crt, "               \
    "--envoy-cert-file=/certs/tls.crt, --envoy-key-file=/certs/tls.key], " MOUNT "}]\n"                                \
    "containers: [{name: shutdown-manager, image: 'ghcr.io/projectcontour/contour:v1.33.8', command: [/bin/contour], " \
    "args: [envoy, shutdown-manager]}, {name: envoy, image: 'docker.io/envoyproxy/envoy:distroless-v1.35.8', "         \
    "command: [envoy], args: [-c, /config/envoy.json, '--service-cluster $(CONTOUR_NAMESPACE)'], " MOUNT "}]" VOLUME
#define TLS_FLAGS "--tls-cert-file=/certs/tls.crt, --tls-private-key-file=/certs/tls.key"

struct override {
    enum cr_role role;
    enum cr_method method;
    int64_t max_delay_ms;
};

/* clang-format off */
static const struct decide_case {
    const char *rule;
    const char *component; /* of the policy; NULL: from the image */
    struct override overrides[2];
    size_t overrides_len;
    const char *pod;
    unsigned changes;   /* of Secret "tls" */
    unsigned changes_2; /* of Secret "tls2"; 0: it has none */
    int kind;
    unsigned restart, reload; /* of Secret "tls" */
    int64_t delay_ms;
    const char *found; /* component; NULL: unknown */
    const char *reason;
} cases[] = {
    /* --- Envoy: file SDS --- */
    {"Envoy with file SDS takes up a leaf", NULL, {{0}}, 0, ENVOY, LEAF, 0, RELOAD, 0, L, 5000, "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) watches its files by SDS: the renewed leaf is taken up within 5s, no restart."},
    {"Envoy with file SDS takes up a CA", NULL, {{0}}, 0, ENVOY, ADDED, 0, RELOAD, 0, T, 5000, "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) watches its files by SDS: the new set of CAs is taken up within 5s, no restart."},
    {"Envoy with file SDS takes up both", NULL, {{0}}, 0, ENVOY, NAIVE, 0, RELOAD, 0, L | T, 5000, "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) watches its files by SDS: the renewed leaf and the new set of CAs are taken up within "
     "5s, no restart."},
    {"Envoy without a sign of file SDS restarts", NULL, {{0}}, 0, STATIC_ENVOY, LEAF, 0, RESTART, L, 0, 0,
     "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) reads certificates once at start unless file SDS (of Envoy 1.14 or later) shows in its "
     "pod template, and the leaf was renewed: restart."},

    /* --- Rate Limit: per parameter --- */
    {"Rate Limit watches its server leaf", NULL, {{0}}, 0, RATELIMIT, NEW_KEY, 0, RELOAD, 0, L, 5000,
     "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) watches its server leaf (GRPC_SERVER_TLS_CERT): the renewed leaf is taken up "
     "within 5s, no restart."},
    {"Rate Limit reads its CA once, and the reason says what would have been reloaded", NULL, {{0}}, 0, RATELIMIT,
     NAIVE, 0, RESTART, T, L, 5000, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start, and the CA was "
     "replaced without overlap: restart; its server leaf would have been reloaded within 5s."},
    {"Rate Limit: a CA alone", NULL, {{0}}, 0, RATELIMIT, ADDED, 0, RESTART, T, 0, 0, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start, and a CA was "
     "added: restart."},
    {"Rate Limit: what it plays no role with is None", NULL, {{0}}, 0, RATELIMIT, OPAQUE, 0, NONE, 0, 0, 0,
     "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) takes only its server leaf and client CA from Secret tls, in which the opaque "
     "material was changed: nothing to do."},
    {"Rate Limit of a tag that is not listed: the strictest", NULL, {{0}}, 0, RATELIMIT_OF("0123abcd"), LEAF, 0,
     RESTART, L, 0, 0, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its server leaf (GRPC_SERVER_TLS_CERT) once at start (the strictest, as "
     "its image tells no known version), and the leaf was renewed: restart."},
    {"Rate Limit of a tag listed as old", NULL, {{0}}, 0, RATELIMIT_OF("91484c59"), LEAF, 0, RESTART, L, 0, 0,
     "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its server leaf (GRPC_SERVER_TLS_CERT) once at start, and the leaf was "
     "renewed: restart."},
    {"stock Rate Limit: one leaf in two roles, the strictest decides", NULL, {{0}}, 0, STOCK_RATELIMIT, LEAF, 0,
     RESTART, L, 0, 5000, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client leaf (CONFIG_GRPC_XDS_CLIENT_TLS_CERT) once at start, and the "
     "leaf was renewed: restart; its server leaf would have been reloaded within 5s."},
    {"stock Rate Limit: the CA of its xDS client", NULL, {{0}}, 0, STOCK_RATELIMIT, REPLACED, 0, RESTART, T, 0, 0,
     "envoyproxy/ratelimit", "reads its server CA (CONFIG_GRPC_XDS_SERVER_TLS_CACERT) once at start"},

    /* --- triggers, and what is not verified --- */
    {"a signal without a sidecar is a restart", NULL, {{0}}, 0, NGINX, LEAF, 0, RESTART, L, 0, 0, "nginx",
     "nginx reads its server leaf again only on SIGHUP, which nothing in the pod sends, and the leaf was renewed: "
     "restart."},
    {"what is known from memory only is a restart", NULL, {{0}}, 0,
     "containers: [{name: db, image: 'mysql:8.4.0', args: [--ssl-ca=/certs/ca.crt], " MOUNT "}]" VOLUME, REPLACED, 0,
     RESTART, T, 0, 0, "mysql",
     "MySQL (mysql) is said to reload its client CA (--ssl-ca), but nobody has verified it, and the CA was replaced "
     "without overlap: restart; spec.consumers[].reload.clientCA can tell."},
    {"a claim from memory that it polls is a restart", "elasticsearch", {{0}}, 0, APP, ADDED, 0, RESTART, T, 0, 0,
     "elasticsearch",
     "but nobody has verified it, and a CA was added: restart"},

    /* --- unknown software --- */
    {"unknown software restarts for a leaf", NULL, {{0}}, 0, APP, LEAF, 0, RESTART, L, 0, 0, NULL,
     "It is not known how container app (image acme/app:1) takes up a new server leaf, and the leaf was renewed: "
     "restart; spec.consumers[].reload.serverLeaf can tell."},
    {"unknown software restarts for trust", NULL, {{0}}, 0, APP, ADDED, 0, RESTART, T, 0, 0, NULL,
     "takes up a new client CA"},
    {"unknown software restarts for opaque material", NULL, {{0}}, 0, APP, OPAQUE, 0, RESTART, O, 0, 0, NULL,
     "It is not known how container app (image acme/app:1) takes up new opaque material"},
    {"unknown software restarts for all three", NULL, {{0}}, 0, APP, NAIVE | OPAQUE, 0, RESTART, L | T | O, 0, 0,
     NULL, ""},
    {"unknown software that mounts only the CA has nothing to do with the leaf", NULL, {{0}}, 0, APP_WITH(MOUNT)
     "\nvolumes: [{name: v, secret: {secretName: tls, items: [{key: ca.crt, path: ca.crt}]}}]", LEAF, 0, NONE, 0, 0,
     0, NULL,
     "The workload takes only its client CA and server CA from Secret tls, in which the leaf was renewed: nothing to "
     "do."},
    {"a component that the catalogue does not have", "envoyproxy/evnoy", {{0}}, 0, APP, LEAF, 0, RESTART, L, 0, 0,
     NULL, "Component envoyproxy/evnoy of the policy is not in the catalogue, and the leaf was renewed: restart; "
     "spec.consumers[].reload.serverLeaf can tell."},
    {"a component that the policy names beats the image", "envoyproxy/ratelimit", {{0}}, 0,
     "containers: [{name: rl, image: 'acme/mirror-of-ratelimit:3fb70258', env: [{name: GRPC_SERVER_TLS_CERT, value: "
     "/certs/tls.crt}], " MOUNT "}]" VOLUME, LEAF, 0, RELOAD, 0, L, 5000, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) watches its server leaf"},
    {"also an image that is known, when no other container could be meant", "envoyproxy/gateway", {{0}}, 0,
     "containers: [{name: c, image: 'nginx:1.27.0', " MOUNT "}]" VOLUME, REPLACED, 0, RELOAD, 0, T, 1000,
     "envoyproxy/gateway", "Envoy Gateway (envoyproxy/gateway) reads its client CA (/certs/ca.crt) at each handshake"},
    {"but not a known sidecar beside the container that is meant", "envoyproxy/gateway", {{0}}, 0,
     "containers: [{name: c, image: 'acme/eg:v1.9.0', " MOUNT "}, {name: web, image: 'nginx:1.27.0', " MOUNT "}]"
     VOLUME, REPLACED, 0, RESTART, T, 0, 1000, "nginx", "nginx reads its client CA again only on SIGHUP"},

    /* --- what never refreshes --- */
    {"subPath restarts whatever the software can do", NULL, {{0}}, 0,
     "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', volumeMounts: [{name: v, mountPath: /certs/tls.crt, "
     "subPath: tls.crt}]}]" VOLUME, LEAF, 0, RESTART, L, 0, 0, "envoyproxy/envoy",
     "Container envoy mounts tls.crt of Secret tls by subPath, which never refreshes while it runs, and the leaf was "
     "renewed: restart."},
    {"subPath of the leaf has nothing to do with the CA", NULL, {{0}}, 0,
     "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', volumeMounts: [{name: v, mountPath: /certs/tls.crt, "
     "subPath: tls.crt}]}]" VOLUME, REPLACED, 0, NONE, 0, 0, 0, "envoyproxy/envoy",
     "takes only its server leaf and client leaf from Secret tls"},
    {"a variable restarts", NULL, {{0}}, 0,
     APP_WITH("env: [{name: A, valueFrom: {secretKeyRef: {name: tls, key: tls.crt}}}]"), LEAF, 0, RESTART, L, 0, 0,
     NULL,
     "Container app has tls.crt of Secret tls in its environment, which never refreshes while it runs, and the leaf "
     "was renewed: restart."},
    {"a variable of the key has nothing to do with the CA", NULL, {{0}}, 0,
     APP_WITH("env: [{name: A, valueFrom: {secretKeyRef: {name: tls, key: tls.key}}}]"), ADDED, 0, NONE, 0, 0, 0,
     NULL, "nothing to do"},
    {"envFrom restarts for anything", NULL, {{0}}, 0, APP_WITH("envFrom: [{secretRef: {name: tls}}]"), ADDED, 0,
     RESTART, T, 0, 0, NULL,
     "Container app has Secret tls in its environment, which never refreshes while it runs, and a CA was added: "
     "restart."},
    {"a policy's word on the method does not make subPath refresh", NULL,
     {{CR_ROLE_SERVER_LEAF, CR_METHOD_WATCH, 0}, {CR_ROLE_CLIENT_LEAF, CR_METHOD_WATCH, 0}}, 2,
     APP_WITH("volumeMounts: [{name: v, mountPath: /x, subPath: tls.crt}]") VOLUME, LEAF, 0, RESTART, L, 0, 0, NULL,
     "Container app mounts tls.crt of Secret tls by subPath"},
    {"an init container that runs once restarts the pod", NULL, {{0}}, 0,
     "initContainers: [{name: prepare, image: x, " MOUNT "}]\ncontainers: [{name: app, image: y}]" VOLUME, LEAF, 0,
     RESTART, L, 0, 0, NULL,
     "Init container prepare reads Secret tls once, before the pod starts, and the leaf was renewed: restart."},
    {"Contour's Envoy: the init container only names the files", NULL, {{0}}, 0,
     CONTOUR_ENVOY("--resources-dir=/config/resources, "), NAIVE, 0, RELOAD, 0, L | T, 5000, "envoyproxy/envoy",
     "Envoy (envoyproxy/envoy) watches its files by SDS: the renewed leaf and the new set of CAs are taken up within 5s, "
     "no restart."},
    {"Contour's Envoy without the files of SDS", NULL, {{0}}, 0, CONTOUR_ENVOY(""), LEAF, 0, RESTART, L, 0, 0,
     "envoyproxy/envoy", "Envoy (envoyproxy/envoy) reads certificates once at start unless file SDS"},
    {"Contour itself reads at each handshake", NULL, {{0}}, 0,
     "containers: [{name: contour, image: 'ghcr.io/projectcontour/contour:v1.33.8', command: [contour], args: [serve, "
     "--contour-cafile=/certs/ca.crt, --contour-cert-file=/certs/tls.crt, --contour-key-file=/certs/tls.key], " MOUNT
     "}]" VOLUME,
     NAIVE, 0, RELOAD, 0, L | T, 1000, "projectcontour/contour",
     "Contour (projectcontour/contour) takes up by itself what changed: its server leaf within 1s, its client CA within "
     "1s; no restart."},
    {"a sidecar among the init containers is like any container", NULL, {{0}}, 0,
     "initContainers: [{name: envoy, restartPolicy: Always, image: 'envoyproxy/envoy:v1.40.0', " GATEWAYS_BOOTSTRAP ", " MOUNT
     "}]\ncontainers: [{name: app, image: y}]" VOLUME, LEAF, 0, RELOAD, 0, L, 5000, "envoyproxy/envoy",
     "watches its files by SDS"},

    /* --- the policy's own word --- */
    {"an override beats the catalogue", NULL, {{CR_ROLE_CLIENT_CA, CR_METHOD_WATCH, 7000}}, 1, RATELIMIT, REPLACED, 0,
     RELOAD, 0, T, 7000, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) watches its client CA (GRPC_CLIENT_TLS_CACERT) (so says the policy): the new "
     "set of CAs is taken up within 7s, no restart."},
    {"an override without a delay takes the method's", NULL, {{CR_ROLE_CLIENT_CA, CR_METHOD_PER_HANDSHAKE, 0}}, 1,
     RATELIMIT, REPLACED, 0, RELOAD, 0, T, 1000, "envoyproxy/ratelimit", "within 1s"},
    {"an override can be stricter, too", NULL, {{CR_ROLE_SERVER_LEAF, CR_METHOD_RESTART, 0}}, 1, RATELIMIT, LEAF, 0,
     RESTART, L, 0, 0, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its server leaf (GRPC_SERVER_TLS_CERT) once at start (so says the "
     "policy), and the leaf was renewed: restart."},
    {"an override of a signal is a restart as long as nothing sends it", NULL,
     {{CR_ROLE_CLIENT_CA, CR_METHOD_SIGNAL, 0}}, 1, RATELIMIT, REPLACED, 0, RESTART, T, 0, 0, "envoyproxy/ratelimit",
     "again only on a signal, which nothing in the pod sends (so says the policy)"},
    {"an override of HTTP likewise", NULL, {{CR_ROLE_CLIENT_CA, CR_METHOD_HTTP, 0}}, 1, RATELIMIT, REPLACED, 0,
     RESTART, T, 0, 0, "envoyproxy/ratelimit", "again only on an HTTP request"},
    {"an override of a command likewise", NULL, {{CR_ROLE_CLIENT_CA, CR_METHOD_COMMAND, 0}}, 1, RATELIMIT, REPLACED,
     0, RESTART, T, 0, 0, "envoyproxy/ratelimit", "again only on a command"},
    {"an override of Unknown is a restart", NULL, {{CR_ROLE_SERVER_LEAF, CR_METHOD_UNKNOWN, 0}}, 1, RATELIMIT, LEAF,
     0, RESTART, L, 0, 0, "envoyproxy/ratelimit", "is not known to reload its server leaf"},
    {"an override of ApiWatch reloads", NULL, {{CR_ROLE_CLIENT_CA, CR_METHOD_API_WATCH, 0}}, 1, RATELIMIT, REPLACED,
     0, RELOAD, 0, T, 5000, "envoyproxy/ratelimit", "through the API server"},
    {"of unknown software, one role said leaves the other unknown", NULL, {{CR_ROLE_SERVER_LEAF, CR_METHOD_WATCH, 0}},
     1, APP, LEAF, 0, RESTART, L, 0, 5000, NULL,
     "It is not known how container app (image acme/app:1) takes up a new client leaf, and the leaf was renewed: "
     "restart; spec.consumers[].reload.clientLeaf can tell; its server leaf would have been reloaded within 5s."},
    {"of unknown software, both roles said reload", NULL,
     {{CR_ROLE_SERVER_LEAF, CR_METHOD_WATCH, 0}, {CR_ROLE_CLIENT_LEAF, CR_METHOD_POLL, 60 * 1000}}, 2, APP, LEAF, 0,
     RELOAD, 0, L, 60 * 1000, NULL,
     "Container app (image acme/app:1) takes up by itself what changed: its server leaf within 5s, its client leaf "
     "within 1m; no restart."},
    {"an override of a role that it does not play changes nothing", NULL, {{CR_ROLE_SERVER_CA, CR_METHOD_RESTART, 0}},
     1, RATELIMIT, LEAF, 0, RELOAD, 0, L, 5000, "envoyproxy/ratelimit", "no restart"},

    /* --- versions --- */
    {"a poll from 1.36 on", NULL, {{0}}, 0, APISERVER("v1.36.3", "--kubelet-certificate-authority=/certs/ca.crt"),
     REPLACED, 0, RELOAD, 0, T, 300 * 1000, "kube-apiserver",
     "kube-apiserver polls its server CA (--kubelet-certificate-authority): the new set of CAs is taken up within 5m, "
     "no restart."},
    {"a restart before", NULL, {{0}}, 0, APISERVER("v1.35.4", "--kubelet-certificate-authority=/certs/ca.crt"),
     REPLACED, 0, RESTART, T, 0, 0, "kube-apiserver",
     "kube-apiserver reads its server CA (--kubelet-certificate-authority) once at start, and the CA was replaced "
     "without overlap: restart."},
    {"a restart when the version cannot be told", NULL, {{0}}, 0,
     APISERVER("latest", "--kubelet-certificate-authority=/certs/ca.crt"), REPLACED, 0, RESTART, T, 0, 0,
     "kube-apiserver", "once at start (the strictest, as its image tells no known version)"},
    {"several parameters: the slowest counts", NULL, {{0}}, 0,
     APISERVER("v1.36.3", TLS_FLAGS ", --kubelet-client-certificate=/certs/tls.crt, --client-ca-file=/certs/ca.crt"),
     NAIVE, 0, RELOAD, 0, L | T, 300 * 1000, "kube-apiserver",
     "kube-apiserver takes up by itself what changed: its server leaf within 5s, its client leaf within 5m, its client "
     "CA within 5s; no restart."},
    {"several parameters of one role: the strictest decides", NULL, {{0}}, 0,
     APISERVER("v1.36.3", "--kubelet-certificate-authority=/certs/ca.crt, --etcd-cafile=/certs/ca.crt"), REPLACED, 0,
     RESTART, T, 0, 300 * 1000, "kube-apiserver",
     "kube-apiserver reads its server CA (--etcd-cafile) once at start, and the CA was replaced without overlap: "
     "restart."},
    {"a file of an unusual name is of its key's class, whatever its role", NULL, {{0}}, 0,
     APISERVER("v1.36.3", "--tls-cert-file=/certs/tls-combined.pem, --tls-private-key-file=/certs/tls-combined.pem"),
     OPAQUE, 0, RELOAD, 0, O, 5000, "kube-apiserver",
     "kube-apiserver watches its server leaf (--tls-cert-file): the new opaque material is taken up within 5s, no "
     "restart."},
    {"a leaf that is used as a CA counts when the leaf changes", NULL, {{0}}, 0,
     "containers: [{name: rl, image: 'envoyproxy/ratelimit:3fb70258', env: [{name: GRPC_CLIENT_TLS_CACERT, value: "
     "/certs/tls.crt}], " MOUNT "}]" VOLUME, LEAF, 0, RESTART, L, 0, 0, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start, and the leaf was "
     "renewed: restart."},

    /* --- several containers and Secrets --- */
    {"a Secret that the template does not use", NULL, {{0}}, 0, "containers: [{name: app}]", LEAF, 0, NONE, 0, 0, 0,
     NULL, "The pod template does not use Secret tls, which changed: nothing to do."},
    {"two Secrets that the template does not use", NULL, {{0}}, 0, "containers: [{name: app}]", LEAF, REPLACED, NONE,
     0, 0, 0, NULL, "The pod template uses none of the Secrets that changed: nothing to do."},
    {"the strictest container decides", NULL, {{0}}, 0,
     "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0', " GATEWAYS_BOOTSTRAP ", " MOUNT
     "}, {name: web, image: nginx, " MOUNT "}]" VOLUME, LEAF, 0, RESTART, L, 0, 5000, "nginx",
     "nginx reads its server leaf again only on SIGHUP, which nothing in the pod sends, and the leaf was renewed: "
     "restart."},
    {"containers that all reload: the slowest is named", NULL, {{0}}, 0,
     "containers: [{name: eg, image: 'envoyproxy/gateway:v1.9.0', " MOUNT
     "}, {name: envoy, image: 'envoyproxy/envoy:v1.40.0', " GATEWAYS_BOOTSTRAP ", " MOUNT "}]" VOLUME, REPLACED, 0, RELOAD, 0, T, 5000,
     "envoyproxy/envoy",
     "The containers take up by themselves what changed, the slowest is Envoy (envoyproxy/envoy) within 5s; no "
     "restart."},
    {"what is known to read once is named before what is not known", NULL, {{0}}, 0,
     "containers: [{name: app, image: 'acme/app:1', " MOUNT
     "}, {name: rl, image: 'envoyproxy/ratelimit:3fb70258', env: "
     "[{name: GRPC_CLIENT_TLS_CACERT, value: /certs/ca.crt}], " MOUNT "}]" VOLUME, REPLACED, 0, RESTART, T, 0, 0,
     "envoyproxy/ratelimit", "reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start"},
    {"two Secrets: the one that forces it is named", NULL, {{0}}, 0,
     "containers: [{name: ratelimit, image: 'envoyproxy/ratelimit:3fb70258', env: [{name: GRPC_SERVER_TLS_CERT, value: "
     "/certs/tls.crt}, {name: GRPC_CLIENT_TLS_CACERT, value: /ca/ca.crt}], volumeMounts: [{name: v, mountPath: "
     "/certs}, {name: w, mountPath: /ca}]}]\n"
     "volumes: [{name: v, secret: {secretName: tls}}, {name: w, secret: {secretName: tls2}}]", LEAF, REPLACED,
     RESTART, 0, L, 5000, "envoyproxy/ratelimit",
     "Rate Limit (envoyproxy/ratelimit) reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start, and in Secret tls2 "
     "the CA was replaced without overlap: restart; its server leaf would have been reloaded within 5s."},
};
/* clang-format on */

/* A decision for one case; texts of the policy live as long as the case. */
static void decide(const struct decide_case *c, const struct cr_json *spec, struct cr_decision *out)
{
    cr_autofree char *component = cr_strdup_or_null(c->component);
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", first[] = "tls", second[] = "tls2", name[] = "consumer";
    const struct cr_policy_secret secrets[] = {
        {.name = first, .certificate = crt, .private_key = key, .trust = ca},
        {.name = second, .certificate = crt, .private_key = key, .trust = ca},
    };
    struct cr_policy_consumer consumer = {.name = name, .component = component};
    for (size_t i = 0; i < c->overrides_len; i++)
        consumer.reload[c->overrides[i].role] = (struct cr_reload_override){
            .set = true, .method = c->overrides[i].method, .max_delay_ms = c->overrides[i].max_delay_ms};
    const struct cr_secret_change changes[] = {{&secrets[0], c->changes}, {&secrets[1], c->changes_2}};
    const struct cr_decide_input input = {.consumer = &consumer,
                                          .pod_spec = spec,
                                          .catalogue = builtin,
                                          .changes = changes,
                                          .changes_len = c->changes_2 ? 2 : 1};
    cr_decide(&input, out);
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct decide_case *c = &cases[i];
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(c->pod);
        CR_CLEANUP(cr_decision) struct cr_decision d = {0};
        decide(c, spec, &d);
        const struct cr_decision_secret *tls = &d.secrets[0];
        if ((int)d.kind != c->kind)
            fail_msg("%s: wanted %s, have %s: %s", c->rule, cr_decision_name((enum cr_decision_kind)c->kind),
                     cr_decision_name(d.kind), d.reason);
        if (tls->restart_classes != c->restart || tls->reload_classes != c->reload || tls->max_delay_ms != c->delay_ms)
            fail_msg("%s: wanted restart %u, reload %u in %lld, have %u, %u in %lld", c->rule, c->restart, c->reload,
                     (long long)c->delay_ms, tls->restart_classes, tls->reload_classes, (long long)tls->max_delay_ms);
        if (!cr_streq(d.component, c->found))
            fail_msg("%s: component %s", c->rule, cr_or_empty(d.component));
        /* A whole sentence is wanted as it stands. */
        bool whole = cr_ends_with(c->reason, ".");
        if (whole ? !cr_streq(d.reason, c->reason) : !strstr(d.reason, c->reason))
            fail_msg("%s:\nwanted %s\nhave   %s", c->rule, c->reason, d.reason);
        assert_true(strlen(d.reason) <= 400);
        assert_true(cr_ends_with(d.reason, "."));
    }
}

static const struct decide_case *rule(const char *name)
{
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_streq(cases[i].rule, name))
            return &cases[i];
    fail_msg("no such case: %s", name);
    return NULL;
}

static void decide_rule(const char *name, struct cr_decision *out)
{
    const struct decide_case *c = rule(name);
    CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(c->pod);
    decide(c, spec, out);
}

static void test_roles_are_all_that_are_played_not_only_what_changed(void **state)
{
    (void)state;
    CR_CLEANUP(cr_decision) struct cr_decision d = {0};
    decide_rule("Rate Limit watches its server leaf", &d);
    assert_int_equal(d.secrets[0].roles, CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_CA));
}

static void test_the_second_secret_is_judged_by_itself(void **state)
{
    (void)state;
    CR_CLEANUP(cr_decision) struct cr_decision d = {0};
    decide_rule("two Secrets: the one that forces it is named", &d);
    assert_int_equal(d.secrets_len, 2);
    assert_int_equal(d.secrets[0].kind, CR_DECISION_HOT_RELOAD);
    assert_int_equal(d.secrets[1].kind, CR_DECISION_RESTART);
    assert_int_equal(d.secrets[1].restart_classes, CR_CLASS_TRUST);
    assert_int_equal(d.secrets[1].reload_classes, 0);
    assert_int_equal(d.secrets[1].roles, CR_ROLE_BIT(CR_ROLE_CLIENT_CA));
}

static void test_what_is_used_and_what_refreshes(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool used, refreshes;
    } expected[] = {
        {"a Secret that the template does not use", false, false},
        {"Envoy with file SDS takes up a leaf", true, true},
        {"Rate Limit: what it plays no role with is None", true, true},
        {"subPath restarts whatever the software can do", true, false},
        {"envFrom restarts for anything", true, false},
        {"an init container that runs once restarts the pod", true, false},
        {"a sidecar among the init containers is like any container", true, true},
    };
    for (size_t i = 0; i < cr_array_len(expected); i++) {
        CR_CLEANUP(cr_decision) struct cr_decision d = {0};
        decide_rule(expected[i].rule, &d);
        if (d.secrets[0].used != expected[i].used || d.secrets[0].refreshes != expected[i].refreshes)
            fail_msg("%s: used %d, refreshes %d", expected[i].rule, d.secrets[0].used, d.secrets[0].refreshes);
    }
}

static void test_a_workload_that_is_not_there_uses_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(cr_decision) struct cr_decision d = {0};
    decide(rule("unknown software restarts for a leaf"), NULL, &d);
    assert_int_equal(d.kind, CR_DECISION_NONE);
    assert_false(d.secrets[0].used);
}

static void test_reasons_are_cut_between_characters(void **state)
{
    (void)state;
    /* Names are cut first, so that the sentence keeps its end. */
    static const char e_acute[] = "\xc3\xa9";
    char image[900] = "x"; /* so that no cut falls between characters by itself */
    for (size_t i = 0; i < 400; i++)
        strcat(image, e_acute);
    struct decide_case c = *rule("unknown software restarts for a leaf");
    cr_autofree char *pod = cr_asprintf("containers: [{name: %s, image: '%s', " MOUNT "}]" VOLUME, image, image);
    c.pod = pod;
    CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(c.pod);
    CR_CLEANUP(cr_decision) struct cr_decision d = {0};
    decide(&c, spec, &d);
    assert_true(strlen(d.reason) <= 400);
    assert_true(cr_ends_with(d.reason, "can tell."));
    for (const char *p = d.reason; *p; p++)
        if ((unsigned char)*p == 0xc3)
            assert_int_equal((unsigned char)p[1], 0xa9);
    assert_non_null(strstr(d.reason, "\xc3\xa9..."));
}

static void test_nonsense_restarts_and_breaks_nothing(void **state)
{
    (void)state;
    static const char *const pods[] = {
        "containers: [{volumeMounts: [{name: v}]}]\nvolumes: [{name: v, secret: {secretName: tls}}]",
        "containers: [{name: 7, image: [], volumeMounts: [{name: v, mountPath: 3}]}]\n"
        "volumes: [{name: v, secret: {secretName: tls, items: [x]}}]",
        "containers: [{name: a, image: 'envoyproxy/ratelimit', env: {a: b}, args: 7, command: [1, {}], volumeMounts: "
        "[{name: v, mountPath: ''}]}]\nvolumes: [{name: v, secret: {secretName: tls}}]",
    };
    for (size_t i = 0; i < cr_array_len(pods); i++) {
        struct decide_case c = *rule("unknown software restarts for a leaf");
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(pods[i]);
        CR_CLEANUP(cr_decision) struct cr_decision d = {0};
        c.changes = NAIVE | OPAQUE;
        decide(&c, spec, &d);
        assert_int_equal(d.kind, CR_DECISION_RESTART);
    }
    struct cr_decision empty = {0};
    cr_decision_dispose(&empty);
}

/* --- which opaque keys concern whom --- */

#define ITEMS(items)     "\nvolumes: [{name: v, secret: {secretName: tls, items: [" items "]}}]"
#define CRT              "{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}"
#define HMAC             "{key: hmac, path: hmac}"
#define ENV_OF(key)      "env: [{name: X, valueFrom: {secretKeyRef: {name: tls, key: " key "}}}]"
#define NGINX_WITH(rest) "containers: [{name: nginx, image: 'docker.io/library/nginx:1.22.1', " rest "}]"

#define API_KEY_FILE(arg)                                                                                              \
    "containers: [{name: a, image: 'registry.k8s.io/kube-apiserver:v1.33.0', args: ['" arg                             \
    "'], volumeMounts: [{name: v, "                                                                                    \
    "mountPath: /certs}]}]\nvolumes: [{name: v, secret: {secretName: tls}}]"

static const struct opaque_case {
    const char *rule;
    const char *pod;
    const char *changed; /* keys, by spaces; "": not known */
    unsigned changes;
    int override; /* method of reload.opaque; 0: none */
    int kind;
    unsigned restart;
} opaque_cases[] = {
    {"unknown software may read whatever it mounts", APP, "hmac", OPAQUE, 0, RESTART, O},
    {"unless it mounts other keys", APP_WITH(MOUNT) ITEMS(CRT), "hmac", OPAQUE, 0, NONE, 0},
    {"it mounts that key", APP_WITH(MOUNT) ITEMS(CRT ", " HMAC), "hmac", OPAQUE, 0, RESTART, O},
    {"it mounts that key, another changed", APP_WITH(MOUNT) ITEMS(CRT ", " HMAC), "tls-combined.pem", OPAQUE, 0, NONE,
     0},
    {"which one changed cannot be told", APP_WITH(MOUNT) ITEMS(CRT ", " HMAC), "", OPAQUE, 0, RESTART, O},
    {"whoever takes no opaque key is not concerned then either", APP_WITH(MOUNT) ITEMS(CRT), "", OPAQUE, 0, NONE, 0},
    {"a subPath is a key", APP_WITH("volumeMounts: [{name: v, mountPath: /hmac, subPath: hmac}]") VOLUME, "hmac",
     OPAQUE, 0, RESTART, O},
    {"another subPath is another key", APP_WITH("volumeMounts: [{name: v, mountPath: /c, subPath: tls.crt}]") VOLUME,
     "hmac", OPAQUE, 0, NONE, 0},
    {"a variable is a key", APP_WITH(ENV_OF("hmac")), "hmac", OPAQUE, 0, RESTART, O},
    {"another variable is another key", APP_WITH(ENV_OF("password")), "hmac", OPAQUE, 0, NONE, 0},
    {"envFrom takes all", APP_WITH("envFrom: [{secretRef: {name: tls}}]"), "hmac", OPAQUE, 0, RESTART, O},
    {"envFrom takes all, known software as well", NGINX_WITH("envFrom: [{secretRef: {name: tls}}]"), "hmac", OPAQUE, 0,
     RESTART, O},
    {"known software does not read what lies beside its certificates", NGINX, "keystore.p12", OPAQUE, 0, NONE, 0},
    {"but what it picks", NGINX_WITH(MOUNT) ITEMS(CRT ", " HMAC), "hmac", OPAQUE, 0, RESTART, O},
    {"or what the policy says that it reads", NGINX, "hmac", OPAQUE, CR_METHOD_RESTART, RESTART, O},
    {"and how", NGINX, "hmac", OPAQUE, CR_METHOD_WATCH, RELOAD, 0},
    {"a keystore that comes with each renewal restarts nobody that does not use it", RATELIMIT,
     "keystore.p12 tls-combined.pem", LEAF | OPAQUE, 0, RELOAD, 0},
    {"the policy can say how unknown software takes opaque material", APP, "hmac", OPAQUE, CR_METHOD_WATCH, RELOAD, 0},
    {"a parameter is of the key that it points to", API_KEY_FILE("--service-account-key-file=/certs/sa.pub"), "sa.pub",
     OPAQUE, 0, RESTART, O},
    {"and of no other", API_KEY_FILE("--service-account-key-file=/certs/sa.pub"), "hmac", OPAQUE, 0, NONE, 0},
    {"what lies beside an Envoy's certificates may be in its bootstrap", ENVOY, "hmac", OPAQUE, 0, RESTART, O},
};

static void test_opaque_keys(void **state)
{
    (void)state;
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", name[] = "tls";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = ca};
    for (size_t i = 0; i < cr_array_len(opaque_cases); i++) {
        const struct opaque_case *c = &opaque_cases[i];
        struct cr_policy_consumer consumer = {0};
        consumer.reload[CR_ROLE_OPAQUE].set = c->override != 0;
        consumer.reload[CR_ROLE_OPAQUE].method = (enum cr_method)c->override;
        CR_CLEANUP(cr_strvec) struct cr_strvec changed = {0};
        cr_autofree char *text = cr_strdup(c->changed);
        char *rest = NULL;
        for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            cr_strvec_add(&changed, word);
        const struct cr_secret_change change = {.secret = &secret, .changes = c->changes, .opaque_keys = &changed};
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(c->pod);
        CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
        cr_decide(
            &(struct cr_decide_input){
                .consumer = &consumer, .pod_spec = spec, .catalogue = builtin, .changes = &change, .changes_len = 1},
            &decision);
        if ((int)decision.kind != c->kind || decision.secrets[0].restart_classes != c->restart)
            fail_msg("%s: %s, classes %u: %s", c->rule, cr_decision_name(decision.kind),
                     decision.secrets[0].restart_classes, decision.reason);
    }
}

/* --- immutable Secrets --- */

static void test_an_immutable_secret_that_was_replaced_never_refreshes(void **state)
{
    (void)state;
    char crt[] = "tls.crt", key[] = "tls.key", ca[] = "ca.crt", name[] = "tls";
    const struct cr_policy_secret secret = {.name = name, .certificate = crt, .private_key = key, .trust = ca};
    static const char *const pods[] = {ENVOY, RATELIMIT, APP};
    for (size_t i = 0; i < cr_array_len(pods); i++) {
        const struct cr_policy_consumer consumer = {0};
        const struct cr_secret_change change = {.secret = &secret, .changes = LEAF, .was_immutable = true};
        CR_CLEANUP(cr_json) struct cr_json *spec = test_yaml(pods[i]);
        CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
        cr_decide(
            &(struct cr_decide_input){
                .consumer = &consumer, .pod_spec = spec, .catalogue = builtin, .changes = &change, .changes_len = 1},
            &decision);
        assert_int_equal(decision.kind, CR_DECISION_RESTART);
        assert_false(decision.secrets[0].refreshes);
        if (!strstr(decision.reason, "Secret tls, which was immutable"))
            fail_msg("%s", decision.reason);
    }
}

/* Asked before such a leaf is there. */
static void software_refuses_keys_in_the_roles_that_it_plays(void **state)
{
    (void)state;
    enum {
        OWN = CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF),
        PEER = CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA),
    };
    static const struct {
        const char *rule, *pod, *key_type;
        unsigned roles;
        const char *component; /* NULL: it takes such a leaf, or that is not known */
    } refusals[] = {
        {"Envoy verifies no Ed25519", ENVOY, "Ed25519", PEER, "envoyproxy/envoy"},
        {"but serves it", ENVOY, "Ed25519", OWN, NULL},
        {"an older one serves no P-384", OLD_ENVOY, "ECDSA-P384", OWN, "envoyproxy/envoy"},
        {"and takes P-256 everywhere", ENVOY, "ECDSA-P256", OWN | PEER, NULL},
        {"of software that nobody knows nothing is known", APP, "Ed25519", OWN | PEER, NULL},
        {"who does not use the Secret takes anything", "containers: [{name: envoy, image: 'envoyproxy/envoy:v1.40.0'}]",
         "Ed25519", OWN | PEER, NULL},
    };
    static char name[] = "tls", certificate[] = "tls.crt", key[] = "tls.key", trust[] = "ca.crt";
    static const struct cr_policy_secret secret = {
        .name = name, .certificate = certificate, .private_key = key, .trust = trust};
    static const struct cr_policy_consumer consumer;
    for (size_t i = 0; i < cr_array_len(refusals); i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = test_yaml(refusals[i].pod);
        cr_autofree char *refused =
            cr_decide_refuses_key(&consumer, pod, builtin, &secret, refusals[i].key_type, refusals[i].roles);
        if (!cr_streq(refused, refusals[i].component))
            fail_msg("%s: %s", refusals[i].rule, cr_or_empty(refused));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(software_refuses_keys_in_the_roles_that_it_plays),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_opaque_keys),
        cmocka_unit_test(test_an_immutable_secret_that_was_replaced_never_refreshes),
        cmocka_unit_test(test_roles_are_all_that_are_played_not_only_what_changed),
        cmocka_unit_test(test_the_second_secret_is_judged_by_itself),
        cmocka_unit_test(test_what_is_used_and_what_refreshes),
        cmocka_unit_test(test_a_workload_that_is_not_there_uses_nothing),
        cmocka_unit_test(test_reasons_are_cut_between_characters),
        cmocka_unit_test(test_nonsense_restarts_and_breaks_nothing),
    };
    return cmocka_run_group_tests(tests, load_builtin, free_builtin);
}
