/* TrustDomain and ClusterTrustDomain (certroll.dev/v1alpha1): spec as C values. One type for both: what only the
 * cluster kind has is said so. Defaults are the schemas'. */
#ifndef CR_API_DOMAIN_H
#define CR_API_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/selector.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "pki/private_key.h"

#define CR_DOMAIN_KIND           "TrustDomain"
#define CR_DOMAIN_PLURAL         "trustdomains"
#define CR_CLUSTER_DOMAIN_KIND   "ClusterTrustDomain"
#define CR_CLUSTER_DOMAIN_PLURAL "clustertrustdomains"

/* As in the schemas. */
enum {
    CR_DOMAIN_LEAVES_MAX = 64,
    CR_DOMAIN_TARGETS_MAX = 32,
    CR_DOMAIN_NAMES_MAX = 32,
    CR_DOMAIN_RETAIN_MAX = 8,
    CR_DOMAIN_DISTRUST_MAX = 16
};
/* Objects that a domain writes, with those that its selectors bring. */
enum { CR_DOMAIN_OBJECTS_MAX = 512 };

enum cr_authority_type {
    CR_AUTHORITY_EXTERNAL, /* leaves and CAs come from `mirror` sources; no key of a CA is held */
    CR_AUTHORITY_ISSUE,    /* a CA of the domain's own */
};

/* When something is renewed: at two thirds of its life (with jitter), or so long before its end. */
struct cr_domain_life {
    int64_t duration_ms;
    int64_t renew_before_ms; /* 0: at two thirds */
};

struct cr_domain_issue_ca {
    char *ca_secret; /* with tls.crt and tls.key of the CA, in the domain's namespace (cluster kind: the operator's) */
    char *common_name;
    struct cr_key_spec key;
    struct cr_domain_life life;
    bool cross_sign;
};

enum cr_leaf_source { CR_LEAF_MIRROR, CR_LEAF_ISSUE };

struct cr_domain_keystore { /* deterministic PKCS#12 beside the PEM: keystore.p12 and truststore.p12 */
    bool set;
    char *password_secret; /* in the namespace of the leaf's Secret */
    char *password_key;
};

struct cr_domain_leaf {
    char *name;   /* key of the list */
    char *ns;     /* of its Secret. TrustDomain: the domain's own */
    char *secret; /* that workloads mount, written by us: tls.crt, tls.key, ca.crt */
    enum cr_leaf_source source;
    char *mirror; /* MIRROR: the Secret that another program writes, in the same namespace */
    /* ISSUE: */
    char *common_name; /* NULL: none */
    struct cr_strvec dns_names, addresses, uris, emails, organizations;
    unsigned usages; /* CR_LEAF_SERVER | CR_LEAF_CLIENT (pki/issue.h) */
    struct cr_key_spec key;
    struct cr_domain_life life;
    struct cr_domain_keystore keystore;
};

enum cr_trust_target_kind {
    CR_TARGET_CONFIGMAP,
    CR_TARGET_SECRET,
    /* Their caBundle, cluster kind only. */
    CR_TARGET_VALIDATING_WEBHOOK,
    CR_TARGET_MUTATING_WEBHOOK,
    CR_TARGET_API_SERVICE,
    CR_TARGET_CRD_CONVERSION,
    CR_TARGET_KINDS,
};
const char *cr_trust_target_kind_name(enum cr_trust_target_kind kind); /* "ConfigMap", … as the objects' kinds */
/* Its caBundle; it is in no namespace, and the object is never created. */
bool cr_trust_target_is_ca_bundle(enum cr_trust_target_kind kind);

struct cr_domain_target {
    enum cr_trust_target_kind kind;
    char *name;
    char *key; /* of a ConfigMap or Secret; default ca.crt. Of webhooks: the webhook's name, NULL: all of them */
    char *ns;  /* of a ConfigMap or Secret. TrustDomain: the domain's own; cluster kind: NULL with a selector */
    struct cr_selector namespaces; /* cluster kind: every namespace that matches and has consented */
};

enum cr_retire { CR_RETIRE_NEXT_ROTATION, CR_RETIRE_CONVERGED, CR_RETIRE_NEVER };

/* The least that a stage needs of every pod. */
enum cr_evidence_level { CR_LEVEL_INFERRED, CR_LEVEL_VERIFIED };
/* A published object that no policy covers, so that its readers are not known. */
enum cr_uncovered {
    CR_UNCOVERED_WAIT,  /* the stage waits, and says which object */
    CR_UNCOVERED_DELAY, /* counts as Inferred once every kubelet must have refreshed it */
};

struct cr_domain_evidence_spec {
    enum cr_evidence_level trust, leaf;
    enum cr_uncovered uncovered;
    int64_t stage_deadline_ms;
};

enum cr_rotate_what { CR_ROTATE_CA, CR_ROTATE_LEAVES, CR_ROTATE_PREVIOUS_LEAVES /* put the previous leaves back */ };

struct cr_domain {
    bool cluster;
    char *ns; /* NULL for the cluster kind */
    char *name;
    char *uid;
    char *resource_version;
    int64_t generation;
    int64_t created_ms; /* wall, the API server's clock; whole seconds */
    bool deleting;

    bool suspend;
    enum cr_authority_type authority;
    struct cr_domain_issue_ca ca; /* ISSUE */
    struct cr_domain_leaf *leaves;
    size_t leaves_len;
    struct cr_domain_target *targets;
    size_t targets_len;
    int retain_previous;
    enum cr_retire retire;
    struct cr_strvec distrust; /* fingerprints of CAs: SHA-256 of the DER, in hex */
    struct cr_domain_evidence_spec evidence;
    char *rotate_token; /* NULL: none */
    enum cr_rotate_what rotate;
};

/* By the object's kind. Owned. Errors (Invalid) name the field by path and say what is allowed. */
struct cr_domain *cr_domain_decode(const struct cr_json *object, struct cr_error *err) CR_MUST_USE;
void cr_domain_free(struct cr_domain *domain);
CR_DEFINE_CLEANUP(cr_domain, struct cr_domain, cr_domain_free)

/* spec.distrust lists the CA of that fingerprint. */
bool cr_domain_distrusts(const struct cr_domain *domain, const char *fingerprint);

/* For annotations, labels and messages: "ns/name" or "name" of the cluster kind. Owned. */
char *cr_domain_title(const struct cr_domain *domain);

#endif
