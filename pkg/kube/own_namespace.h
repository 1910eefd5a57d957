/* The namespace that this program itself runs in: of its Lease, its ConfigMap, its keys. */
#ifndef CR_KUBE_OWN_NAMESPACE_H
#define CR_KUBE_OWN_NAMESPACE_H

#include <stdbool.h>

#include "base/error.h"

/* An RFC 1123 label of at most 63 characters, as Kubernetes demands of namespaces: it is also safe in a path. */
bool cr_is_namespace_name(const char *name);

/* $POD_NAMESPACE (the downward API), else the namespace file of the pod's service account. *ns: owned, NULL outside of
 * a pod. False when one of them says what is no name of a namespace: Invalid. */
bool cr_own_namespace(char **ns, struct cr_error *err) CR_MUST_USE;

#endif
