#include "pki/opaque.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

enum { ENTRY_DIGEST = 16 };

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") >= len;
}

static bool is_digest(const char *opaque)
{
    return strlen(opaque) == CR_OPAQUE_TEXT - 1 && opaque[CR_OPAQUE_KEY_ID] == ':' &&
           is_hex(opaque, CR_OPAQUE_KEY_ID) && is_hex(opaque + CR_OPAQUE_KEY_ID + 1, CR_SHA256_HEX - 1);
}

bool cr_opaque_is_valid(const char *opaque)
{
    return !*opaque || cr_streq(opaque, CR_OPAQUE_UNREAD) || is_digest(opaque);
}

bool cr_opaque_comparable(const char *a, const char *b)
{
    if (cr_streq(a, CR_OPAQUE_UNREAD) || cr_streq(b, CR_OPAQUE_UNREAD))
        return false;
    return !*a || !*b || strncmp(a, b, CR_OPAQUE_KEY_ID) == 0;
}

size_t cr_opaque_key_len(const char *element)
{
    return strcspn(element, "=");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cr_opaque_entry *)a)->name, ((const struct cr_opaque_entry *)b)->name);
}

/* Contents go in as digests of their own, which cannot run into each other and leave no copy of a secret. */
static void append(struct cr_buf *text, const struct cr_material_input *in, const struct cr_opaque_entry *entry,
                   struct cr_strvec *keys)
{
    char content[CR_SHA256_HEX] = "";
    if (in->opaque_key && entry->digest)
        memcpy(content, entry->digest, sizeof content);
    else if (in->opaque_key)
        cr_hmac_sha256_hex(in->opaque_key, in->opaque_key_len, entry->data, entry->len, content);
    cr_buf_printf(text, "%s=%s\n", entry->name, content);
    cr_autofree char *element = cr_asprintf("%s=%.*s", entry->name, ENTRY_DIGEST, content);
    if (in->opaque_len <= CR_OPAQUE_KEYS_MAX)
        cr_strvec_add(keys, element);
}

static void name_key(const struct cr_material_input *in, char out[CR_OPAQUE_TEXT])
{
    char id[CR_SHA256_HEX];
    cr_sha256_hex(in->opaque_key, in->opaque_key_len, id);
    (void)snprintf(out, CR_OPAQUE_TEXT, "%.*s:", CR_OPAQUE_KEY_ID, id);
}

void cr_opaque_digest(const struct cr_material_input *in, struct cr_material *out)
{
    if (!in->opaque_len)
        return;
    cr_autofree struct cr_opaque_entry *entries = cr_memdup(in->opaque, in->opaque_len * sizeof *entries);
    qsort(entries, in->opaque_len, sizeof *entries, by_name);
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (size_t i = 0; i < in->opaque_len; i++)
        append(&text, in, &entries[i], &out->opaque_keys);
    if (!in->opaque_key) {
        memcpy(out->opaque, CR_OPAQUE_UNREAD, sizeof CR_OPAQUE_UNREAD);
        return;
    }
    name_key(in, out->opaque);
    cr_hmac_sha256_hex(in->opaque_key, in->opaque_key_len, text.data, text.len, out->opaque + CR_OPAQUE_KEY_ID + 1);
}
