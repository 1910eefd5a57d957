#include "controllers/memory.h"

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"

struct cr_memory {
    pthread_mutex_t lock;
    struct cr_strmap *pods;  /* UID → struct cr_pod_memory */
    struct cr_strmap *notes; /* key → struct cr_note */
};

void cr_note_dispose(struct cr_note *note)
{
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
    memory->pods = cr_strmap_new(free);
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
    const struct cr_pod_memory *found = cr_strmap_get(memory->pods, uid);
    struct cr_pod_memory copy = found ? *found : (struct cr_pod_memory){0};
    pthread_mutex_unlock(&memory->lock);
    return copy;
}

/* Locked. */
static struct cr_pod_memory *pod_for_update(struct cr_memory *memory, const char *uid)
{
    struct cr_pod_memory *pod = cr_strmap_get(memory->pods, uid);
    if (!pod) {
        pod = cr_new(struct cr_pod_memory);
        cr_strmap_set(memory->pods, uid, pod);
    }
    return pod;
}

void cr_memory_probed(struct cr_memory *memory, const struct cr_world_pod *probed, enum cr_probe_seen seen,
                      const char *leaf, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    struct cr_pod_memory *pod = pod_for_update(memory, cr_or_empty(probed->uid));
    pod->seen = seen;
    pod->started_ms = probed->started_ms;
    pod->probed_ms = now_ms;
    snprintf(pod->leaf, sizeof pod->leaf, "%s", cr_or_empty(leaf));
    pthread_mutex_unlock(&memory->lock);
}

void cr_memory_nudged(struct cr_memory *memory, const char *uid, int64_t since_ms, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    struct cr_pod_memory *pod = pod_for_update(memory, uid);
    pod->nudges = pod->nudged_since_ms == since_ms ? pod->nudges + 1 : 1;
    pod->nudged_since_ms = since_ms;
    pod->nudged_ms = now_ms;
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
    copy.text = cr_strdup_or_null(copy.text);
    pthread_mutex_unlock(&memory->lock);
    return copy;
}

void cr_memory_take_note(struct cr_memory *memory, const char *key, int64_t at_ms, const char *text)
{
    pthread_mutex_lock(&memory->lock);
    struct cr_note *note = cr_strmap_get(memory->notes, key);
    if (!note) {
        note = cr_new(struct cr_note);
        cr_strmap_set(memory->notes, key, note);
    }
    note->at_ms = at_ms;
    note->count++;
    cr_strset(&note->text, text);
    pthread_mutex_unlock(&memory->lock);
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
