#include "pki/key_kind.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/objects.h>

#include "base/strings.h"

/* By the numbers of the NIST, which OpenSSL has names for since 3.5. */
static const char *const ml_dsa[][2] = {
    {"2.16.840.1.101.3.4.3.17", "ML-DSA-44"},
    {"2.16.840.1.101.3.4.3.18", "ML-DSA-65"},
    {"2.16.840.1.101.3.4.3.19", "ML-DSA-87"},
};

const char *cr_key_kind_ml_dsa(const struct asn1_object_st *algorithm)
{
    char number[64];
    if (OBJ_obj2txt(number, sizeof number, algorithm, 1) <= 0)
        return NULL;
    for (size_t i = 0; i < cr_array_len(ml_dsa); i++)
        if (strcmp(number, ml_dsa[i][0]) == 0)
            return ml_dsa[i][1];
    return NULL;
}

bool cr_key_kind_signs(const struct asn1_object_st *algorithm)
{
    static const int kinds[] = {NID_X9_62_id_ecPublicKey, NID_rsaEncryption, NID_rsassaPss, NID_ED25519, NID_ED448};
    int nid = OBJ_obj2nid(algorithm);
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (kinds[i] == nid)
            return true;
    return nid != NID_undef && cr_key_kind_ml_dsa(algorithm);
}

bool cr_key_is_ml_dsa(const struct evp_pkey_st *key)
{
    for (size_t i = 0; i < cr_array_len(ml_dsa); i++)
        if (EVP_PKEY_is_a(key, ml_dsa[i][1]))
            return true;
    return false;
}

bool cr_key_is_slh_dsa(const struct evp_pkey_st *key)
{
    return cr_starts_with(cr_or_empty(EVP_PKEY_get0_type_name(key)), "SLH-DSA-");
}
