#include "policy/controller/probe_slots.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

/* A namespace that waits. The list is in the order in which they began to wait. */
struct waiter {
    struct waiter *next;
    char *ns;
    int64_t asked_ms; /* last */
};

struct cr_probe_slots {
    pthread_mutex_t lock;
    struct waiter *first;
    char *running[CR_PROBE_SLOTS]; /* namespaces; NULL: free */
};

struct cr_probe_slots *cr_probe_slots_new(void)
{
    struct cr_probe_slots *slots = cr_new(struct cr_probe_slots);
    pthread_mutex_init(&slots->lock, NULL);
    return slots;
}

/* Takes it out of the list that *at is part of. */
static void drop(struct waiter **at)
{
    struct waiter *gone = *at;
    *at = gone->next;
    free(gone->ns);
    free(gone);
}

void cr_probe_slots_free(struct cr_probe_slots *slots)
{
    if (!slots)
        return;
    while (slots->first)
        drop(&slots->first);
    for (size_t i = 0; i < CR_PROBE_SLOTS; i++)
        free(slots->running[i]);
    pthread_mutex_destroy(&slots->lock);
    free(slots);
}

/* --- below: locked --- */

static void forget(struct cr_probe_slots *slots, int64_t now_ms)
{
    for (struct waiter **at = &slots->first; *at;)
        if (now_ms - (*at)->asked_ms > CR_PROBE_SLOT_FORGOTTEN_MS)
            drop(at);
        else
            at = &(*at)->next;
}

static size_t count_running(const struct cr_probe_slots *slots, const char *ns)
{
    size_t count = 0;
    for (size_t i = 0; i < CR_PROBE_SLOTS; i++)
        count += slots->running[i] && (!ns || cr_streq(slots->running[i], ns));
    return count;
}

/* The namespace's place in the list; it is added at the end if it did not wait yet. *ahead: how many are before it. */
static struct waiter **wait_in_line(struct cr_probe_slots *slots, const char *ns, int64_t now_ms, size_t *ahead)
{
    struct waiter **at = &slots->first;
    *ahead = 0;
    for (; *at && !cr_streq((*at)->ns, ns); at = &(*at)->next)
        ++*ahead;
    if (!*at) {
        *at = cr_new(struct waiter);
        (*at)->ns = cr_strdup(ns);
    }
    (*at)->asked_ms = now_ms;
    return at;
}

static void begin(struct cr_probe_slots *slots, const char *ns)
{
    for (size_t i = 0; i < CR_PROBE_SLOTS; i++)
        if (!slots->running[i]) {
            slots->running[i] = cr_strdup(ns);
            return;
        }
}

/* A namespace does not wait while its round runs: otherwise it would be ahead of those that have waited meanwhile. */
static bool take(struct cr_probe_slots *slots, const char *ns, int64_t now_ms)
{
    size_t ahead = 0;
    forget(slots, now_ms);
    if (count_running(slots, ns) >= CR_PROBE_SLOTS - 1)
        return false;
    struct waiter **at = wait_in_line(slots, ns, now_ms, &ahead);
    if (count_running(slots, NULL) + ahead >= CR_PROBE_SLOTS)
        return false;
    drop(at);
    begin(slots, ns);
    return true;
}

bool cr_probe_slots_take(struct cr_probe_slots *slots, const char *ns, int64_t now_ms)
{
    pthread_mutex_lock(&slots->lock);
    bool may = take(slots, ns, now_ms);
    pthread_mutex_unlock(&slots->lock);
    return may;
}

void cr_probe_slots_give_back(struct cr_probe_slots *slots, const char *ns)
{
    pthread_mutex_lock(&slots->lock);
    size_t i = 0;
    while (i < CR_PROBE_SLOTS && !cr_streq(slots->running[i], ns))
        i++;
    if (i < CR_PROBE_SLOTS) {
        free(slots->running[i]);
        slots->running[i] = NULL;
    }
    pthread_mutex_unlock(&slots->lock);
}
