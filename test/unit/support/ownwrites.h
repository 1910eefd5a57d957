/* Whether a write was noted, so that nothing is planned by a cache that has not seen it (runtime/own_writes.h). */
#ifndef TEST_SUPPORT_OWNWRITES_H
#define TEST_SUPPORT_OWNWRITES_H

#include "base/strings.h"
#include "runtime/own_writes.h"

/* The object as it was before the write: one of that kind and UID, with a smaller resourceVersion. */
struct test_lagging_cache {
    const char *kind;
    const char *uid;
};

static struct cr_packed *test_look_at_lagging_cache(void *arg, const char *kind, const char *ns, const char *name)
{
    const struct test_lagging_cache *cache = arg;
    (void)ns;
    (void)name;
    if (!cr_streq(kind, cache->kind))
        return NULL;
    struct cr_json *object = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    cr_json_set_string(metadata, "uid", cache->uid);
    cr_json_set_string(metadata, "resourceVersion", "1");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(object);
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    return cr_store_pack(store, snapshot);
}

static inline bool test_is_awaited(struct cr_own_writes *own, const char *key, const char *kind, const char *uid)
{
    struct test_lagging_cache cache = {kind, uid};
    return cr_own_writes_check(own, key, 0, test_look_at_lagging_cache, &cache) == CR_OWN_WRITES_WAIT;
}

#endif
