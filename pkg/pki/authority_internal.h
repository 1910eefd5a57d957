/* What issuing and cross-signing need of a CA. Private to pkg/pki. */
#ifndef CR_PKI_AUTHORITY_INTERNAL_H
#define CR_PKI_AUTHORITY_INTERNAL_H

#include "pki/authority.h"
#include "pki/openssl_internal.h"

struct cr_authority {
    STACK_OF(X509) * chain; /* the CA first; not empty */
    EVP_PKEY *key;
    char *pem; /* of the CA */
    int64_t not_after_ms;
};

/* Whether it is a CA that may sign certificates at now_ms, under a name. Errors: Invalid, "the CA …". */
bool cr_authority_check(X509 *ca, int64_t now_ms, struct cr_error *err) CR_MUST_USE;

#endif
