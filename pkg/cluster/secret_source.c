#include "cluster/secret_source.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "cluster/digest_key.h"
#include "cluster/secret_reader.h"
#include "kube/object.h"

struct cr_secret_source {
    struct cr_cache *cache;
    struct cr_client *client;
    struct cr_digest_key *digest_key;
    pthread_mutex_t lock;
    struct cr_strmap *fetched; /* "ns/name" → struct cr_snapshot */
};

static void unref(void *value)
{
    cr_snapshot_unref(value);
}

struct cr_secret_source *cr_secret_source_new(struct cr_cache *cache, struct cr_client *client, const char *ns)
{
    struct cr_secret_source *source = cr_new(struct cr_secret_source);
    source->cache = cache;
    source->client = client;
    source->digest_key = cr_digest_key_new(client, ns);
    pthread_mutex_init(&source->lock, NULL);
    source->fetched = cr_strmap_new(unref);
    return source;
}

void cr_secret_source_free(struct cr_secret_source *source)
{
    if (!source)
        return;
    cr_strmap_free(source->fetched);
    cr_digest_key_free(source->digest_key);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

static struct cr_snapshot *remembered(struct cr_secret_source *source, const char *key, const char *resource_version)
{
    pthread_mutex_lock(&source->lock);
    struct cr_snapshot *found = cr_strmap_get(source->fetched, key);
    if (found)
        found = cr_streq(cr_obj_resource_version(found->json), resource_version) ? cr_snapshot_ref(found) : NULL;
    pthread_mutex_unlock(&source->lock);
    return found;
}

static void remember(struct cr_secret_source *source, const char *key, struct cr_snapshot *snapshot)
{
    pthread_mutex_lock(&source->lock);
    cr_strmap_set(source->fetched, key, cr_snapshot_ref(snapshot));
    pthread_mutex_unlock(&source->lock);
}

void cr_secret_source_forget(struct cr_secret_source *source, const char *key)
{
    pthread_mutex_lock(&source->lock);
    cr_strmap_remove(source->fetched, key);
    pthread_mutex_unlock(&source->lock);
}

static struct cr_snapshot *fetch(struct cr_secret_source *source, const char *ns, const char *name,
                                 struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf answer = {.secret = true}; /* data may have a megabyte: no tree of it */
    struct cr_json *json = cr_client_get_apart(source->client, &cr_res_secrets, ns, name, "data", &answer, err);
    if (!json) {
        cr_error_wrap(err, "cannot read Secret %s/%s", ns, name);
        return NULL;
    }
    struct cr_snapshot *snapshot = cr_snapshot_new(json);
    snapshot->secret = true;
    cr_cache_project_secret(source->cache, snapshot);
    return snapshot;
}

const char *cr_secret_source_opaque_problem(struct cr_secret_source *source)
{
    return cr_digest_key_problem(source->digest_key);
}

/* The key is fetched when the first opaque material comes; what was read before must be read again. */
static bool can_digest(struct cr_secret_source *source)
{
    unsigned char key[CR_DIGEST_KEY];
    bool known = cr_digest_key_get(source->digest_key, key);
    if (known)
        cr_secret_refs_use_key(cr_cache_secret_refs(source->cache), key);
    explicit_bzero(key, sizeof key);
    return known;
}

/* Owned. */
static struct cr_secret_view *view_in(const struct cr_snapshot *fetched, const struct cr_policy_secret *names)
{
    return fetched ? cr_secret_reader_view(fetched->extra, names) : NULL;
}

/* A leaf that was not yet valid when it was read may be valid now. */
static bool usable(struct cr_secret_source *source, const struct cr_secret_view *view)
{
    if (!view || view->problem == CR_MATERIAL_NOT_YET)
        return false;
    return !cr_streq(view->material.opaque, CR_OPAQUE_UNREAD) || !can_digest(source);
}

bool cr_secret_source_get(struct cr_secret_source *source, const char *ns, const struct cr_policy_secret *names,
                          const char *not_before, struct cr_secret_view **view, struct cr_error *err)
{
    *view = NULL;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, names->name);
    CR_CLEANUP(cr_packed) struct cr_packed *cached = cr_cache_secret_packed(source->cache, ns, names->name);
    if (!cached) {
        cr_secret_source_forget(source, key);
        return true;
    }
    const char *version = cr_packed_resource_version(cached);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *seen = cr_secret_reader_view(cr_packed_extra(cached), names);
    /* resourceVersions of one cluster grow and may be compared as numbers (KEP-5504, since 1.35; with etcd always so).
     * It is only a reason to ask the API server: after a restore of etcd the older one may be the truth. */
    bool lags = cr_decimal_less(version, not_before);
    if (usable(source, seen) && !lags) {
        *view = cr_steal(&seen);
        cr_secret_source_forget(source, key); /* it need not be kept twice */
        return true;
    }
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *fetched = remembered(source, key, version);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *again = view_in(fetched, names);
    if (lags || !usable(source, again)) {
        cr_snapshot_unref(fetched);
        fetched = fetch(source, ns, names->name, err);
        if (!fetched)
            return false;
        remember(source, key, fetched);
        cr_secret_view_free(again);
        again = view_in(fetched, names);
    }
    if (!again)
        return cr_error_set(err, CR_ERR_INTERNAL, "Secret %s was not read through the policy's key names", key);
    *view = cr_steal(&again);
    return true;
}
