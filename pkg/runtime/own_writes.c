#include "runtime/own_writes.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "kube/object.h"

struct write {
    char *kind;
    char *ns; /* NULL: the object has none */
    char *name;
    char *uid;
    char *resource_version;
    int64_t at_ms;
};

/* The writes of one key that the cache may not have seen. */
struct record {
    struct write *writes;
    size_t len;
};

struct cr_own_writes {
    pthread_mutex_t lock;
    struct cr_strmap *records; /* key → struct record; what is in one belongs to the thread that has the key */
};

static void write_dispose(struct write *write)
{
    free(write->kind);
    free(write->ns);
    free(write->name);
    free(write->uid);
    free(write->resource_version);
}

static void record_free(void *value)
{
    struct record *record = value;
    for (size_t i = 0; i < record->len; i++)
        write_dispose(&record->writes[i]);
    free(record->writes);
    free(record);
}

struct cr_own_writes *cr_own_writes_new(void)
{
    struct cr_own_writes *own = cr_new(struct cr_own_writes);
    pthread_mutex_init(&own->lock, NULL);
    own->records = cr_strmap_new(record_free);
    return own;
}

void cr_own_writes_free(struct cr_own_writes *own)
{
    if (!own)
        return;
    cr_strmap_free(own->records);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static struct record *find(struct cr_own_writes *own, const char *key, bool add)
{
    pthread_mutex_lock(&own->lock);
    struct record *record = cr_strmap_get(own->records, key);
    if (!record && add) {
        record = cr_new(struct record);
        cr_strmap_set(own->records, key, record);
    }
    pthread_mutex_unlock(&own->lock);
    return record;
}

void cr_own_writes_forget(struct cr_own_writes *own, const char *key)
{
    pthread_mutex_lock(&own->lock);
    cr_strmap_remove(own->records, key);
    pthread_mutex_unlock(&own->lock);
}

static struct write *room_for(struct record *record, const struct write *write)
{
    for (size_t i = 0; i < record->len; i++) {
        struct write *known = &record->writes[i];
        if (cr_streq(known->kind, write->kind) && cr_streq(known->ns, write->ns) && cr_streq(known->name, write->name))
            return known;
    }
    record->writes = cr_reallocarray(record->writes, record->len + 1, sizeof *record->writes);
    record->writes[record->len] = (struct write){0};
    return &record->writes[record->len++];
}

void cr_own_writes_add(struct cr_own_writes *own, const char *key, const char *kind, const struct cr_json *written,
                       int64_t now_ms)
{
    if (!own || !cr_obj_name(written))
        return;
    struct write write = {.kind = cr_strdup(kind),
                          .ns = cr_strdup_or_null(cr_obj_namespace(written)),
                          .name = cr_strdup(cr_obj_name(written)),
                          .uid = cr_strdup_or_null(cr_obj_uid(written)),
                          .resource_version = cr_strdup_or_null(cr_obj_resource_version(written)),
                          .at_ms = now_ms};
    struct write *place = room_for(find(own, key, true), &write);
    write_dispose(place);
    *place = write;
}

static bool is_seen(const struct write *write, cr_own_writes_look_fn look, void *arg)
{
    CR_CLEANUP(cr_packed) struct cr_packed *cached = look(arg, write->kind, write->ns, write->name);
    if (!cr_decimal_less(cr_packed_resource_version(cached), write->resource_version))
        return true;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(cached);
    return !cr_streq(cr_obj_uid(opened->json), write->uid);
}

enum cr_own_writes_state cr_own_writes_check(struct cr_own_writes *own, const char *key, int64_t now_ms,
                                             cr_own_writes_look_fn look, void *arg)
{
    enum cr_own_writes_state state = CR_OWN_WRITES_SEEN;
    struct record *record = find(own, key, false);
    size_t kept = 0;
    for (size_t i = 0; record && i < record->len; i++) {
        struct write *write = &record->writes[i];
        bool seen = is_seen(write, look, arg);
        if (!seen && now_ms - write->at_ms < CR_OWN_WRITES_MAX_MS) {
            state = CR_OWN_WRITES_WAIT;
            record->writes[kept++] = *write;
            continue;
        }
        if (!seen && state == CR_OWN_WRITES_SEEN)
            state = CR_OWN_WRITES_GIVEN_UP;
        write_dispose(write);
    }
    if (record)
        record->len = kept;
    if (record && !kept)
        cr_own_writes_forget(own, key);
    return state;
}
