#include "pki/verify.h"

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "pki/certificate.h"

bool cr_verify_signed_by(struct cr_certificate *cert, struct cr_certificate *ca)
{
    if (!cr_certificate_names_issuer(cert, ca))
        return false;
    X509 *signed_by = cr_certificate_x509(cert);
    EVP_PKEY *key = cr_certificate_key(ca);
    return signed_by && key && X509_verify(signed_by, key) == 1;
}

/* Lets a certificate of an issuer whose clock is ahead of ours through. The time to check at comes from the
 * parameters, so that no state is shared. */
static int tolerate_skew(int ok, X509_STORE_CTX *ctx)
{
    if (ok || X509_STORE_CTX_get_error(ctx) != X509_V_ERR_CERT_NOT_YET_VALID)
        return ok;
    time_t latest = X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(ctx)) + CR_CLOCK_SKEW_MS / 1000;
    const X509 *cert = X509_STORE_CTX_get_current_cert(ctx);
    return cert && X509_cmp_time(X509_get0_notBefore(cert), &latest) < 0; /* equal is -1 */
}

static bool verify(X509_STORE_CTX *ctx, X509 *leaf, STACK_OF(X509) * helpers, STACK_OF(X509) * trusted, int64_t now_ms)
{
    if (!X509_STORE_CTX_init(ctx, NULL, leaf, helpers))
        return false;
    X509_STORE_CTX_set0_trusted_stack(ctx, trusted);
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_time(param, (time_t)(now_ms / 1000));
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
    X509_STORE_CTX_set_verify_cb(ctx, tolerate_skew);
    return X509_verify_cert(ctx) == 1;
}

bool cr_verify_chains_to(struct x509_st *leaf, struct stack_st_X509 *helpers, struct x509_st *anchor, int64_t now_ms,
                         struct x509_st **issuer)
{
    STACK_OF(X509) *trusted = sk_X509_new_null();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    bool verified = trusted && ctx && sk_X509_push(trusted, anchor) && verify(ctx, leaf, helpers, trusted, now_ms);
    STACK_OF(X509) *chain = verified ? X509_STORE_CTX_get0_chain(ctx) : NULL;
    if (sk_X509_num(chain) > 1)
        *issuer = sk_X509_value(chain, 1);
    X509_STORE_CTX_free(ctx);
    sk_X509_free(trusted);
    return verified;
}
