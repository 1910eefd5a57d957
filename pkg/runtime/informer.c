#include "runtime/informer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "kube/object.h"

enum {
    REPEAT_LOG_MS = 5 * 60 * 1000, /* the same trouble is said again after so long */
    STALE_MS = 60 * 1000,          /* an outage of this length means that the cache may be wrong */
};

struct cr_informer {
    struct cr_client *client;
    struct cr_loop *loop;
    struct cr_informer_options options; /* with strings of its own */
    char *ns;
    char *label_selector;
    char *field_selector;
    struct cr_store *store;
    struct cr_watch *watch;
    struct cr_strmap *seen; /* keys of a full state under way; NULL: none */
    atomic_bool synced;
    atomic_bool overdue; /* its patience is over */
    struct cr_timer *patience;
    void (*on_synced)(void *arg);
    void *on_synced_arg;

    pthread_mutex_t lock;    /* guards the rest */
    struct cr_error trouble; /* kind None: none */
    int64_t trouble_ms;      /* since when, monotonic */
    int64_t logged_ms;
    char *logged;
};

struct cr_informer *cr_informer_new(struct cr_client *client, struct cr_loop *loop,
                                    const struct cr_informer_options *options)
{
    struct cr_informer *informer = cr_new(struct cr_informer);
    informer->client = client;
    informer->loop = loop;
    informer->options = *options;
    informer->ns = cr_strdup_or_null(options->watch.ns);
    informer->label_selector = cr_strdup_or_null(options->watch.label_selector);
    informer->field_selector = cr_strdup_or_null(options->watch.field_selector);
    informer->options.watch.ns = informer->ns;
    informer->options.watch.label_selector = informer->label_selector;
    informer->options.watch.field_selector = informer->field_selector;
    informer->store = cr_store_new();
    pthread_mutex_init(&informer->lock, NULL);
    return informer;
}

void cr_informer_stop(struct cr_informer *informer)
{
    cr_watch_free(informer->watch);
    informer->watch = NULL;
    cr_timer_free(informer->patience);
    informer->patience = NULL;
}

void cr_informer_free(struct cr_informer *informer)
{
    if (!informer)
        return;
    cr_informer_stop(informer);
    cr_strmap_free(informer->seen);
    cr_store_free(informer->store);
    pthread_mutex_destroy(&informer->lock);
    free(informer->logged);
    free(informer->ns);
    free(informer->label_selector);
    free(informer->field_selector);
    free(informer);
}

bool cr_informer_synced(struct cr_informer *informer)
{
    return atomic_load(&informer->synced);
}

struct cr_store *cr_informer_store(struct cr_informer *informer)
{
    return informer->store;
}

const struct cr_resource *cr_informer_resource(const struct cr_informer *informer)
{
    return informer->options.watch.resource;
}

void cr_informer_on_synced(struct cr_informer *informer, void (*fn)(void *arg), void *arg)
{
    informer->on_synced = fn;
    informer->on_synced_arg = arg;
}

/* --- what changed --- */

static void notify(struct cr_informer *informer, const char *key, struct cr_packed *before, struct cr_snapshot *after)
{
    if (!informer->options.on_change || (!before && !after))
        return;
    const char *slash = strchr(key, '/');
    cr_autofree char *ns = cr_strndup(key, (size_t)(slash - key));
    informer->options.on_change(informer->options.arg,
                                &(struct cr_change){.ns = ns, .name = slash + 1, .before = before, .after = after});
}

static void drop(struct cr_informer *informer, const char *key)
{
    CR_CLEANUP(cr_packed) struct cr_packed *before = cr_store_remove(informer->store, key);
    notify(informer, key, before, NULL);
}

static struct cr_packed *stored(struct cr_informer *informer, const char *key)
{
    const char *slash = strchr(key, '/');
    cr_autofree char *ns = cr_strndup(key, (size_t)(slash - key));
    return cr_store_get_packed(informer->store, ns, slash + 1);
}

static bool keep(struct cr_informer *informer, struct cr_snapshot *snapshot)
{
    cr_json_remove(cr_json_edit(snapshot->json, "metadata"), "managedFields");
    return !informer->options.project || informer->options.project(informer->options.arg, snapshot->json, snapshot);
}

static void replace(struct cr_informer *informer, const char *key, struct cr_packed *before, struct cr_snapshot *after)
{
    cr_store_put(informer->store, key, cr_store_pack(informer->store, after));
    notify(informer, key, before, after);
}

static void take_object(struct cr_informer *informer, const char *key, struct cr_snapshot *after)
{
    CR_CLEANUP(cr_packed) struct cr_packed *before = stored(informer, key);
    const char *version = cr_obj_resource_version(after->json);
    if (before && version && cr_streq(version, cr_packed_resource_version(before)))
        return;
    if (keep(informer, after))
        replace(informer, key, before, after);
    else
        drop(informer, key);
}

