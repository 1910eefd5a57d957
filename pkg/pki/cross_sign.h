/* A new CA, signed by the old one: a client that trusts only the old CA then takes leaves of the new one, as long as
 * they come with this certificate as an intermediate. Thread-safe. */
#ifndef CR_PKI_CROSS_SIGN_H
#define CR_PKI_CROSS_SIGN_H

#include "pki/issue.h"

/* The subject and key of the new CA in a certificate of the old one, with a serial of its own (RFC 5280, section 3.2:
 * cross-certificates). fresh: the new CA's certificate in PEM, its key is not needed. What limits the new CA limits
 * this certificate as well: keyUsage, extKeyUsage, name constraints; its path length also that of the old CA, less one.
 * It ends with whichever of both ends first (clamped, where that is the old one). now_ms: wall clock.
 *
 * Errors: Invalid, in words: the old CA or one above it has a path length that leaves no room for another CA below
 * (OpenSSL and Go then refuse such a chain); both CAs have one key, so that nothing is to be bridged, or one subject,
 * so that verifiers would confuse them; either is no CA or not valid now; the new CA has a critical extension that is
 * not known here. out need not be initialised; its pem goes behind a leaf's. */
bool cr_cross_sign(const struct cr_authority *old, const struct cr_pem_input *fresh, int64_t now_ms,
                   struct cr_issued *out, struct cr_error *err) CR_MUST_USE;

#endif
