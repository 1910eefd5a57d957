/* ControlPlanePolicy (certroll.dev/v1alpha1): how the cluster's own components follow their files. Namespaced; it
 * counts in kube-system only. Of several policies the oldest counts, and the others report Conflict. It only lets
 * components follow what another program or a person writes: it names no certificate. Decoded from parsed JSON with the
 * schema's defaults. */
#ifndef CR_API_CONTROL_PLANE_H
#define CR_API_CONTROL_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/status.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"

#define CR_CONTROL_PLANE_KIND      "ControlPlanePolicy"
#define CR_CONTROL_PLANE_PLURAL    "controlplanepolicies"
#define CR_CONTROL_PLANE_NAMESPACE "kube-system"

enum { CR_CONTROL_PLANE_CONSUMERS_MAX = 32, CR_CONTROL_PLANE_WORKLOADS_MAX = 100 };

enum cr_control_plane_restart { CR_CONTROL_PLANE_RESTART_ALLOWED, CR_CONTROL_PLANE_RESTART_NEVER };

/* spec.consumers[]: a component of the nodes. One that is not listed counts as listed with the defaults. */
struct cr_control_plane_consumer {
    char *component; /* "kube-apiserver", "kubelet", … */
    enum cr_control_plane_restart restart;
};

/* spec.workloads[]: pods that read the cluster's root CA, or their token, once at start; they are restarted, by a
 * rollout within their own strategy, after it has changed in their namespace. */
struct cr_control_plane_workload {
    char *name;
    char *kind; /* Deployment, StatefulSet, DaemonSet */
    char *ns;
    char *target;
    bool reads_root_ca, reads_token;
};

/* What follows a new signing key of service accounts. */
enum cr_control_plane_tokens {
    CR_CONTROL_PLANE_TOKENS_WAIT,             /* the kubelets' own renewal: 50 min, more where pods ask for more */
    CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS, /* one after the other; no container is touched */
};

/* A cluster with one API server, or one member of etcd, cannot be without it. */
enum cr_control_plane_single { CR_CONTROL_PLANE_SINGLE_BLOCK, CR_CONTROL_PLANE_SINGLE_ALLOW };

struct cr_control_plane_policy {
    char *name, *ns, *uid;
    int64_t generation;
    int64_t created_ms;
    bool enforce; /* mode: Enforce; false: Plan, nothing is written but status */
    bool suspend;
    struct cr_control_plane_consumer *consumers;
    size_t consumers_len;
    struct cr_control_plane_workload *workloads;
    size_t workloads_len;
    enum cr_control_plane_tokens tokens; /* default RestartKubelets */
    bool renew_token_secrets;            /* spec.tokenSecrets: Renew (default) or Leave */
    enum cr_control_plane_single single; /* spec.restart.singleNode: Block (default) or Allow */
    int64_t step_deadline_ms; /* spec.restart.deadline, default 5m: a component that is not proved by then has
                               * failed */
    char *retry;              /* spec.restart.retry: change it to have a failed step tried again; NULL */
};
void cr_control_plane_policy_dispose(struct cr_control_plane_policy *policy);
CR_DEFINE_DISPOSE(cr_control_plane_policy, struct cr_control_plane_policy, cr_control_plane_policy_dispose)
/* Errors: Invalid, naming the field. out is empty then. */
bool cr_control_plane_policy_decode(const struct cr_json *object, struct cr_control_plane_policy *out,
                                    struct cr_error *err) CR_MUST_USE;

/* --- status --- */

enum { CR_CONTROL_PLANE_CONDITIONS = 6 };
/* "Ready" (the spec is understood, agents report), "Converged" (all components have what the files have), "Rotating" (a
 * component is restarted, or takes something up), "Blocked" (something waits for a person: message says for what),
 * "Degraded" (a step failed, a file is broken, a node is silent), "Conflict" */
extern const char *const cr_control_plane_condition_types[CR_CONTROL_PLANE_CONDITIONS];

/* One of the three PKIs of a cluster. They are distinguished by use, not by name: etcd's by etcd's own CA parameters
 * and --etcd-cafile, the front proxy's by --requestheader-client-ca-file, the cluster's by all others. All are lists of
 * fingerprints in one text, sorted and joined by commas, so that `kubectl wait --for=jsonpath=` can await one state. */
