#include "trust/rules/leaf_spec.h"

#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"

struct cr_leaf_spec cr_leaf_spec_of(const struct cr_domain_leaf *leaf)
{
    return (struct cr_leaf_spec){.common_name = leaf->common_name,
                                 .organizations = &leaf->organizations,
                                 .dns_names = &leaf->dns_names,
                                 .addresses = &leaf->addresses,
                                 .uris = &leaf->uris,
                                 .emails = &leaf->emails,
                                 .usages = leaf->usages,
                                 .duration_ms = leaf->life.duration_ms};
}

/* Each with its length before it, so that no two lists have one text. */
static void put(struct cr_buf *text, const char *value)
{
    cr_buf_printf(text, "%zu:%s,", strlen(cr_or_empty(value)), cr_or_empty(value));
}

static void put_set(struct cr_buf *text, const char *what, const struct cr_strvec *values)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec sorted = {0};
    cr_strvec_copy(&sorted, values);
    cr_strvec_sort(&sorted);
    put(text, what);
    for (size_t i = 0; i < sorted.len; i++)
        put(text, sorted.items[i]);
    cr_buf_puts(text, ";");
}

/* A size of 0 is the algorithm's default (pki/private_key.h). */
static int size_of(const struct cr_key_spec *key)
{
    static const int defaults[] = {[CR_KEY_ECDSA] = 256, [CR_KEY_RSA] = 2048, [CR_KEY_ED25519] = 256};
    return key->size || (size_t)key->algorithm >= cr_array_len(defaults) ? key->size : defaults[key->algorithm];
}

void cr_leaf_spec_digest(const struct cr_domain_leaf *leaf, char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    put(&text, leaf->common_name);
    put_set(&text, "o", &leaf->organizations);
    put_set(&text, "dns", &leaf->dns_names);
    put_set(&text, "ip", &leaf->addresses);
    put_set(&text, "uri", &leaf->uris);
    put_set(&text, "email", &leaf->emails);
    cr_buf_printf(&text, "usages %u, key %d of %d, for %lld ms", leaf->usages, (int)leaf->key.algorithm,
                  size_of(&leaf->key), (long long)leaf->life.duration_ms);
    cr_sha256_hex(text.data, text.len, out);
}
