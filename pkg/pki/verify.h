/* Who signed what, and what verifies against what. Private to pkg/pki. */
#ifndef CR_PKI_VERIFY_H
#define CR_PKI_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "pki/digest.h"

struct cr_certificate;
struct x509_st;       /* OpenSSL's X509 */
struct stack_st_X509; /* STACK_OF(X509) */

/* Clocks of issuers and ours may differ by that much. */
enum { CR_CLOCK_SKEW_MS = 5 * 60 * 1000 };

/* ca is named as cert's issuer, and its key made the signature. Says nothing of times. */
bool cr_verify_signed_by(struct cr_certificate *cert, struct cr_certificate *ca);

/* Whether leaf verifies at now_ms when anchor is the only certificate trusted (a root or not: partial chains count) and
 * helpers may stand in between. Any purpose; a certificate that is not valid yet counts within the clock skew. issuer
 * becomes the CA that signed the leaf, one of helpers or anchor, when the leaf verifies and is no anchor itself; else
 * it stays. */
bool cr_verify_chains_to(struct x509_st *leaf, struct stack_st_X509 *helpers, struct x509_st *anchor, int64_t now_ms,
                         struct x509_st **issuer);

#endif
