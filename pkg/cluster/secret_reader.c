#include "cluster/secret_reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/missing_name.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/thread.h"
#include "codec/json_text.h"
#include "kube/object.h"

enum state { WAITING, BEING_READ, READ };

/* One version of a Secret: the extra of its snapshot. All but secret and text is guarded by the reader's lock; those
 * belong to the thread that reads it. */
struct reading {
    struct cr_secret_reader *reader;
    int refs; /* one for the snapshot, and one for each thread that reads or waits */
    enum state state;
    struct cr_json *secret;        /* wiped once it is read */
    char *text;                    /* of data, which secret borrows; NULL when data is a tree */
    size_t bytes;                  /* of data */
    struct cr_secret_views *views; /* once it is read; NULL: it was dropped, or no policy names it any more */
    struct tenant *tenant;         /* while it waits */
    TAILQ_ENTRY(reading) entry;
};
TAILQ_HEAD(readings, reading);

/* The waiting Secrets of one namespace, the oldest first. */
struct tenant {
    char *ns;
    struct readings waiting;
    size_t bytes;
    TAILQ_ENTRY(tenant) entry;
};
TAILQ_HEAD(tenants, tenant);

struct cr_secret_reader {
    struct cr_secret_refs *refs;
    pthread_mutex_t lock; /* guards all that follows */
    size_t owners;        /* the creator, and each reading: a snapshot may outlive the cache */
    pthread_cond_t change;
    struct cr_strmap *by_namespace; /* tenants that have something that waits */
    struct tenants queue;           /* the same; the first is the next */
    size_t waiting;
    size_t bytes;
    bool ending;
    bool has_thread;
    pthread_t thread;
};

/* --- one Secret --- */

static void wipe(struct reading *reading)
{
    cr_json_free_secret(reading->secret);
    if (reading->text)
        explicit_bzero(reading->text, reading->bytes);
    free(reading->text);
    reading->secret = NULL;
    reading->text = NULL;
}

static void reading_free(struct reading *reading)
{
    wipe(reading);
    cr_secret_views_free(reading->views);
    free(reading);
}

/* Locked; the lock is gone afterwards. */
static void leave(struct cr_secret_reader *reader)
{
    bool last = --reader->owners == 0;
    pthread_mutex_unlock(&reader->lock);
    if (!last)
        return;
    cr_strmap_free(reader->by_namespace);
    pthread_cond_destroy(&reader->change);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

/* The approximate size of data that is a tree. */
static size_t size_of(const struct cr_json *data)
{
    size_t bytes = 0;
    for (const struct cr_json *value = cr_json_first(data); value; value = cr_json_next(value))
        bytes += strlen(cr_or_empty(cr_json_key(value))) + strlen(cr_or_empty(cr_json_string(value)));
    return bytes;
}

/* The annotation that is read. */
static void keep_word(const struct cr_json *json, struct cr_json *metadata)
{
    const char *word = cr_json_string_at(json, "metadata", "annotations", CR_MISSING_NAME_ANNOTATION);
    if (word)
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), CR_MISSING_NAME_ANNOTATION, word);
}

/* The part of the Secret that is needed to read it, with a copy of the text of data. */
static struct reading *reading_new(struct cr_secret_reader *reader, struct cr_json *json)
{
    struct reading *reading = cr_new(struct reading);
    *reading = (struct reading){.reader = reader, .refs = 1, .secret = cr_json_new_object()};
    pthread_mutex_lock(&reader->lock);
    reader->owners++;
    pthread_mutex_unlock(&reader->lock);
    struct cr_json *metadata = cr_json_set(reading->secret, "metadata", cr_json_new_object());
    static const char *const members[] = {"namespace", "name", "resourceVersion"};
    for (size_t i = 0; i < cr_array_len(members); i++) {
        const char *value = cr_json_string_at(json, "metadata", members[i]);
        if (value)
            cr_json_set(metadata, members[i], cr_json_new_string(value));
    }
    keep_word(json, metadata);
    cr_json_set(reading->secret, "immutable", cr_json_new_bool(cr_json_bool_at(json, false, "immutable")));
    struct cr_json *data = cr_json_take(json, "data");
    const char *text = cr_json_text(data, &reading->bytes);
    if (!text) {
        reading->bytes = size_of(data);
        if (data)
            cr_json_set(reading->secret, "data", data);
        return reading;
    }
    reading->text = cr_memdup(text, reading->bytes);
    cr_json_set(reading->secret, "data", cr_json_new_text(reading->text, reading->bytes));
    cr_json_free_secret(data);
    return reading;
}

