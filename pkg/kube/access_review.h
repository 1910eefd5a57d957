/* Asks the API server who a client is and what it may do: TokenReview and SubjectAccessReview
 * (https://kubernetes.io/docs/reference/access-authn-authz/webhook/). It needs the rights of the ClusterRole
 * system:auth-delegator. */
#ifndef CR_KUBE_ACCESS_REVIEW_H
#define CR_KUBE_ACCESS_REVIEW_H

#include "base/error.h"
#include "kube/client.h"

enum cr_access {
    CR_ACCESS_ALLOWED,
    CR_ACCESS_UNKNOWN_USER, /* no user has the token (any more) */
    CR_ACCESS_DENIED,       /* the user may not */
};

/* Whether the bearer of the token may get this path of a server that is no API server (a nonResourceURL). Blocks for up
 * to two requests. The token is wiped from what was made of it. False: the API server could not be asked, so the answer
 * is not known. */
bool cr_access_review(struct cr_client *client, const char *token, const char *path, enum cr_access *access,
                      struct cr_error *err) CR_MUST_USE;

#endif
