/* Which certificate has signed which: each pair is checked once, however often it is asked. Private to pkg/pki. */
#ifndef CR_PKI_SIGNERS_H
#define CR_PKI_SIGNERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct x509_st; /* OpenSSL's X509 */

/* For one thread. Certificates are known by their addresses: those that were asked for must live as long as this. */
struct cr_signers;
struct cr_signers *cr_signers_new(void);
void cr_signers_free(struct cr_signers *signers);
CR_DEFINE_CLEANUP(cr_signers, struct cr_signers, cr_signers_free)

/* Whether issuer's key made cert's signature; false, too, of a key that is beyond cr_key_is_affordable. Names are not
 * looked at. */
bool cr_signers_has_signed(struct cr_signers *signers, struct x509_st *issuer, struct x509_st *cert);
/* Signatures checked so far. */
size_t cr_signers_checked(const struct cr_signers *signers);

#endif