/* --- what waits; locked --- */

static void tenant_free(void *value)
{
    struct tenant *tenant = value;
    free(tenant->ns);
    free(tenant);
}

static struct tenant *tenant_of(struct cr_secret_reader *reader, const char *ns)
{
    struct tenant *tenant = cr_strmap_get(reader->by_namespace, ns);
    if (tenant)
        return tenant;
    tenant = cr_new(struct tenant);
    tenant->ns = cr_strdup(ns);
    TAILQ_INIT(&tenant->waiting);
    TAILQ_INSERT_TAIL(&reader->queue, tenant, entry);
    cr_strmap_set(reader->by_namespace, ns, tenant);
    return tenant;
}

static void enqueue(struct cr_secret_reader *reader, struct reading *reading, const char *ns)
{
    struct tenant *tenant = tenant_of(reader, ns);
    TAILQ_INSERT_TAIL(&tenant->waiting, reading, entry);
    reading->tenant = tenant;
    tenant->bytes += reading->bytes;
    reader->bytes += reading->bytes;
    reader->waiting++;
}

static void dequeue(struct cr_secret_reader *reader, struct reading *reading)
{
    struct tenant *tenant = reading->tenant;
    TAILQ_REMOVE(&tenant->waiting, reading, entry);
    reading->tenant = NULL;
    tenant->bytes -= reading->bytes;
    reader->bytes -= reading->bytes;
    reader->waiting--;
    if (!TAILQ_EMPTY(&tenant->waiting))
        return;
    TAILQ_REMOVE(&reader->queue, tenant, entry);
    cr_strmap_remove(reader->by_namespace, tenant->ns);
}

/* NULL: nothing waits. Moves this namespace to the end of the queue, so that the next one follows. */
static struct reading *next_waiting(struct cr_secret_reader *reader)
{
    struct tenant *tenant = TAILQ_FIRST(&reader->queue);
    if (!tenant)
        return NULL;
    TAILQ_REMOVE(&reader->queue, tenant, entry);
    TAILQ_INSERT_TAIL(&reader->queue, tenant, entry);
    return TAILQ_FIRST(&tenant->waiting);
}

static bool has_room(const struct cr_secret_reader *reader, const char *ns, size_t bytes)
{
    const struct tenant *tenant = cr_strmap_get(reader->by_namespace, ns);
    return (tenant ? tenant->bytes : 0) + bytes <= CR_SECRET_READER_NAMESPACE_BYTES_MAX &&
           reader->bytes + bytes <= CR_SECRET_READER_BYTES_MAX;
}

/* --- reading --- */

/* Takes a reference away. Not locked. */
static void let_go(struct reading *reading)
{
    struct cr_secret_reader *reader = reading->reader;
    pthread_mutex_lock(&reader->lock);
    bool last = --reading->refs == 0;
    if (last && reading->tenant)
        dequeue(reader, reading);
    pthread_mutex_unlock(&reader->lock);
    if (!last)
        return;
    reading_free(reading);
    pthread_mutex_lock(&reader->lock);
    leave(reader);
}

/* Locked; unlocked meanwhile. The caller has a reference. */
static void read_one(struct cr_secret_reader *reader, struct reading *reading)
{
    if (reading->tenant)
        dequeue(reader, reading);
    reading->state = BEING_READ;
    pthread_mutex_unlock(&reader->lock);
    struct cr_secret_views *views = cr_secret_views_read(reader->refs, reading->secret);
    wipe(reading);
    pthread_mutex_lock(&reader->lock);
    reading->views = views;
    reading->state = READ;
    pthread_cond_broadcast(&reader->change);
}

