#include "pki/signers.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "pki/key.h"

struct cr_signers {
    struct cr_strmap *pairs; /* "issuer cert": yes or no */
    size_t checked;
};

static char yes, no;

struct cr_signers *cr_signers_new(void)
{
    struct cr_signers *signers = cr_new(struct cr_signers);
    signers->pairs = cr_strmap_new(NULL);
    return signers;
}

void cr_signers_free(struct cr_signers *signers)
{
    if (!signers)
        return;
    cr_strmap_free(signers->pairs);
    free(signers);
}

bool cr_signers_has_signed(struct cr_signers *signers, struct x509_st *issuer, struct x509_st *cert)
{
    char pair[64];
    snprintf(pair, sizeof pair, "%p %p", (void *)issuer, (void *)cert);
    const void *known = cr_strmap_get(signers->pairs, pair);
    if (known)
        return known == &yes;
    EVP_PKEY *key = X509_get0_pubkey(issuer);
    bool signed_by = key && cr_key_is_affordable(key, NULL) && X509_verify(cert, key) == 1;
    signers->checked++;
    cr_strmap_set(signers->pairs, pair, signed_by ? &yes : &no);
    return signed_by;
}

size_t cr_signers_checked(const struct cr_signers *signers)
{
    return signers->checked;
}
