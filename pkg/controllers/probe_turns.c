#include "controllers/probe_turns.h"

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

struct cr_probe_turns {
    pthread_mutex_t lock;
    struct waiter *first;
    char *running[CR_PROBE_TURNS]; /* namespaces; NULL: free */
};

struct cr_probe_turns *cr_probe_turns_new(void)
{
    struct cr_probe_turns *turns = cr_new(struct cr_probe_turns);
    pthread_mutex_init(&turns->lock, NULL);
    return turns;
}

/* Takes it out of the list that *at is part of. */
static void drop(struct waiter **at)
{
    struct waiter *gone = *at;
    *at = gone->next;
    free(gone->ns);
    free(gone);
}

void cr_probe_turns_free(struct cr_probe_turns *turns)
{
    if (!turns)
        return;
    while (turns->first)
        drop(&turns->first);
    for (size_t i = 0; i < CR_PROBE_TURNS; i++)
        free(turns->running[i]);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}

/* --- below: locked --- */

static void forget(struct cr_probe_turns *turns, int64_t now_ms)
{
    for (struct waiter **at = &turns->first; *at;)
        if (now_ms - (*at)->asked_ms > CR_PROBE_TURN_FORGOTTEN_MS)
            drop(at);
        else
            at = &(*at)->next;
}

static size_t count_running(const struct cr_probe_turns *turns, const char *ns)
{
    size_t count = 0;
    for (size_t i = 0; i < CR_PROBE_TURNS; i++)
        count += turns->running[i] && (!ns || cr_streq(turns->running[i], ns));
    return count;
}

/* The namespace's place in the list; it is added at the end if it did not wait yet. *ahead: how many are before it. */
static struct waiter **wait_in_line(struct cr_probe_turns *turns, const char *ns, int64_t now_ms, size_t *ahead)
{
    struct waiter **at = &turns->first;
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

static void begin(struct cr_probe_turns *turns, const char *ns)
{
    for (size_t i = 0; i < CR_PROBE_TURNS; i++)
        if (!turns->running[i]) {
            turns->running[i] = cr_strdup(ns);
            return;
        }
}

/* A namespace does not wait while its round runs: otherwise it would be ahead of those that have waited meanwhile. */
static bool take(struct cr_probe_turns *turns, const char *ns, int64_t now_ms)
{
    size_t ahead = 0;
    forget(turns, now_ms);
    if (count_running(turns, ns) >= CR_PROBE_TURNS - 1)
        return false;
    struct waiter **at = wait_in_line(turns, ns, now_ms, &ahead);
    if (count_running(turns, NULL) + ahead >= CR_PROBE_TURNS)
        return false;
    drop(at);
    begin(turns, ns);
    return true;
}

bool cr_probe_turns_take(struct cr_probe_turns *turns, const char *ns, int64_t now_ms)
{
    pthread_mutex_lock(&turns->lock);
    bool may = take(turns, ns, now_ms);
    pthread_mutex_unlock(&turns->lock);
    return may;
}

void cr_probe_turns_give_back(struct cr_probe_turns *turns, const char *ns)
{
    pthread_mutex_lock(&turns->lock);
    size_t i = 0;
    while (i < CR_PROBE_TURNS && !cr_streq(turns->running[i], ns))
        i++;
    if (i < CR_PROBE_TURNS) {
        free(turns->running[i]);
        turns->running[i] = NULL;
    }
    pthread_mutex_unlock(&turns->lock);
}
