#include "pki/authority_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pki/builder.h"
#include "pki/key.h"
#include "pki/paths.h"
#include "pki/private_key_internal.h"
#include "pki/x509.h"

enum {
    CHAIN_MAX = 8,
    KEY_MARK = 16, /* hexadecimal digits of the key's digest: enough to distinguish generations */
};

void cr_authority_free(struct cr_authority *authority)
{
    if (!authority)
        return;
    cr_x509_list_free(authority->chain);
    EVP_PKEY_free(authority->key);
    free(authority->pem);
    free(authority);
}

const char *cr_authority_certificate(const struct cr_authority *authority)
{
    return authority->pem;
}

int64_t cr_authority_not_after_ms(const struct cr_authority *authority)
{
    return authority->not_after_ms;
}

static int64_t earliest_end(STACK_OF(X509) * chain)
{
    int64_t end = INT64_MAX;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t own = cr_x509_not_after_ms(sk_X509_value(chain, i));
        end = own < end ? own : end;
    }
    return end;
}

/* Takes both. NULL and an error when the certificate cannot be written. */
static struct cr_authority *assemble(STACK_OF(X509) * chain, EVP_PKEY *key, struct cr_error *err)
{
    CR_CLEANUP(cr_authority) struct cr_authority *authority = cr_new(struct cr_authority);
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    authority->chain = chain;
    authority->key = key;
    authority->not_after_ms = earliest_end(chain);
    /* OpenSSL decodes extensions when they are first asked for: here, and not in two threads at once. */
    (void)X509_check_purpose(sk_X509_value(chain, 0), -1, 0);
    if (!cr_x509_write(sk_X509_value(chain, 0), &pem, err))
        return NULL;
    authority->pem = cr_buf_steal(&pem);
    return cr_steal(&authority);
}

/* --- new --- */

static X509_NAME *subject_of(const struct cr_authority_spec *spec, const EVP_PKEY *key, struct cr_error *err)
{
    unsigned char *der = NULL;
    char digest[CR_SHA256_HEX];
    CR_CLEANUP(cr_x509_name) X509_NAME *name = X509_NAME_new();
    int len = i2d_PUBKEY(key, &der);
    if (!name || len <= 0) {
        cr_openssl_fail(err, "the CA's subject cannot be made");
        return NULL;
    }
    cr_sha256_hex(der, (size_t)len, digest);
    OPENSSL_free(der);
    digest[KEY_MARK] = '\0';
    if (!cr_builder_subject(name, spec->common_name, NULL, err) || !cr_builder_subject_serial(name, digest, err))
        return NULL;
    return cr_steal(&name);
}

static X509 *self_sign(const struct cr_authority_spec *spec, EVP_PKEY *key, int64_t now_ms, struct cr_error *err)
{
    const struct cr_validity validity = {now_ms - CR_BACKDATED_MS, now_ms + spec->duration_ms};
    CR_CLEANUP(cr_x509_name) X509_NAME *subject = subject_of(spec, key, err);
    CR_CLEANUP(cr_x509) X509 *cert = subject ? cr_builder_new(key, subject, NULL, &validity, err) : NULL;
    if (!cert || !cr_builder_basic_constraints(cert, true, spec->path_length, err) ||
        !cr_builder_key_usage(cert, true, err) || !cr_builder_sign(cert, key, err))
        return NULL;
    return cr_steal(&cert);
}

static bool check_spec(const struct cr_authority_spec *spec, struct cr_error *err)
{
    if (!spec->common_name)
        return cr_error_set(err, CR_ERR_INVALID, "a CA needs a common name");
    if (spec->duration_ms <= 0)
        return cr_error_set(err, CR_ERR_INVALID, "the duration of a CA must be positive");
    if (spec->duration_ms > INT64_MAX / 2)
        return cr_error_set(err, CR_ERR_INVALID, "a certificate cannot be valid beyond the year 9999");
    if (spec->path_length < CR_PATH_LENGTH_NONE)
        return cr_error_set(err, CR_ERR_INVALID, "a path length is 0 or more, or %d for none", CR_PATH_LENGTH_NONE);
    return true;
}