static void take_unreadable(struct cr_informer *informer, const char *key, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *before = stored(informer, key);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *after = cr_snapshot_new(cr_json_new_object());
    after->secret = informer->options.watch.secret;
    struct cr_json *metadata = cr_json_object_in(after->json, "metadata");
    cr_json_set_string(metadata, "name", name);
    cr_json_set_string(metadata, "namespace", *ns ? ns : NULL);
    informer->options.project_unreadable(informer->options.arg, after);
    replace(informer, key, before, after);
}

static bool wants(void *arg, const char *ns, const char *name)
{
    const struct cr_informer *informer = arg;
    return informer->options.wants(informer->options.arg, ns, name);
}

static void on_object(void *arg, struct cr_json *object)
{
    struct cr_informer *informer = arg;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *after = cr_snapshot_new(object);
    after->secret = informer->options.watch.secret;
    cr_autofree char *key = cr_obj_key(object);
    if (informer->seen)
        cr_strmap_set(informer->seen, key, informer);
    take_object(informer, key, after);
}

/* It is not gone. */
static void on_unreadable(void *arg, const char *ns, const char *name)
{
    struct cr_informer *informer = arg;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    if (informer->seen)
        cr_strmap_set(informer->seen, key, informer);
    if (informer->options.project_unreadable)
        take_unreadable(informer, key, ns, name);
}

static void on_delete(void *arg, const struct cr_json *object)
{
    struct cr_informer *informer = arg;
    cr_autofree char *key = cr_obj_key(object);
    drop(informer, key);
}

/* A list that broke off is begun again: what it had brought does not count. */
static void on_replace(void *arg)
{
    struct cr_informer *informer = arg;
    cr_strmap_free(informer->seen);
    informer->seen = cr_strmap_new(NULL);
}

static void on_synced(void *arg)
{
    struct cr_informer *informer = arg;
    struct cr_strmap *seen = cr_steal(&informer->seen);
    if (seen) {
        CR_CLEANUP(cr_strvec) struct cr_strvec gone = {0};
        cr_store_keys_not_in(informer->store, seen, &gone);
        for (size_t i = 0; i < gone.len; i++)
            drop(informer, gone.items[i]);
        cr_strmap_free(seen);
    }
    if (atomic_exchange(&informer->synced, true))
        return;
    char count[24];
    snprintf(count, sizeof count, "%zu", cr_store_len(informer->store));
    /* One of many is worth no line: the code that asked for it logs what has become of them all. */
    cr_log(informer->options.patience_ms ? CR_LOG_DEBUG : CR_LOG_INFO, "in sync",
           {"resource", informer->options.watch.resource->plural}, {"namespace", informer->ns},
           {"selector", informer->label_selector ? informer->label_selector : informer->field_selector},
           {"objects", count});
    if (informer->options.on_first_sync)
        informer->options.on_first_sync(informer->options.arg);
    if (informer->on_synced)
        informer->on_synced(informer->on_synced_arg);
}

/* --- trouble --- */

/* What it asks for may not be seen, or makes no sense to the API server. Later a watch that is invalid is one event of
 * it, and the next may be better. */
static bool is_refusal(struct cr_informer *informer, enum cr_error_kind kind)
{
    return kind == CR_ERR_FORBIDDEN || (kind == CR_ERR_INVALID && !cr_informer_synced(informer));
}

/* What both change. before: of the trouble. */
static void notify_refused(struct cr_informer *informer, enum cr_error_kind before, enum cr_error_kind after)
{
    if (is_refusal(informer, before) == is_refusal(informer, after))
        return;
    if (informer->options.on_refused)
        informer->options.on_refused(informer->options.arg);
    if (is_refusal(informer, after) && informer->options.partial && !cr_informer_synced(informer) &&
        informer->on_synced)
        informer->on_synced(informer->on_synced_arg);
}

/* The same line each half minute helps no reader. */
static bool worth_a_line(struct cr_informer *informer, const char *text, int64_t now)
{
    if (cr_streq(informer->logged, text) && now - informer->logged_ms < REPEAT_LOG_MS)
        return false;
    cr_strset(&informer->logged, text);
    informer->logged_ms = now;
    return true;
}

