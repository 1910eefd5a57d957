#include "api/policy_target.h"

#include "base/alloc.h"
#include "base/strings.h"

static const struct {
    const char *api_version, *kind;
    bool by_api;
} kinds[] = {
    {"apps/v1", "Deployment", false},
    {"apps/v1", "StatefulSet", false},
    {"apps/v1", "DaemonSet", false},
    {"networking.k8s.io/v1", "Ingress", true},
    {"gateway.networking.k8s.io/v1", "Gateway", true},
};

const char *cr_policy_kind_api_version(const char *kind)
{
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (cr_streq(kinds[i].kind, kind))
            return kinds[i].api_version;
    return NULL;
}

bool cr_policy_kind_by_api(const char *kind)
{
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (cr_streq(kinds[i].kind, kind))
            return kinds[i].by_api;
    return false;
}

bool cr_policy_target_decode(const struct cr_node *consumer, struct cr_policy_consumer *out, bool *known,
                             struct cr_error *err)
{
    struct cr_node target;
    *known = false;
    if (!cr_node_object(consumer, "targetRef", &target, err))
        return false;
    if (!target.json)
        return cr_error_set(err, CR_ERR_INVALID, "%s.targetRef is required", consumer->path);
    if (!cr_node_required(&target, "kind", &out->kind, err))
        return false;
    const char *usual = cr_policy_kind_api_version(out->kind);
    if (!cr_node_string(&target, "apiVersion", usual ? usual : "apps/v1", &out->api_version, err) ||
        !cr_node_required(&target, "name", &out->target, err))
        return false;
    *known = usual && cr_streq(out->api_version, usual);
    return true;
}

/* How soon it takes a Secret up may be known better than by default; that it must be restarted cannot. */
static bool reloads_by_api(const struct cr_policy_consumer *consumer)
{
    for (size_t role = 0; role < CR_ROLE_COUNT; role++)
        if (consumer->reload[role].set && consumer->reload[role].method != CR_METHOD_API_WATCH)
            return false;
    return true;
}

bool cr_policy_target_check(const struct cr_node *consumer, const struct cr_policy_consumer *decoded,
                            struct cr_error *err)
{
    if (!cr_policy_kind_by_api(decoded->kind))
        return true;
    if (cr_node_has(consumer, "verify"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.verify: %s %s has no pods that could be asked; remove it",
                            consumer->path, decoded->kind, decoded->target);
    if (cr_node_has(consumer, "component"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.component: %s %s has no pods; remove it", consumer->path,
                            decoded->kind, decoded->target);
    return reloads_by_api(decoded) ||
           cr_error_set(
               err, CR_ERR_INVALID,
               "%s.reload: the controller of %s %s watches Secrets by the API: only method ApiWatch is allowed",
               consumer->path, decoded->kind, decoded->target);
}
