#include "pki/opaque.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cr_opaque_entry *)a)->name, ((const struct cr_opaque_entry *)b)->name);
}

/* Contents go in as digests of their own, which cannot run into each other and leave no copy of a secret. */
static void append(struct cr_buf *text, const struct cr_material_input *in, const struct cr_opaque_entry *entry)
{
    char content[CR_SHA256_HEX];
    cr_hmac_sha256_hex(in->opaque_key, in->opaque_key_len, entry->data, entry->len, content);
    cr_buf_printf(text, "%s=%s\n", entry->name, content);
}

void cr_opaque_digest(const struct cr_material_input *in, char out[CR_SHA256_HEX])
{
    out[0] = '\0';
    if (!in->opaque_len || !in->opaque_key)
        return;
    cr_autofree struct cr_opaque_entry *entries = cr_memdup(in->opaque, in->opaque_len * sizeof *entries);
    qsort(entries, in->opaque_len, sizeof *entries, by_name);
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (size_t i = 0; i < in->opaque_len; i++)
        append(&text, in, &entries[i]);
    cr_hmac_sha256_hex(in->opaque_key, in->opaque_key_len, text.data, text.len, out);
}
