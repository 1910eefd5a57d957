/* A ControlPlanePolicy from anybody: decoded within its bounds, or refused with words; and of its status, whatever was
 * decoded, written and read again is the same. The text is YAML, which JSON is too. */
#include "written_again.h"

#include <string.h>

#include "api/control_plane.h"

static struct cr_json *once_more(const struct cr_json *status)
{
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status decoded = {0};
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status kept = {0};
    cr_control_plane_status_decode(status, &decoded);
    cr_control_plane_status_keep(&kept, &decoded);
    return cr_control_plane_status_encode(&decoded);
}

static void check(const struct cr_control_plane_policy *policy)
{
    require(policy->consumers_len <= CR_CONTROL_PLANE_CONSUMERS_MAX);
    require(policy->workloads_len <= CR_CONTROL_PLANE_WORKLOADS_MAX);
    require(policy->step_deadline_ms > 0);
    for (size_t i = 0; i < policy->consumers_len; i++)
        require(policy->consumers[i].component && *policy->consumers[i].component);
    for (size_t i = 0; i < policy->workloads_len; i++)
        require(policy->workloads[i].kind && policy->workloads[i].ns && policy->workloads[i].target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cr_control_plane_policy empty;
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object)
        return 0;
    struct cr_control_plane_policy policy;
    if (cr_control_plane_policy_decode(object, &policy, &err))
        check(&policy);
    else
        require(err.kind == CR_ERR_INVALID && err.text[0] && memcmp(&policy, &empty, sizeof empty) == 0);
    cr_control_plane_policy_dispose(&policy);
    require_the_same_again(data, size, once_more);
    return 0;
}
