/* What is in a Certificate message, before OpenSSL reads it: it decodes the key of each certificate, and the curve of
 * an explicit EC key may be such that one compressed point takes a tenth of a second (a prime p with many factors two
 * in p - 1; BN_mod_sqrt is quadratic in their number). Pure: bytes in, a verdict out. Strict: what is not DER (RFC
 * 5280, section 4.1) or not the message of its version is refused, so that no other parser reads it in another way. */
#ifndef CR_NET_TLS_CHAIN_H
#define CR_NET_TLS_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/tls_limits.h"

/* body: of the message, without its header (RFC 8446, section 4.4.2; RFC 5246, section 7.4.2). words: as of
 * cr_tls_leaf_key_fits, but a whole sentence: "its chain has …". */
bool cr_tls_chain_fits(const unsigned char *body, size_t len, bool tls13, char words[CR_TLS_LIMIT_WORDS]) CR_MUST_USE;

#endif
