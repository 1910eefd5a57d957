#include "api/consumer_kind.h"

#include "base/strings.h"

/* The labels: kubernetes.io/docs/reference/labels-annotations-taints, and DefaultRolloutUniqueLabelKey of
 * github.com/argoproj/argo-rollouts. */
const struct cr_consumer_kind cr_consumer_kinds[] = {
    {.resource = {"apps", "v1", "deployments", "Deployment"},
     .update = CR_UPDATE_DEPLOYMENT,
     .revision_labels = {"pod-template-hash"},
     .by_replica_sets = true,
     .surges = true,
     .has_deadline = true},
    {.resource = {"apps", "v1", "statefulsets", "StatefulSet"},
     .update = CR_UPDATE_STATEFUL_SET,
     .revision_labels = {"controller-revision-hash"}},
    {.resource = {"apps", "v1", "daemonsets", "DaemonSet"},
     .update = CR_UPDATE_DAEMON_SET,
     .revision_labels = {"controller-revision-hash", "pod-template-generation"},
     .surges = true,
     .per_node = true},
    {.resource = {"apps", "v1", "replicasets", "ReplicaSet"},
     .update = CR_UPDATE_NOTHING,
     .optional = true,
     .only_bare = true},
    {.resource = {"argoproj.io", "v1alpha1", "rollouts", "Rollout"},
     .update = CR_UPDATE_ARGO_ROLLOUT,
     .revision_labels = {"rollouts-pod-template-hash"},
     .optional = true,
     .by_replica_sets = true,
     .restart_at = true},
    {.resource = {"networking.k8s.io", "v1", "ingresses", "Ingress"}, .manner = CR_KIND_BY_API, .optional = true},
    {.resource = {"gateway.networking.k8s.io", "v1", "gateways", "Gateway"},
     .manner = CR_KIND_BY_API,
     .optional = true},
    {.resource = {"batch", "v1", "jobs", "Job"}, .manner = CR_KIND_RUNS_TO_END},
    {.resource = {"batch", "v1", "cronjobs", "CronJob"}, .manner = CR_KIND_RUNS_TO_END},
};
const size_t cr_consumer_kinds_len = cr_array_len(cr_consumer_kinds);

const struct cr_consumer_kind *cr_consumer_kind_of(const char *kind)
{
    static const struct cr_consumer_kind unknown = {.resource = {"", "", "", ""}};
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_streq(cr_consumer_kinds[i].resource.kind, kind))
            return &cr_consumer_kinds[i];
    return &unknown;
}

const struct cr_consumer_kind *cr_consumer_kind_find(const char *api_version, const char *kind)
{
    const struct cr_consumer_kind *found = cr_consumer_kind_of(kind);
    return *found->resource.kind && cr_resource_has_api_version(&found->resource, api_version) ? found : NULL;
}

bool cr_consumer_kind_is_watched(const struct cr_consumer_kind *kind)
{
    return kind->manner != CR_KIND_RUNS_TO_END;
}

bool cr_consumer_kind_has_pods(const struct cr_consumer_kind *kind)
{
    return kind->update != CR_UPDATE_UNKNOWN;
}

bool cr_consumer_kind_rolls(const struct cr_consumer_kind *kind)
{
    return cr_consumer_kind_has_pods(kind) && kind->update != CR_UPDATE_NOTHING;
}

bool cr_consumer_kind_rolls_by_template(const struct cr_consumer_kind *kind)
{
    return cr_consumer_kind_rolls(kind) && !kind->restart_at;
}

bool cr_consumer_kind_is_revision_label(const char *label)
{
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        for (size_t l = 0; l < cr_array_len(cr_consumer_kinds[i].revision_labels); l++)
            if (label && cr_streq(cr_consumer_kinds[i].revision_labels[l], label))
                return true;
    return false;
}
