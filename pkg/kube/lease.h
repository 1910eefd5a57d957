/* The Lease of an election (coordination.k8s.io/v1, https://kubernetes.io/docs/concepts/architecture/leases/): who
 * holds it, and three requests. Each write carries a precondition: of two that write at once, one gets Conflict.
 * Nothing here compares its times with a clock; they are for people. */
#ifndef CR_KUBE_LEASE_H
#define CR_KUBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "kube/client.h"

extern const struct cr_resource cr_res_leases;

/* As read from the API; all texts owned. */
struct cr_lease {
    char *holder;        /* never NULL; "": given up */
    int64_t duration_ms; /* 0: the Lease does not say */
    int64_t transitions;
    char *acquired; /* acquireTime as it stands there; NULL: none */
    char *record;   /* the whole spec as text: it differs whenever the holder has renewed */
    char *uid;
    char *resource_version;
};
void cr_lease_dispose(struct cr_lease *lease);
CR_DEFINE_DISPOSE(cr_lease, struct cr_lease, cr_lease_dispose)
/* False when it is no Lease with a resourceVersion: Invalid. lease is overwritten on success only. */
bool cr_lease_read(const struct cr_json *object, struct cr_lease *lease, struct cr_error *err) CR_MUST_USE;

/* What is to stand there. Borrowed. */
struct cr_lease_claim {
    const char *holder;
    int64_t duration_ms;
    int64_t transitions;
    const char *acquired; /* NULL: now */
};

/* Where it is. Borrowed. */
struct cr_lease_place {
    struct cr_client *client;
    const char *ns;
    const char *name;
};

/* Each gives the Lease as it is after the request and blocks for it; lease is overwritten on success only. */
bool cr_lease_get(const struct cr_lease_place *place, struct cr_lease *lease, struct cr_error *err) CR_MUST_USE;
/* Conflict: it exists. */
bool cr_lease_create(const struct cr_lease_place *place, const struct cr_lease_claim *claim, struct cr_lease *lease,
                     struct cr_error *err) CR_MUST_USE;
/* Conflict: it is no longer the one of this resourceVersion. What others have put there (labels, other fields) stays.
 */
bool cr_lease_update(const struct cr_lease_place *place, const char *resource_version,
                     const struct cr_lease_claim *claim, struct cr_lease *lease, struct cr_error *err) CR_MUST_USE;

#endif
