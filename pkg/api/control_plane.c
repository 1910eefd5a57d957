#include "api/control_plane.h"

#include "api/consumer_kind.h"
#include "api/node.h"
#include "api/policy.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static const struct cr_node_range deadline_range = {30 * SECOND, 60 * MINUTE, 5 * MINUTE};

static const char *const modes[] = {"Enforce", "Plan"};
static const char *const restarts[] = {
    [CR_CONTROL_PLANE_RESTART_ALLOWED] = "Allowed", [CR_CONTROL_PLANE_RESTART_NEVER] = "Never"};
static const char *const tokens[] = {
    [CR_CONTROL_PLANE_TOKENS_WAIT] = "Wait", [CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS] = "RestartKubelets"};
static const char *const token_secrets[] = {"Renew", "Leave"};
static const char *const singles[] = {
    [CR_CONTROL_PLANE_SINGLE_BLOCK] = "Block", [CR_CONTROL_PLANE_SINGLE_ALLOW] = "Allow"};

void cr_control_plane_policy_dispose(struct cr_control_plane_policy *policy)
{
    for (size_t i = 0; i < policy->consumers_len; i++)
        free(policy->consumers[i].component);
    for (size_t i = 0; i < policy->workloads_len; i++) {
        free(policy->workloads[i].name);
        free(policy->workloads[i].kind);
        free(policy->workloads[i].ns);
        free(policy->workloads[i].target);
    }
    free(policy->consumers);
    free(policy->workloads);
    free(policy->name);
    free(policy->ns);
    free(policy->uid);
    free(policy->retry);
    *policy = (struct cr_control_plane_policy){0};
}

static bool decode_metadata(const struct cr_node *root, struct cr_control_plane_policy *out, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(root, "metadata", &node, err))
        return false;
    out->generation = cr_json_int_at(node.json, 0, "generation");
    const char *created = cr_json_string_at(node.json, "creationTimestamp");
    if (created && !cr_time_parse(created, &out->created_ms, NULL))
        out->created_ms = 0;
    return cr_node_required(&node, "namespace", &out->ns, err) && cr_node_required(&node, "name", &out->name, err) &&
           cr_node_string(&node, "uid", "", &out->uid, err);
}

/* --- consumers --- */

static bool is_listed(const struct cr_control_plane_policy *policy, const char *component)
{
    for (size_t i = 0; i + 1 < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].component, component))
            return true;
    return false;
}

static bool decode_consumer(const struct cr_node *node, struct cr_control_plane_policy *policy, struct cr_error *err)
{
    struct cr_control_plane_consumer *out = &policy->consumers[policy->consumers_len++];
    if (!cr_node_required(node, "component", &out->component, err) ||
        !CR_NODE_ENUM(node, "restart", restarts, CR_CONTROL_PLANE_RESTART_ALLOWED, &out->restart, err))
        return false;
    return !is_listed(policy, out->component) ||
           cr_error_set(err, CR_ERR_INVALID, "%s.component: '%s' is listed twice", node->path, out->component);
}

static bool decode_consumers(const struct cr_node *spec, struct cr_control_plane_policy *policy, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "consumers", CR_CONTROL_PLANE_CONSUMERS_MAX, &array, err))
        return false;
    policy->consumers = cr_calloc(cr_json_len(array.json) + 1, sizeof *policy->consumers);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        if (!cr_node_item(&array, item, policy->consumers_len, &node, err) || !decode_consumer(&node, policy, err))
            return false;
    }
    return true;
}

/* --- workloads --- */

/* Those that a change of their pod template restarts. Returns how many there are. */
static size_t workload_kinds(const char *names[])
{
    size_t len = 0;
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kind_rolls_by_template(&cr_consumer_kinds[i]))
            names[len++] = cr_consumer_kinds[i].resource.kind;
    return len;
}

static bool decode_target(const struct cr_node *workload, struct cr_control_plane_workload *out, struct cr_error *err)
{
    struct cr_node node;
    unsigned kind = 0;
    cr_autofree const char **kinds = cr_calloc(cr_consumer_kinds_len, sizeof *kinds);
    if (!cr_node_object(workload, "targetRef", &node, err))
        return false;
    if (!node.json)
        return cr_error_set(err, CR_ERR_INVALID, "%s.targetRef is required", workload->path);
    if (!cr_node_must_have(&node, "kind", err) ||
        !cr_node_enum(&node, "kind", kinds, workload_kinds(kinds), 0, &kind, err))
        return false;
    out->kind = cr_strdup(kinds[kind]);
    return cr_node_required(&node, "namespace", &out->ns, err) && cr_node_required(&node, "name", &out->target, err);
}

