#include "kube/event.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "kube/backoff.h"
#include "pki/digest.h"

enum {
    REPEAT_S = 10 * 60,
    MAX_REMEMBERED = 2048, /* beyond it the oldest is forgotten: it may come twice */
    FEW_REMEMBERED = 64,
    MAX_OF_REASON = 100, /* about one object, of those remembered */
    MAX_NAME = 200,      /* of the object's part of the Event's name: at most 253 in all */
    MAX_NOTE = 1024,     /* the API's own limit */
    MAX_REASON = 128,
    MAX_WAITING = 2048,
};

/* The beginning of a digest of what makes two events the same: of so few 64 bits are as good as all. */
struct repeat_key {
    char hex[16];
};

enum { TEXTS = 7 };

/* An Event that is to be sent. */
struct unsent {
    STAILQ_ENTRY(unsent) link; /* while it waits */
    int64_t at_ms;             /* wall */
    bool warning;
    uint8_t given; /* which of the texts, by bits */
    size_t len;
    char texts[]; /* one behind the other, in the order of event_of */
};

/* In one array, since there may be thousands for minutes: 24 bytes each, and not 150 in a map. */
struct sent {
    struct repeat_key key;
    uint32_t topic; /* a hash of the object and the reason */
    uint32_t at_s;  /* monotonic */
};

struct cr_recorder {
    struct cr_client *client;
    char *component;
    char *instance;
    uint64_t seed;        /* of hashes */
    pthread_mutex_t lock; /* guards what follows */
    struct sent *sent;    /* the oldest first */
    size_t sent_len;
    size_t sent_cap;
    STAILQ_HEAD(, unsent) waiting;
    size_t waiting_len;
    void (*on_waiting)(void *arg); /* NULL: nothing waits */
    void *on_waiting_arg;
};

/* Owned. */
static struct unsent *unsent_new(const struct cr_event *event)
{
    cr_autofree char *message = cr_text_clip(cr_or_empty(event->message), MAX_NOTE);
    const char *const texts[TEXTS] = {event->api_version, event->kind,   event->ns, event->name,
                                      event->uid,         event->reason, message};
    size_t len = 0;
    for (size_t i = 0; i < TEXTS; i++)
        len += strlen(cr_or_empty(texts[i])) + 1;
    struct unsent *unsent = cr_calloc(1, sizeof *unsent + len);
    unsent->at_ms = cr_clock_wall_ms();
    unsent->warning = event->warning;
    unsent->len = len;
    char *at = unsent->texts;
    for (size_t i = 0; i < TEXTS; i++) {
        unsent->given |= (uint8_t)(texts[i] ? 1u << i : 0);
        at = stpcpy(at, cr_or_empty(texts[i])) + 1;
    }
    return unsent;
}

/* Borrowed from the unsent. */
static struct cr_event event_of(const struct unsent *unsent)
{
    const char *texts[TEXTS] = {0};
    const char *at = unsent->texts;
    for (size_t i = 0; i < TEXTS; i++, at += strlen(at) + 1)
        texts[i] = unsent->given & (1u << i) ? at : NULL;
    return (struct cr_event){.api_version = texts[0],
                             .kind = texts[1],
                             .ns = texts[2],
                             .name = texts[3],
                             .uid = texts[4],
                             .warning = unsent->warning,
                             .reason = texts[5],
                             .message = texts[6]};
}

struct cr_recorder *cr_recorder_new(struct cr_client *client, const char *component)
{
    char host[256] = "unknown";
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "unknown");
    struct cr_recorder *recorder = cr_new(struct cr_recorder);
    recorder->client = client;
    recorder->component = cr_strdup(component);
    recorder->instance = cr_strdup(host);
    recorder->seed = cr_hash_seed();
    STAILQ_INIT(&recorder->waiting);
    pthread_mutex_init(&recorder->lock, NULL);
    return recorder;
}

