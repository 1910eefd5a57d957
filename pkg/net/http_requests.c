#include "net/http_requests.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_line.h"
#include "net/http_memory.h"

/* A line that no thread has. */
struct idle {
    SLIST_ENTRY(idle) link;
    struct cr_http_line *line;
};
SLIST_HEAD(idle_list, idle);

struct cr_http_requests {
    char *user_agent;
    int wake_fd; /* eventfd: cancelled. Never read, so it wakes all */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    struct cr_http_identity *identity;
    struct idle_list idle; /* the one used last is the first */
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
    pthread_mutex_init(&requests->lock, NULL);
    return requests;
}

void cr_http_response_dispose(struct cr_http_response *response)
{
    cr_buf_dispose(&response->body);
    *response = (struct cr_http_response){0};
}

static void hang_up(struct idle_list *lines)
{
    struct idle *idle = NULL;
    while ((idle = SLIST_FIRST(lines))) {
        SLIST_REMOVE_HEAD(lines, link);
        cr_http_line_free(idle->line);
        free(idle);
    }
}

void cr_http_requests_free(struct cr_http_requests *requests)
{
    if (!requests)
        return;
    hang_up(&requests->idle);
    cr_http_identity_unref(requests->identity);
    pthread_mutex_destroy(&requests->lock);
    close(requests->wake_fd);
    free(requests->user_agent);
    free(requests);
}

void cr_http_requests_set_tls(struct cr_http_requests *requests, const struct cr_http_tls *tls)
{
    struct cr_http_identity *unused = cr_http_identity_new(tls);
    struct idle_list old = SLIST_HEAD_INITIALIZER(old);
    pthread_mutex_lock(&requests->lock);
    if (!cr_http_identity_equal(requests->identity, unused)) {
        struct cr_http_identity *newest = unused;
        unused = requests->identity;
        requests->identity = newest;
        old = requests->idle;
        SLIST_INIT(&requests->idle);
    }
    pthread_mutex_unlock(&requests->lock);
    hang_up(&old);
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

/* NULL: cancelled. */
static struct idle *take(struct cr_http_requests *requests, struct cr_http_identity **identity)
{
    pthread_mutex_lock(&requests->lock);
    bool cancelled = requests->cancelled;
    struct idle *taken = cancelled ? NULL : SLIST_FIRST(&requests->idle);
    if (taken)
        SLIST_REMOVE_HEAD(&requests->idle, link);
    *identity = cancelled ? NULL : cr_http_identity_ref(requests->identity);
    pthread_mutex_unlock(&requests->lock);
    if (!taken && !cancelled) {
        taken = cr_new(struct idle);
        taken->line = cr_http_line_new(requests->user_agent, requests->wake_fd);
    }
    return taken;
}

static void give_back(struct cr_http_requests *requests, struct idle *idle, struct cr_http_identity *identity)
{
    pthread_mutex_lock(&requests->lock);
    SLIST_INSERT_HEAD(&requests->idle, idle, link);
    pthread_mutex_unlock(&requests->lock);
    cr_http_identity_unref(identity);
}

bool cr_http_do(struct cr_http_requests *requests, const struct cr_http_request *request,
                struct cr_http_response *response, struct cr_error *err)
{
    *response = (struct cr_http_response){0};
    struct cr_http_identity *identity = NULL;
    struct idle *taken = take(requests, &identity);
    if (!taken)
        return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    bool ok = cr_http_line_do(taken->line, identity, request, response, err);
    give_back(requests, taken, identity);
    return ok;
}
