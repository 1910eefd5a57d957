#include "evidence/memory.h"

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "evidence/sidecar_memory.h"
#include "evidence/trust_memory.h"

struct cr_memory {
    pthread_mutex_t lock;
    struct cr_strmap *pods;  /* UID → struct pod_record */
    struct cr_strmap *notes; /* key → struct cr_note */
};

/* What was asked, and what was seen. Text is kept only where there is any: nearly all pods just show a leaf. */
struct seen_record {
    enum cr_probe_protocol protocol;
    int port;
    char *server_name;
    char *client_secret_name;
    int64_t started_ms;
    enum cr_probe_seen seen;
    enum cr_client_verdict client;
    int64_t at_ms;
    char leaf[CR_SHA256_HEX];
    char *words;
};

/* Enough for two policies; the oldest sighting makes room. */
enum { SEEN_MAX = 2 * CR_VERIFY_ENDPOINTS_MAX };

struct pod_record {
    struct cr_pod_memory nudges;
    struct seen_record *seen;
    size_t seen_len;
    struct cr_trust_memory *trust;
    struct cr_sidecar_memory *sidecar;
};

static void dispose_seen(struct seen_record *seen)
{
    free(seen->server_name);
    free(seen->client_secret_name);
    free(seen->words);
}

static void pod_free(void *value)
{
    struct pod_record *pod = value;
    for (size_t i = 0; i < pod->seen_len; i++)
        dispose_seen(&pod->seen[i]);
    free(pod->seen);
    cr_trust_memory_free(pod->trust);
    cr_sidecar_memory_free(pod->sidecar);
    free(pod);
}

void cr_note_dispose(struct cr_note *note)
{
    free(note->about);
    free(note->text);
    *note = (struct cr_note){0};
}

static void note_free(void *value)
{
    struct cr_note *note = value;
    cr_note_dispose(note);
    free(note);
}

struct cr_memory *cr_memory_new(void)
{
    struct cr_memory *memory = cr_new(struct cr_memory);
    pthread_mutex_init(&memory->lock, NULL);
    memory->pods = cr_strmap_new(pod_free);
    memory->notes = cr_strmap_new(note_free);
    return memory;
}

