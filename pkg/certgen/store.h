/* Where the Secrets of a set are: in a cluster, or as files. Blocking. */
#ifndef CR_CERTGEN_STORE_H
#define CR_CERTGEN_STORE_H

#include "base/cleanup.h"
#include "certgen/found.h"
#include "certgen/set.h"
#include "kube/client.h"

/* What is to be written; all else stays as it is. Everything is borrowed. */
struct cr_certgen_write {
    struct cr_pem_input data[3]; /* as cr_certgen_found.data; data NULL: not written */
    const void *opaque;          /* of the set's opaque_bytes; NULL: not written */
    const char *rotation;        /* that issues the leaf; NULL: not written, as in files */
};

struct cr_certgen_store;
void cr_certgen_store_free(struct cr_certgen_store *store);
CR_DEFINE_CLEANUP(cr_certgen_store, struct cr_certgen_store, cr_certgen_store_free)

/* The set's namespace; each Secret is read and written by its name. The client must outlive it. */
struct cr_certgen_store *cr_certgen_store_kube(struct cr_client *client, const struct cr_certgen_set *set);
/* A folder for each Secret below `folder`, written as a kubelet writes a volume: the entries are links into ..data,
 * which is replaced by one rename, so no reader ever gets a certificate with another one's key. Keys have the mode
 * 0600. */
struct cr_certgen_store *cr_certgen_store_files(const char *folder, const struct cr_certgen_set *set);

/* For messages: "Secret shop/envoy", "certs/envoy". Owned. */
char *cr_certgen_store_title(const struct cr_certgen_store *store, size_t secret);
/* *out: as it is now; what is not there is no error. It need not be initialised. */
bool cr_certgen_store_read(struct cr_certgen_store *store, size_t secret, struct cr_certgen_found *out,
                           struct cr_error *err) CR_MUST_USE;
/* Creates it, or changes what was read: another write in between is Conflict, and then nothing was changed. *version:
 * owned, what it is now; NULL: files have none. */
bool cr_certgen_store_write(struct cr_certgen_store *store, size_t secret, const struct cr_certgen_found *read,
                            const struct cr_certgen_write *write, char **version, struct cr_error *err) CR_MUST_USE;

#endif
