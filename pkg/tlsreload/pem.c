/* Certificates and keys from PEM, strictly: what OpenSSL would pass over in silence, or take though it is too
 * weak, is an error. */
#include "tlsreload/context_internal.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/strings.h"

enum {
    RSA_BITS_LEAST = 2048, /* NIST SP 800-57 part 1, table 2 */
    RSA_BITS_MOST = 8192,  /* more, and a handshake takes seconds */
};

static void stack_cleanup(STACK_OF(X509) * *stack)
{
    sk_X509_pop_free(*stack, X509_free);
}

bool cr_tls_fail(struct cr_error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return cr_error_set(err, CR_ERR_INVALID, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

static BIO *over(const struct cr_buf *text)
{
    return BIO_new_mem_buf(cr_buf_text(text), (int)text->len);
}

static size_t count(const struct cr_buf *text, const char *word)
{
    size_t found = 0;
    const char *at = cr_buf_text(text);
    const char *end = at + text->len;
    while ((at = memmem(at, (size_t)(end - at), word, strlen(word)))) {
        found++;
        at += strlen(word);
    }
    return found;
}

/* Blocks as they begin, wherever on a line: what OpenSSL does not see as one is among them. */
static size_t count_certificates(const struct cr_buf *text)
{
    return count(text, "-----BEGIN CERTIFICATE-----") + count(text, "-----BEGIN TRUSTED CERTIFICATE-----") +
           count(text, "-----BEGIN X509 CERTIFICATE-----");
}

static bool read_certificates(const struct cr_buf *text, STACK_OF(X509) * chain, struct cr_error *err)
{
    CR_CLEANUP(cr_tls_bio) BIO *bio = over(text);
    ERR_clear_error();
    for (X509 *cert; (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL));)
        sk_X509_push(chain, cert);
    unsigned long last = ERR_peek_last_error();
    ERR_clear_error();
    int number = sk_X509_num(chain) + 1;
    if (ERR_GET_LIB(last) != ERR_LIB_PEM || ERR_GET_REASON(last) != PEM_R_NO_START_LINE)
        return cr_error_set(err, CR_ERR_INVALID, "certificate %d cannot be read: %s", number,
                            cr_or_empty(ERR_reason_error_string(last)));
    size_t begun = count_certificates(text);
    return begun == (size_t)number - 1 ||
           cr_error_set(err, CR_ERR_INVALID,
                        "of %zu certificates %d can be read: one is cut, or not on a line of its own", begun,
                        number - 1);
}

STACK_OF(X509) * cr_tls_chain_read(const struct cr_buf *text, struct cr_error *err)
{
    __attribute__((cleanup(stack_cleanup))) STACK_OF(X509) *chain = sk_X509_new_null();
    if (!text->len) {
        cr_error_set(err, CR_ERR_INVALID, "is empty");
        return NULL;
    }
    if (!read_certificates(text, chain, err))
        return NULL;
    if (sk_X509_num(chain))
        return cr_steal(&chain);
    cr_error_set(err, CR_ERR_INVALID, "has no certificate: PEM is expected");
    return NULL;
}

/* There is no user to ask. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf;
    (void)size;
    (void)writing;
    *(bool *)arg = true;
    return -1;
}

EVP_PKEY *cr_tls_key_read(const struct cr_buf *text, struct cr_error *err)
{
    bool asked = false;
    CR_CLEANUP(cr_tls_bio) BIO *bio = over(text);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
    ERR_clear_error();
    if (key)
        return key;
    if (!text->len)
        cr_error_set(err, CR_ERR_INVALID, "is empty");
    else if (asked)
        cr_error_set(err, CR_ERR_INVALID,
                     "is encrypted, and there is nobody to ask for its passphrase: store it decrypted (openssl pkey)");
    else
        cr_error_set(err, CR_ERR_INVALID, "has no private key that can be read: PEM is expected");
    return NULL;
}

static bool check_curve(const EVP_PKEY *key, struct cr_error *err)
{
    static const char *const known[] = {"prime256v1", "secp384r1", "secp521r1"};
    char group[64] = "";
    (void)EVP_PKEY_get_group_name(key, group, sizeof group, NULL);
    for (size_t i = 0; i < cr_array_len(known); i++)
        if (strcmp(group, known[i]) == 0)
            return true;
    return cr_error_set(err, CR_ERR_INVALID,
                        "is an EC key of the curve %s, which clients do not take: use P-256, P-384 "
                        "or P-521",
                        *group ? group : "that has no name");
}

static bool check_rsa(const EVP_PKEY *key, struct cr_error *err)
{
    int bits = EVP_PKEY_get_bits(key);
    if (bits < RSA_BITS_LEAST)
        return cr_error_set(err, CR_ERR_INVALID, "is an RSA key of %d bits, which is too weak: use 2048 or more", bits);
    return bits <= RSA_BITS_MOST ||
           cr_error_set(err, CR_ERR_INVALID,
                        "is an RSA key of %d bits, with which handshakes take seconds: use %d at "
                        "most",
                        bits, RSA_BITS_MOST);
}

bool cr_tls_key_check(const EVP_PKEY *key, struct cr_error *err)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return check_rsa(key, err);
    case EVP_PKEY_EC:
        return check_curve(key, err);
    case EVP_PKEY_ED25519:
        return true;
    default:
        return cr_error_set(err, CR_ERR_INVALID,
                            "is a key of type %s, which clients do not take: use RSA, ECDSA or "
                            "Ed25519",
                            cr_or_empty(EVP_PKEY_get0_type_name(key)));
    }
}
