/* Trust bundles, read. Private to pkg/pki. */
#ifndef CR_PKI_TRUST_READ_H
#define CR_PKI_TRUST_READ_H

#include "pki/certificate.h"

/* As cr_certificates_read. Many Secrets have the same few CAs, and a renewal seldom another: the last short bundles are
 * kept decoded, by the digest of their text, each thread its own. What is returned may be shared with later calls of
 * this thread: not to be changed, and not to be handed to another. */
struct cr_certificates *cr_trust_read(const struct cr_pem_input *in, size_t max, struct cr_error *err) CR_MUST_USE;

#endif
