#include "cluster/owner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "kube/object.h"

/* The kinds that create ReplicaSets, and the label with the suffix of their names:
 * kubernetes.io/docs/concepts/workloads/controllers/deployment (pod-template-hash), and DefaultRolloutUniqueLabelKey of
 * github.com/argoproj/argo-rollouts. */
static const struct maker {
    const char *kind;
    const char *label;
} makers[] = {{"Deployment", "pod-template-hash"}, {"Rollout", "rollouts-pod-template-hash"}};

static bool maker_of(const char *replica_set, const char *hash, char **name)
{
    cr_autofree char *suffix = cr_asprintf("-%s", hash);
    if (!cr_ends_with(replica_set, suffix))
        return false;
    *name = cr_strndup(replica_set, strlen(replica_set) - strlen(suffix));
    return true;
}

static bool workload_of_replica_set(const struct cr_json *pod, const char *replica_set, const char **kind, char **name)
{
    const struct cr_json *labels = cr_json_at(pod, "metadata", "labels");
    for (size_t i = 0; i < cr_array_len(makers); i++) {
        const char *hash = cr_json_string_at(labels, makers[i].label);
        *kind = makers[i].kind;
        if (hash)
            return maker_of(replica_set, hash, name);
    }
    *kind = "ReplicaSet";
    *name = cr_strdup(replica_set);
    return true;
}

bool cr_pod_workload(const struct cr_json *pod, const char **kind, char **name)
{
    const struct cr_json *owner = cr_obj_controller(pod);
    const char *owner_kind = cr_json_string_at(owner, "kind");
    const char *owner_name = cr_json_string_at(owner, "name");
    /* Other API groups have kinds with these names, too (OpenKruise's StatefulSet, for example). */
    if (!owner_kind || !owner_name || !cr_starts_with(cr_json_string_at(owner, "apiVersion"), "apps/"))
        return false;
    if (cr_streq(owner_kind, "ReplicaSet"))
        return workload_of_replica_set(pod, owner_name, kind, name);
    static const char *const direct[] = {"StatefulSet", "DaemonSet"};
    for (size_t i = 0; i < cr_array_len(direct); i++) {
        if (!cr_streq(owner_kind, direct[i]))
            continue;
        *kind = direct[i];
        *name = cr_strdup(owner_name);
        return true;
    }
    return false;
}
