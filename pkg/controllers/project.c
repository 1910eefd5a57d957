#include "controllers/project.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/owner.h"
#include "rotation/usage.h"

static void strip_metadata(struct cr_json *json)
{
    struct cr_json *metadata = cr_json_edit(json, "metadata");
    cr_json_remove(metadata, "managedFields");
    cr_json_remove(cr_json_edit(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration");
}

static void keep_extra(struct cr_snapshot *snapshot, void *extra, void (*free_extra)(void *))
{
    snapshot->extra = extra;
    snapshot->free_extra = free_extra;
}

/* --- policies, decoded once per version --- */

struct decoded {
    struct cr_policy *policy; /* NULL: problem says why */
    struct cr_error problem;
};

static void decoded_free(void *value)
{
    struct decoded *decoded = value;
    if (!decoded)
        return;
    cr_policy_free(decoded->policy);
    free(decoded);
}

void cr_project_policy(struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct decoded *decoded = cr_new(struct decoded);
    strip_metadata(json);
    decoded->policy = cr_policy_decode(json, &decoded->problem);
    keep_extra(snapshot, decoded, decoded_free);
}

const struct cr_policy *cr_projected_policy(const struct cr_snapshot *snapshot, const char **problem)
{
    const struct decoded *decoded = snapshot->extra;
    *problem = decoded->policy ? NULL : decoded->problem.text;
    return decoded->policy;
}

/* --- pods --- */

struct owner {
    const char *kind; /* static; NULL: none */
    char *name;
};

static void owner_free(void *value)
{
    struct owner *owner = value;
    if (!owner)
        return;
    free(owner->name);
    free(owner);
}

/* Of a pod's spec only whether it shares its node's address is read (acts_probe.c). */
static void strip_pod_spec(struct cr_json *json)
{
    bool host_network = cr_json_bool_at(json, false, "spec", "hostNetwork");
    cr_json_remove(json, "spec");
    if (host_network)
        cr_json_set_bool(cr_json_object_in(json, "spec"), "hostNetwork", true);
}

void cr_project_pod(struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct owner *owner = cr_new(struct owner);
    strip_metadata(json);
    strip_pod_spec(json);
    if (!cr_pod_workload(json, &owner->kind, &owner->name))
        owner->kind = NULL;
    keep_extra(snapshot, owner, owner_free);
}

bool cr_projected_owner(const struct cr_snapshot *snapshot, const char **kind, const char **name)
{
    const struct owner *owner = snapshot->extra;
    *kind = owner->kind;
    *name = owner->name;
    return owner->kind != NULL;
}

/* --- who uses Secrets --- */

/* Long, in every template, and no rule reads them. */
static void strip_containers(struct cr_json *pod_spec, const char *list)
{
    static const char *const unread[] = {"livenessProbe", "readinessProbe", "startupProbe", "resources",
                                         "securityContext"};
    struct cr_json *containers = cr_json_edit(pod_spec, list);
    size_t len = cr_json_len(containers);
    for (size_t i = 0; i < len; i++) {
        struct cr_json *container = cr_json_take_first(containers);
        for (size_t k = 0; k < cr_array_len(unread); k++)
            cr_json_remove(container, unread[k]);
        cr_json_add(containers, container);
    }
}

static void strip_template(struct cr_json *json)
{
    static const char *const unread[] = {"affinity", "tolerations", "topologySpreadConstraints", "securityContext"};
    struct cr_json *template = cr_json_edit(cr_json_edit(json, "spec"), "template");
    struct cr_json *pod_spec = cr_json_edit(template, "spec");
    for (size_t k = 0; k < cr_array_len(unread); k++)
        cr_json_remove(pod_spec, unread[k]);
    strip_containers(pod_spec, "initContainers");
    strip_containers(pod_spec, "containers");
}

static void uses_free(void *value)
{
    struct cr_strvec *uses = value;
    if (!uses)
        return;
    cr_strvec_dispose(uses);
    free(uses);
}

void cr_project_user(const char *kind, struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct cr_strvec *uses = cr_new(struct cr_strvec);
    strip_metadata(json);
    strip_template(json);
    cr_usage_of_object(kind, json, uses);
    keep_extra(snapshot, uses, uses_free);
}

const struct cr_strvec *cr_projected_uses(const struct cr_snapshot *snapshot)
{
    return snapshot->extra;
}
