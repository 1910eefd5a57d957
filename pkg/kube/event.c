#include "kube/event.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "kube/backoff.h"
#include "pki/digest.h"

enum {
    REPEAT_MS = 10 * 60 * 1000,
    MAX_REMEMBERED = 2048, /* beyond it the oldest is forgotten: it may come twice */
    FEW_REMEMBERED = 64,
    MAX_NAME = 200,  /* of the object's part of the Event's name: at most 253 in all */
    MAX_NOTE = 1024, /* the API's own limit */
    MAX_REASON = 128,
    MAX_WAITING = 2048,
};

/* The beginning of a digest of what makes two events the same: 96 bits of it are as good as all. */
struct repeat_key {
    char hex[24];
};

enum { TEXTS = 7 };

/* An Event that is to be sent, as small as can be, since thousands may wait after a burst. */
struct letter {
    STAILQ_ENTRY(letter) link;
    struct repeat_key key;
    int64_t at_ms; /* wall */
    bool warning;
    uint8_t given; /* which of the texts, by bits */
    char texts[];  /* one behind the other, in the order of event_of */
};

/* In one array, since there may be thousands for minutes: 32 bytes each, and not 150 in a map. */
struct sent {
    struct repeat_key key;
    int64_t at_ms; /* monotonic */
};

struct cr_recorder {
    struct cr_client *client;
    char *component;
    char *instance;
    pthread_mutex_t lock; /* guards what follows */
    struct sent *sent;    /* the oldest first */
    size_t sent_len;
    size_t sent_cap;
    STAILQ_HEAD(letters, letter) waiting;
    size_t waiting_len;
    void (*on_waiting)(void *arg); /* NULL: nothing waits */
    void *on_waiting_arg;
};

static struct letter *letter_new(const struct cr_event *event, const struct repeat_key *key)
{
    cr_autofree char *message = cr_text_clip(cr_or_empty(event->message), MAX_NOTE);
    const char *const texts[TEXTS] = {event->api_version, event->kind,   event->ns, event->name,
                                      event->uid,         event->reason, message};
    size_t size = 0;
    for (size_t i = 0; i < TEXTS; i++)
        size += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct letter *letter = cr_calloc(1, sizeof *letter + size);
    letter->key = *key;
    letter->at_ms = cr_clock_wall_ms();
    letter->warning = event->warning;
    char *at = letter->texts;
    for (size_t i = 0; i < TEXTS; i++) {
        if (!texts[i])
            continue;
        letter->given |= (uint8_t)(1u << i);
        at = stpcpy(at, texts[i]) + 1;
    }
    return letter;
}

/* Borrowed from the letter. */
static struct cr_event event_of(const struct letter *letter)
{
    const char *texts[TEXTS] = {0};
    const char *at = letter->texts;
    for (size_t i = 0; i < TEXTS; i++) {
        if (!(letter->given & (1u << i)))
            continue;
        texts[i] = at;
        at += strlen(at) + 1;
    }
    return (struct cr_event){.api_version = texts[0],
                             .kind = texts[1],
                             .ns = texts[2],
                             .name = texts[3],
                             .uid = texts[4],
                             .warning = letter->warning,
                             .reason = texts[5],
                             .message = texts[6]};
}

static void letter_free(struct letter *letter)
{
    free(letter);
}
CR_DEFINE_CLEANUP(letter, struct letter, letter_free)

struct cr_recorder *cr_recorder_new(struct cr_client *client, const char *component)
{
    char host[256] = "unknown";
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "unknown");
    struct cr_recorder *recorder = cr_new(struct cr_recorder);
    recorder->client = client;
    recorder->component = cr_strdup(component);
    recorder->instance = cr_strdup(host);
    STAILQ_INIT(&recorder->waiting);
    pthread_mutex_init(&recorder->lock, NULL);
    return recorder;
}

