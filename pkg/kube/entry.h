/* Entries of Secrets and ConfigMaps as bytes, and bytes as entries. Pure. */
#ifndef CR_KUBE_ENTRY_H
#define CR_KUBE_ENTRY_H

#include "base/buffer.h"
#include "codec/json.h"
#include "pki/material.h"

/* For objects that carry keys: wiped. */
CR_DEFINE_CLEANUP(cr_secret_json, struct cr_json, cr_json_free_secret)

/* Wiped when it goes. */
struct cr_entry {
    bool found;
    struct cr_buf bytes;
};
void cr_entry_dispose(struct cr_entry *entry);
CR_DEFINE_DISPOSE(cr_entry, struct cr_entry, cr_entry_dispose)

/* Reads from a Secret's data, or from a ConfigMap's data or binaryData (by its kind). What is no base64 is an empty
 * entry. out need not be initialised. */
void cr_entry_read(const struct cr_json *object, bool is_secret, const char *key, struct cr_entry *out);
/* Base64, as caBundles are. NULL: not found. */
void cr_entry_decode(const char *base64, struct cr_entry *out);
/* Borrowed. */
struct cr_pem_input cr_entry_pem(const struct cr_entry *entry);

/* A leaf as a Secret has it. */
struct cr_stored_leaf {
    struct cr_entry certificate, key, trust;
};
/* tls.crt, tls.key, ca.crt. out need not be initialised. */
void cr_stored_leaf_read(const struct cr_json *secret, struct cr_stored_leaf *out);
void cr_stored_leaf_dispose(struct cr_stored_leaf *leaf);
CR_DEFINE_DISPOSE(cr_stored_leaf, struct cr_stored_leaf, cr_stored_leaf_dispose)

/* Into a Secret's data. */
void cr_entry_put(struct cr_json *data, const char *key, const void *bytes, size_t len);

/* Bytes of all entries of the object once the patch is applied, as the API server counts them (MaxSecretSize). */
size_t cr_entry_total(const struct cr_json *object, const struct cr_json *patch, bool is_secret);

#endif
