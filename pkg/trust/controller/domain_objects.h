/* What a trust domain reads and writes, as the API server has it now: sources, published objects, the CA Secret,
 * staging. Read by GET for one reconcile and wiped after it: no cache has a key. Called in workers; each call blocks
 * for its requests. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_OBJECTS_H
#define CR_TRUST_CONTROLLER_DOMAIN_OBJECTS_H

#include "api/domain.h"
#include "base/strvec.h"
#include "kube/client.h"
#include "trust/rules/domain_plan.h"

/* Annotations and labels of what a domain writes. */
#define CR_DOMAIN_CONSENT                                                                                              \
    "certroll.dev/trust-domains" /* of a Namespace: names of ClusterTrustDomains that may write here, "a,b" or "*" */
/* Which leaf (SHA-256 of its DER) the next two speak of: beside another one, which another program has put there, they
 * do not count. Without it they do, as of what was written before there was this annotation. */
#define CR_DOMAIN_LEAF       "certroll.dev/leaf"
#define CR_DOMAIN_ISSUED_FOR "certroll.dev/issued-for"
#define CR_DOMAIN_TOKEN      "certroll.dev/rotate-token"

/* Everything of one domain. Owned; keys are wiped. */
struct cr_domain_objects;

struct cr_domain_reader {
    struct cr_client *client;
    const char *operator_namespace; /* of the cluster kind's CA Secret and staging; NULL: not known */
    /* Names of the namespaces that a selector matches, and whether each has consented. NULL for a namespaced kind. */
    bool (*consents)(void *arg, const char *ns, const char *domain);
    bool (*namespace_exists)(void *arg, const char *ns);
    void (*select_namespaces)(void *arg, const struct cr_selector *selector, struct cr_strvec *names);
    void *arg;
};

/* Everything is borrowed for as long as the objects live. status: which CAs of published bundles are the domain's own.
 * What else somebody has put into a ConfigMap or caBundle is no CA at hand, or whoever may edit one of them could make
 * all others trust a CA of theirs; a leaf's Secret vouches for its own where its writer could have written the source
 * or the CA Secret as well. now_ms: wall clock, for all that is made with them. Errors: what is needed cannot be read
 * for now (Transient, Forbidden: with the right that is missing), or one of the domain's own Secrets is more than is
 * read (Invalid). What else is there and cannot be read or used is no error: it is in the views. Of more objects than
 * CR_DOMAIN_OBJECTS_MAX those on record come first, then they go by the spec's order. */
struct cr_domain_objects *cr_domain_objects_read(const struct cr_domain_reader *reader, const struct cr_domain *domain,
                                                 const struct cr_domain_status *status, int64_t now_ms,
                                                 struct cr_error *err) CR_MUST_USE;
void cr_domain_objects_free(struct cr_domain_objects *objects);
CR_DEFINE_CLEANUP(cr_domain_objects, struct cr_domain_objects, cr_domain_objects_free)

/* Fills the world's cas, objects, authority and staging_found; borrowed from objects, until it is asked for again. It
 * shows what was written meanwhile. The objects' evidence is left for the caller to set. */
void cr_domain_objects_view(struct cr_domain_objects *objects, struct cr_domain_world *world);
/* What the object publishes, as digests: text that says nothing of a key. Owned. */
char *cr_domain_objects_content(const struct cr_domain_objects *objects, size_t object);
/* Who else has written what the object publishes now, when its version is not written_version, the last one of ours on
 * record. own_content: what was published with that version, NULL: not known; a program that writes under our name is
 * found by it. One more GET. Owned; NULL: nobody, or it cannot be known. */
char *cr_domain_objects_other_writer(const struct cr_domain_objects *objects, size_t object,
                                     const char *written_version, const char *own_content);
/* Digests of what the object publishes, for cr_domain_evidence_input; NULL: nothing that can be read. Borrowed from the
 * view. */
const struct cr_material *cr_domain_objects_material(const struct cr_domain_objects *objects, size_t object);
/* Of a leaf to be mirrored, for what a consumer accepts; NULL: none that can be used. Borrowed from the view. */
const struct cr_material *cr_domain_objects_source(const struct cr_domain_objects *objects, size_t object);

/* What became of a write: it may be less than the plan wanted, when its bundle would cut somebody off. */
struct cr_domain_written {
    char *version;               /* owned: the resourceVersion that the object has now; NULL: nothing was written */
    enum cr_trust_reason reason; /* CR_TRUST_WOULD_CUT_OFF, CR_TRUST_BUNDLE_TOO_COSTLY; CR_TRUST_FINE: all of it */
    char *text;                  /* owned: beside it, in words; NULL */
};
void cr_domain_written_dispose(struct cr_domain_written *written);
CR_DEFINE_DISPOSE(cr_domain_written, struct cr_domain_written, cr_domain_written_dispose)

/* Does one write of the plan: the precondition is what was read. A write that is refused for good (Forbidden, Invalid)
 * says so in words of which object and right. written need not be initialised; nothing of an error. */
bool cr_domain_objects_write(struct cr_domain_objects *objects, const struct cr_domain_write *write, int64_t now_ms,
                             struct cr_domain_written *written, struct cr_error *err) CR_MUST_USE;
/* The CA Secret made again, the next CA into staging (create: who comes second reads what the first made), promoted
 * from staging, staging deleted. token: NULL or the rotate token that it is for. */
bool cr_domain_objects_first_ca(struct cr_domain_objects *objects, int64_t now_ms, struct cr_error *err) CR_MUST_USE;
bool cr_domain_objects_stage_next_ca(struct cr_domain_objects *objects, const char *token, int64_t now_ms,
                                     struct cr_error *err) CR_MUST_USE;
bool cr_domain_objects_promote_ca(struct cr_domain_objects *objects, struct cr_error *err) CR_MUST_USE;
bool cr_domain_objects_delete_staging(struct cr_domain_objects *objects, struct cr_error *err) CR_MUST_USE;

/* A canary: a client certificate of a CA whose key we hold (the current or the next), minutes long, with no name that
 * authorises anything, without the cross-certificate. PEM texts, owned; the key's buffer is secret. False: no key of
 * that CA is held. */
bool cr_domain_objects_canary(const struct cr_domain_objects *objects, size_t ca, int64_t now_ms,
                              struct cr_buf *certificate, struct cr_buf *key, struct cr_error *err) CR_MUST_USE;

#endif
