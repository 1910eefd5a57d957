#include "controlplane/controller/control_plane_workloads.h"

#include <stdlib.h>

#include "api/consumer_kind.h"
#include "api/node.h"
#include "api/selector.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/object.h"
#include "workload/rollout.h"

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

enum { LONG_AGO_MS = 1 };

struct cr_control_plane_workloads {
    struct cr_client *client;
    char *uid; /* of the policy that they belong to; NULL: nothing was looked at yet */
    int64_t generation;
    int64_t looked_ms;
    bool stale; /* one was written to */
    size_t len;
    struct cr_json **objects; /* NULL: not there, or not read */
    char **problems;          /* of the views */
    struct cr_control_plane_workload_view *views;
};

struct cr_control_plane_workloads *cr_control_plane_workloads_new(struct cr_client *client)
{
    struct cr_control_plane_workloads *workloads = cr_new(struct cr_control_plane_workloads);
    workloads->client = client;
    return workloads;
}

static void forget(struct cr_control_plane_workloads *workloads)
{
    for (size_t i = 0; i < workloads->len; i++) {
        cr_json_free(workloads->objects[i]);
        free(workloads->problems[i]);
    }
    free(workloads->objects);
    free(workloads->problems);
    free(workloads->views);
    free(workloads->uid);
    *workloads = (struct cr_control_plane_workloads){.client = workloads->client};
}

void cr_control_plane_workloads_free(struct cr_control_plane_workloads *workloads)
{
    if (!workloads)
        return;
    forget(workloads);
    free(workloads);
}

/* --- reading --- */

/* The start of the oldest running pod of the list; 0: none runs. */
static int64_t oldest_start(const struct cr_json *pods)
{
    int64_t oldest = 0;
    for (const struct cr_json *pod = cr_json_first(cr_json_get(pods, "items")); pod; pod = cr_json_next(pod)) {
        int64_t started = cr_pod_started_ms(pod);
        if (cr_pod_active(pod) && started && (!oldest || started < oldest))
            oldest = started;
    }
    return oldest;
}

struct cr_control_plane_workload_view cr_control_plane_workload_read(const char *kind, const struct cr_json *workload,
                                                                     const struct cr_json *pods)
{
    struct cr_rollout rollout;
    if (!workload)
        return (struct cr_control_plane_workload_view){.found = false};
    const struct cr_json *annotations = cr_json_at(workload, "spec", "template", "metadata", "annotations");
    cr_rollout_judge(kind, workload, &rollout);
    return (struct cr_control_plane_workload_view){
        .found = true,
        .rolling = rollout.state != CR_ROLLOUT_COMPLETE,
        .root_ca = cr_json_string_at(annotations, CR_CONTROL_PLANE_ROOT_CA_ANNOTATION),
        .token_key = cr_json_string_at(annotations, CR_CONTROL_PLANE_TOKEN_KEY_ANNOTATION),
        .pods_started_ms = pods ? oldest_start(pods) : LONG_AGO_MS,
    };
}

/* Owned; NULL: it has no selector that can be used in a request. */
static char *selector_of(const struct cr_json *workload)
{
    struct cr_node spec = {.json = cr_json_get(workload, "spec")};
    CR_CLEANUP(cr_selector) struct cr_selector selector = {0};
    return cr_selector_decode(&spec, "selector", &selector, NULL) && selector.len ? cr_selector_text(&selector) : NULL;
}

static bool look_at_pods(struct cr_client *client, const struct cr_json *workload, struct cr_json **pods,
                         struct cr_error *err)
{
    cr_autofree char *selector = selector_of(workload);
    if (!selector)
        return true;
    *pods = cr_client_list(client, &cr_res_pods, cr_obj_namespace(workload), selector, NULL, err);
    return *pods != NULL;
}

static const struct cr_resource *resource_of(const struct cr_control_plane_workload *workload)
{
    return &cr_consumer_kind_of(workload->kind)->resource;
}

/* Who may write a workload may make it too large. */
static bool stops_no_other(const struct cr_error *err)
{
    return err->kind == CR_ERR_INVALID;
}

