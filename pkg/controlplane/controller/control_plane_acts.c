#include "controlplane/controller/control_plane_acts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "controlplane/controller/control_plane_project.h"
#include "kube/object.h"

static void note(const struct cr_control_plane_actor *actor, const char *kind, const struct cr_json *written)
{
    cr_own_writes_add(actor->own_writes, actor->key, kind, written, cr_clock_monotonic_ms());
}

/* --- orders --- */

struct cr_json *cr_control_plane_order_patch(const struct cr_node_report *report,
                                             const struct cr_control_plane_restart_order *order)
{
    struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", report->uid);
    cr_json_set_string(metadata, "resourceVersion", report->resource_version);
    struct cr_json *restart = cr_json_object_in(cr_json_object_in(patch, "spec"), "restart");
    cr_json_set_string(restart, "token", order->token);
    cr_json_set_string(restart, "component", order->component);
    return patch;
}

static bool patch_report(const struct cr_control_plane_actor *actor, const char *node, const struct cr_json *patch,
                         struct cr_error *err)
{
    CR_CLEANUP(cr_json)
    struct cr_json *written = cr_client_merge_patch(actor->client, &cr_res_node_reports, NULL, node, NULL, patch, err);
    if (!written)
        return cr_error_wrap(err, CR_NODE_REPORT_KIND " %s", node);
    note(actor, CR_NODE_REPORT_KIND, written);
    return true;
}

bool cr_control_plane_clear(const struct cr_control_plane_actor *actor, const struct cr_control_plane_plan *plan,
                            struct cr_error *err)
{
    struct cr_error failed = {0};
    if (!plan->clear)
        return true;
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    cr_json_set(cr_json_object_in(patch, "spec"), "restart", cr_json_new_null());
    if (patch_report(actor, plan->clear, patch, &failed)) {
        cr_log(CR_LOG_INFO, "an order is taken away", {"node", plan->clear});
        return true;
    }
    if (failed.kind == CR_ERR_NOT_FOUND)
        return true;
    *err = failed;
    return false;
}

static bool give_order(const struct cr_control_plane_actor *actor, const struct cr_control_plane_gathered *gathered,
                       const struct cr_control_plane_plan *plan, struct cr_error *err)
{
    const struct cr_control_plane_restart_order *order = &plan->order;
    if (!plan->has_order)
        return true;
    const struct cr_kept_report *kept = cr_packed_extra(cr_packed_list_find(&gathered->reports, "", order->node));
    if (!kept || cr_streq(kept->report.order.token, order->token))
        return true;
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_control_plane_order_patch(&kept->report, order);
    if (!patch_report(actor, order->node, patch, err))
        return false;
    cr_log(CR_LOG_INFO, "a restart is ordered", {"node", order->node}, {"component", order->component},
           {"token", order->token});
    return true;
}

/* --- token Secrets --- */

/* The controller manager gives a token Secret without a token a new one (k8s.io/kubernetes
 * pkg/controller/serviceaccount/tokens_controller.go, generateTokenIfNeeded). */
struct cr_json *cr_control_plane_token_patch(const struct cr_json *identity)
{
    struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", cr_obj_uid(identity));
    cr_json_set_string(metadata, "resourceVersion", cr_obj_resource_version(identity));
    cr_json_set(cr_json_object_in(patch, "data"), "token", cr_json_new_null());
    return patch;
}

static bool renew_token(const struct cr_control_plane_actor *actor, const char *ns, const char *name,
                        struct cr_packed *packed, struct cr_error *err)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *identity = cr_packed_open(packed);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_control_plane_token_patch(identity->json);
    struct cr_json *written = cr_client_merge_patch(actor->client, &cr_res_secrets, ns, name, NULL, patch, err);
    if (!written)
        return cr_error_wrap(err, "token Secret %s/%s", ns, name);
    note(actor, "Secret", written);
    cr_json_free_secret(written);
    cr_log(CR_LOG_INFO, "the token of a Secret is to be made anew", {"namespace", ns}, {"secret", name});
    return true;
}

/* The object belongs to another program, and is gone or was changed meanwhile: it is looked at again. */
static bool is_passing(const struct cr_error *err)
{
    return err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_CONFLICT;
}

