#include "cluster/project.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/owner.h"
#include "kube/object.h"
#include "workload/rollout.h"
#include "workload/shutdown_hook.h"
#include "catalogue/usage.h"

static void strip(struct cr_json *json, const char *const *names, size_t len)
{
    for (size_t i = 0; i < len; i++)
        cr_json_remove(json, names[i]);
}

/* Strips each object of an array. */
static void strip_each(struct cr_json *array, const char *const *names, size_t len)
{
    for (size_t left = cr_json_len(array); left; left--) {
        struct cr_json *object = cr_json_take_first(array);
        strip(object, names, len);
        cr_json_add(array, object);
    }
}

static void strip_metadata(struct cr_json *json)
{
    struct cr_json *metadata = cr_json_edit(json, "metadata");
    cr_json_remove(metadata, "managedFields");
    cr_json_remove(cr_json_edit(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration");
}

/* For objects that are kept by the thousand. */
static void strip_unread_metadata(struct cr_json *json)
{
    static const char *const type[] = {"apiVersion", "kind"};
    static const char *const unread[] = {"ownerReferences", "generateName", "finalizers", "selfLink"};
    strip_metadata(json);
    strip(json, type, cr_array_len(type));
    strip(cr_json_edit(json, "metadata"), unread, cr_array_len(unread));
}

static void strip_labels(struct cr_json *json)
{
    cr_json_remove(cr_json_edit(json, "metadata"), "labels");
}

/* --- Secrets --- */

void cr_project_secret(struct cr_json *json)
{
    strip_unread_metadata(json);
}

static void keep_extra(struct cr_snapshot *snapshot, void *extra, void (*free_extra)(void *))
{
    snapshot->extra = extra;
    snapshot->free_extra = free_extra;
}

/* --- policies --- */

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

void cr_project_policy(struct cr_json *json)
{
    strip_metadata(json);
}

void cr_project_decode(struct cr_snapshot *snapshot)
{
    struct decoded *decoded = cr_new(struct decoded);
    decoded->policy = cr_policy_decode(snapshot->json, &decoded->problem);
    keep_extra(snapshot, decoded, decoded_free);
}

const struct cr_policy *cr_projected_policy(const struct cr_snapshot *snapshot, const char **problem)
{
    const struct decoded *decoded = snapshot->extra;
    *problem = decoded->policy ? NULL : decoded->problem.text;
    return decoded->policy;
}

/* --- pods --- */

/* What an active pod uses: its workload's template may not have it, or not any more. */
struct pod_uses {
    struct cr_strvec secrets;
    int64_t created_ms;
    bool is_left; /* a StatefulSet or DaemonSet has made it, and takes it over again should it come back */
};

struct pod_facts {
    const char *kind; /* of its owner, static; NULL: none */
    char *name;
    struct pod_uses *uses; /* NULL: it uses no Secret, ends by itself or has ended */
    int drain_s;           /* of its shutdown manager, while it is being deleted; CR_SHUTDOWN_UNKNOWN_MS as it stands */
    bool active;
};

static void pod_facts_free(void *value)
{
    struct pod_facts *facts = value;
    if (!facts)
        return;
    free(facts->name);
    if (facts->uses)
        cr_strvec_dispose(&facts->uses->secrets);
    free(facts->uses);
    free(facts);
}

/* The pod of a Job ends by itself, and the next one reads what is there by then. */
static bool is_of_job(const struct cr_json *json)
{
    return cr_policy_kind_runs_to_end(cr_json_string_at(cr_obj_controller(json), "kind"));
}

/* Both kinds give their pods this label, and take them over by their labels
 * (kubernetes.io/docs/reference/labels-annotations-taints/#controller-revision-hash). */
static bool is_left(const struct cr_json *json)
{
    return !cr_obj_controller(json) && cr_json_string_at(json, "metadata", "labels", "controller-revision-hash");
}

static struct pod_uses *pod_uses_of(const struct cr_json *json)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec secrets = {0};
    if (is_of_job(json))
        return NULL;
    cr_usage_secrets(cr_json_get(json, "spec"), &secrets);
    if (!secrets.len)
        return NULL;
    struct pod_uses *uses = cr_new(struct pod_uses);
    uses->created_ms = cr_obj_created_ms(json);
    uses->is_left = is_left(json);
    uses->secrets = secrets;
    secrets = (struct cr_strvec){0};
    return uses;
}

/* Only whether the pod shares its node's address is read from its spec (acts_probe.c). */
static void strip_pod_spec(struct cr_json *json)
{
    bool host_network = cr_json_bool_at(json, false, "spec", "hostNetwork");
    cr_json_remove(json, "spec");
    if (host_network)
        cr_json_set_bool(cr_json_object_in(json, "spec"), "hostNetwork", true);
}

/* Whether it is ready, of all its conditions. */
static void keep_ready(struct cr_json *from, struct cr_json *to)
{
    const struct cr_json *conditions = cr_json_get(from, "conditions");
    for (const struct cr_json *c = cr_json_first(conditions); c; c = cr_json_next(c)) {
        if (!cr_streq(cr_json_string_at(c, "type"), "Ready"))
            continue;
        struct cr_json *kept = cr_json_add(cr_json_array_in(to, "conditions"), cr_json_new_object());
        cr_json_set_string(kept, "type", "Ready");
        cr_json_set_string(kept, "status", cr_json_string_at(c, "status"));
    }
}

/* Keeps when each running container was started, and how often before; the other fields of its status are dropped. */
static void keep_starts(struct cr_json *from, struct cr_json *to)
{
    const struct cr_json *containers = cr_json_get(from, "containerStatuses");
    for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c)) {
        const char *started = cr_json_string_at(c, "state", "running", "startedAt");
        if (!started)
            continue;
        struct cr_json *kept = cr_json_add(cr_json_array_in(to, "containerStatuses"), cr_json_new_object());
        cr_json_set_string(cr_json_object_in(cr_json_object_in(kept, "state"), "running"), "startedAt", started);
        int64_t restarts = cr_json_int_at(c, 0, "restartCount");
        if (restarts)
            cr_json_set_int(kept, "restartCount", restarts);
    }
}

