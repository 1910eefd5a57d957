/* The two kinds of stores. Private to pkg/certgen. */
#ifndef CR_CERTGEN_STORE_INTERNAL_H
#define CR_CERTGEN_STORE_INTERNAL_H

#include "certgen/store.h"

struct cr_certgen_store_kind {
    char *(*title)(const struct cr_certgen_store *store, size_t secret);
    bool (*read)(struct cr_certgen_store *store, size_t secret, struct cr_certgen_found *out, struct cr_error *err);
    bool (*write)(struct cr_certgen_store *store, size_t secret, const struct cr_certgen_found *read,
                  const struct cr_certgen_write *write, char **version, struct cr_error *err);
};

struct cr_certgen_store {
    const struct cr_certgen_store_kind *kind;
    const struct cr_certgen_set *set; /* borrowed */
    struct cr_client *client;         /* borrowed; NULL: files */
    char *folder;                     /* NULL: in a cluster */
};

extern const char *const cr_certgen_entries[3];

#endif