void cr_memory_free(struct cr_memory *memory)
{
    if (!memory)
        return;
    cr_strmap_free(memory->pods);
    cr_strmap_free(memory->notes);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

struct cr_pod_memory cr_memory_pod(struct cr_memory *memory, const char *uid)
{
    pthread_mutex_lock(&memory->lock);
    const struct pod_record *found = cr_strmap_get(memory->pods, uid);
    struct cr_pod_memory copy = found ? found->nudges : (struct cr_pod_memory){0};
    pthread_mutex_unlock(&memory->lock);
    return copy;
}

/* Locked. */
static struct pod_record *pod_for_update(struct cr_memory *memory, const char *uid)
{
    struct pod_record *pod = cr_strmap_get(memory->pods, uid);
    if (!pod) {
        pod = cr_new(struct pod_record);
        cr_strmap_set(memory->pods, uid, pod);
    }
    return pod;
}

static struct seen_record *find_seen(const struct pod_record *pod, const struct cr_policy_verify *verify, size_t index)
{
    const struct cr_verify_endpoint *endpoint = &verify->endpoints[index];
    for (size_t i = 0; i < pod->seen_len; i++) {
        struct seen_record *seen = &pod->seen[i];
        if (seen->port == endpoint->port && seen->protocol == endpoint->protocol &&
            cr_streq(seen->server_name, endpoint->server_name) &&
            cr_streq(seen->client_secret_name, verify->client_secret_name))
            return seen;
    }
    return NULL;
}

static struct seen_record *room_for_seen(struct pod_record *pod)
{
    if (pod->seen_len < SEEN_MAX) {
        pod->seen = cr_reallocarray(pod->seen, pod->seen_len + 1, sizeof *pod->seen);
        return &pod->seen[pod->seen_len++];
    }
    struct seen_record *oldest = pod->seen;
    for (size_t i = 1; i < pod->seen_len; i++)
        if (pod->seen[i].at_ms < oldest->at_ms)
            oldest = &pod->seen[i];
    dispose_seen(oldest);
    return oldest;
}

static struct seen_record *add_seen(struct pod_record *pod, const struct cr_policy_verify *verify, size_t index)
{
    const struct cr_verify_endpoint *endpoint = &verify->endpoints[index];
    struct seen_record *seen = room_for_seen(pod);
    *seen = (struct seen_record){.protocol = endpoint->protocol,
                                 .port = endpoint->port,
                                 .server_name = cr_strdup_or_null(endpoint->server_name),
                                 .client_secret_name = cr_strdup_or_null(verify->client_secret_name)};
    return seen;
}

void cr_memory_probed(struct cr_memory *memory, const char *uid, int64_t started_ms,
                      const struct cr_policy_verify *verify, size_t index, const struct cr_sighting *sighting)
{
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = pod_for_update(memory, cr_or_empty(uid));
    struct seen_record *seen = find_seen(pod, verify, index);
    if (!seen)
        seen = add_seen(pod, verify, index);
    seen->started_ms = started_ms;
    seen->seen = sighting->seen;
    seen->client = sighting->client;
    seen->at_ms = sighting->at_ms;
    snprintf(seen->leaf, sizeof seen->leaf, "%s", sighting->leaf);
    cr_strset(&seen->words, sighting->words[0] ? sighting->words : NULL);
    pthread_mutex_unlock(&memory->lock);
}

static void copy_seen(const struct seen_record *seen, struct cr_sighting *out)
{
    out->seen = seen->seen;
    out->client = seen->client;
    out->at_ms = seen->at_ms;
    snprintf(out->leaf, sizeof out->leaf, "%s", seen->leaf);
    snprintf(out->words, sizeof out->words, "%s", cr_or_empty(seen->words));
}

void cr_memory_sightings(struct cr_memory *memory, const char *uid, int64_t started_ms,
                         const struct cr_policy_verify *verify, struct cr_sighting *out)
{
    pthread_mutex_lock(&memory->lock);
    const struct pod_record *pod = cr_strmap_get(memory->pods, cr_or_empty(uid));
    for (size_t i = 0; i < verify->endpoints_len; i++) {
        const struct seen_record *seen = pod ? find_seen(pod, verify, i) : NULL;
        out[i] = (struct cr_sighting){0};
        if (seen && seen->started_ms == started_ms)
            copy_seen(seen, &out[i]);
    }
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_saw_trust(struct cr_memory *memory, const char *uid, int64_t started_ms,
                         const struct cr_policy_verify *verify, size_t index, const struct cr_endpoint_trust *trust,
                         int64_t at_ms)
{
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = pod_for_update(memory, cr_or_empty(uid));
    cr_trust_memory_keep_endpoint(&pod->trust, started_ms, &verify->endpoints[index], trust, at_ms);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_saw_page(struct cr_memory *memory, const char *uid, int64_t started_ms,
                        const struct cr_policy_verify *verify, struct cr_trust_sighting *page, int64_t at_ms)
{
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = pod_for_update(memory, cr_or_empty(uid));
    cr_trust_memory_keep_page(&pod->trust, started_ms, verify, page, at_ms);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_trust(struct cr_memory *memory, const char *uid, int64_t started_ms,
                     const struct cr_policy_verify *verify, int64_t now_ms, struct cr_trust_sighting *out)
{
    struct cr_trust_memory *none = NULL;
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = cr_strmap_get(memory->pods, cr_or_empty(uid));
    cr_trust_memory_recall(pod ? &pod->trust : &none, started_ms, verify, now_ms, out);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_saw_sidecar(struct cr_memory *memory, const char *uid, int64_t started_ms,
                           struct cr_sidecar_sighting *sighting)
{
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = pod_for_update(memory, cr_or_empty(uid));
    cr_sidecar_memory_keep(&pod->sidecar, started_ms, sighting);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_sidecar(struct cr_memory *memory, const char *uid, int64_t started_ms, int64_t now_ms, bool awaited,
                       struct cr_sidecar_sighting *out)
{
    struct cr_sidecar_memory *none = NULL;
    pthread_mutex_lock(&memory->lock);
    struct pod_record *pod = cr_strmap_get(memory->pods, cr_or_empty(uid));
    cr_sidecar_memory_recall(pod ? &pod->sidecar : &none, started_ms, now_ms, awaited, out);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_nudged(struct cr_memory *memory, const char *uid, int64_t since_ms, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    struct cr_pod_memory *pod = &pod_for_update(memory, uid)->nudges;
    pod->nudges = pod->nudged_since_ms == since_ms ? pod->nudges + 1 : 1;
    pod->nudged_since_ms = since_ms;
    pod->nudged_ms = now_ms;
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_evicted(struct cr_memory *memory, const char *uid, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    pod_for_update(memory, uid)->nudges.evicted_ms = now_ms;
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_forget_pod(struct cr_memory *memory, const char *uid)
{
    pthread_mutex_lock(&memory->lock);
    cr_strmap_remove(memory->pods, uid);
    pthread_mutex_unlock(&memory->lock);
}

struct cr_note cr_memory_note(struct cr_memory *memory, const char *key)
{
    pthread_mutex_lock(&memory->lock);
    const struct cr_note *note = cr_strmap_get(memory->notes, key);
    struct cr_note copy = note ? *note : (struct cr_note){0};
    copy.about = cr_strdup_or_null(copy.about);
    copy.text = cr_strdup_or_null(copy.text);
    pthread_mutex_unlock(&memory->lock);
    return copy;
}

void cr_memory_take_note(struct cr_memory *memory, const char *key, const struct cr_note_input *input)
{
    pthread_mutex_lock(&memory->lock);
    struct cr_note *note = cr_strmap_get(memory->notes, key);
    if (!note) {
        note = cr_new(struct cr_note);
        cr_strmap_set(memory->notes, key, note);
    }
    note->at_ms = input->at_ms;
    note->count++;
    note->reason = input->reason;
    cr_strset(&note->about, input->about);
    cr_strset(&note->text, input->text);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_note_time(struct cr_memory *memory, const char *key, int64_t at_ms)
{
    cr_memory_take_note(memory, key, &(struct cr_note_input){.at_ms = at_ms});
}

void cr_memory_drop_note(struct cr_memory *memory, const char *key)
{
    pthread_mutex_lock(&memory->lock);
    cr_strmap_remove(memory->notes, key);
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_forget_keys(struct cr_memory *memory, const char *prefix)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec gone = {0};
    pthread_mutex_lock(&memory->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(memory->notes, &it);)
        if (cr_starts_with(it.key, prefix))
            cr_strvec_add(&gone, it.key);
    for (size_t i = 0; i < gone.len; i++)
        cr_strmap_remove(memory->notes, gone.items[i]);
    pthread_mutex_unlock(&memory->lock);
}
