/* The guard of a page of our HTTP server: a bearer token that the API server knows, of a user that may get the page's
 * path (a SubjectAccessReview). What was answered counts for a minute, or ten seconds when it was no: a right that is
 * taken away works at most that much longer. Asked in a thread of its own; tokens are kept as digests only. */
#ifndef CR_KUBE_ACCESS_GUARD_H
#define CR_KUBE_ACCESS_GUARD_H

#include "base/cleanup.h"
#include "kube/client.h"
#include "wire/http_server.h"
#include "sys/loop.h"

struct cr_access_guard;

struct cr_access_guard_options {
    struct cr_loop *loop;     /* of the HTTP server, outlives the guard */
    struct cr_client *client; /* its credentials are used to ask; outlives the guard */
    const char *path;         /* "/metrics"; static */
    /* How long an answer counts; 0: a minute, ten seconds. */
    int64_t yes_ms;
    int64_t no_ms;
};
struct cr_access_guard *cr_access_guard_new(const struct cr_access_guard_options *options);
/* After the loop has ended, before it is freed. What waits is answered with 503. */
void cr_access_guard_free(struct cr_access_guard *guard);
CR_DEFINE_CLEANUP(cr_access_guard, struct cr_access_guard, cr_access_guard_free)

/* A cr_http_guard; arg: the guard. 401 without a token or with one that no user has, 403 when the user may not, 503
 * when the API server cannot be asked, or too many wait. */
void cr_access_guard_check(void *arg, const char *authorization, struct cr_http_pending *pending);

#endif
