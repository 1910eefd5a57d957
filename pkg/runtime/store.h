/* The cache of one resource: "ns/name" to refcounted immutable objects. The loop writes, any thread reads.
 *
 * An object is kept packed, as deflated JSON text: a tree of it takes ten times the memory (144 bytes a member), the
 * text itself another ten times, since objects of one kind resemble each other; and most are read once in hours. Who
 * reads one gets it parsed, as a snapshot. */
#ifndef CR_RUNTIME_STORE_H
#define CR_RUNTIME_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "codec/json.h"

struct cr_packed; /* an object as the store keeps it; its JSON cannot be read before it is opened */

/* An object to be read. json is what is left of it after its projection; extra is what the projection made of it. */
struct cr_snapshot {
    int refs; /* atomic; use ref/unref */
    struct cr_json *json;
    void *extra;
    void (*free_extra)(void *); /* NULL also when extra is borrowed from packed */
    bool secret;                /* json is wiped when it is freed */
    struct cr_packed *packed;   /* what it was opened from or packed to; NULL: neither */
};
/* One reference. Takes json. */
struct cr_snapshot *cr_snapshot_new(struct cr_json *json);
struct cr_snapshot *cr_snapshot_ref(struct cr_snapshot *snapshot);
void cr_snapshot_unref(struct cr_snapshot *snapshot);
CR_DEFINE_CLEANUP(cr_snapshot, struct cr_snapshot, cr_snapshot_unref)

struct cr_packed *cr_packed_ref(struct cr_packed *packed);
void cr_packed_unref(struct cr_packed *packed);
CR_DEFINE_CLEANUP(cr_packed, struct cr_packed, cr_packed_unref)
/* A snapshot of the caller's own, parsed at each call; NULL for NULL. */
struct cr_snapshot *cr_packed_open(struct cr_packed *packed);
/* What needs no parsing. Borrowed; NULL for NULL. */
void *cr_packed_extra(const struct cr_packed *packed);
const char *cr_packed_resource_version(const struct cr_packed *packed); /* "" when it has none */
size_t cr_packed_text_len(const struct cr_packed *packed);              /* bytes that are parsed when it is opened */

struct cr_store;
struct cr_store *cr_store_new(void);
void cr_store_free(struct cr_store *store);
CR_DEFINE_CLEANUP(cr_store, struct cr_store, cr_store_free)

/* A snapshot, or a reference, of the caller's own; NULL when there is none. */
struct cr_snapshot *cr_store_get(struct cr_store *store, const char *ns, const char *name);
struct cr_packed *cr_store_get_packed(struct cr_store *store, const char *ns, const char *name);
/* Calls visit for each object of the namespace (NULL: all) under the store's lock: take a reference, do little, do not
 * call the store. */
typedef void (*cr_store_visit_fn)(void *arg, const char *ns, const char *name, struct cr_packed *packed);
void cr_store_visit(struct cr_store *store, const char *ns, cr_store_visit_fn visit, void *arg);
size_t cr_store_len(struct cr_store *store);

/* For informers. One reference, which does not need the store. The packed object has the snapshot's extra from now on,
 * and the snapshot borrows it. Before others see the snapshot; one thread at a time. */
struct cr_packed *cr_store_pack(struct cr_store *store, struct cr_snapshot *snapshot);
/* Takes the reference. */
void cr_store_put(struct cr_store *store, const char *key, struct cr_packed *packed);
/* A reference to what was removed, or NULL. */
struct cr_packed *cr_store_remove(struct cr_store *store, const char *key);
/* Adds the keys of the store that seen does not have. */
void cr_store_keys_not_in(struct cr_store *store, const struct cr_strmap *seen, struct cr_strvec *keys);

#endif
