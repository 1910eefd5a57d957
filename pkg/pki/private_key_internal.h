/* What issuing needs of a key. Private to pkg/pki. */
#ifndef CR_PKI_PRIVATE_KEY_INTERNAL_H
#define CR_PKI_PRIVATE_KEY_INTERNAL_H

#include "pki/openssl_internal.h"
#include "pki/private_key.h"

struct cr_private_key {
    EVP_PKEY *pkey;
};

/* Whether a public or private key is one of those above. Errors: Invalid, "an RSA key of 1024 bits is too weak". */
bool cr_key_check(const EVP_PKEY *key, struct cr_error *err) CR_MUST_USE;

#endif