struct cr_control_plane_authority {
    /* CAs that all components that verify by this PKI are known to have loaded; so leaves of them may be used. */
    char *trusted;
    char *pending; /* CAs that are in the file of some component, and not loaded by all */
    /* All CAs that any component has, in a file or loaded: trusted and pending in one. A wait until all components have
     * dropped a CA uses this, since trusted lacks it as soon as one has dropped it. "": not known, as when a node is
     * silent. */
    char *known;
    char *issuing;   /* CAs of which a leaf in use, or a signer, is */
    char *removable; /* of trusted: those that no leaf in use needs, as each verifies against another that is trusted */
    int64_t not_after_ms; /* of the CA that ends first among those that issue; 0: none */
};

struct cr_control_plane_keys {
    char *verifying; /* keys that every API server is known to verify by */
    char *known;     /* all keys that any component verifies by, or has in a file to do so; as an authority's known */
    char *signing;   /* keys that any component signs with */
    char *tokens;    /* keys by which tokens are signed that are in use: of pods as agents count them, and of Secrets */
    char *removable; /* of verifying: neither signing nor in tokens */
};

struct cr_control_plane_consumer_status {
    char *component;
    int64_t nodes, loaded, soon, restart_needed, unknown; /* nodes by the worst of their files */
    char *message;                                        /* what is waited for; NULL: nothing */
};

struct cr_control_plane_count {
    int64_t total, converged;
    char *example; /* one that has not; NULL */
};

struct cr_control_plane_status {
    int64_t observed_generation;
    struct cr_control_plane_authority cluster, etcd, front_proxy;
    struct cr_control_plane_keys service_accounts;
    struct cr_control_plane_count nodes;         /* total: nodes of the cluster; converged: with all loaded */
    struct cr_control_plane_count namespaces;    /* kube-root-ca.crt has what --root-ca-file has */
    struct cr_control_plane_count token_secrets; /* ca.crt and, with Renew, the key that signed */
    struct cr_control_plane_count workloads;
    struct cr_control_plane_consumer_status *consumers;
    size_t consumers_len;
    char *restarting_node, *restarting_component, *restarting_token; /* NULL: none */
    int64_t restarting_since_ms;
    /* The order was taken back at restarting_since_ms, and it is not known whether the restart had begun. No other
     * restart is ordered before its agent has reported that it has not. */
    bool restarting_revoked;
    /* A restart that failed; NULL: none has. No component is restarted until the files of that component, its process
     * or spec.restart.retry change. failed_state is a digest of these. */
    char *failed_node, *failed_component, *failed_token, *failed_state;
    char *handled_retry; /* spec.restart.retry that was looked at last */
    /* What workloads and kubelets follow: the digest of kube-root-ca.crt when all namespaces had it last, the key that
     * all signers last signed with, and since when it differs from the one before; 0: it was so at first sight. */
    char *root_ca, *signing_key;
    int64_t root_ca_since_ms, signing_key_since_ms;
    char *next; /* one sentence: what happens next, or what it waits for */
    struct cr_condition conditions[CR_CONTROL_PLANE_CONDITIONS];
};
void cr_control_plane_status_dispose(struct cr_control_plane_status *status);
CR_DEFINE_DISPOSE(cr_control_plane_status, struct cr_control_plane_status, cr_control_plane_status_dispose)
/* What one plan remembers of the one before: the order, the failure, what is followed, and conditions for their times.
 * to: zeroed. */
void cr_control_plane_status_keep(struct cr_control_plane_status *to, const struct cr_control_plane_status *from);
/* As cr_status_condition. */
void cr_control_plane_status_condition(struct cr_control_plane_status *status, const char *type, bool value,
                                       const char *reason, const char *message, int64_t generation, int64_t now_ms);
void cr_control_plane_status_decode(const struct cr_json *status, struct cr_control_plane_status *out);
/* Owned; every member always there (merge patch); deterministic. */
struct cr_json *cr_control_plane_status_encode(const struct cr_control_plane_status *status);

#endif