static bool decode_reads(const struct cr_node *workload, struct cr_control_plane_workload *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec reads = {0};
    if (!cr_node_strings(workload, "reads", 2, &reads, err))
        return false;
    out->reads_root_ca = !reads.len || cr_strvec_has(&reads, "RootCA");
    out->reads_token = !reads.len || cr_strvec_has(&reads, "Token");
    for (size_t i = 0; i < reads.len; i++)
        if (!cr_streq(reads.items[i], "RootCA") && !cr_streq(reads.items[i], "Token"))
            return cr_error_set(err, CR_ERR_INVALID, "%s.reads[%zu] must be RootCA or Token, not '%s'", workload->path,
                                i, reads.items[i]);
    return true;
}

static bool is_same_target(const struct cr_control_plane_workload *a, const struct cr_control_plane_workload *b)
{
    return cr_streq(a->kind, b->kind) && cr_streq(a->ns, b->ns) && cr_streq(a->target, b->target);
}

static bool check_workload(const struct cr_node *node, const struct cr_control_plane_policy *policy,
                           struct cr_error *err)
{
    const struct cr_control_plane_workload *last = &policy->workloads[policy->workloads_len - 1];
    for (size_t i = 0; i + 1 < policy->workloads_len; i++) {
        if (cr_streq(policy->workloads[i].name, last->name))
            return cr_error_set(err, CR_ERR_INVALID, "%s.name: '%s' is listed twice", node->path, last->name);
        if (is_same_target(&policy->workloads[i], last))
            return cr_error_set(err, CR_ERR_INVALID, "%s.targetRef: %s %s/%s is that of workload '%s' already",
                                node->path, last->kind, last->ns, last->target, policy->workloads[i].name);
    }
    return true;
}

static bool decode_workload(const struct cr_node *node, struct cr_control_plane_policy *policy, struct cr_error *err)
{
    struct cr_control_plane_workload *out = &policy->workloads[policy->workloads_len++];
    return cr_node_required(node, "name", &out->name, err) && decode_target(node, out, err) &&
           decode_reads(node, out, err) && check_workload(node, policy, err);
}

static bool decode_workloads(const struct cr_node *spec, struct cr_control_plane_policy *policy, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "workloads", CR_CONTROL_PLANE_WORKLOADS_MAX, &array, err))
        return false;
    policy->workloads = cr_calloc(cr_json_len(array.json) + 1, sizeof *policy->workloads);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        if (!cr_node_item(&array, item, policy->workloads_len, &node, err) || !decode_workload(&node, policy, err))
            return false;
    }
    return true;
}

/* --- all --- */

static bool decode_restart(const struct cr_node *spec, struct cr_control_plane_policy *out, struct cr_error *err)
{
    struct cr_node node;
    return cr_node_object(spec, "restart", &node, err) &&
           CR_NODE_ENUM(&node, "singleNode", singles, CR_CONTROL_PLANE_SINGLE_BLOCK, &out->single, err) &&
           cr_node_duration(&node, "deadline", deadline_range, &out->step_deadline_ms, err) &&
           cr_node_string(&node, "retry", NULL, &out->retry, err);
}

static bool decode_spec(const struct cr_node *spec, struct cr_control_plane_policy *out, struct cr_error *err)
{
    bool plan = false;
    bool leave = false;
    if (!CR_NODE_ENUM(spec, "mode", modes, 0, &plan, err) ||
        !CR_NODE_ENUM(spec, "tokenSecrets", token_secrets, 0, &leave, err))
        return false;
    out->enforce = !plan;
    out->renew_token_secrets = !leave;
    return cr_node_bool(spec, "suspend", false, &out->suspend, err) && decode_consumers(spec, out, err) &&
           decode_workloads(spec, out, err) &&
           CR_NODE_ENUM(spec, "tokens", tokens, CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS, &out->tokens, err) &&
           decode_restart(spec, out, err);
}

static bool decode_kind(const struct cr_json *object, struct cr_error *err)
{
    return cr_streq(cr_json_string_at(object, "kind"), CR_CONTROL_PLANE_KIND) ||
           cr_error_set(err, CR_ERR_INVALID, "kind must be " CR_CONTROL_PLANE_KIND);
}

bool cr_control_plane_policy_decode(const struct cr_json *object, struct cr_control_plane_policy *out,
                                    struct cr_error *err)
{
    struct cr_node root = {.json = object};
    struct cr_node spec;
    *out = (struct cr_control_plane_policy){0};
    if (decode_kind(object, err) && decode_metadata(&root, out, err) && cr_node_object(&root, "spec", &spec, err) &&
        decode_spec(&spec, out, err))
        return true;
    cr_control_plane_policy_dispose(out);
    return false;
}
