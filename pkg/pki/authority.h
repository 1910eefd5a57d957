/* A CA that certificates are issued by: its certificate and key. Immutable, so any number of threads may use one. */
#ifndef CR_PKI_AUTHORITY_H
#define CR_PKI_AUTHORITY_H

#include <stdint.h>

#include "pki/private_key.h"

enum { CR_PATH_LENGTH_NONE = -1 };

struct cr_authority_spec {
    const char *common_name; /* at most 64 characters */
    int64_t duration_ms;     /* from now */
    /* How many CAs may stand below it on the way to a leaf (RFC 5280, section 4.2.1.9); CR_PATH_LENGTH_NONE: any. With
     * 0 it can never cross-sign the CA that follows it. */
    int path_length;
};

struct cr_authority;

/* A self-signed root for this key. Its subject is the common name and a serialNumber made of the key: another
 * generation has another subject by itself, a renewal with the same key has the same one. (Of two CAs with one subject
 * OpenSSL and BoringSSL try the first alone when a leaf has no authority key identifier, and a list of CA names shows
 * one.) notBefore lies 5 minutes back. now_ms: wall clock. Errors: Invalid. */
struct cr_authority *cr_authority_new(const struct cr_authority_spec *spec, const struct cr_private_key *key,
                                      int64_t now_ms, struct cr_error *err) CR_MUST_USE;

/* One that is there: the CA's certificate, then those above it, if any, each the issuer of the one before. Errors:
 * Invalid, in words, without the names of the entries: no CA, may not sign (keyUsage), not valid now, another key, a
 * chain out of order. */
struct cr_authority *cr_authority_read(const struct cr_pem_input *certificate, const struct cr_pem_input *key,
                                       int64_t now_ms, struct cr_error *err) CR_MUST_USE;

void cr_authority_free(struct cr_authority *authority);
CR_DEFINE_CLEANUP(cr_authority, struct cr_authority, cr_authority_free)

/* Borrowed: the CA's own certificate in PEM. */
const char *cr_authority_certificate(const struct cr_authority *authority);
/* Wall clock: the end of what it issues, that is of the first that expires of it and those above it. */
int64_t cr_authority_not_after_ms(const struct cr_authority *authority);

#endif
