#include "runtime/store.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "codec/model.h"

struct cr_store {
    struct cr_model *model; /* NULL: none yet; with packs the loop's */
    uint64_t packs;

    pthread_mutex_t lock;         /* guards the rest */
    struct cr_strmap *namespaces; /* each a map from names to references, never empty */
    size_t len;
};

struct cr_packed {
    int refs; /* atomic */
    bool secret;
    void *extra;
    void (*free_extra)(void *);
    struct cr_model *model; /* that the text was deflated by; NULL: it is as it is */
    uint32_t version_size;  /* with its NUL */
    uint32_t text_size;     /* in bytes; with its NUL when it is as it is */
    size_t text_len;
    char bytes[]; /* the resourceVersion, then the text */
};

/* --- snapshots --- */

static void hold(int *refs)
{
    __atomic_add_fetch(refs, 1, __ATOMIC_RELAXED);
}

/* Release and acquire: what other threads read of it happened before it is freed. True: it was the last. */
static bool let_go(int *refs)
{
    return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0;
}

struct cr_snapshot *cr_snapshot_ref(struct cr_snapshot *snapshot)
{
    if (snapshot)
        hold(&snapshot->refs);
    return snapshot;
}

void cr_snapshot_unref(struct cr_snapshot *snapshot)
{
    if (!snapshot || !let_go(&snapshot->refs))
        return;
    if (snapshot->free_extra)
        snapshot->free_extra(snapshot->extra);
    if (snapshot->secret)
        cr_json_free_secret(snapshot->json);
    else
        cr_json_free(snapshot->json);
    cr_packed_unref(snapshot->packed);
    free(snapshot);
}

struct cr_snapshot *cr_snapshot_new(struct cr_json *json)
{
    struct cr_snapshot *snapshot = cr_new(struct cr_snapshot);
    snapshot->refs = 1;
    snapshot->json = json;
    return snapshot;
}

/* --- packed objects --- */

/* Every 2^n-th is the model of those that follow: what objects look like changes with time (the first ones of a new
 * cluster have no status), and most are packed by a recent one. */
static struct cr_model *model_for(struct cr_store *store, const char *text)
{
    uint64_t packs = ++store->packs;
    if ((packs & (packs - 1)) == 0) {
        cr_model_unref(store->model);
        store->model = cr_model_new(text, strlen(text));
    }
    return cr_model_ref(store->model);
}

/* One block of just the size: there are many of them. */
static struct cr_packed *pack(const char *version, const void *text, size_t text_size)
{
    size_t version_size = strlen(version) + 1;
    struct cr_packed *packed = cr_calloc(1, sizeof *packed + version_size + text_size);
    packed->refs = 1;
    packed->version_size = (uint32_t)version_size;
    packed->text_size = (uint32_t)text_size;
    memcpy(packed->bytes, version, version_size);
    memcpy(packed->bytes + version_size, text, text_size);
    return packed;
}

static struct cr_packed *pack_deflated(struct cr_store *store, const char *version, const char *text)
{
    struct cr_model *model = model_for(store, text);
    size_t size = 0;
    cr_autofree void *data = cr_model_deflate(model, text, strlen(text), &size);
    struct cr_packed *packed = pack(version, data, size);
    packed->model = model;
    return packed;
}

/* What is wiped is left as it is: a model would outlive it, and libraries wipe nothing. */
struct cr_packed *cr_store_pack(struct cr_store *store, struct cr_snapshot *snapshot)
{
    char *text = cr_json_print(snapshot->json);
    const char *version = cr_or_empty(cr_json_string_at(snapshot->json, "metadata", "resourceVersion"));
    size_t len = strlen(text);
    struct cr_packed *packed = snapshot->secret ? pack(version, text, len + 1) : pack_deflated(store, version, text);
    if (snapshot->secret)
        explicit_bzero(text, len);
    free(text);
    packed->text_len = len;
    packed->secret = snapshot->secret;
    packed->extra = snapshot->extra;
    packed->free_extra = cr_steal(&snapshot->free_extra);
    snapshot->packed = cr_packed_ref(packed);
    return packed;
}

