/* A set of Secrets that share one CA: what a certgen job makes. A profile (pkg/certgen/profiles) or a file describes
 * it in YAML; docs/operations.md says what stands there. Immutable once read. */
#ifndef CR_CERTGEN_SET_H
#define CR_CERTGEN_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "pki/private_key.h"

/* The entries of a leaf's Secret. */
#define CR_CERTGEN_CERTIFICATE "tls.crt"
#define CR_CERTGEN_PRIVATE_KEY "tls.key"
#define CR_CERTGEN_TRUST       "ca.crt"

enum { CR_CERTGEN_SECRETS_MAX = 64, CR_CERTGEN_RESTARTS_MAX = 32 };

/* An hour to 100 years. */
#define CR_CERTGEN_LIFETIME_MIN_MS (INT64_C(3600) * 1000)
#define CR_CERTGEN_LIFETIME_MAX_MS (36500 * 24 * CR_CERTGEN_LIFETIME_MIN_MS)

struct cr_certgen_secret {
    char *name;
    /* Random bytes under this key, made once and never changed; NULL: a leaf with its key and the CAs to trust. */
    char *opaque_key;
    int opaque_bytes;
    char *common_name; /* of the leaf; NULL: none */
    struct cr_strvec dns_names, addresses, uris;
    unsigned usages; /* CR_LEAF_SERVER, CR_LEAF_CLIENT or both */
};

struct cr_certgen_label {
    char *name, *value;
};

struct cr_certgen_set {
    char *name; /* of the profile, or of the file: for messages and for the staging Secret */
    char *ns;
    char *common_name; /* of the CA; its subject has a serialNumber beside it (pki/authority.h) */
    int64_t lifetime_ms;
    struct cr_key_spec key;          /* of the CA and of the leaves */
    struct cr_certgen_label *labels; /* of Secrets that are created */
    size_t labels_len;
    struct cr_certgen_secret *secrets;
    size_t secrets_len;
    struct cr_strvec restarts; /* Deployments that read some of it only at their start */
    /* A MutatingWebhookConfiguration that has the CAs of one of the Secrets as its caBundles; NULL: none. */
    char *webhook;
    size_t webhook_secret;
};

/* What the text leaves open. Everything is borrowed. */
struct cr_certgen_place {
    const char *ns;
    const char *cluster_domain; /* "cluster.local" */
    const char *name_suffix;    /* behind the name of each Secret; NULL: none */
};

/* title: as cr_certgen_set.name. In texts ${namespace} and ${clusterDomain} are replaced. Owned. Errors: Invalid, with
 * the field, and what it may be. */
struct cr_certgen_set *cr_certgen_set_read(const char *title, const char *yaml, size_t len,
                                           const struct cr_certgen_place *place, struct cr_error *err) CR_MUST_USE;
void cr_certgen_set_free(struct cr_certgen_set *set);
CR_DEFINE_CLEANUP(cr_certgen_set, struct cr_certgen_set, cr_certgen_set_free)

/* Whether there is such a Secret with a leaf. */
bool cr_certgen_set_has_leaves(const struct cr_certgen_set *set);

#endif
