#include "kube/entry.h"

#include <string.h>

#include "base/strings.h"
#include "codec/base64.h"

void cr_entry_dispose(struct cr_entry *entry)
{
    cr_buf_dispose(&entry->bytes);
    *entry = (struct cr_entry){0};
}

void cr_entry_decode(const char *base64, struct cr_entry *out)
{
    *out = (struct cr_entry){.found = base64 != NULL, .bytes = {.secret = true}};
    if (base64 && !cr_base64_decode(base64, strlen(base64), &out->bytes, NULL))
        cr_buf_reset(&out->bytes);
}

void cr_entry_read(const struct cr_json *object, bool is_secret, const char *key, struct cr_entry *out)
{
    const char *plain = is_secret ? NULL : cr_json_string_at(object, "data", key);
    if (!plain) {
        cr_entry_decode(cr_json_string_at(object, is_secret ? "data" : "binaryData", key), out);
        return;
    }
    *out = (struct cr_entry){.found = true, .bytes = {.secret = true}};
    cr_buf_puts(&out->bytes, plain);
}

struct cr_pem_input cr_entry_pem(const struct cr_entry *entry)
{
    return entry->found ? (struct cr_pem_input){cr_buf_text(&entry->bytes), entry->bytes.len}
                        : (struct cr_pem_input){0};
}

void cr_stored_leaf_read(const struct cr_json *secret, struct cr_stored_leaf *out)
{
    cr_entry_read(secret, true, "tls.crt", &out->certificate);
    cr_entry_read(secret, true, "tls.key", &out->key);
    cr_entry_read(secret, true, "ca.crt", &out->trust);
}

void cr_stored_leaf_dispose(struct cr_stored_leaf *leaf)
{
    cr_entry_dispose(&leaf->certificate);
    cr_entry_dispose(&leaf->key);
    cr_entry_dispose(&leaf->trust);
}

void cr_entry_put(struct cr_json *data, const char *key, const void *bytes, size_t len)
{
    char *text = cr_base64_encode(bytes, len);
    cr_json_set_string(data, key, text);
    explicit_bzero(text, strlen(text));
    free(text);
}

/* --- sizes --- */

static size_t bytes_of(const struct cr_json *value, bool base64)
{
    const char *text = cr_or_empty(cr_json_string(value));
    size_t len = strlen(text);
    if (!base64)
        return len;
    size_t padding = (size_t)cr_ends_with(text, "=") + (size_t)cr_ends_with(text, "==");
    return len / 4 * 3 - (len >= 4 ? padding : 0);
}

static size_t total_of(const struct cr_json *object, const struct cr_json *patch, const char *member, bool base64)
{
    const struct cr_json *now = cr_json_get(object, member);
    const struct cr_json *then = cr_json_get(patch, member);
    size_t total = 0;
    for (const struct cr_json *entry = cr_json_first(now); entry; entry = cr_json_next(entry))
        if (!cr_json_get(then, cr_json_key(entry)))
            total += bytes_of(entry, base64);
    for (const struct cr_json *entry = cr_json_first(then); entry; entry = cr_json_next(entry))
        total += bytes_of(entry, base64);
    return total;
}

size_t cr_entry_total(const struct cr_json *object, const struct cr_json *patch, bool is_secret)
{
    return total_of(object, patch, "data", is_secret) + (is_secret ? 0 : total_of(object, patch, "binaryData", true));
}
