/* A Certificate message of a hostile server: whatever it is, there is a verdict, with words when it is refused; and
 * what is taken has keys that OpenSSL decodes on named curves only, however it reads the same bytes. */
#include "fuzz.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "net/tls_chain.h"

static size_t number(const uint8_t *at)
{
    return (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
}

static void require_named(const X509 *cert)
{
    EVP_PKEY *key = X509_get0_pubkey(cert);
    int explicit = 0;
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
        EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &explicit) == 1)
        require(!explicit);
}

/* The list of a message that was taken, which is sound. */
static void read_as_openssl(const uint8_t *list, size_t len, bool tls13)
{
    unsigned certificates = 0;
    for (size_t at = 0; at < len;) {
        size_t size = number(list + at);
        const unsigned char *der = list + at + 3;
        X509 *cert = d2i_X509(NULL, &der, (long)size);
        if (cert)
            require_named(cert);
        X509_free(cert);
        at += 3 + size;
        if (tls13)
            at += 2 + ((size_t)list[at] << 8 | list[at + 1]);
        certificates++;
    }
    require(certificates <= CR_TLS_CERTIFICATES);
    ERR_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int tls13 = 0; tls13 < 2; tls13++) {
        char words[CR_TLS_LIMIT_WORDS] = "";
        bool fits = cr_tls_chain_fits(data, size, tls13, words);
        require(fits == !words[0]);
        size_t before = tls13 ? 1 + (size_t)data[0] + 3 : 3;
        if (fits)
            read_as_openssl(data + before, size - before, tls13);
    }
    return 0;
}
