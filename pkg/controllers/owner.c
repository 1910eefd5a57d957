#include "controllers/owner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "kube/object.h"

static bool deployment_of(const struct cr_json *pod, const char *replica_set, char **name)
{
    const char *hash = cr_json_string_at(pod, "metadata", "labels", "pod-template-hash");
    if (!hash)
        return false;
    cr_autofree char *suffix = cr_asprintf("-%s", hash);
    if (!cr_ends_with(replica_set, suffix))
        return false;
    *name = cr_strndup(replica_set, strlen(replica_set) - strlen(suffix));
    return true;
}

bool cr_pod_workload(const struct cr_json *pod, const char **kind, char **name)
{
    const struct cr_json *owner = cr_obj_controller(pod);
    const char *owner_kind = cr_json_string_at(owner, "kind");
    const char *owner_name = cr_json_string_at(owner, "name");
    /* Others have kinds of these names, too (OpenKruise's StatefulSet, say). */
    if (!owner_kind || !owner_name || !cr_starts_with(cr_json_string_at(owner, "apiVersion"), "apps/"))
        return false;
    if (cr_streq(owner_kind, "ReplicaSet")) {
        *kind = "Deployment";
        return deployment_of(pod, owner_name, name);
    }
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
