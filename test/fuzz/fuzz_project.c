/* An object of the API server as YAML, which JSON is too: whatever it is, its projection says of it what the object
 * itself says, and projected again nothing more goes. */
#include "fuzz.h"

#include <string.h>

#include "api/consumer_kind.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "cluster/project.h"
#include "kube/object.h"
#include "workload/rollout.h"
#include "workload/shutdown_hook.h"
#include "catalogue/usage.h"

/* What of an object goes at all goes the first time. */
static void require_same_json(struct cr_json *first, const struct cr_snapshot *again)
{
    require(cr_json_equal(first, again->json));
}

static void check_pod(const struct cr_json *pod)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *first = cr_snapshot_new(cr_json_copy(pod));
    cr_project_pod(first->json, first);
    require(cr_projected_active(first->extra) == cr_pod_active(pod));
    require(cr_pod_active(first->json) == cr_pod_active(pod));
    require(cr_streq(cr_obj_name(first->json), cr_obj_name(pod)));
    require(cr_streq(cr_obj_uid(first->json), cr_obj_uid(pod)));
    require(cr_projected_drain_ms(first->extra) >= CR_SHUTDOWN_UNKNOWN_MS);
    const char *kind = NULL;
    const char *name = NULL;
    require(cr_projected_owner(first->extra, &kind, &name) == (kind != NULL) && (!kind || name));

    CR_CLEANUP(cr_snapshot) struct cr_snapshot *again = cr_snapshot_new(cr_json_copy(first->json));
    cr_project_pod(again->json, again);
    require_same_json(first->json, again);
}

static void require_same_rollout(const char *kind, const struct cr_json *whole, const struct cr_json *projected)
{
    struct cr_rollout of_whole = {0};
    struct cr_rollout of_projected = {0};
    cr_rollout_judge(kind, whole, &of_whole);
    cr_rollout_judge(kind, projected, &of_projected);
    require(of_whole.state == of_projected.state && of_whole.busy == of_projected.busy);
    require(of_whole.desired == of_projected.desired && of_whole.updated == of_projected.updated);
    require(strcmp(of_whole.message, of_projected.message) == 0);
}

static void require_same_uses(const char *kind, const struct cr_json *whole, const struct cr_snapshot *projected)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec uses = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec left = {0};
    cr_usage_of_object(kind, whole, &uses);
    cr_usage_of_object(kind, projected->json, &left);
    require(cr_strvec_equal(&uses, cr_projected_uses(projected->extra)) && cr_strvec_equal(&uses, &left));
}

static void check_user(const char *kind, const struct cr_json *object)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *first = cr_snapshot_new(cr_json_copy(object));
    cr_project_user(kind, first->json, first);
    require(cr_projected_created_ms(first->extra) == cr_obj_created_ms(object));
    require_same_uses(kind, object, first);
    if (!cr_policy_kind_by_api(kind))
        require_same_rollout(kind, object, first->json);

    CR_CLEANUP(cr_snapshot) struct cr_snapshot *again = cr_snapshot_new(cr_json_copy(first->json));
    cr_project_user(kind, again->json, again);
    require_same_json(first->json, again);
    require(cr_projected_rolling(first->extra) == cr_projected_rolling(again->extra));
}

static void check_budget(const struct cr_json *object)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(cr_json_copy(object));
    cr_project_budget(snapshot->json, snapshot);
    require(cr_projected_budget(snapshot->extra));
    require(!cr_json_get(snapshot->json, "spec") && !cr_json_get(snapshot->json, "status"));
}

static void check_policy(const struct cr_json *object)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(cr_json_copy(object));
    cr_project_policy(snapshot->json);
    cr_project_decode(snapshot);
    const char *problem = NULL;
    const struct cr_policy *policy = cr_projected_policy(snapshot, &problem);
    require(!policy == (problem != NULL) && (!problem || *problem));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object || !cr_json_is_object(object))
        return 0;
    check_pod(object);
    check_budget(object);
    check_policy(object);
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kind_is_watched(&cr_consumer_kinds[i]))
            check_user(cr_consumer_kinds[i].resource.kind, object);
    return 0;
}