static bool look_at(struct cr_control_plane_workloads *workloads, const struct cr_control_plane_workload *spec,
                    size_t index, struct cr_error *err)
{
    struct cr_error failed = {0};
    struct cr_json *object = cr_client_get(workloads->client, resource_of(spec), spec->ns, spec->target, &failed);
    CR_CLEANUP(cr_json) struct cr_json *pods = NULL;
    workloads->objects[index] = object;
    bool ok = object ? look_at_pods(workloads->client, object, &pods, &failed) : failed.kind == CR_ERR_NOT_FOUND;
    if (!ok && !stops_no_other(&failed)) {
        *err = failed;
        return cr_error_wrap(err, "workload '%s' (%s %s/%s)", spec->name, spec->kind, spec->ns, spec->target);
    }
    workloads->views[index] = cr_control_plane_workload_read(spec->kind, object, pods);
    workloads->views[index].problem = workloads->problems[index] = ok ? NULL : cr_strdup(failed.text);
    return true;
}

static bool is_due(const struct cr_control_plane_workloads *workloads, const struct cr_control_plane_policy *policy,
                   bool busy, int64_t now_ms)
{
    if (workloads->stale || !cr_streq(workloads->uid, policy->uid) || workloads->generation != policy->generation)
        return true;
    int64_t pause = busy ? CR_CONTROL_PLANE_WORKLOADS_BUSY_MS : CR_CONTROL_PLANE_WORKLOADS_IDLE_MS;
    return now_ms - workloads->looked_ms >= pause;
}

static bool look_at_all(struct cr_control_plane_workloads *workloads, const struct cr_control_plane_policy *policy,
                        struct cr_error *err)
{
    forget(workloads);
    workloads->len = policy->workloads_len;
    workloads->objects = cr_calloc(policy->workloads_len + 1, sizeof *workloads->objects);
    workloads->problems = cr_calloc(policy->workloads_len + 1, sizeof *workloads->problems);
    workloads->views = cr_calloc(policy->workloads_len + 1, sizeof *workloads->views);
    for (size_t i = 0; i < policy->workloads_len; i++)
        if (!look_at(workloads, &policy->workloads[i], i, err))
            return false;
    return true;
}

const struct cr_control_plane_workload_view *
cr_control_plane_workloads_look(struct cr_control_plane_workloads *workloads,
                                const struct cr_control_plane_policy *policy, bool busy, int64_t now_ms,
                                struct cr_error *err)
{
    if (!is_due(workloads, policy, busy, now_ms))
        return workloads->views;
    if (!look_at_all(workloads, policy, err)) {
        forget(workloads);
        return NULL;
    }
    workloads->uid = cr_strdup(cr_or_empty(policy->uid));
    workloads->generation = policy->generation;
    workloads->looked_ms = now_ms;
    return workloads->views;
}

/* --- restarting --- */

static struct cr_json *restart_patch(const struct cr_control_plane_workload *spec, const struct cr_json *object,
                                     const char *root_ca, const char *token_key)
{
    struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", cr_obj_uid(object));
    cr_json_set_string(metadata, "resourceVersion", cr_obj_resource_version(object));
    struct cr_json *template_metadata =
        cr_json_object_in(cr_json_object_in(cr_json_object_in(patch, "spec"), "template"), "metadata");
    struct cr_json *annotations = cr_json_object_in(template_metadata, "annotations");
    char at[CR_TIME_TEXT];
    cr_time_format(cr_clock_wall_ms(), at);
    cr_json_set_string(annotations, RESTARTED_AT, at);
    if (spec->reads_root_ca && *root_ca)
        cr_json_set_string(annotations, CR_CONTROL_PLANE_ROOT_CA_ANNOTATION, root_ca);
    if (spec->reads_token && *token_key)
        cr_json_set_string(annotations, CR_CONTROL_PLANE_TOKEN_KEY_ANNOTATION, token_key);
    return patch;
}

bool cr_control_plane_workloads_restart(struct cr_control_plane_workloads *workloads,
                                        const struct cr_control_plane_policy *policy, size_t index, const char *root_ca,
                                        const char *token_key, struct cr_error *err)
{
    const struct cr_control_plane_workload *spec = &policy->workloads[index];
    if (index >= workloads->len || !workloads->objects[index])
        return cr_error_set(err, CR_ERR_NOT_FOUND, "workload '%s' is not there", spec->name);
    workloads->stale = true; /* whatever comes of it */
    CR_CLEANUP(cr_json)
    struct cr_json *patch = restart_patch(spec, workloads->objects[index], root_ca, token_key);
    CR_CLEANUP(cr_json)
    struct cr_json *written =
        cr_client_merge_patch(workloads->client, resource_of(spec), spec->ns, spec->target, NULL, patch, err);
    return written || cr_error_wrap(err, "workload '%s' (%s %s/%s)", spec->name, spec->kind, spec->ns, spec->target);
}
