/* certroll-sidecar in a pod: a container with a port named certroll-reload, which mounts the Secrets that it passes
 * on. Pure. */
#ifndef CR_WORKLOAD_SIDECAR_H
#define CR_WORKLOAD_SIDECAR_H

#include <stdbool.h>

#include "api/policy.h"
#include "codec/json.h"
#include "catalogue/usage.h"

#define CR_SIDECAR_PORT_NAME "certroll-reload" /* a port's name has at most 15 characters (RFC 6335, section 5.1) */
#define CR_SIDECAR_PATH      "/status"
/* Its entry in the catalogue, for the certificate of its own page: no image is like another's. */
#define CR_SIDECAR_COMPONENT "certroll/sidecar"

struct cr_sidecar_container {
    const char *container; /* borrowed from the pod spec; NULL: there is none */
    int port;
};

/* Finds the first among containers, and init containers that keep running (restartPolicy: Always, KEP-753). */
struct cr_sidecar_container cr_sidecar_find(const struct cr_json *pod_spec);

/* The same program as an init container that makes outputs once (--once, of the sidecar's image): what changes later,
 * the sidecar passes on. */
bool cr_sidecar_prepares(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                         const char *container);

/* CR_CLASS_* of the Secret that the sidecar has in volumes that refresh: the leaf only if certificate and key are
 * there. Never opaque material, which it does not read. */
unsigned cr_sidecar_classes(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                            const struct cr_policy_secret *secret);

/* The containers that may read what the sidecar makes of a Secret that none of them mounts: those that keep running and
 * share a volume with it, other than volumes of Secrets and of what the cluster provides; if none does, all that keep
 * running. Elements are borrowed from the pod spec; the array is owned. */
const struct cr_json **cr_sidecar_readers(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                                          size_t *len);

#endif
