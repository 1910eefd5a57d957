#include "pki/bundle_cutoff.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "pki/openssl_internal.h"

struct leaf {
    STACK_OF(X509) * chain; /* borrowed */
    bool before[CR_CLIENTS];
    bool any; /* of them */
};

struct cr_cutoff {
    int64_t now_ms;
    struct cr_loaded_bundle **published;
    size_t published_len;
    struct leaf *leaves;
    size_t leaves_len;
    size_t signatures;
};

struct cr_cutoff *cr_cutoff_new(int64_t now_ms)
{
    struct cr_cutoff *cutoff = cr_new(struct cr_cutoff);
    cutoff->now_ms = now_ms;
    return cutoff;
}

void cr_cutoff_free(struct cr_cutoff *cutoff)
{
    if (!cutoff)
        return;
    for (size_t i = 0; i < cutoff->published_len; i++)
        cr_bundle_unload(cutoff->published[i]);
    free(cutoff->published);
    free(cutoff->leaves);
    free(cutoff);
}

bool cr_cutoff_is_spent(const struct cr_cutoff *cutoff)
{
    return cutoff->signatures >= CR_CUTOFF_SIGNATURES_MAX;
}

static struct cr_loaded_bundle *load(struct x509_st *const *certs, size_t len, struct cr_error *err)
{
    struct cr_loaded_bundle *bundle = cr_bundle_load(certs, len);
    if (!bundle)
        cr_openssl_fail(err, "no memory for certificates");
    return bundle;
}

bool cr_cutoff_add_published(struct cr_cutoff *cutoff, struct x509_st *const *certs, size_t len, struct cr_error *err)
{
    struct cr_loaded_bundle *bundle = load(certs, len, err);
    if (!bundle)
        return false;
    cutoff->published = cr_reallocarray(cutoff->published, cutoff->published_len + 1, sizeof *cutoff->published);
    cutoff->published[cutoff->published_len++] = bundle;
    return true;
}

bool cr_cutoff_add_leaf(struct cr_cutoff *cutoff, struct stack_st_X509 *chain, struct cr_error *err)
{
    struct leaf leaf = {.chain = chain};
    for (size_t i = 0; i < cutoff->published_len; i++) {
        bool verifies[CR_CLIENTS];
        if (!cr_bundle_ask_clients(cutoff->published[i], chain, cutoff->now_ms, verifies, &cutoff->signatures, err))
            return false;
        for (int client = 0; client < CR_CLIENTS; client++)
            leaf.any |= leaf.before[client] |= verifies[client];
    }
    cutoff->leaves = cr_reallocarray(cutoff->leaves, cutoff->leaves_len + 1, sizeof *cutoff->leaves);
    cutoff->leaves[cutoff->leaves_len++] = leaf;
    return true;
}

static bool look_at(struct cr_cutoff *cutoff, int clients, const struct cr_loaded_bundle *bundle, size_t at,
                    struct cr_cutoff_found *found, struct cr_error *err)
{
    bool verifies[CR_CLIENTS];
    const struct leaf *leaf = &cutoff->leaves[at];
    if (!leaf->any)
        return true;
    if (!cr_bundle_ask_clients(bundle, leaf->chain, cutoff->now_ms, verifies, &cutoff->signatures, err))
        return false;
    for (int client = 0; client < clients && !found->any; client++)
        if (leaf->before[client] && !verifies[client])
            *found = (struct cr_cutoff_found){true, at, (enum cr_bundle_client)client};
    return true;
}

bool cr_cutoff_find(struct cr_cutoff *cutoff, int clients, struct x509_st *const *certs, size_t len,
                    struct cr_cutoff_found *found, struct cr_error *err)
{
    *found = (struct cr_cutoff_found){0};
    CR_CLEANUP(cr_loaded_bundle) struct cr_loaded_bundle *bundle = load(certs, len, err);
    bool done = bundle;
    for (size_t i = 0; done && !found->any && i < cutoff->leaves_len; i++)
        done = look_at(cutoff, clients, bundle, i, found, err);
    return done;
}
