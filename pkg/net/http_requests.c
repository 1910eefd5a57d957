#include "net/http_requests.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_transfer.h"

enum {
    KEEP_MS = 60 * 1000, /* an idle connection; kube-apiserver closes it after 90 s */
    /* A server that closes an idle connection while a request is on its way says so within a round trip. */
    AT_ONCE_MS = 100,
};

/* A connection, and the multi handle that keeps it. */
struct slot {
    SLIST_ENTRY(slot) link; /* while no thread has it */
    struct cr_http_identity *identity;
    CURLM *multi;
    curl_socket_t fd; /* CURL_SOCKET_BAD: there is none yet, or no more */
    int64_t used_ms;  /* when it was given back */
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

static void slot_free(struct slot *slot)
{
    curl_multi_cleanup(slot->multi);
    cr_http_identity_unref(slot->identity);
    free(slot);
}

static void hang_up(struct slots *slots)
{
    struct slot *slot = NULL;
    while ((slot = SLIST_FIRST(slots))) {
        SLIST_REMOVE_HEAD(slots, link);
        slot_free(slot);
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

static struct slot *slot_new(struct cr_http_identity *identity)
{
    struct slot *slot = cr_new(struct slot);
    slot->identity = cr_http_identity_ref(identity);
    slot->multi = cr_http_transfer_multi();
    slot->fd = CURL_SOCKET_BAD;
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
        slot = slot_new(requests->identity);
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
    bool keep = slot->identity == requests->identity && slot->fd != CURL_SOCKET_BAD;
    SLIST_INSERT_HEAD(keep ? &requests->idle : &requests->unused, slot, link);
    if (keep)
        retire_old(requests);
    struct slots unused = take_unused(requests);
    pthread_mutex_unlock(&requests->lock);
    hang_up(&unused);
}

/* --- one request --- */

/* Its connection can be used only if nothing has come since: what comes behind an answer is never taken for the next
 * one. libcurl looks for it only where there is no TLS. */
static void drop_if_not_quiet(struct slot *slot)
{
    struct pollfd fd = {.fd = slot->fd, .events = POLLIN};
    if (slot->fd == CURL_SOCKET_BAD || poll(&fd, 1, 0) == 0)
        return;
    curl_multi_cleanup(slot->multi);
    slot->multi = cr_http_transfer_multi();
    slot->fd = CURL_SOCKET_BAD;
}

/* A connection that had been used before, and then ends without an answer, was most likely idle for too long: it was
 * closed when the request came, and nothing was done. A request that only reads needs no certainty of that; for
 * a write it is unlikely when the end did not come at once. */
static bool may_repeat(const struct cr_http_request *request, int64_t began_ms, int64_t deadline_ms)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    bool reads = cr_streq(request->method, "GET") || cr_streq(request->method, "HEAD");
    return now_ms < deadline_ms && (reads || now_ms - began_ms < AT_ONCE_MS);
}

static bool send_with(const struct cr_http_requests *requests, struct slot *slot, const struct cr_http_request *request,
                      struct cr_http_response *response, struct cr_error *err)
{
    int64_t began_ms = cr_clock_monotonic_ms();
    drop_if_not_quiet(slot);
    struct cr_http_transfer transfer = {.multi = slot->multi,
                                        .identity = slot->identity,
                                        .user_agent = requests->user_agent,
                                        .request = request,
                                        .cancel_fd = requests->wake_fd,
                                        .deadline_ms = request->timeout_ms ? began_ms + request->timeout_ms : INT64_MAX,
                                        .keeps = true};
    bool ok = cr_http_transfer_run(&transfer, response, err);
    if (transfer.unanswered && may_repeat(request, began_ms, transfer.deadline_ms))
        ok = cr_http_transfer_run(&transfer, response, err);
    slot->fd = transfer.fd;
    return ok;
}

bool cr_http_do(struct cr_http_requests *requests, const struct cr_http_request *request,
                struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){0};
    struct slot *slot = take(requests);
    if (!slot)
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    bool ok = send_with(requests, slot, request, response, err);
    give_back(requests, slot);
    return ok;
}