struct cr_authority *cr_authority_new(const struct cr_authority_spec *spec, const struct cr_private_key *key,
                                      int64_t now_ms, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    if (!check_spec(spec, err))
        return NULL;
    CR_CLEANUP(cr_x509) X509 *cert = self_sign(spec, key->pkey, now_ms, err);
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *chain = cert ? sk_X509_new_null() : NULL;
    if (!chain || sk_X509_push(chain, cert) <= 0) {
        if (cert)
            cr_openssl_fail(err, "no memory for a CA");
        return NULL;
    }
    (void)cr_steal(&cert);
    EVP_PKEY_up_ref(key->pkey);
    return assemble(cr_steal(&chain), key->pkey, err);
}

/* --- there --- */

static bool check_times(const X509 *ca, int64_t now_ms, struct cr_error *err)
{
    char at[CR_TIME_TEXT];
    if (cr_x509_not_after_ms(ca) <= now_ms) {
        cr_time_format(cr_x509_not_after_ms(ca), at);
        return cr_error_set(err, CR_ERR_INVALID, "the CA expired at %s", at);
    }
    if (cr_x509_not_before_ms(ca) > now_ms + CR_CLOCK_SKEW_MS) {
        cr_time_format(cr_x509_not_before_ms(ca), at);
        return cr_error_set(err, CR_ERR_INVALID, "the CA is not valid before %s", at);
    }
    return true;
}

bool cr_authority_check(X509 *ca, int64_t now_ms, struct cr_error *err)
{
    uint32_t flags = X509_get_extension_flags(ca);
    if (flags & EXFLAG_INVALID)
        return cr_error_set(err, CR_ERR_INVALID, "the CA's certificate has an extension that cannot be read");
    /* RFC 5280, section 6.1.4, (k) and (n). */
    if (!(flags & EXFLAG_BCONS) || !(flags & EXFLAG_CA))
        return cr_error_set(err, CR_ERR_INVALID, "the CA's certificate is none of a CA (basicConstraints)");
    if (!(X509_get_key_usage(ca) & KU_KEY_CERT_SIGN))
        return cr_error_set(err, CR_ERR_INVALID, "the CA may not sign certificates (keyUsage without keyCertSign)");
    if (X509_NAME_entry_count(X509_get_subject_name(ca)) == 0)
        return cr_error_set(err, CR_ERR_INVALID, "the CA has an empty subject (RFC 5280, section 4.1.2.6)");
    if (!X509_get0_pubkey(ca))
        return cr_error_set(err, CR_ERR_INVALID, "the CA's key is of a kind that is not supported");
    if (!cr_key_check(X509_get0_pubkey(ca), err) || !cr_key_is_affordable(X509_get0_pubkey(ca), err))
        return cr_error_wrap(err, "the CA cannot be used");
    return check_times(ca, now_ms, err);
}

static bool check_chain(STACK_OF(X509) * chain, int64_t now_ms, struct cr_error *err)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        if (!cr_authority_check(sk_X509_value(chain, i), now_ms, err))
            return i == 0 ? false : cr_error_wrap(err, "certificate %d of the CA's chain", i + 1);
        if (i > 0 && !cr_x509_signed_by(sk_X509_value(chain, i - 1), sk_X509_value(chain, i)))
            return cr_error_set(err, CR_ERR_INVALID,
                                "certificate %d of the CA's chain is not the issuer of the one before it", i + 1);
    }
    return true;
}

static EVP_PKEY *read_key(const struct cr_pem_input *in, const X509 *ca, struct cr_error *err)
{
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_read(in, err);
    if (!key) {
        cr_error_wrap(err, "the CA's key");
        return NULL;
    }
    if (!X509_check_private_key(ca, key->pkey)) {
        cr_error_set(err, CR_ERR_INVALID, "the CA's key does not belong to its certificate");
        return NULL;
    }
    return cr_steal(&key->pkey);
}

struct cr_authority *cr_authority_read(const struct cr_pem_input *certificate, const struct cr_pem_input *key,
                                       int64_t now_ms, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *chain = cr_x509_read(certificate, CHAIN_MAX, err);
    if (!chain) {
        cr_error_wrap(err, "the CA's certificate");
        return NULL;
    }
    if (!check_chain(chain, now_ms, err))
        return NULL;
    EVP_PKEY *pkey = read_key(key, sk_X509_value(chain, 0), err);
    return pkey ? assemble(cr_steal(&chain), pkey, err) : NULL;
}
