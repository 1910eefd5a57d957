#include "runtime/store.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

struct cr_store {
    pthread_mutex_t lock;
    struct cr_strmap *namespaces; /* each a map from names to references, never empty */
    size_t len;
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

static void free_names(void *names)
{
    cr_strmap_free(names);
}

struct cr_store *cr_store_new(void)
{
    struct cr_store *store = cr_new(struct cr_store);
    pthread_mutex_init(&store->lock, NULL);
    store->namespaces = cr_strmap_new(free_names);
    return store;
}

void cr_store_free(struct cr_store *store)
{
    if (!store)
        return;
    cr_strmap_free(store->namespaces);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

struct cr_snapshot *cr_store_get(struct cr_store *store, const char *ns, const char *name)
{
    pthread_mutex_lock(&store->lock);
    const struct cr_strmap *names = cr_strmap_get(store->namespaces, cr_or_empty(ns));
    struct cr_snapshot *snapshot = names ? cr_snapshot_ref(cr_strmap_get(names, cr_or_empty(name))) : NULL;
    pthread_mutex_unlock(&store->lock);
    return snapshot;
}

typedef void (*visit_fn)(void *arg, struct cr_snapshot *snapshot);

static void visit_names(const struct cr_strmap *names, visit_fn visit, void *arg)
{
    for (struct cr_strmap_iter it = {0}; names && cr_strmap_next(names, &it);)
        visit(arg, it.value);
}

void cr_store_visit(struct cr_store *store, const char *ns, void (*visit)(void *arg, struct cr_snapshot *snapshot),
                    void *arg)
{
    pthread_mutex_lock(&store->lock);
    if (ns) {
        visit_names(cr_strmap_get(store->namespaces, ns), visit, arg);
    } else {
        for (struct cr_strmap_iter it = {0}; cr_strmap_next(store->namespaces, &it);)
            visit_names(it.value, visit, arg);
    }
    pthread_mutex_unlock(&store->lock);
}

size_t cr_store_len(struct cr_store *store)
{
    pthread_mutex_lock(&store->lock);
    size_t len = store->len;
    pthread_mutex_unlock(&store->lock);
    return len;
}

/* Owned; *name points into the key. */
static char *split(const char *key, const char **name)
{
    const char *slash = strchr(key, '/');
    *name = slash ? slash + 1 : key;
    return cr_strndup(key, slash ? (size_t)(slash - key) : 0);
}

/* Made when there is none. */
static struct cr_strmap *names_in(struct cr_store *store, const char *ns)
{
    struct cr_strmap *names = cr_strmap_get(store->namespaces, ns);
    if (names)
        return names;
    names = cr_strmap_new(unref_value);
    cr_strmap_set(store->namespaces, ns, names);
    return names;
}

void cr_store_put(struct cr_store *store, const char *key, struct cr_snapshot *snapshot)
{
    const char *name = NULL;
    cr_autofree char *ns = split(key, &name);
    pthread_mutex_lock(&store->lock);
    struct cr_strmap *names = names_in(store, ns);
    /* Taken out first: to free an object is too much work to do under the lock. */
    struct cr_snapshot *before = cr_strmap_take(names, name);
    cr_strmap_set(names, name, snapshot);
    store->len += !before;
    pthread_mutex_unlock(&store->lock);
    cr_snapshot_unref(before);
}

/* Namespaces come and go: an empty one leaves nothing. */
struct cr_snapshot *cr_store_remove(struct cr_store *store, const char *key)
{
    const char *name = NULL;
    cr_autofree char *ns = split(key, &name);
    pthread_mutex_lock(&store->lock);
    struct cr_strmap *names = cr_strmap_get(store->namespaces, ns);
    struct cr_snapshot *snapshot = names ? cr_strmap_take(names, name) : NULL;
    store->len -= snapshot != NULL;
    if (names && !cr_strmap_len(names))
        cr_strmap_remove(store->namespaces, ns);
    pthread_mutex_unlock(&store->lock);
    return snapshot;
}

void cr_store_keys_not_in(struct cr_store *store, const struct cr_strmap *seen, struct cr_strvec *keys)
{
    pthread_mutex_lock(&store->lock);
    for (struct cr_strmap_iter ns = {0}; cr_strmap_next(store->namespaces, &ns);) {
        for (struct cr_strmap_iter it = {0}; cr_strmap_next(ns.value, &it);) {
            cr_autofree char *key = cr_asprintf("%s/%s", ns.key, it.key);
            if (!cr_strmap_get(seen, key))
                cr_strvec_add(keys, key);
        }
    }
    pthread_mutex_unlock(&store->lock);
}
