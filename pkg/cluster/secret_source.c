#include "cluster/secret_source.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "cluster/digest_key.h"
#include "cluster/secret_reader.h"
#include "kube/object.h"
#include "pki/paths.h"

/* Whoever may write a pod template may say there that it is of a version that never comes. */
enum { ASK_AGAIN_MS = 60 * 1000 };

/* What the API server said. */
struct answer {
    struct cr_snapshot *snapshot;
    char *cached;     /* the version that the cache had then */
    char *not_before; /* the one that it lagged behind; NULL: it did not */
    int64_t at_ms;    /* monotonic */
};

struct cr_secret_source {
    struct cr_cache *cache;
    struct cr_client *client;
    struct cr_digest_key *digest_key;
    pthread_mutex_t lock;
    struct cr_strmap *answers; /* "ns/name" → struct answer */
};

static void answer_free(void *value)
{
    struct answer *answer = value;
    cr_snapshot_unref(answer->snapshot);
    free(answer->cached);
    free(answer->not_before);
    free(answer);
}

struct cr_secret_source *cr_secret_source_new(struct cr_cache *cache, struct cr_client *client, const char *ns)
{
    struct cr_secret_source *source = cr_new(struct cr_secret_source);
    source->cache = cache;
    source->client = client;
    source->digest_key = cr_digest_key_new(client, ns);
    pthread_mutex_init(&source->lock, NULL);
    source->answers = cr_strmap_new(answer_free);
    return source;
}

void cr_secret_source_free(struct cr_secret_source *source)
{
    if (!source)
        return;
    cr_strmap_free(source->answers);
    cr_digest_key_free(source->digest_key);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

/* cached: the version that the cache has. not_before: the one that it lags behind; NULL: it does not. */
static bool is_of(const struct answer *answer, const char *cached, const char *not_before)
{
    if (!not_before)
        return cr_streq(cr_obj_resource_version(answer->snapshot->json), cached);
    return answer->not_before && cr_streq(answer->cached, cached) && !cr_decimal_less(answer->not_before, not_before) &&
           cr_clock_monotonic_ms() - answer->at_ms < ASK_AGAIN_MS;
}

static struct cr_snapshot *remembered(struct cr_secret_source *source, const char *key, const char *cached,
                                      const char *not_before)
{
    pthread_mutex_lock(&source->lock);
    const struct answer *answer = cr_strmap_get(source->answers, key);
    struct cr_snapshot *found = answer && is_of(answer, cached, not_before) ? cr_snapshot_ref(answer->snapshot) : NULL;
    pthread_mutex_unlock(&source->lock);
    return found;
}

static void remember(struct cr_secret_source *source, const char *key, const char *cached, const char *not_before,
                     struct cr_snapshot *snapshot)
{
    struct answer *answer = cr_new(struct answer);
    answer->snapshot = cr_snapshot_ref(snapshot);
    answer->cached = cr_strdup_or_null(cached);
    answer->not_before = cr_strdup_or_null(not_before);
    answer->at_ms = cr_clock_monotonic_ms();
    pthread_mutex_lock(&source->lock);
    cr_strmap_set(source->answers, key, answer);
    pthread_mutex_unlock(&source->lock);
}

void cr_secret_source_forget(struct cr_secret_source *source, const char *key)
{
    pthread_mutex_lock(&source->lock);
    cr_strmap_remove(source->answers, key);
    pthread_mutex_unlock(&source->lock);
}

/* The cache has all that is needed, so it need not be kept twice; but other consumers may be ahead of it. */
static void forget_unless_of_lag(struct cr_secret_source *source, const char *key, const char *cached)
{
    pthread_mutex_lock(&source->lock);
    const struct answer *answer = cr_strmap_get(source->answers, key);
    if (answer && !(answer->not_before && cr_streq(answer->cached, cached)))
        cr_strmap_remove(source->answers, key);
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

/* Its leaf was not yet valid when it was read, and may be now. */
static bool may_have_begun(const struct cr_secret_view *view)
{
    return view->problem == CR_MATERIAL_NOT_YET &&
           cr_clock_wall_ms() >= view->material.not_before_ms - CR_CLOCK_SKEW_MS;
}

static bool usable(struct cr_secret_source *source, const struct cr_secret_view *view)
{
    if (!view || may_have_begun(view))
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
    const char *ahead = cr_decimal_less(version, not_before) ? not_before : NULL;
    if (usable(source, seen) && !ahead) {
        *view = cr_steal(&seen);
        forget_unless_of_lag(source, key, version);
        return true;
    }
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *fetched = remembered(source, key, version, ahead);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *again = view_in(fetched, names);
    if (!usable(source, again)) {
        cr_snapshot_unref(fetched);
        fetched = fetch(source, ns, names->name, err);
        if (!fetched)
            return false;
        remember(source, key, version, ahead, fetched);
        cr_secret_view_free(again);
        again = view_in(fetched, names);
    }
    if (!again)
        return cr_error_set(err, CR_ERR_INTERNAL, "Secret %s was not read through the policy's key names", key);
    *view = cr_steal(&again);
    return true;
}
