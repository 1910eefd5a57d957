#include "runtime/store.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

struct cr_store {
    pthread_mutex_t lock;
    struct cr_strmap *snapshots; /* "ns/name" to a reference */
};

struct cr_snapshot *cr_snapshot_ref(struct cr_snapshot *snapshot)
{
    if (snapshot)
        __atomic_add_fetch(&snapshot->refs, 1, __ATOMIC_RELAXED);
    return snapshot;
}

void cr_snapshot_unref(struct cr_snapshot *snapshot)
{
    /* Release and acquire: what other threads read of it happened before it is freed. */
    if (!snapshot || __atomic_sub_fetch(&snapshot->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (snapshot->free_extra)
        snapshot->free_extra(snapshot->extra);
    if (snapshot->secret)
        cr_json_free_secret(snapshot->json);
    else
        cr_json_free(snapshot->json);
    free(snapshot);
}

struct cr_snapshot *cr_snapshot_new(struct cr_json *json)
{
    struct cr_snapshot *snapshot = cr_new(struct cr_snapshot);
    snapshot->refs = 1;
    snapshot->json = json;
    return snapshot;
}

static void unref_value(void *snapshot)
{
    cr_snapshot_unref(snapshot);
}

struct cr_store *cr_store_new(void)
{
    struct cr_store *store = cr_new(struct cr_store);
    pthread_mutex_init(&store->lock, NULL);
    store->snapshots = cr_strmap_new(unref_value);
    return store;
}

void cr_store_free(struct cr_store *store)
{
    if (!store)
        return;
    cr_strmap_free(store->snapshots);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static struct cr_snapshot *get(struct cr_store *store, const char *key)
{
    pthread_mutex_lock(&store->lock);
    struct cr_snapshot *snapshot = cr_snapshot_ref(cr_strmap_get(store->snapshots, key));
    pthread_mutex_unlock(&store->lock);
    return snapshot;
}

struct cr_snapshot *cr_store_get(struct cr_store *store, const char *ns, const char *name)
{
    cr_autofree char *key = cr_asprintf("%s/%s", cr_or_empty(ns), cr_or_empty(name));
    return get(store, key);
}

static bool in_namespace(const char *key, const char *ns)
{
    size_t len = strlen(ns);
    return strncmp(key, ns, len) == 0 && key[len] == '/';
}

void cr_store_visit(struct cr_store *store, const char *ns, void (*visit)(void *arg, struct cr_snapshot *snapshot),
                    void *arg)
{
    pthread_mutex_lock(&store->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(store->snapshots, &it);)
        if (!ns || in_namespace(it.key, ns))
            visit(arg, it.value);
    pthread_mutex_unlock(&store->lock);
}

size_t cr_store_len(struct cr_store *store)
{
    pthread_mutex_lock(&store->lock);
    size_t len = cr_strmap_len(store->snapshots);
    pthread_mutex_unlock(&store->lock);
    return len;
}

void cr_store_put(struct cr_store *store, const char *key, struct cr_snapshot *snapshot)
{
    pthread_mutex_lock(&store->lock);
    /* Taken out first: to free an object is too much work to do under the lock. */
    struct cr_snapshot *before = cr_strmap_take(store->snapshots, key);
    cr_strmap_set(store->snapshots, key, snapshot);
    pthread_mutex_unlock(&store->lock);
    cr_snapshot_unref(before);
}

struct cr_snapshot *cr_store_remove(struct cr_store *store, const char *key)
{
    pthread_mutex_lock(&store->lock);
    struct cr_snapshot *snapshot = cr_strmap_take(store->snapshots, key);
    pthread_mutex_unlock(&store->lock);
    return snapshot;
}

void cr_store_keys_not_in(struct cr_store *store, const struct cr_strmap *seen, struct cr_strvec *keys)
{
    pthread_mutex_lock(&store->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(store->snapshots, &it);)
        if (!cr_strmap_get(seen, it.key))
            cr_strvec_add(keys, it.key);
    pthread_mutex_unlock(&store->lock);
}