void cr_recorder_free(struct cr_recorder *recorder)
{
    if (!recorder)
        return;
    for (struct unsent *unsent; (unsent = STAILQ_FIRST(&recorder->waiting));) {
        STAILQ_REMOVE_HEAD(&recorder->waiting, link);
        free(unsent);
    }
    free(recorder->component);
    free(recorder->instance);
    free(recorder->sent);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

/* --- repeats --- */

static uint32_t topic_of(const struct cr_recorder *recorder, const struct cr_event *event)
{
    const char *const parts[] = {event->kind, event->ns, event->name, event->uid, event->reason};
    uint64_t hash = recorder->seed;
    for (size_t i = 0; i < cr_array_len(parts); i++)
        hash = cr_hash_text(hash, cr_or_empty(parts[i]));
    return (uint32_t)hash;
}

static struct repeat_key repeat_key(const struct unsent *unsent)
{
    char digest[CR_SHA256_HEX];
    cr_sha256_hex(unsent->texts, unsent->len, digest);
    struct repeat_key key;
    memcpy(key.hex, digest, sizeof key.hex);
    return key;
}

/* --- with the lock held --- */

static void forget_first(struct cr_recorder *recorder, size_t count)
{
    recorder->sent_len -= count;
    memmove(recorder->sent, recorder->sent + count, recorder->sent_len * sizeof *recorder->sent);
}

/* Those that are no repeats any more. When they are few, so is the room. */
static void forget_old(struct cr_recorder *recorder, uint32_t now_s)
{
    size_t old = 0;
    while (old < recorder->sent_len && now_s - recorder->sent[old].at_s >= REPEAT_S)
        old++;
    if (old)
        forget_first(recorder, old);
    if (recorder->sent_len >= FEW_REMEMBERED / 2 || recorder->sent_cap <= FEW_REMEMBERED)
        return;
    recorder->sent_cap = FEW_REMEMBERED;
    recorder->sent = cr_reallocarray(recorder->sent, recorder->sent_cap, sizeof *recorder->sent);
}

/* Its place; sent_len: none. */
static size_t find_sent(const struct cr_recorder *recorder, const struct repeat_key *key)
{
    size_t i = 0;
    while (i < recorder->sent_len && memcmp(recorder->sent[i].key.hex, key->hex, sizeof key->hex) != 0)
        i++;
    return i;
}

static size_t count_of(const struct cr_recorder *recorder, uint32_t topic)
{
    size_t count = 0;
    for (size_t i = 0; i < recorder->sent_len; i++)
        count += recorder->sent[i].topic == topic;
    return count;
}

static void remember(struct cr_recorder *recorder, const struct repeat_key *key, uint32_t topic, uint32_t now_s)
{
    if (recorder->sent_len == MAX_REMEMBERED)
        forget_first(recorder, 1);
    if (recorder->sent_len == recorder->sent_cap) {
        recorder->sent_cap = recorder->sent_cap ? recorder->sent_cap * 2 : FEW_REMEMBERED;
        recorder->sent = cr_reallocarray(recorder->sent, recorder->sent_cap, sizeof *recorder->sent);
    }
    recorder->sent[recorder->sent_len++] = (struct sent){*key, topic, now_s};
}

/* --- without it --- */

enum claim { SEND, REPEATED, TOO_MANY };

/* SEND for the caller that is to send it; of two threads only one. */
static enum claim claim(struct cr_recorder *recorder, const struct repeat_key *key, uint32_t topic)
{
    uint32_t now_s = (uint32_t)(cr_clock_monotonic_ms() / 1000);
    pthread_mutex_lock(&recorder->lock);
    forget_old(recorder, now_s);
    enum claim claim = find_sent(recorder, key) < recorder->sent_len ? REPEATED
                       : count_of(recorder, topic) >= MAX_OF_REASON  ? TOO_MANY
                                                                     : SEND;
    if (claim == SEND)
        remember(recorder, key, topic, now_s);
    pthread_mutex_unlock(&recorder->lock);
    return claim;
}

static void give_back(struct cr_recorder *recorder, const struct repeat_key *key)
{
    pthread_mutex_lock(&recorder->lock);
    size_t place = find_sent(recorder, key);
    if (place < recorder->sent_len) {
        size_t behind = --recorder->sent_len - place;
        memmove(recorder->sent + place, recorder->sent + place + 1, behind * sizeof *recorder->sent);
    }
    pthread_mutex_unlock(&recorder->lock);
}

/* --- the object (core/v1 Event) --- */

static void put_cut(struct cr_json *object, const char *key, const char *text, size_t max)
{
    cr_autofree char *copy = cr_text_clip(cr_or_empty(text), max);
    cr_json_set_string(object, key, copy);
}

/* Events about objects without a namespace are in "default" (the API server insists). */
static const char *namespace_of(const struct cr_event *event)
{
    return event->ns ? event->ns : "default";
}

static void put_metadata(struct cr_json *object, const struct cr_event *event)
{
    struct cr_json *meta = cr_json_object_in(object, "metadata");
    cr_autofree char *base = cr_strndup(event->name, cr_utf8_fit(event->name, MAX_NAME));
    cr_autofree char *name = cr_asprintf("%s.%016llx", base, (unsigned long long)cr_random_between(0, INT64_MAX - 1));
    cr_json_set_string(meta, "name", name);
    cr_json_set_string(meta, "namespace", namespace_of(event));
}

static void put_involved(struct cr_json *object, const struct cr_event *event)
{
    struct cr_json *involved = cr_json_object_in(object, "involvedObject");
    cr_json_set_string(involved, "apiVersion", event->api_version);
    cr_json_set_string(involved, "kind", event->kind);
    cr_json_set_string(involved, "namespace", event->ns);
    cr_json_set_string(involved, "name", event->name);
    cr_json_set_string(involved, "uid", event->uid);
}

static struct cr_json *event_object(const struct cr_recorder *recorder, const struct cr_event *event, int64_t at_ms)
{
    char at[CR_TIME_TEXT];
    cr_time_format(at_ms, at);
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "apiVersion", "v1");
    cr_json_set_string(object, "kind", "Event");
    put_metadata(object, event);
    put_involved(object, event);
    cr_json_set_string(object, "type", event->warning ? "Warning" : "Normal");
    put_cut(object, "reason", event->reason, MAX_REASON);
    cr_json_set_string(object, "message", event->message);
    cr_json_set_string(cr_json_object_in(object, "source"), "component", recorder->component);
    cr_json_set_string(object, "reportingComponent", recorder->component);
    cr_json_set_string(object, "reportingInstance", recorder->instance);
    cr_json_set_string(object, "firstTimestamp", at);
    cr_json_set_string(object, "lastTimestamp", at);
    cr_json_set_int(object, "count", 1);
    return object;
}