static void *run(void *arg)
{
    struct cr_secret_reader *reader = arg;
    pthread_mutex_lock(&reader->lock);
    while (!reader->ending) {
        struct reading *reading = next_waiting(reader);
        if (!reading) {
            pthread_cond_wait(&reader->change, &reader->lock);
            continue;
        }
        reading->refs++;
        read_one(reader, reading);
        pthread_mutex_unlock(&reader->lock);
        let_go(reading);
        pthread_mutex_lock(&reader->lock);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* Locked. Without a thread, the caller that needs a waiting Secret reads it. */
static void start_thread(struct cr_secret_reader *reader)
{
    if (reader->has_thread)
        return;
    reader->has_thread = cr_thread_start(&reader->thread, run, reader) == 0;
    if (!reader->has_thread)
        cr_log(CR_LOG_WARN, "the thread that reads Secrets cannot be started");
}

static void reading_unref(void *extra)
{
    let_go(extra);
}

struct cr_secret_view *cr_secret_reader_view(void *extra, const struct cr_policy_secret *names)
{
    struct reading *reading = extra;
    if (!reading)
        return NULL;
    struct cr_secret_reader *reader = reading->reader;
    pthread_mutex_lock(&reader->lock);
    if (reading->state == WAITING)
        read_one(reader, reading);
    while (reading->state != READ)
        pthread_cond_wait(&reader->change, &reader->lock);
    pthread_mutex_unlock(&reader->lock);
    return cr_secret_view_find(reading->views, names); /* which no thread changes any more */
}

/* --- projection --- */

/* NULL: no policy names it. */
static struct reading *take(struct cr_secret_reader *reader, struct cr_json *json, struct cr_snapshot *snapshot)
{
    cr_autofree char *key = cr_obj_key(json);
    struct reading *reading = cr_secret_refs_has(reader->refs, key) ? reading_new(reader, json) : NULL;
    snapshot->extra = reading;
    snapshot->free_extra = reading ? reading_unref : NULL;
    cr_secret_strip(json);
    snapshot->secret = false; /* what is left may be kept like any other object */
    return reading;
}

void cr_secret_reader_project(struct cr_secret_reader *reader, struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct reading *reading = take(reader, json, snapshot);
    if (!reading)
        return;
    const char *ns = cr_or_empty(cr_json_string_at(json, "metadata", "namespace"));
    pthread_mutex_lock(&reader->lock);
    bool kept = has_room(reader, ns, reading->bytes);
    if (kept) {
        enqueue(reader, reading, ns);
        start_thread(reader);
        pthread_cond_broadcast(&reader->change);
    } else {
        reading->state = READ;
    }
    pthread_mutex_unlock(&reader->lock);
    if (!kept)
        wipe(reading);
}

void cr_secret_reader_project_now(struct cr_secret_reader *reader, struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct reading *reading = take(reader, json, snapshot);
    if (!reading)
        return;
    pthread_mutex_lock(&reader->lock);
    read_one(reader, reading);
    pthread_mutex_unlock(&reader->lock);
}

/* --- the reader --- */

struct cr_secret_reader *cr_secret_reader_new(struct cr_secret_refs *refs)
{
    struct cr_secret_reader *reader = cr_new(struct cr_secret_reader);
    *reader = (struct cr_secret_reader){.refs = refs, .owners = 1, .by_namespace = cr_strmap_new(tenant_free)};
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->change, NULL);
    TAILQ_INIT(&reader->queue);
    return reader;
}

void cr_secret_reader_free(struct cr_secret_reader *reader)
{
    if (!reader)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->ending = true;
    pthread_cond_broadcast(&reader->change);
    pthread_mutex_unlock(&reader->lock);
    if (reader->has_thread)
        pthread_join(reader->thread, NULL);
    pthread_mutex_lock(&reader->lock);
    leave(reader);
}

size_t cr_secret_reader_waiting(struct cr_secret_reader *reader, size_t *bytes)
{
    pthread_mutex_lock(&reader->lock);
    size_t waiting = reader->waiting;
    *bytes = reader->bytes;
    pthread_mutex_unlock(&reader->lock);
    return waiting;
}
