#include "api/policy_target.h"

#include "base/alloc.h"
#include "base/strings.h"

enum manner {
    STAYS,       /* its pods run on until they are replaced */
    BY_API,      /* it has none, and its controller watches Secrets */
    RUNS_TO_END, /* its pods end by themselves */
};

static const struct {
    const char *api_version, *kind;
    enum manner manner;
} kinds[] = {
    {"apps/v1", "Deployment", STAYS},
    {"apps/v1", "StatefulSet", STAYS},
    {"apps/v1", "DaemonSet", STAYS},
    {"apps/v1", "ReplicaSet", STAYS},
    {"argoproj.io/v1alpha1", "Rollout", STAYS},
    {"networking.k8s.io/v1", "Ingress", BY_API},
    {"gateway.networking.k8s.io/v1", "Gateway", BY_API},
    {"batch/v1", "Job", RUNS_TO_END},
    {"batch/v1", "CronJob", RUNS_TO_END},
};

const char *cr_policy_kind_api_version(const char *kind)
{
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (cr_streq(kinds[i].kind, kind))
            return kinds[i].api_version;
    return NULL;
}

static enum manner manner_of(const char *kind)
{
    for (size_t i = 0; i < cr_array_len(kinds); i++)
        if (cr_streq(kinds[i].kind, kind))
            return kinds[i].manner;
    return STAYS;
}

bool cr_policy_kind_by_api(const char *kind)
{
    return manner_of(kind) == BY_API;
}

bool cr_policy_kind_runs_to_end(const char *kind)
{
    return manner_of(kind) == RUNS_TO_END;
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

static bool check_run(const struct cr_node *consumer, const struct cr_policy_consumer *decoded, struct cr_error *err)
{
    static const char *const idle[] = {"verify", "component", "reload"};
    for (size_t i = 0; i < cr_array_len(idle); i++)
        if (cr_node_has(consumer, idle[i]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.%s: nothing is done for %s %s, whose next run has the new material; remove it",
                                consumer->path, idle[i], decoded->kind, decoded->target);
    return true;
}

static bool check_by_api(const struct cr_node *consumer, const struct cr_policy_consumer *decoded, struct cr_error *err)
{
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

bool cr_policy_target_check(const struct cr_node *consumer, const struct cr_policy_consumer *decoded,
                            struct cr_error *err)
{
    switch (manner_of(decoded->kind)) {
    case BY_API:
        return check_by_api(consumer, decoded, err);
    case RUNS_TO_END:
        return check_run(consumer, decoded, err);
    case STAYS:
        break;
    }
    return true;
}
