/* Key stores for Java beside a leaf. The same content makes the same bytes, so nothing is written without a
 * change. */
#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"
#include "pki/keystore.h"

#define KEYSTORE   "keystore.p12"
#define TRUSTSTORE "truststore.p12"

static void read_password(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                          struct cr_entry *out)
{
    cr_entry_read(item->password, true, cr_domain_item_leaf(objects, item)->keystore.password_key, out);
}

/* What Java takes (pki/keystore.h). */
static const char *unfit(const struct cr_entry *password)
{
    const struct cr_buf *bytes = &password->bytes;
    if (!bytes->len)
        return "is empty";
    if (bytes->len > CR_KEYSTORE_PASSWORD_MAX)
        return "is longer than 256 characters";
    for (size_t i = 0; i < bytes->len; i++)
        if (bytes->data[i] < 0x20 || bytes->data[i] > 0x7e)
            return "has a character that is no printable ASCII (a new line at its end?)";
    return NULL;
}

char *cr_domain_keystore_refuse(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    const struct cr_domain_keystore *spec = &cr_domain_item_leaf(objects, item)->keystore;
    if (!spec->set)
        return NULL;
    if (item->password_unread)
        return cr_asprintf("the password of the keystore: %s", item->password_unread);
    if (!item->password)
        return cr_asprintf("Secret %s/%s with the password of the keystore is not there", item->ns,
                           spec->password_secret);
    CR_CLEANUP(cr_entry) struct cr_entry password = {0};
    read_password(objects, item, &password);
    const char *problem = password.found ? unfit(&password) : "is not there";
    return problem ? cr_asprintf("the password of the keystore, %s of Secret %s/%s, %s", spec->password_key, item->ns,
                                 spec->password_secret, problem)
                   : NULL;
}

/* The seed of salts stays the same as long as the leaf does, because the files must not change in that time. Only
 * holders of the leaf's key know it: it is derived from the key, one way (docs/pki.md, "PKCS#12"). */
static void make_seed(const struct cr_entry *key, char seed[CR_SHA256_HEX])
{
    static const char use[] = "certroll keystore seed";
    cr_hmac_sha256_hex(key->bytes.data, key->bytes.len, use, sizeof use - 1, seed);
}

static bool write_stores(const struct cr_stored_leaf *leaf, const struct cr_keystore_secrets *secrets,
                         struct cr_json *data, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf keystore = {0};
    CR_CLEANUP(cr_buf) struct cr_buf truststore = {0};
    const struct cr_pem_input certificate = cr_entry_pem(&leaf->certificate);
    const struct cr_pem_input key = cr_entry_pem(&leaf->key);
    const struct cr_pem_input trust = cr_entry_pem(&leaf->trust);
    if (!cr_keystore_write(&certificate, &key, &trust, secrets, &keystore, err) ||
        !cr_truststore_write(&trust, secrets, &truststore, err))
        return cr_error_wrap(err, "the keystore");
    cr_entry_put(data, KEYSTORE, keystore.data, keystore.len);
    cr_entry_put(data, TRUSTSTORE, truststore.data, truststore.len);
    return true;
}

bool cr_domain_keystore_put(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_stored_leaf *leaf, struct cr_json *data, struct cr_error *err)
{
    char seed[CR_SHA256_HEX];
    CR_CLEANUP(cr_entry) struct cr_entry password = {0};
    if (!cr_domain_item_leaf(objects, item)->keystore.set)
        return true;
    read_password(objects, item, &password);
    make_seed(&leaf->key, seed);
    const struct cr_keystore_secrets secrets = {cr_buf_text(&password.bytes), seed, sizeof seed - 1};
    bool put = write_stores(leaf, &secrets, data, err);
    explicit_bzero(seed, sizeof seed);
    return put;
}

bool cr_domain_keystore_is_stale(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    if (!cr_domain_item_leaf(objects, item)->keystore.set || item->refused)
        return false;
    CR_CLEANUP(cr_stored_leaf) struct cr_stored_leaf leaf = {0};
    CR_CLEANUP(cr_secret_json) struct cr_json *data = cr_json_new_object();
    cr_stored_leaf_read(item->object, &leaf);
    if (!leaf.certificate.bytes.len || !leaf.key.bytes.len || !leaf.trust.bytes.len ||
        !cr_domain_keystore_put(objects, item, &leaf, data, NULL))
        return false;
    const struct cr_json *held = cr_json_get(item->object, "data");
    return !cr_json_equal(cr_json_get(data, KEYSTORE), cr_json_get(held, KEYSTORE)) ||
           !cr_json_equal(cr_json_get(data, TRUSTSTORE), cr_json_get(held, TRUSTSTORE));
}
