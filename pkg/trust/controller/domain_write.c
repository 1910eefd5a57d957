/* One write of the plan to a leaf's Secret or to a target: checked for the last time, then leaf, key and bundle at
 * once. */
#include "base/alloc.h"

#include "base/strings.h"
#include "kube/object.h"
#include "pki/cross_sign.h"
#include "trust/controller/domain_objects_internal.h"
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

/* The plan reports when a leaf ends with its CA, earlier than was asked for. What it makes are secret buffers. */
static bool issue(const struct cr_domain_objects *objects, const struct cr_domain_leaf *leaf,
                  const struct cr_domain_write *write, int64_t now_ms, struct cr_stored_leaf *out, struct cr_error *err)
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

/* --- the bundle --- */

/* The last check before the write: a program that has the bundle and the leaf must be able to verify the leaf with the
 * bundle. */
static bool check_leaf(const struct cr_domain_objects *objects, const struct cr_stored_leaf *leaf, const bool *chosen,
                       int64_t now_ms, struct cr_chain_facts *facts, struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree bool *verifies = cr_calloc(len + 1, sizeof *verifies);
    const struct cr_pem_input chain = cr_entry_pem(&leaf->certificate);
    if (!cr_ca_set_verify(objects->set, &chain, now_ms, facts, verifies, err))
        return false;
    for (size_t i = 0; i < len; i++)
        if (verifies[i] && chosen[i])
            return true;
    return cr_error_set(err, CR_ERR_INVALID,
                        "the leaf verifies against no CA of the bundle that it would stand beside");
}

/* --- the leaf --- */

static bool take_leaf(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                      const struct cr_domain_write *write, int64_t now_ms, struct cr_stored_leaf *out,
                      struct cr_error *err)
{
    const struct cr_domain_leaf *leaf = cr_domain_item_leaf(objects, item);
    cr_autofree char *previous = cr_domain_staging_previous(leaf);
    switch (write->leaf) {
    case CR_LEAF_ACT_KEEP:
        cr_stored_leaf_read(item->object, out);
        break;
    case CR_LEAF_ACT_MIRROR:
        cr_stored_leaf_read(item->source, out);
        break;
    case CR_LEAF_ACT_ISSUE:
        if (!issue(objects, leaf, write, now_ms, out, err))
            return cr_error_wrap(err, "leaf '%s' cannot be issued", leaf->name);
        break;
    case CR_LEAF_ACT_PUT_BACK:
        cr_domain_staging_leaf(objects, previous, out);
        break;
    }
    cr_entry_dispose(&out->trust); /* the bundle is what stands beside it */
    return (out->certificate.bytes.len && out->key.bytes.len) ||
           cr_error_set(err, CR_ERR_INVALID, "leaf '%s' has no certificate and key to be published", leaf->name);
}

/* What is published may have expired, or be lost with a CA that must not be trusted any more: no bundle can prevent
 * that, and the bundle must still be written. facts: of a leaf that is written, too. */
static bool check_beside(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                         const struct cr_domain_write *write, const struct cr_stored_leaf *leaf,
                         const struct cr_buf *bundle, int64_t now_ms, struct cr_chain_facts *facts,
                         struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    cr_autofree bool *beside = cr_calloc(len + 1, sizeof *beside);
    size_t held_len = cr_ca_set_list(objects->set, &(struct cr_pem_input){bundle->data, bundle->len}, held);
    for (size_t i = 0; i < held_len; i++)
        beside[held[i]] = true;
    bool in_use = write->leaf != CR_LEAF_ACT_KEEP;
    for (size_t i = 0; !in_use && i < len; i++)
        in_use = item->published.verifies[i] &&
                 (write->bundle[i] || !cr_domain_distrusts(objects->domain, objects->cas[i].fingerprint));
    return !in_use || check_leaf(objects, leaf, beside, now_ms, facts, err);
}

/* --- the Secret --- */

static void put_or_drop(struct cr_json *annotations, const char *name, const char *value,
                        const struct cr_domain_item *item)
{
    if (value)
        cr_json_set_string(annotations, name, value);
    else if (cr_obj_annotation(item->object, name))
        cr_json_set(annotations, name, cr_json_new_null());
}

/* Annotates the spec that the leaf was issued by, the token it was issued for, and which leaf it is. A mirrored leaf
 * keeps the token, so that a leaf that was put back is not put back once more. */
static void annotate(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                     const struct cr_domain_write *write, const char *fingerprint, struct cr_json *body)
{
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(body, "metadata"), "annotations");
    CR_CLEANUP(cr_entry) struct cr_entry before = {0};
    cr_domain_staging_issued_for(objects, cr_domain_item_leaf(objects, item), &before);
    if (write->leaf == CR_LEAF_ACT_MIRROR)
        put_or_drop(annotations, CR_DOMAIN_ISSUED_FOR, NULL, item);
    else if (write->leaf == CR_LEAF_ACT_ISSUE)
        put_or_drop(annotations, CR_DOMAIN_ISSUED_FOR, item->wanted_for, item);
    else if (write->leaf == CR_LEAF_ACT_PUT_BACK)
        put_or_drop(annotations, CR_DOMAIN_ISSUED_FOR, before.found ? cr_buf_text(&before.bytes) : NULL, item);
    if (write->leaf == CR_LEAF_ACT_ISSUE || write->leaf == CR_LEAF_ACT_PUT_BACK)
        put_or_drop(annotations, CR_DOMAIN_TOKEN, objects->domain->rotate_token, item);
    else if (write->leaf == CR_LEAF_ACT_MIRROR)
        put_or_drop(annotations, CR_DOMAIN_TOKEN, item->token, item);
    if (write->leaf != CR_LEAF_ACT_KEEP)
        put_or_drop(annotations, CR_DOMAIN_LEAF, fingerprint, item);
}