/* What kube/object.h and acts_probe.c read. */
static void strip_pod_status(struct cr_json *json)
{
    static const char *const read[] = {"phase", "podIP", "hostIP", "hostIPs", "startTime"};
    CR_CLEANUP(cr_json) struct cr_json *status = cr_json_take(json, "status");
    if (!status)
        return;
    struct cr_json *kept = cr_json_object_in(json, "status");
    for (size_t i = 0; i < cr_array_len(read); i++)
        if (cr_json_get(status, read[i]))
            cr_json_set(kept, read[i], cr_json_take(status, read[i]));
    keep_ready(status, kept);
    keep_starts(status, kept);
}

/* Read for few pods only: what a pod that is not being deleted would do is known from its workload's template. */
static int drain_of(const struct cr_json *json)
{
    CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks = {0};
    if (!cr_obj_deleting(json))
        return 0;
    cr_shutdown_hooks_find(cr_json_get(json, "spec"), &hooks);
    int64_t most_ms = cr_shutdown_hooks_most_ms(&hooks);
    return most_ms == CR_SHUTDOWN_UNKNOWN_MS ? CR_SHUTDOWN_UNKNOWN_MS : (int)((most_ms + 999) / 1000);
}

void cr_project_pod(struct cr_json *json, struct cr_snapshot *snapshot)
{
    struct pod_facts *facts = cr_new(struct pod_facts);
    if (!cr_pod_workload(json, &facts->kind, &facts->name))
        facts->kind = NULL;
    facts->active = cr_pod_active(json);
    facts->uses = facts->active ? pod_uses_of(json) : NULL;
    facts->drain_s = drain_of(json);
    strip_unread_metadata(json); /* labels stay: PodDisruptionBudgets select by them */
    strip_pod_spec(json);
    strip_pod_status(json);
    keep_extra(snapshot, facts, pod_facts_free);
}

