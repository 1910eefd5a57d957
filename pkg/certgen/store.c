#include "certgen/store_internal.h"

const char *const cr_certgen_entries[3] = {CR_CERTGEN_CERTIFICATE, CR_CERTGEN_PRIVATE_KEY, CR_CERTGEN_TRUST};

void cr_certgen_store_free(struct cr_certgen_store *store)
{
    if (!store)
        return;
    free(store->folder);
    free(store);
}

char *cr_certgen_store_title(const struct cr_certgen_store *store, size_t secret)
{
    return store->kind->title(store, secret);
}

bool cr_certgen_store_read(struct cr_certgen_store *store, size_t secret, struct cr_certgen_found *out,
                           struct cr_error *err)
{
    *out = (struct cr_certgen_found){0};
    out->data[CR_CERTGEN_DATA_PRIVATE_KEY].secret = true;
    if (store->kind->read(store, secret, out, err))
        return true;
    cr_certgen_found_dispose(out);
    return false;
}

bool cr_certgen_store_write(struct cr_certgen_store *store, size_t secret, const struct cr_certgen_found *read,
                            const struct cr_certgen_write *write, char **version, struct cr_error *err)
{
    *version = NULL;
    return store->kind->write(store, secret, read, write, version, err);
}
