#include "pki/bundle_clients.h"

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/bundle_boringssl.h"
#include "pki/bundle_gnutls.h"
#include "pki/bundle_go.h"
#include "pki/openssl_internal.h"
#include "pki/signers.h"
#include "pki/x509.h"

struct cr_loaded_bundle {
    X509_STORE *store;
    STACK_OF(X509) * certs;
};

static const struct {
    const char *name;
    unsigned long flags;
} clients[CR_CLIENTS] = {
    [CR_CLIENT_OPENSSL] = {"OpenSSL", 0},
    [CR_CLIENT_PARTIAL] = {"OpenSSL with partial chains", X509_V_FLAG_PARTIAL_CHAIN},
    [CR_CLIENT_STRICT] = {"OpenSSL, strict", X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_X509_STRICT},
    [CR_CLIENT_BORINGSSL] = {"Envoy (BoringSSL)", 0},
    [CR_CLIENT_GO] = {"Go", 0},
    [CR_CLIENT_GNUTLS] = {"GnuTLS", 0},
};

const char *cr_bundle_client_name(enum cr_bundle_client client)
{
    return clients[client].name;
}

void cr_bundle_unload(struct cr_loaded_bundle *bundle)
{
    if (!bundle)
        return;
    X509_STORE_free(bundle->store);
    cr_x509_list_free(bundle->certs);
    free(bundle);
}

static bool load_one(struct cr_loaded_bundle *bundle, X509 *cert)
{
    if (!X509_STORE_add_cert(bundle->store, cert) || sk_X509_push(bundle->certs, cert) <= 0)
        return false;
    X509_up_ref(cert);
    return true;
}

struct cr_loaded_bundle *cr_bundle_load(struct x509_st *const *certs, size_t len)
{
    CR_CLEANUP(cr_loaded_bundle) struct cr_loaded_bundle *bundle = cr_new(struct cr_loaded_bundle);
    *bundle = (struct cr_loaded_bundle){.store = X509_STORE_new(), .certs = sk_X509_new_null()};
    bool ok = bundle->store && bundle->certs;
    for (size_t i = 0; ok && i < len; i++)
        ok = load_one(bundle, certs[i]);
    return ok ? cr_steal(&bundle) : NULL;
}

/* The purpose that a client asks of a server's leaf, and a server of a client's. */
static int purpose_of(X509 *leaf)
{
    static const int purposes[] = {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT};
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
        if (X509_check_purpose(leaf, purposes[i], 0) == 1)
            return purposes[i];
    return X509_PURPOSE_ANY;
}

/* In place of OpenSSL's own check of a chain that is complete: signatures, of which each is checked once, and times. */
static int check_chain(X509_STORE_CTX *ctx)
{
    struct cr_signers *signers = X509_STORE_CTX_get_app_data(ctx);
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);
    const X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        X509 *cert = sk_X509_value(chain, i);
        X509 *issuer = sk_X509_value(chain, i + 1); /* NULL: it is the last one, which is trusted */
        if (X509_cmp_timeframe(param, X509_get0_notBefore(cert), X509_get0_notAfter(cert)) != 0 ||
            (issuer && !cr_signers_has_signed(signers, issuer, cert)))
            return 0;
    }
    return 1;
}

struct question {
    const struct cr_loaded_bundle *bundle;
    STACK_OF(X509) * chain;
    int purpose;
    int64_t at_ms;
    struct cr_signers *signers;
};

static bool ask_openssl(const struct question *q, enum cr_bundle_client client)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    bool verifies = false;
    if (ctx && X509_STORE_CTX_init(ctx, q->bundle->store, sk_X509_value(q->chain, 0), q->chain) &&
        X509_STORE_CTX_set_app_data(ctx, q->signers)) {
        X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
        X509_VERIFY_PARAM_set_flags(param, clients[client].flags);
        X509_VERIFY_PARAM_set_purpose(param, q->purpose);
        X509_VERIFY_PARAM_set_time(param, (time_t)(q->at_ms / 1000));
        X509_STORE_CTX_set_verify(ctx, check_chain);
        verifies = X509_verify_cert(ctx) == 1;
    }
    X509_STORE_CTX_free(ctx);
    return verifies;
}

void cr_bundle_ask_clients(const struct cr_loaded_bundle *bundle, struct stack_st_X509 *chain, int64_t now_ms,
                           struct cr_signers *signers, bool *verifies)
{
    X509 *leaf = sk_X509_value(chain, 0);
    int64_t begins_ms = cr_x509_not_before_ms(leaf);
    const struct question q = {.bundle = bundle,
                               .chain = chain,
                               .purpose = purpose_of(leaf),
                               .at_ms = begins_ms > now_ms ? begins_ms : now_ms,
                               .signers = signers};
    for (int i = 0; i < CR_CLIENT_BORINGSSL; i++)
        verifies[i] = ask_openssl(&q, (enum cr_bundle_client)i);
    verifies[CR_CLIENT_BORINGSSL] = cr_boringssl_verifies(chain, bundle->certs, q.purpose, q.at_ms, signers);
    verifies[CR_CLIENT_GO] = cr_go_verifies(chain, bundle->certs, q.purpose, q.at_ms, signers);
    verifies[CR_CLIENT_GNUTLS] = cr_gnutls_verifies(chain, bundle->certs, q.purpose, q.at_ms, signers);
}
