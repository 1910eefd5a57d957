#include "cluster/owner.h"

#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "kube/object.h"

/* kubernetes.io/docs/concepts/workloads/controllers/deployment (pod-template-hash). */
static bool maker_of(const char *replica_set, const char *hash, char **name)
{
    cr_autofree char *suffix = cr_asprintf("-%s", hash);
    if (!cr_ends_with(replica_set, suffix))
        return false;
    *name = cr_strndup(replica_set, strlen(replica_set) - strlen(suffix));
    return true;
}

/* bare: the row of ReplicaSets. */
static bool workload_of_replica_set(const struct cr_consumer_kind *bare, const struct cr_json *pod,
                                    const char *replica_set, const char **kind, char **name)
{
    const struct cr_json *labels = cr_json_at(pod, "metadata", "labels");
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *maker = &cr_consumer_kinds[i];
        const char *hash = maker->by_replica_sets ? cr_json_string_at(labels, maker->revision_labels[0]) : NULL;
        *kind = maker->resource.kind;
        if (hash)
            return maker_of(replica_set, hash, name);
    }
    *kind = bare->resource.kind;
    *name = cr_strdup(replica_set);
    return true;
}

bool cr_pod_workload(const struct cr_json *pod, const char **kind, char **name)
{
    const struct cr_json *owner = cr_obj_controller(pod);
    const char *owner_kind = cr_json_string_at(owner, "kind");
    const char *owner_name = cr_json_string_at(owner, "name");
    /* Other API groups have kinds with these names, too (OpenKruise's StatefulSet, for example). */
    const struct cr_consumer_kind *row = cr_consumer_kind_of(owner_kind);
    if (!owner_name || !cr_resource_shares_group(&row->resource, cr_json_string_at(owner, "apiVersion")))
        return false;
    if (row->only_bare)
        return workload_of_replica_set(row, pod, owner_name, kind, name);
    if (!cr_consumer_kind_has_pods(row) || row->by_replica_sets)
        return false;
    *kind = row->resource.kind;
    *name = cr_strdup(owner_name);
    return true;
}