/* Leaf, key and bundle in one write: no reader sees one without the other. */
static struct cr_json *leaf_body(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                 const struct cr_domain_write *write, const struct cr_stored_leaf *leaf,
                                 const char *fingerprint, struct cr_error *err)
{
    CR_CLEANUP(cr_secret_json) struct cr_json *body = cr_json_new_object();
    struct cr_json *data = cr_json_object_in(body, "data");
    cr_domain_mark(objects, body);
    annotate(objects, item, write, fingerprint, body);
    if (!item->object)
        cr_json_set_string(body, "type", "kubernetes.io/tls");
    if (write->leaf != CR_LEAF_ACT_KEEP) {
        cr_entry_put(data, "tls.crt", leaf->certificate.bytes.data, leaf->certificate.bytes.len);
        cr_entry_put(data, "tls.key", leaf->key.bytes.data, leaf->key.bytes.len);
    }
    cr_entry_put(data, "ca.crt", leaf->trust.bytes.data, leaf->trust.bytes.len);
    return cr_domain_keystore_put(objects, item, leaf, data, err) ? cr_steal(&body) : NULL;
}

/* What is published goes into staging first: after a crash between the two writes it exists twice, but never not at
 * all. A leaf that is put back comes from staging, so nothing is saved over it. */
static bool write_leaf(struct cr_domain_objects *objects, struct cr_domain_item *item,
                       const struct cr_domain_write *write, const struct cr_buf *bundle, int64_t now_ms,
                       struct cr_error *err)
{
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    struct cr_chain_facts facts = {0};
    if (!take_leaf(objects, item, write, now_ms, &leaf, err) ||
        !check_beside(objects, item, write, &leaf, bundle, now_ms, &facts, err))
        return false;
    leaf.trust = (struct cr_entry){.found = true};
    cr_buf_puts(&leaf.trust.bytes, cr_buf_text(bundle));
    struct cr_json *body = leaf_body(objects, item, write, &leaf, facts.fingerprint, err);
    if (!body)
        return false;
    if (write->save_previous && write->leaf != CR_LEAF_ACT_PUT_BACK && !cr_domain_staging_save(objects, item, err)) {
        cr_json_free_secret(body);
        return false;
    }
    return cr_domain_put(objects, item->resource, item->ns, item->name, body, &item->object, err);
}

/* --- each --- */

/* Whether each of its places has this text. */
static bool has_text(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                     const struct cr_buf *text)
{
    size_t len = 0;
    struct cr_entry *entries = cr_domain_bundles_read(objects, item, &len);
    bool same = true;
    for (size_t i = 0; i < len; i++)
        same = same && entries[i].bytes.len == text->len && memcmp(entries[i].bytes.data, text->data, text->len) == 0;
    cr_domain_bundles_free(entries, len);
    return same;
}

static void note_finding(const struct cr_domain_item *item, const struct cr_domain_finding *finding,
                         struct cr_domain_written *written)
{
    written->reason = cr_trust_reason_of_bundle(finding->proof);
    if (!written->reason)
        return;
    cr_autofree char *label = cr_domain_object_label(item->resource, item->ns, item->name);
    written->text = cr_trust_problem_text(
        written->reason, &(struct cr_trust_about){.object = label, .leaf = finding->leaf, .client = finding->client});
}

static bool write_item(struct cr_domain_objects *objects, struct cr_domain_item *item,
                       const struct cr_domain_write *write, int64_t now_ms, struct cr_domain_written *written,
                       struct cr_error *err)
{
    struct cr_domain_finding finding;
    CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
    if (item->refused)
        return cr_error_set(err, CR_ERR_INVALID, "%s", item->refused_text);
    if (!cr_domain_bundle_write(objects, item, write, &bundle, &finding, err))
        return false;
    note_finding(item, &finding, written);
    if (written->reason && write->leaf == CR_LEAF_ACT_KEEP && (finding.keeps || has_text(objects, item, &bundle)))
        return true;
    bool done = item->is_leaf ? write_leaf(objects, item, write, &bundle, now_ms, err)
                              : cr_domain_target_write(objects, item, &bundle, err);
    if (done)
        written->version = cr_strdup_or_null(cr_obj_resource_version(item->object));
    return done;
}

bool cr_domain_objects_write(struct cr_domain_objects *objects, const struct cr_domain_write *write, int64_t now_ms,
                             struct cr_domain_written *written, struct cr_error *err)
{
    struct cr_domain_item *item = &objects->items[write->object];
    struct cr_error failed = {0};
    *written = (struct cr_domain_written){0};
    if (write_item(objects, item, write, now_ms, written, &failed))
        return true;
    cr_domain_written_dispose(written);
    cr_autofree char *label = cr_domain_object_label(item->resource, item->ns, item->name);
    if (!strstr(failed.text, label))
        cr_error_wrap(&failed, "%s", label);
    if (err)
        *err = failed;
    return false;
}
