#include "net/http_requests.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_client_connection.h"
#include "net/http_memory.h"

enum { KEEP_MS = 60 * 1000 /* an idle connection; kube-apiserver closes it after 90 s */ };

struct slot {
    SLIST_ENTRY(slot) link; /* while no thread has it */
    struct cr_http_client_connection *line;
    int64_t used_ms; /* when it was given back */
};
SLIST_HEAD(slots, slot);

struct cr_http_requests {
    char *user_agent;
    int wake_fd; /* eventfd: cancelled. Never read, so it wakes all */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct cr_http_identity *identity;
    struct slots idle;   /* the one used last is the first */
    struct slots unused; /* to be closed, outside of the lock, by the next caller */
    bool cancelled;
};

struct cr_http_requests *cr_http_requests_new(const struct cr_http_tls *tls, const char *user_agent)
{
    cr_http_global_init();
    struct cr_http_requests *requests = cr_new(struct cr_http_requests);
    requests->user_agent = cr_strdup(user_agent ? user_agent : "certroll");
    requests->identity = cr_http_identity_new(tls);
    requests->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (requests->wake_fd < 0) {
        cr_log(CR_LOG_ERROR, "no file descriptor for HTTP requests");
        abort();
    }
    SLIST_INIT(&requests->idle);
    SLIST_INIT(&requests->unused);
    pthread_mutex_init(&requests->lock, NULL);
    return requests;
}

static void hang_up(struct slots *slots)
{
    struct slot *slot = NULL;
    while ((slot = SLIST_FIRST(slots))) {
        SLIST_REMOVE_HEAD(slots, link);
        cr_http_client_connection_free(slot->line);
        free(slot);
    }
}

void cr_http_requests_free(struct cr_http_requests *requests)
{
    if (!requests)
        return;
    hang_up(&requests->idle);
    hang_up(&requests->unused);
    cr_http_identity_unref(requests->identity);
    pthread_mutex_destroy(&requests->lock);
    close(requests->wake_fd);
    free(requests->user_agent);
    free(requests);
}

/* --- with the lock held --- */

static void move_all(struct slots *from, struct slots *to)
{
    struct slot *slot = NULL;
    while ((slot = SLIST_FIRST(from))) {
        SLIST_REMOVE_HEAD(from, link);
        SLIST_INSERT_HEAD(to, slot, link);
    }
}

static struct slots take_unused(struct cr_http_requests *requests)
{
    struct slots taken = requests->unused;
    SLIST_INIT(&requests->unused);
    return taken;
}

/* Those behind one that was not used for so long were not, either. */
static void retire_old(struct cr_http_requests *requests)
{
    int64_t kept_since_ms = cr_clock_monotonic_ms() - KEEP_MS;
    struct slot *last = SLIST_FIRST(&requests->idle); /* given back just now */
    while (SLIST_NEXT(last, link) && SLIST_NEXT(last, link)->used_ms >= kept_since_ms)
        last = SLIST_NEXT(last, link);
    struct slots old = {.slh_first = SLIST_NEXT(last, link)};
    SLIST_NEXT(last, link) = NULL;
    move_all(&old, &requests->unused);
}

/* --- */

/* The next caller closes them: the credentials' own lock may be held here. */
void cr_http_requests_set_tls(struct cr_http_requests *requests, const struct cr_http_tls *tls)
{
    struct cr_http_identity *unused = cr_http_identity_new(tls);
    pthread_mutex_lock(&requests->lock);
    if (cr_http_identity_renew(&requests->identity, &unused))
        move_all(&requests->idle, &requests->unused);
    pthread_mutex_unlock(&requests->lock);
    cr_http_identity_unref(unused);
}

void cr_http_requests_cancel(struct cr_http_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    requests->cancelled = true;
    pthread_mutex_unlock(&requests->lock);
    uint64_t one = 1;
    ssize_t ignored = write(requests->wake_fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: it is readable already */
}

static struct slot *slot_new(const struct cr_http_requests *requests, struct cr_http_identity *identity)
{
    struct slot *slot = cr_new(struct slot);
    slot->line = cr_http_client_connection_new(requests->user_agent, identity, requests->wake_fd);
    return slot;
}

/* NULL: cancelled. */
static struct slot *take(struct cr_http_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    struct slot *slot = requests->cancelled ? NULL : SLIST_FIRST(&requests->idle);
    if (slot)
        SLIST_REMOVE_HEAD(&requests->idle, link);
    else if (!requests->cancelled)
        slot = slot_new(requests, requests->identity);
    struct slots unused = take_unused(requests);
    pthread_mutex_unlock(&requests->lock);
    hang_up(&unused);
    return slot;
}

/* One that is of no use any more does not come before those that are. */
static void give_back(struct cr_http_requests *requests, struct slot *slot)
{
    slot->used_ms = cr_clock_monotonic_ms();
    pthread_mutex_lock(&requests->lock);
    bool keep = cr_http_client_connection_identity(slot->line) == requests->identity &&
                cr_http_client_connection_is_open(slot->line);
    SLIST_INSERT_HEAD(keep ? &requests->idle : &requests->unused, slot, link);
    if (keep)
        retire_old(requests);
    struct slots unused = take_unused(requests);
    pthread_mutex_unlock(&requests->lock);
    hang_up(&unused);
}

bool cr_http_do(struct cr_http_requests *requests, const struct cr_http_request *request,
                struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){0};
    struct slot *slot = take(requests);
    if (!slot)
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    bool ok = cr_http_client_connection_do(slot->line, request, response, err);
    give_back(requests, slot);
    return ok;
}
