/* The CAs at hand: those of several texts, each once, and what verifies against which of them. Not thread-safe. */
#ifndef CR_PKI_CA_SET_H
#define CR_PKI_CA_SET_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/strvec.h"
#include "pki/bundle.h"

struct cr_ca_set;

struct cr_ca_facts {
    char fingerprint[CR_SHA256_HEX];
    char *subject; /* for people, in the order of RFC 4514 ("CN=mesh,O=example"); owned by the set */
    int64_t not_before_ms, not_after_ms; /* wall clock */
    bool root;
};

struct cr_ca_set *cr_ca_set_new(void);
void cr_ca_set_free(struct cr_ca_set *set);
CR_DEFINE_CLEANUP(cr_ca_set, struct cr_ca_set, cr_ca_set_free)

/* Adds the certificates of a bundle's text; only: just those with these fingerprints, NULL: all. Errors (Invalid,
 * without the name of the entry): the text cannot be read, or there would be more than CR_BUNDLE_CAS_MAX; then none is
 * added. */
bool cr_ca_set_add(struct cr_ca_set *set, const struct cr_pem_input *in, const struct cr_strvec *only,
                   struct cr_error *err) CR_MUST_USE;
/* Whether leaves can be verified with the CAs of a text beside them. Those that bear the name of a leaf's CA stand
 * above that leaf, too, whoever has brought them, and if that passes a limit (paths.h) nobody knows what it verifies
 * against. Errors: Invalid, one is beyond such a limit by itself, or there are more of one name than one text may
 * bring; the text cannot be read. */
enum { CR_CA_SET_NAMESAKES_MAX = 32 };
bool cr_ca_set_affords(const struct cr_pem_input *in, struct cr_error *err) CR_MUST_USE;
/* Adds what is to be trusted for a CA. chain: its certificate, with those above it. What is added is the root at the
 * top of it, else a root of trust (may be absent) that it verifies against, else the topmost that is there. Its
 * fingerprint into out.
 */
bool cr_ca_set_add_anchor(struct cr_ca_set *set, const struct cr_pem_input *chain, const struct cr_pem_input *trust,
                          char out[CR_SHA256_HEX], struct cr_error *err) CR_MUST_USE;
/* The newest (by notBefore) first, and of one age by fingerprint. Indexes below are of this order: sort once, after the
 * last was added. */
void cr_ca_set_sort(struct cr_ca_set *set);

size_t cr_ca_set_len(const struct cr_ca_set *set);
/* Borrowed. */
const struct cr_ca_facts *cr_ca_set_facts(const struct cr_ca_set *set, size_t at);
/* Its index, or the length when it is not there. */
size_t cr_ca_set_find(const struct cr_ca_set *set, const char *fingerprint);

/* has[len]: which of the set a bundle's text has. False: it cannot be read, or has another certificate or one twice. */
bool cr_ca_set_compare(const struct cr_ca_set *set, const struct cr_pem_input *in, bool *has);

/* Which of the set a bundle's text has, in its order, each once: indexes into at, which has room for the length. How
 * many; 0 too when it cannot be read. */
size_t cr_ca_set_list(const struct cr_ca_set *set, const struct cr_pem_input *in, size_t *at);
/* issued[len * len], as cr_x509_find_issuers. */
void cr_ca_set_find_issuers(const struct cr_ca_set *set, bool *issued);

struct cr_chain_facts {
    char fingerprint[CR_SHA256_HEX]; /* of the leaf */
    int64_t not_before_ms, not_after_ms;
};
/* verifies[len]: whether the first certificate of chain verifies at now_ms with that CA alone trusted, a root or not,
 * and the rest of the chain in between. What is not valid yet counts: clocks differ. Errors: Invalid, the chain cannot
 * be read, and then the facts are empty; or a limit of paths.h is passed, and then they are there, and verifies is all
 * false, since half of the work is no answer. */
bool cr_ca_set_verify(const struct cr_ca_set *set, const struct cr_pem_input *chain, int64_t now_ms,
                      struct cr_chain_facts *facts, bool *verifies, struct cr_error *err) CR_MUST_USE;
/* Whether it verifies against one of the set at any time: against one that has expired, then. */
bool cr_ca_set_knows_issuer(const struct cr_ca_set *set, const struct cr_pem_input *chain);

/* What is to be published in the place of a bundle. */
struct cr_ca_arrangement {
    const bool *must;        /* [len] */
    const bool *spare;       /* [len], only what keeps a client's leaf; what is not valid any more must not be in it */
    const size_t *preferred; /* the whole set, as it should stand where no client minds */
    const struct cr_pem_input *published; /* what clients have now, also beyond the set: one of these */
    size_t published_len;
    const struct cr_bundle_leaf *leaves; /* in use; those of which no chain is known are passed over */
    size_t leaves_len;
    bool as_it_is; /* nothing is searched for: the preferred order keeps every client, or CR_BUNDLE_WOULD_CUT_OFF */
};
/* What was found of it, for messages and for what is to be done. */
struct cr_bundle_finding {
    enum cr_bundle_proof proof;
    const char *leaf;   /* that a client would lose; its name, borrowed from the leaves. NULL: none */
    const char *client; /* who would not verify it any more: "OpenSSL"; static. NULL: none */
    bool beyond_asking; /* of CR_BUNDLE_TOO_COSTLY: even one leaf takes too much, so nothing can be asked */
};
/* An order in which no client that verifies one of the leaves with what is published loses it, as cr_bundle_make finds
 * it: indexes into order, which has room for the length. A leaf and CR_BUNDLE_PROVED: no order helps its GnuTLS
 * clients, and all others keep it. With CR_BUNDLE_WOULD_CUT_OFF there is none: *order_len is 0. Errors: Internal. */
bool cr_ca_set_arrange(const struct cr_ca_set *set, const struct cr_ca_arrangement *arrangement, int64_t now_ms,
                       size_t *order, size_t *order_len, struct cr_bundle_finding *finding,
                       struct cr_error *err) CR_MUST_USE;

/* Appends those CAs in that order: nothing but the certificates, so that the same CAs are the same bytes. Errors:
 * Invalid, more than CR_BUNDLE_BYTES_MAX. */
bool cr_ca_set_write(const struct cr_ca_set *set, const size_t *order, size_t len, struct cr_buf *out,
                     struct cr_error *err) CR_MUST_USE;

#endif