void cr_recorder_free(struct cr_recorder *recorder)
{
    if (!recorder)
        return;
    for (struct letter *letter; (letter = STAILQ_FIRST(&recorder->waiting));) {
        STAILQ_REMOVE_HEAD(&recorder->waiting, link);
        letter_free(letter);
    }
    free(recorder->component);
    free(recorder->instance);
    free(recorder->sent);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

/* --- repeats --- */

/* The newline stands in no name or reason. */
static struct repeat_key repeat_key(const struct cr_event *event)
{
    cr_autofree char *text = cr_asprintf("%s\n%s\n%s\n%s\n%s\n%s", cr_or_empty(event->kind), cr_or_empty(event->ns),
                                         cr_or_empty(event->name), cr_or_empty(event->uid), cr_or_empty(event->reason),
                                         cr_or_empty(event->message));
    char digest[CR_SHA256_HEX];
    cr_sha256_hex(text, strlen(text), digest);
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
static void forget_old(struct cr_recorder *recorder, int64_t now_ms)
{
    size_t old = 0;
    while (old < recorder->sent_len && now_ms - recorder->sent[old].at_ms >= REPEAT_MS)
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

static void remember(struct cr_recorder *recorder, const struct repeat_key *key, int64_t now_ms)
{
    if (recorder->sent_len == MAX_REMEMBERED)
        forget_first(recorder, 1);
    if (recorder->sent_len == recorder->sent_cap) {
        recorder->sent_cap = recorder->sent_cap ? recorder->sent_cap * 2 : FEW_REMEMBERED;
        recorder->sent = cr_reallocarray(recorder->sent, recorder->sent_cap, sizeof *recorder->sent);
    }
    recorder->sent[recorder->sent_len++] = (struct sent){*key, now_ms};
}

/* --- without it --- */

/* True for whoever is to send it; of two threads only one. */
static bool claim(struct cr_recorder *recorder, const struct repeat_key *key)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    pthread_mutex_lock(&recorder->lock);
    forget_old(recorder, now_ms);
    bool ours = find_sent(recorder, key) == recorder->sent_len;
    if (ours)
        remember(recorder, key, now_ms);
    pthread_mutex_unlock(&recorder->lock);
    return ours;
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

static void send(struct cr_recorder *recorder, const struct letter *letter)
{
    struct cr_error err = {0};
    const struct cr_event event = event_of(letter);
    const char *ns = namespace_of(&event);
    CR_CLEANUP(cr_json) struct cr_json *object = event_object(recorder, &event, letter->at_ms);
    CR_CLEANUP(cr_json)
    struct cr_json *made = cr_client_create(recorder->client, &cr_res_events, ns, object, &err);
    if (made)
        return;
    give_back(recorder, &letter->key);
    cr_log(CR_LOG_WARN, "an Event could not be written", {"namespace", ns}, {"object", event.name},
           {"reason", event.reason}, {"error", err.text});
}

/* The oldest; NULL: none waits. */
static struct letter *take_letter(struct cr_recorder *recorder, bool *more)
{
    pthread_mutex_lock(&recorder->lock);
    struct letter *letter = STAILQ_FIRST(&recorder->waiting);
    if (letter) {
        STAILQ_REMOVE_HEAD(&recorder->waiting, link);
        recorder->waiting_len--;
    }
    *more = recorder->waiting_len != 0;
    pthread_mutex_unlock(&recorder->lock);
    return letter;
}

/* Takes letter. */
static void put_letter(struct cr_recorder *recorder, struct letter *letter)
{
    pthread_mutex_lock(&recorder->lock);
    STAILQ_INSERT_TAIL(&recorder->waiting, letter, link);
    bool too_many = ++recorder->waiting_len > MAX_WAITING;
    pthread_mutex_unlock(&recorder->lock);
    if (too_many) {
        bool more = false;
        letter_free(take_letter(recorder, &more));
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
    CR_CLEANUP(letter) struct letter *letter = take_letter(recorder, &more);
    if (letter)
        send(recorder, letter);
    return more;
}

void cr_recorder_emit(struct cr_recorder *recorder, const struct cr_event *event)
{
    if (!recorder || !event->name)
        return;
    const struct repeat_key key = repeat_key(event);
    if (!claim(recorder, &key))
        return;
    CR_CLEANUP(letter) struct letter *letter = letter_new(event, &key);
    if (recorder->on_waiting)
        put_letter(recorder, cr_steal(&letter));
    else
        send(recorder, letter);
}
