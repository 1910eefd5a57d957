#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "pki/cross_sign.h"
#include "trust/rules/leaf_spec.h"

static bool add_cross(const struct cr_domain_objects *objects, const struct cr_held_ca *issuer, int64_t now_ms,
                      struct cr_stored_leaf *out, struct cr_error *err)
{
    if (issuer != &objects->next || !objects->current.authority)
        return cr_error_set(err, CR_ERR_INVALID, "there is no key of an older CA to sign the issuing one with");
    CR_CLEANUP(cr_issued) struct cr_issued cross = {0};
    const char *pem = cr_authority_certificate(issuer->authority);
    const struct cr_pem_input fresh = {pem, strlen(pem)};
    if (!cr_cross_sign(objects->current.authority, &fresh, now_ms, &cross, err))
        return false;
    cr_buf_puts(&out->certificate.bytes, cross.pem);
    return true;
}

/* The plan reports when a leaf ends with its CA, earlier than was asked for. */
bool cr_domain_issue(const struct cr_domain_objects *objects, const struct cr_domain_leaf *leaf,
                     const struct cr_domain_write *write, int64_t now_ms, struct cr_stored_leaf *out,
                     struct cr_error *err)
{
    const struct cr_held_ca *issuer = cr_domain_authority_of(objects, write->issuer);
    const struct cr_leaf_spec spec = cr_leaf_spec_of(leaf);
    *out = (struct cr_stored_leaf){.certificate.found = true, .key.found = true};
    if (!issuer)
        return cr_error_set(err, CR_ERR_INVALID, "the key of the issuing CA is not held");
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&leaf->key, err);
    if (!key || !cr_issue_leaf(issuer->authority, &spec, key, now_ms, &issued, err) ||
        !cr_private_key_write(key, &out->key.bytes, err))
        return false;
    cr_buf_puts(&out->certificate.bytes, issued.pem);
    return !write->cross_signed || add_cross(objects, issuer, now_ms, out, err);
}