bool cr_projected_owner(const void *extra, const char **kind, const char **name)
{
    const struct pod_facts *facts = extra;
    *kind = facts->kind;
    *name = facts->name;
    return facts->kind != NULL;
}

const struct cr_strvec *cr_projected_pod_uses(const void *extra)
{
    const struct pod_facts *facts = extra;
    return facts->uses ? &facts->uses->secrets : NULL;
}

int64_t cr_projected_pod_created_ms(const void *extra)
{
    const struct pod_facts *facts = extra;
    return facts->uses ? facts->uses->created_ms : 0;
}

bool cr_projected_pod_is_left(const void *extra)
{
    const struct pod_facts *facts = extra;
    return facts->uses && facts->uses->is_left;
}

bool cr_projected_active(const void *extra)
{
    return ((const struct pod_facts *)extra)->active;
}

int64_t cr_projected_drain_ms(const void *extra)
{
    int drain_s = ((const struct pod_facts *)extra)->drain_s;
    return drain_s == CR_SHUTDOWN_UNKNOWN_MS ? CR_SHUTDOWN_UNKNOWN_MS : (int64_t)drain_s * 1000;
}

/* --- who uses Secrets --- */

/* These fields are long, in every template, and no rule reads them. */
static void strip_containers(struct cr_json *pod_spec, const char *list)
{
    static const char *const unread[] = {
        "livenessProbe",   "readinessProbe",  "startupProbe",           "resources",
        "securityContext", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"};
    strip_each(cr_json_edit(pod_spec, list), unread, cr_array_len(unread));
}

/* What workload/shutdown_hook.h reads stays where there is a hook: few pods have one. */
static void strip_ends(struct cr_json *pod_spec)
{
    static const char *const lists[] = {"initContainers", "containers"};
    static const char *const lifecycle[] = {"lifecycle"};
    CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks = {0};
    cr_shutdown_hooks_find(pod_spec, &hooks);
    if (hooks.len)
        return;
    cr_json_remove(pod_spec, "terminationGracePeriodSeconds");
    for (size_t i = 0; i < cr_array_len(lists); i++)
        strip_each(cr_json_edit(pod_spec, lists[i]), lifecycle, cr_array_len(lifecycle));
}

static void strip_template(struct cr_json *json)
{
    static const char *const unread[] = {"affinity",        "tolerations", "topologySpreadConstraints",
                                         "securityContext", "dnsPolicy",   "schedulerName"};
    struct cr_json *spec = cr_json_edit(json, "spec");
    struct cr_json *template = cr_json_edit(spec, "template");
    struct cr_json *pod_spec = cr_json_edit(template, "spec");
    cr_json_remove(spec, "selector");
    cr_json_remove(cr_json_edit(template, "metadata"), "labels");
    strip(pod_spec, unread, cr_array_len(unread));
    strip_ends(pod_spec);
    strip_containers(pod_spec, "initContainers");
    strip_containers(pod_spec, "containers");
}

/* Only type, status and reason of conditions are read (workload/rollout.c). */
static void strip_conditions(struct cr_json *json)
{
    static const char *const unread[] = {"message", "lastUpdateTime", "lastTransitionTime"};
    strip_each(cr_json_edit(cr_json_edit(json, "status"), "conditions"), unread, cr_array_len(unread));
}

/* The worst case is read from an Argo Rollout's strategy, and the progress of an update or a restart from its status
 * (workload/rollout.c). */
static void strip_rollout(struct cr_json *json)
{
    static const char *const unread_strategy[] = {"steps", "analysis", "trafficRouting", "antiAffinity"};
    static const char *const unread_status[] = {"conditions", "canary", "blueGreen", "alb", "albs", "selector"};
    struct cr_json *strategy = cr_json_edit(cr_json_edit(json, "spec"), "strategy");
    strip(cr_json_edit(strategy, "canary"), unread_strategy, cr_array_len(unread_strategy));
    strip(cr_json_edit(json, "status"), unread_status, cr_array_len(unread_status));
}

/* Only the identity of an Ingress or a Gateway and the Secrets that it names are read. */
static void strip_routes(struct cr_json *json)
{
    cr_json_remove(json, "status");
    cr_json_remove(cr_json_edit(json, "spec"), "rules");
}

struct user_facts {
    struct cr_strvec uses;
    char *template_of; /* see cr_projected_template_of */
    int64_t created_ms;
    bool rolling;
};

static void user_facts_free(void *value)
{
    struct user_facts *facts = value;
    if (!facts)
        return;
    cr_strvec_dispose(&facts->uses);
    free(facts->template_of);
    free(facts);
}

/* A failed rollout still has old pods, which it takes away when it is fixed. A rollout that waits for a person takes
 * none. */
static bool is_rolling(const char *kind, const struct cr_json *json)
{
    struct cr_rollout rollout = {0};
    if (cr_policy_kind_by_api(kind))
        return false;
    cr_rollout_judge(kind, json, &rollout);
    return rollout.state == CR_ROLLOUT_PROGRESSING || rollout.state == CR_ROLLOUT_FAILED;
}

/* argo-rollouts.readthedocs.io/en/stable/migrating: the template is a Deployment's, a ReplicaSet's or a PodTemplate's;
 * the first is what is used. */
static char *template_of(const struct cr_json *rollout)
{
    const struct cr_json *ref = cr_json_at(rollout, "spec", "workloadRef");
    return cr_streq(cr_json_string_at(ref, "kind"), "Deployment") ? cr_strdup_or_null(cr_json_string_at(ref, "name"))
                                                                  : NULL;
}

void cr_project_user(const char *kind, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cr_consumer_kind *row = cr_consumer_kind_of(kind);
    struct user_facts *facts = cr_new(struct user_facts);
    facts->created_ms = cr_obj_created_ms(json);
    facts->rolling = is_rolling(kind, json);
    cr_usage_of_object(kind, json, &facts->uses);
    strip_unread_metadata(json);
    strip_labels(json);
    strip_template(json);
    strip_conditions(json);
    if (row->update == CR_UPDATE_ARGO_ROLLOUT) {
        facts->template_of = template_of(json);
        strip_rollout(json);
    }
    /* Its restarts are remembered elsewhere, and by its kind it is recognised (restart_annotation.c). */
    if (row->restart_at)
        cr_json_set_string(json, "kind", kind);
    if (cr_policy_kind_by_api(kind))
        strip_routes(json);
    keep_extra(snapshot, facts, user_facts_free);
}

const struct cr_strvec *cr_projected_uses(const void *extra)
{
    return &((const struct user_facts *)extra)->uses;
}

int64_t cr_projected_created_ms(const void *extra)
{
    return ((const struct user_facts *)extra)->created_ms;
}

const char *cr_projected_template_of(const void *extra)
{
    return ((const struct user_facts *)extra)->template_of;
}

bool cr_projected_rolling(const void *extra)
{
    return ((const struct user_facts *)extra)->rolling;
}

/* --- budgets --- */

static void budget_free(void *value)
{
    struct cr_budget *budget = value;
    if (!budget)
        return;
    cr_budget_dispose(budget);
    free(budget);
}

void cr_project_budget(struct cr_json *json, struct cr_snapshot *snapshot)
{
    static const char *const read_once[] = {"spec", "status"};
    struct cr_budget *budget = cr_new(struct cr_budget);
    cr_budget_read(json, budget);
    strip_unread_metadata(json);
    strip_labels(json);
    strip(json, read_once, cr_array_len(read_once));
    keep_extra(snapshot, budget, budget_free);
}

const struct cr_budget *cr_projected_budget(const void *extra)
{
    return extra;
}