static bool renew_tokens(const struct cr_control_plane_actor *actor, const struct cr_control_plane_gathered *gathered,
                         const struct cr_control_plane_plan *plan, struct cr_control_plane_acted *acted,
                         struct cr_error *err)
{
    struct cr_error first = {0}; /* the error of a refused Secret; the others are written all the same */
    for (size_t i = 0; i < plan->renew_tokens.len; i++) {
        const char *key = plan->renew_tokens.items[i];
        cr_autofree char *ns = cr_strndup(key, strcspn(key, "/"));
        const char *name = key + strlen(ns) + (key[strlen(ns)] == '/');
        struct cr_packed *packed = cr_packed_list_find(&gathered->secret_list, ns, name);
        struct cr_error failed = {0};
        if (!packed)
            continue;
        bool done = renew_token(actor, ns, name, packed, &failed);
        acted->renewed += done;
        if (done || is_passing(&failed))
            continue;
        if (failed.kind != CR_ERR_INVALID && failed.kind != CR_ERR_FORBIDDEN) {
            *err = failed;
            return false;
        }
        if (first.kind == CR_ERR_NONE)
            first = failed;
    }
    if (first.kind == CR_ERR_NONE)
        return true;
    *err = first;
    return false;
}

/* --- workloads --- */

static bool restart_workload(const struct cr_control_plane_actor *actor,
                             const struct cr_control_plane_gathered *gathered, const struct cr_control_plane_plan *plan,
                             const char *name, struct cr_error *err)
{
    const struct cr_control_plane_policy *policy = gathered->world.policy;
    for (size_t i = 0; i < policy->workloads_len; i++) {
        const struct cr_control_plane_workload *spec = &policy->workloads[i];
        if (!cr_streq(spec->name, name))
            continue;
        cr_log(CR_LOG_INFO, "a workload is restarted for what it reads once", {"workload", name}, {"kind", spec->kind},
               {"namespace", spec->ns}, {"name", spec->target});
        return cr_control_plane_workloads_restart(actor->workloads, policy, i, plan->root_ca, plan->signing_key, err);
    }
    return true;
}

static bool restart_workloads(const struct cr_control_plane_actor *actor,
                              const struct cr_control_plane_gathered *gathered,
                              const struct cr_control_plane_plan *plan, struct cr_error *err)
{
    for (size_t i = 0; i < plan->restart_workloads.len; i++)
        if (!restart_workload(actor, gathered, plan, plan->restart_workloads.items[i], err))
            return false;
    return true;
}

/* --- the key --- */

static struct cr_json *key_object(const char *key, bool whole)
{
    struct cr_json *object = cr_json_new_object();
    if (whole) {
        cr_json_set_string(object, "apiVersion", "v1");
        cr_json_set_string(object, "kind", "ConfigMap");
        struct cr_json *metadata = cr_json_object_in(object, "metadata");
        cr_json_set_string(metadata, "name", CR_CONTROL_PLANE_KEY_CONFIGMAP);
        cr_json_set_string(metadata, "namespace", CR_CONTROL_PLANE_NAMESPACE);
    }
    cr_json_set_string(cr_json_object_in(object, "data"), "key", key);
    return object;
}

static bool publish_key(const struct cr_control_plane_actor *actor, const char *key, struct cr_error *err)
{
    CR_CLEANUP(cr_packed)
    struct cr_packed *packed = cr_control_plane_cache_get(actor->cache, CR_WATCH_KEY, CR_CONTROL_PLANE_NAMESPACE,
                                                          CR_CONTROL_PLANE_KEY_CONFIGMAP);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *present = cr_packed_open(packed);
    if (!*key || (present && cr_streq(cr_json_string_at(present->json, "data", "key"), key)))
        return true;
    CR_CLEANUP(cr_json) struct cr_json *body = key_object(key, !present);
    CR_CLEANUP(cr_json)
    struct cr_json *written =
        present ? cr_client_merge_patch(actor->client, &cr_res_configmaps, CR_CONTROL_PLANE_NAMESPACE,
                                        CR_CONTROL_PLANE_KEY_CONFIGMAP, NULL, body, err)
                : cr_client_create(actor->client, &cr_res_configmaps, CR_CONTROL_PLANE_NAMESPACE, body, err);
    if (!written)
        return cr_error_wrap(err, "ConfigMap " CR_CONTROL_PLANE_NAMESPACE "/" CR_CONTROL_PLANE_KEY_CONFIGMAP);
    note(actor, "ConfigMap", written);
    cr_log(CR_LOG_INFO, "the key that service accounts' tokens are signed by is published", {"key", key});
    return true;
}

bool cr_control_plane_act(const struct cr_control_plane_actor *actor, const struct cr_control_plane_gathered *gathered,
                          const struct cr_control_plane_plan *plan, struct cr_control_plane_acted *acted,
                          struct cr_error *err)
{
    return give_order(actor, gathered, plan, err) && renew_tokens(actor, gathered, plan, acted, err) &&
           restart_workloads(actor, gathered, plan, err) && publish_key(actor, plan->signing_key, err);
}
