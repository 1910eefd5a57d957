#include "evidence/canaries.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

/* One that was replaced or has expired stays for as long as a caller holds it. */
struct canary {
    struct canary *next;
    char *ca;
    struct cr_probe_client *client;
    int64_t not_after_ms;
    unsigned holds;
    bool gone;
};

struct cr_canaries {
    pthread_mutex_t lock;
    struct canary *first;
};

struct cr_canaries *cr_canaries_new(void)
{
    struct cr_canaries *canaries = cr_new(struct cr_canaries);
    pthread_mutex_init(&canaries->lock, NULL);
    return canaries;
}

static void free_canary(struct canary *canary)
{
    cr_probe_client_free(canary->client);
    free(canary->ca);
    free(canary);
}

void cr_canaries_free(struct cr_canaries *canaries)
{
    if (!canaries)
        return;
    for (struct canary *each = canaries->first, *next = NULL; each; each = next) {
        next = each->next;
        free_canary(each);
    }
    pthread_mutex_destroy(&canaries->lock);
    free(canaries);
}

/* The rest: locked. */
static void sweep(struct cr_canaries *canaries)
{
    for (struct canary **at = &canaries->first; *at;) {
        struct canary *each = *at;
        if (!each->gone || each->holds) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        free_canary(each);
    }
}

static struct canary *find(const struct cr_canaries *canaries, const char *ca)
{
    for (struct canary *each = canaries->first; each; each = each->next)
        if (!each->gone && cr_streq(each->ca, ca))
            return each;
    return NULL;
}

static void drop_expired(struct cr_canaries *canaries, int64_t now_ms)
{
    for (struct canary *each = canaries->first; each; each = each->next)
        each->gone = each->gone || each->not_after_ms <= now_ms;
    sweep(canaries);
}

void cr_canaries_put(struct cr_canaries *canaries, const char *ca, struct cr_probe_client *client, int64_t not_after_ms)
{
    struct canary *canary = cr_new(struct canary);
    *canary = (struct canary){.ca = cr_strdup(ca), .client = client, .not_after_ms = not_after_ms};
    pthread_mutex_lock(&canaries->lock);
    struct canary *before = find(canaries, ca);
    if (before)
        before->gone = true;
    canary->next = canaries->first;
    canaries->first = canary;
    sweep(canaries);
    pthread_mutex_unlock(&canaries->lock);
}

bool cr_canaries_has(struct cr_canaries *canaries, const char *ca, int64_t now_ms, int64_t until_ms)
{
    pthread_mutex_lock(&canaries->lock);
    drop_expired(canaries, now_ms);
    const struct canary *found = find(canaries, ca);
    bool has = found && found->not_after_ms > until_ms;
    pthread_mutex_unlock(&canaries->lock);
    return has;
}

const struct cr_probe_client *cr_canaries_hold(struct cr_canaries *canaries, const char *ca, int64_t now_ms)
{
    pthread_mutex_lock(&canaries->lock);
    drop_expired(canaries, now_ms);
    struct canary *found = find(canaries, ca);
    if (found)
        found->holds++;
    pthread_mutex_unlock(&canaries->lock);
    return found ? found->client : NULL;
}

void cr_canaries_release(struct cr_canaries *canaries, const struct cr_probe_client *client)
{
    if (!client)
        return;
    pthread_mutex_lock(&canaries->lock);
    for (struct canary *each = canaries->first; each; each = each->next)
        if (each->client == client && each->holds)
            each->holds--;
    sweep(canaries);
    pthread_mutex_unlock(&canaries->lock);
}
