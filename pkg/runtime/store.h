/* The cache of one resource: "ns/name" to refcounted immutable snapshots. The loop writes, any thread reads. */
#ifndef CR_RUNTIME_STORE_H
#define CR_RUNTIME_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "codec/json.h"

/* A snapshot. json is what is left of the object after its projection; extra is what the projection made of it. */
struct cr_snapshot {
    int refs; /* atomic; use ref/unref */
    struct cr_json *json;
    void *extra;
    void (*free_extra)(void *);
    bool secret; /* json is wiped when it is freed */
};
/* One reference. Takes json. */
struct cr_snapshot *cr_snapshot_new(struct cr_json *json);
struct cr_snapshot *cr_snapshot_ref(struct cr_snapshot *snapshot);
void cr_snapshot_unref(struct cr_snapshot *snapshot);
CR_DEFINE_CLEANUP(cr_snapshot, struct cr_snapshot, cr_snapshot_unref)

struct cr_store;
struct cr_store *cr_store_new(void);
void cr_store_free(struct cr_store *store);
CR_DEFINE_CLEANUP(cr_store, struct cr_store, cr_store_free)

/* A reference of the caller's own, or NULL. */
struct cr_snapshot *cr_store_get(struct cr_store *store, const char *ns, const char *name);
/* Calls visit for each object of the namespace (NULL: all) under the store's lock: take a reference, do little, do not
 * call the store. */
void cr_store_visit(struct cr_store *store, const char *ns, void (*visit)(void *arg, struct cr_snapshot *snapshot),
                    void *arg);
size_t cr_store_len(struct cr_store *store);

/* For informers. Takes the snapshot. */
void cr_store_put(struct cr_store *store, const char *key, struct cr_snapshot *snapshot);
/* A reference to what was removed, or NULL. */
struct cr_snapshot *cr_store_remove(struct cr_store *store, const char *key);
/* Adds the keys of the store that seen does not have. */
void cr_store_keys_not_in(struct cr_store *store, const struct cr_strmap *seen, struct cr_strvec *keys);

#endif
