/* Which of several certificates a leaf verifies against, at a bounded cost. Private to pkg/pki.
 *
 * A verification checks a signature for each certificate of the chain that it builds, and one chain is built for each
 * anchor: for a thousand certificates with names that fit together that would be a hundred thousand checks. So what can
 * stand above a leaf is first found by names, which costs nothing, then limited. What passes a limit is an error that
 * names it, never an answer from half of the work. */
#ifndef CR_PKI_PATHS_H
#define CR_PKI_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct X509_name_st;   /* OpenSSL's X509_NAME */
struct cr_certificate; /* pki/certificate.h */
struct evp_pkey_st;    /* OpenSSL's EVP_PKEY */
struct stack_st_X509;  /* STACK_OF(X509) */
struct x509_st;        /* OpenSSL's X509 */

enum {
    CR_PATHS_CERTIFICATES_MAX = 64, /* above one leaf, by their names; ten generations of a CA with cross-signed ones
                                     * are 30 */
    CR_PATHS_SIGNATURES_MAX = 256,  /* checked for one leaf; the last chain is finished, so up to 64 more */
    CR_PATHS_STEPS_MAX =
        16384, /* of the search for a way that is not the first, for one leaf: certificates looked at */
    CR_PATHS_CERTIFICATE_BYTES_MAX = 64 * 1024, /* DER of a leaf or of what may stand above it; thousands of names */
    CR_PATHS_NAME_STEPS_MAX = 64 * 1024 * 1024, /* bytes of names × bytes of name constraints (RFC 5280, section
                                                 * 4.2.1.10), for each verification of one leaf */
};

/* A certificate that may stand above a leaf, borrowed: cert, which is opened only if it may, or x509. */
struct cr_paths_above {
    struct cr_certificate *cert;
    struct x509_st *x509;
    bool between; /* may stand between the leaf and an anchor; else it can only be the anchor */
};

/* What may stand above one leaf. For one thread. Borrows the leaf and the certificates. */
struct cr_paths;
void cr_paths_free(struct cr_paths *paths);
CR_DEFINE_CLEANUP(cr_paths, struct cr_paths, cr_paths_free)

/* Errors: Invalid, the text names the limit. above is copied, what it points to is borrowed. */
struct cr_paths *cr_paths_new(struct x509_st *leaf, const struct cr_paths_above *above, size_t len,
                              struct cr_error *err) CR_MUST_USE;

/* The same of certificates of OpenSSL's: the leaf is the first of chain, between it and an anchor may stand the rest of
 * chain, and anchors, too, if between says so. The index of an anchor is its place in anchors and
 * cr_paths_sent(chain). anchors: NULL for none. */
struct cr_paths *cr_paths_of_chain(struct stack_st_X509 *chain, struct stack_st_X509 *anchors, bool between,
                                   struct cr_error *err) CR_MUST_USE;
/* Whether it may stand above a leaf, by its size and its key. Errors: Invalid, the text names the limit. */
bool cr_paths_affords(struct x509_st *cert, struct cr_error *err) CR_MUST_USE;
/* How many certificates stand behind the first. */
size_t cr_paths_sent(const struct stack_st_X509 *chain);

/* From now on a way counts that Go's crypto/x509 takes and OpenSSL does not: up through certificates that are called as
 * their issuers are and have no key identifiers, which OpenSSL holds for roots. */
void cr_paths_ask_as_go(struct cr_paths *paths);

/* When a leaf must be valid. */
enum cr_paths_time {
    CR_PATHS_NOW,        /* at at_ms; a certificate that begins within CR_CLOCK_SKEW_MS after it counts */
    CR_PATHS_WHEN_BOTH,  /* at at_ms, or as soon as leaf and anchor are valid: an issuer's clock may be ahead of ours */
    CR_PATHS_AT_NO_TIME, /* times are not looked at */
};
/* Clocks of issuers and ours may differ by that much. */
enum { CR_CLOCK_SKEW_MS = 5 * 60 * 1000 };

/* Whether the leaf verifies when above[anchor] is the only certificate trusted (a root or not: partial chains count)
 * and those that may stand between do, by any way: RFC 5280 leaves it to the verifier which of several it takes, and
 * Go's tries them all. Any purpose. at_ms: wall clock. issuer (may be NULL) becomes the index in above
 * of the CA that signed the leaf when it verifies and is no anchor itself; else it stays.
 * False: a limit is passed (Invalid, named). */
bool cr_paths_verify(struct cr_paths *paths, size_t anchor, enum cr_paths_time when, int64_t at_ms, bool *verifies,
                     size_t *issuer, struct cr_error *err) CR_MUST_USE;

/* The first of above with the key that made the leaf's signature, or one of these. Says nothing of times. False: a
 * limit is passed. */
#define CR_PATHS_ITSELF (SIZE_MAX - 1) /* it is self-signed */
#define CR_PATHS_NONE   SIZE_MAX
bool cr_paths_find_signer(struct cr_paths *paths, size_t *signer, struct cr_error *err) CR_MUST_USE;

/* Bytes of names × bytes of name constraints that one verification may compare. */
size_t cr_paths_name_steps(const struct cr_paths *paths);
/* Signatures checked so far. */
size_t cr_paths_signatures(const struct cr_paths *paths);

#endif
