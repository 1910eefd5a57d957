/* A snapshot of what is in a namespace, as the rules of discovery read it. Private to pkg/policy/controller. */
#ifndef CR_POLICY_CONTROLLER_NAMESPACE_SNAPSHOT_H
#define CR_POLICY_CONTROLLER_NAMESPACE_SNAPSHOT_H

#include "cluster/cache.h"
#include "workload/discover.h"

/* Owned. Its view borrows from objects that it keeps references to. */
struct cr_namespace_snapshot *cr_namespace_snapshot_new(struct cr_cache *cache, const char *ns);
void cr_namespace_snapshot_free(struct cr_namespace_snapshot *ns_snapshot);
CR_DEFINE_CLEANUP(cr_namespace_snapshot, struct cr_namespace_snapshot, cr_namespace_snapshot_free)
const struct cr_view *cr_namespace_snapshot_view(const struct cr_namespace_snapshot *ns_snapshot);

#endif