static void on_trouble(void *arg, const struct cr_error *err, int64_t retry_ms)
{
    struct cr_informer *informer = arg;
    int64_t now = cr_clock_monotonic_ms();
    pthread_mutex_lock(&informer->lock);
    enum cr_error_kind before = informer->trouble.kind;
    if (before == CR_ERR_NONE)
        informer->trouble_ms = now;
    /* Forbidden remains so until the server says otherwise, and a resource that it lacks is lacking; that it cannot be
     * asked is no word of it. */
    bool is_word = err->kind != CR_ERR_TRANSIENT && err->kind != CR_ERR_THROTTLED;
    if (is_word || (before != CR_ERR_FORBIDDEN && before != CR_ERR_NOT_FOUND))
        informer->trouble = *err;
    enum cr_error_kind after = informer->trouble.kind;
    bool loud = worth_a_line(informer, err->text, now);
    pthread_mutex_unlock(&informer->lock);
    char delay[CR_TIME_TEXT];
    cr_duration_format(retry_ms, delay);
    bool missing = informer->options.watch.optional && err->kind == CR_ERR_NOT_FOUND;
    cr_log(!loud     ? CR_LOG_DEBUG
           : missing ? CR_LOG_INFO
                     : CR_LOG_WARN,
           missing ? "the cluster does not have a resource that is looked for" : "a watch is interrupted",
           {"resource", informer->options.watch.resource->plural}, {"namespace", informer->ns},
           {"kind", cr_error_kind_name(err->kind)}, {"error", err->text}, {"retry", delay});
    notify_refused(informer, before, after);
}

static void on_connected(void *arg)
{
    struct cr_informer *informer = arg;
    pthread_mutex_lock(&informer->lock);
    enum cr_error_kind before = informer->trouble.kind;
    cr_error_clear(&informer->trouble);
    pthread_mutex_unlock(&informer->lock);
    if (before != CR_ERR_NONE)
        cr_log(CR_LOG_INFO, "a watch goes on", {"resource", informer->options.watch.resource->plural},
               {"namespace", informer->ns});
    notify_refused(informer, before, CR_ERR_NONE);
}

/* What a person must put right shows at once, an outage only once the cache may be old. */
static bool matters(const struct cr_error *trouble, int64_t lasted_ms)
{
    switch (trouble->kind) {
    case CR_ERR_NONE:
        return false;
    case CR_ERR_FORBIDDEN:
    case CR_ERR_UNAUTHORIZED:
    case CR_ERR_NOT_FOUND:
    case CR_ERR_INVALID:
        return true;
    default:
        return lasted_ms >= STALE_MS;
    }
}

bool cr_informer_healthy(struct cr_informer *informer, struct cr_error *err)
{
    pthread_mutex_lock(&informer->lock);
    struct cr_error trouble = informer->trouble;
    int64_t lasted = cr_clock_monotonic_ms() - informer->trouble_ms;
    pthread_mutex_unlock(&informer->lock);
    bool synced = cr_informer_synced(informer);
    if (synced && !matters(&trouble, lasted))
        return true;
    cr_error_set(err, trouble.kind == CR_ERR_NONE ? CR_ERR_TRANSIENT : trouble.kind, "%s%s%s: %s%s%s",
                 informer->options.watch.resource->plural, informer->ns ? " in namespace " : "",
                 cr_or_empty(informer->ns), synced ? "watch interrupted" : "not in sync",
                 trouble.kind == CR_ERR_NONE ? "" : ": ", trouble.text);
    return false;
}

bool cr_informer_refused(struct cr_informer *informer, struct cr_error *err)
{
    return !cr_informer_healthy(informer, err) && is_refusal(informer, err->kind);
}

bool cr_informer_ready(struct cr_informer *informer, struct cr_error *err)
{
    return cr_informer_healthy(informer, err) || (informer->options.on_demand && err->kind == CR_ERR_FORBIDDEN);
}

bool cr_informer_begins(struct cr_informer *informer)
{
    pthread_mutex_lock(&informer->lock);
    bool stopped = matters(&informer->trouble, cr_clock_monotonic_ms() - informer->trouble_ms);
    pthread_mutex_unlock(&informer->lock);
    return !stopped && !cr_informer_synced(informer);
}

bool cr_informer_answered(struct cr_informer *informer)
{
    struct cr_error err = {0};
    return cr_informer_synced(informer) || (informer->options.partial && cr_informer_refused(informer, &err)) ||
           atomic_load(&informer->overdue);
}

static void on_patience_over(void *arg)
{
    struct cr_informer *informer = arg;
    if (!cr_informer_answered(informer) && !atomic_exchange(&informer->overdue, true) && informer->on_synced)
        informer->on_synced(informer->on_synced_arg);
}

static void begin_patience(struct cr_informer *informer)
{
    if (!informer->options.patience_ms)
        return;
    informer->patience = cr_timer_new(informer->loop, on_patience_over, informer);
    cr_timer_arm(informer->patience, informer->options.patience_ms);
}

void cr_informer_start(struct cr_informer *informer)
{
    const struct cr_watch_handler handler = {
        .wants = informer->options.wants ? wants : NULL, /* then no head need be looked at */
        .on_object = on_object,
        .on_unreadable = on_unreadable,
        .on_delete = on_delete,
        .on_replace = on_replace,
        .on_synced = on_synced,
        .on_trouble = on_trouble,
        .on_connected = on_connected,
        .arg = informer,
    };
    if (informer->watch)
        return;
    begin_patience(informer);
    informer->watch = cr_watch_start(informer->client, informer->loop, &informer->options.watch, &handler);
}
