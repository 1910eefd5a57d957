#include "pki/bundle_clients.h"

#include <string.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/bundle_gnutls.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
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

/* What a client asks of a server's leaf; of a client's, what a server does. */
static int purpose_of(X509 *leaf)
{
    static const int purposes[] = {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT};
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
        if (X509_check_purpose(leaf, purposes[i], 0) == 1)
            return purposes[i];
    return X509_PURPOSE_ANY;
}

static bool ask_openssl(X509_STORE *store, STACK_OF(X509) * chain, unsigned long flags, int64_t at_ms,
                        size_t *signatures)
{
    X509 *leaf = sk_X509_value(chain, 0);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    bool verifies = false;
    if (ctx && X509_STORE_CTX_init(ctx, store, leaf, chain)) {
        X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
        X509_VERIFY_PARAM_set_flags(param, flags);
        X509_VERIFY_PARAM_set_purpose(param, purpose_of(leaf));
        X509_VERIFY_PARAM_set_time(param, (time_t)(at_ms / 1000));
        verifies = X509_verify_cert(ctx) == 1;
        *signatures += (size_t)sk_X509_num(X509_STORE_CTX_get0_chain(ctx));
    }
    X509_STORE_CTX_free(ctx);
    return verifies;
}

static bool ask_go(const struct cr_loaded_bundle *bundle, STACK_OF(X509) * chain, int64_t at_ms, bool *verifies,
                   size_t *signatures, struct cr_error *err)
{
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_paths_of_chain(chain, bundle->certs, false, err);
    bool done = paths;
    if (paths)
        cr_paths_ask_as_go(paths);
    for (size_t i = 0; done && !*verifies && i < (size_t)sk_X509_num(bundle->certs); i++)
        done = cr_paths_verify(paths, cr_paths_sent(chain) + i, CR_PATHS_NOW, at_ms, verifies, NULL, err);
    *signatures += paths ? cr_paths_signatures(paths) : 0;
    return done;
}

bool cr_bundle_ask_clients(const struct cr_loaded_bundle *bundle, struct stack_st_X509 *chain, int64_t now_ms,
                           bool *verifies, size_t *signatures, struct cr_error *err)
{
    X509 *leaf = sk_X509_value(chain, 0);
    int64_t begins_ms = cr_x509_not_before_ms(leaf);
    int64_t at_ms = begins_ms > now_ms ? begins_ms : now_ms;
    memset(verifies, 0, CR_CLIENTS * sizeof *verifies);
    if (!ask_go(bundle, chain, at_ms, &verifies[CR_CLIENT_GO], signatures, err))
        return false;
    /* What no way leads to, OpenSSL does not find, either. */
    for (int i = 0; i < CR_CLIENT_GO && verifies[CR_CLIENT_GO]; i++)
        verifies[i] = ask_openssl(bundle->store, chain, clients[i].flags, at_ms, signatures);
    verifies[CR_CLIENT_GNUTLS] = cr_gnutls_verifies(chain, bundle->certs, purpose_of(leaf), at_ms, signatures);
    return true;
}