/* --- sending --- */

static void send(struct cr_recorder *recorder, const struct unsent *unsent)
{
    struct cr_error err = {0};
    const struct cr_event event = event_of(unsent);
    const char *ns = namespace_of(&event);
    CR_CLEANUP(cr_json) struct cr_json *object = event_object(recorder, &event, unsent->at_ms);
    CR_CLEANUP(cr_json)
    struct cr_json *made = cr_client_create(recorder->client, &cr_res_events, ns, object, &err);
    if (made)
        return;
    const struct repeat_key key = repeat_key(unsent);
    give_back(recorder, &key);
    cr_log(CR_LOG_WARN, "an Event could not be written", {"namespace", ns}, {"object", event.name},
           {"reason", event.reason}, {"error", err.text});
}

/* The oldest, owned; NULL: none waits. */
static struct unsent *take_oldest(struct cr_recorder *recorder, bool *more)
{
    pthread_mutex_lock(&recorder->lock);
    struct unsent *unsent = STAILQ_FIRST(&recorder->waiting);
    if (unsent) {
        STAILQ_REMOVE_HEAD(&recorder->waiting, link);
        recorder->waiting_len--;
    }
    *more = recorder->waiting_len != 0;
    pthread_mutex_unlock(&recorder->lock);
    return unsent;
}

/* Takes unsent. */
static void let_wait(struct cr_recorder *recorder, struct unsent *unsent)
{
    pthread_mutex_lock(&recorder->lock);
    STAILQ_INSERT_TAIL(&recorder->waiting, unsent, link);
    bool too_many = ++recorder->waiting_len > MAX_WAITING;
    pthread_mutex_unlock(&recorder->lock);
    if (too_many) {
        bool more = false;
        free(take_oldest(recorder, &more));
    }
    recorder->on_waiting(recorder->on_waiting_arg);
}

void cr_recorder_defer(struct cr_recorder *recorder, void (*on_waiting)(void *arg), void *arg)
{
    recorder->on_waiting = on_waiting;
    recorder->on_waiting_arg = arg;
}

bool cr_recorder_send(struct cr_recorder *recorder)
{
    bool more = false;
    cr_autofree struct unsent *unsent = take_oldest(recorder, &more);
    if (unsent)
        send(recorder, unsent);
    return more;
}

void cr_recorder_emit(struct cr_recorder *recorder, const struct cr_event *event)
{
    if (!recorder || !event->name)
        return;
    cr_autofree struct unsent *unsent = unsent_new(event);
    const struct repeat_key key = repeat_key(unsent);
    enum claim claimed = claim(recorder, &key, topic_of(recorder, event));
    if (claimed == TOO_MANY)
        cr_log(CR_LOG_DEBUG, "too many Events of one reason about one object; this one is dropped",
               {"namespace", event->ns}, {"object", event->name}, {"reason", event->reason});
    if (claimed != SEND)
        return;
    if (recorder->on_waiting)
        let_wait(recorder, cr_steal(&unsent));
    else
        send(recorder, unsent);
}