struct cr_packed *cr_packed_ref(struct cr_packed *packed)
{
    if (packed)
        hold(&packed->refs);
    return packed;
}

void cr_packed_unref(struct cr_packed *packed)
{
    if (!packed || !let_go(&packed->refs))
        return;
    if (packed->free_extra)
        packed->free_extra(packed->extra);
    if (packed->secret)
        explicit_bzero(packed->bytes, packed->version_size + packed->text_size);
    cr_model_unref(packed->model);
    free(packed);
}

struct cr_snapshot *cr_packed_open(struct cr_packed *packed)
{
    if (!packed)
        return NULL;
    const char *text = packed->bytes + packed->version_size;
    cr_autofree char *inflated =
        packed->model ? cr_model_inflate(packed->model, text, packed->text_size, packed->text_len) : NULL;
    struct cr_snapshot *snapshot = cr_snapshot_new(cr_json_parse_printed(inflated ? inflated : text, packed->text_len));
    snapshot->secret = packed->secret;
    snapshot->extra = packed->extra;
    snapshot->packed = cr_packed_ref(packed);
    return snapshot;
}

void *cr_packed_extra(const struct cr_packed *packed)
{
    return packed ? packed->extra : NULL;
}

const char *cr_packed_resource_version(const struct cr_packed *packed)
{
    return packed ? packed->bytes : NULL;
}

size_t cr_packed_text_len(const struct cr_packed *packed)
{
    return packed ? packed->text_len : 0;
}

/* --- the store --- */

static void unref_value(void *packed)
{
    cr_packed_unref(packed);
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
    cr_model_unref(store->model);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

struct cr_packed *cr_store_get_packed(struct cr_store *store, const char *ns, const char *name)
{
    pthread_mutex_lock(&store->lock);
    const struct cr_strmap *names = cr_strmap_get(store->namespaces, cr_or_empty(ns));
    struct cr_packed *packed = names ? cr_packed_ref(cr_strmap_get(names, cr_or_empty(name))) : NULL;
    pthread_mutex_unlock(&store->lock);
    return packed;
}

struct cr_snapshot *cr_store_get(struct cr_store *store, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_store_get_packed(store, ns, name);
    return cr_packed_open(packed);
}

static void visit_names(const struct cr_strmap *names, const char *ns, cr_store_visit_fn visit, void *arg)
{
    for (struct cr_strmap_iter it = {0}; names && cr_strmap_next(names, &it);)
        visit(arg, ns, it.key, it.value);
}

void cr_store_visit(struct cr_store *store, const char *ns, cr_store_visit_fn visit, void *arg)
{
    pthread_mutex_lock(&store->lock);
    if (ns) {
        visit_names(cr_strmap_get(store->namespaces, ns), ns, visit, arg);
    } else {
        for (struct cr_strmap_iter it = {0}; cr_strmap_next(store->namespaces, &it);)
            visit_names(it.value, it.key, visit, arg);
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

void cr_store_put(struct cr_store *store, const char *key, struct cr_packed *packed)
{
    const char *name = NULL;
    cr_autofree char *ns = split(key, &name);
    pthread_mutex_lock(&store->lock);
    struct cr_strmap *names = names_in(store, ns);
    /* Taken out first: to free an object is too much work to do under the lock. */
    struct cr_packed *before = cr_strmap_take(names, name);
    cr_strmap_set(names, name, packed);
    store->len += !before;
    pthread_mutex_unlock(&store->lock);
    cr_packed_unref(before);
}

/* Namespaces come and go: an empty one leaves nothing. */
struct cr_packed *cr_store_remove(struct cr_store *store, const char *key)
{
    const char *name = NULL;
    cr_autofree char *ns = split(key, &name);
    pthread_mutex_lock(&store->lock);
    struct cr_strmap *names = cr_strmap_get(store->namespaces, ns);
    struct cr_packed *packed = names ? cr_strmap_take(names, name) : NULL;
    store->len -= packed != NULL;
    if (names && !cr_strmap_len(names))
        cr_strmap_remove(store->namespaces, ns);
    pthread_mutex_unlock(&store->lock);
    return packed;
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
