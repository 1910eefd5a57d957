/* The CAs and leaves of a policy's Secrets, and the bundle that they and the present content of a target make
 * (spec.trust). Pure. */
#ifndef CR_POLICY_CONTROLLER_TRUST_SOURCES_H
#define CR_POLICY_CONTROLLER_TRUST_SOURCES_H

#include "kube/entry.h"
#include "pki/bundle.h"

struct cr_trust_source_leaf {
    char *name; /* for messages: "Secret web-tls" */
    struct cr_entry chain;
};

struct cr_trust_sources {
    struct cr_buf current; /* all CAs that the Secrets have now */
    struct cr_trust_source_leaf *leaves;
    size_t leaves_len;
};
void cr_trust_sources_dispose(struct cr_trust_sources *sources);
CR_DEFINE_DISPOSE(cr_trust_sources, struct cr_trust_sources, cr_trust_sources_dispose)

/* Takes what the entries hold. Either may be empty. */
void cr_trust_sources_add(struct cr_trust_sources *sources, const char *secret, struct cr_entry *trust,
                          struct cr_entry *chain);
/* [current, previous], where previous is what the target holds (empty: nothing), by the rule of bundle.h. A leaf that
 * verifies against no CA at hand loses nothing by it, and is ignored: it may be issued by a public CA, beside a bundle
 * for other peers. Errors: as cr_bundle_make's. out need not be initialised. */
bool cr_trust_sources_make(const struct cr_trust_sources *sources, const struct cr_pem_input *previous,
                           size_t retain_previous, int64_t now_ms, struct cr_bundle *out,
                           struct cr_error *err) CR_MUST_USE;
/* The subject of the first CA of a bundle that is no root, without a CA that issued it there, and was not in previous.
 * Owned; NULL: there is none. */
char *cr_trust_sources_needing(const struct cr_bundle *bundle, const struct cr_pem_input *previous);

#endif
