#include "certgen/leaf.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "pki/issue.h"

static struct cr_leaf_spec spec_of(const struct cr_certgen_set *set, const struct cr_certgen_secret *secret)
{
    return (struct cr_leaf_spec){.common_name = secret->common_name,
                                 .dns_names = &secret->dns_names,
                                 .addresses = &secret->addresses,
                                 .uris = &secret->uris,
                                 .usages = secret->usages,
                                 .duration_ms = set->lifetime_ms};
}

/* The leaves are issued for the CA's own key, so that no other keys need to be made; they are thrown away. */
static bool try_leaves(const struct cr_certgen_set *set, const struct cr_authority *authority,
                       const struct cr_private_key *key, int64_t now_ms, struct cr_error *err)
{
    for (size_t i = 0; i < set->secrets_len; i++) {
        const struct cr_leaf_spec spec = spec_of(set, &set->secrets[i]);
        CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
        if (!set->secrets[i].opaque_key && !cr_issue_leaf(authority, &spec, key, now_ms, &issued, err))
            return cr_error_wrap(err, "a leaf for Secret %s", set->secrets[i].name);
    }
    return true;
}

struct cr_authority *cr_certgen_authority_new(const struct cr_certgen_set *set, int64_t now_ms,
                                              struct cr_private_key **key, struct cr_error *err)
{
    const struct cr_authority_spec spec = {
        .common_name = set->common_name, .duration_ms = set->lifetime_ms, .path_length = CR_PATH_LENGTH_NONE};
    CR_CLEANUP(cr_private_key) struct cr_private_key *made = cr_private_key_new(&set->key, err);
    CR_CLEANUP(cr_authority)
    struct cr_authority *authority = made ? cr_authority_new(&spec, made, now_ms, err) : NULL;
    if (!authority) {
        (void)cr_error_wrap(err, "the new CA");
        return NULL;
    }
    if (!try_leaves(set, authority, made, now_ms, err))
        return NULL;
    *key = cr_steal(&made);
    return cr_steal(&authority);
}

void cr_certgen_leaf_dispose(struct cr_certgen_leaf *leaf)
{
    free(leaf->certificate);
    cr_buf_dispose(&leaf->key);
    *leaf = (struct cr_certgen_leaf){0};
}

bool cr_certgen_leaf_issue(const struct cr_certgen_set *set, const struct cr_certgen_secret *secret,
                           const struct cr_authority *authority, int64_t now_ms, struct cr_certgen_leaf *out,
                           struct cr_error *err)
{
    *out = (struct cr_certgen_leaf){.key = {.secret = true}};
    const struct cr_leaf_spec spec = spec_of(set, secret);
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&set->key, err);
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    if (!key || !cr_issue_leaf(authority, &spec, key, now_ms, &issued, err) ||
        !cr_private_key_write(key, &out->key, err)) {
        cr_certgen_leaf_dispose(out);
        return cr_error_wrap(err, "a leaf for Secret %s", secret->name);
    }
    out->certificate = cr_steal(&issued.pem);
    out->not_after_ms = issued.not_after_ms;
    return true;
}
