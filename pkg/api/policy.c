#include "api/policy.h"

#include "api/node.h"
#include "api/policy_order.h"
#include "api/policy_target.h"
#include "api/policy_trust.h"
#include "api/policy_verify.h"
#include "api/policy_windows.h"
#include "api/status.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum {
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
};

static const struct cr_node_range concurrency_range = {1, 100, 1};
static const struct cr_node_range max_delay_range = {0, 24 * HOUR, 0};
static const struct cr_node_range coalesce_range = {0, 10 * MINUTE, 10 * SECOND};
static const struct cr_node_range breaker_restarts_range = {1, CR_RESTART_TIMES_MAX, 3};
static const struct cr_node_range breaker_within_range = {0, 24 * HOUR, HOUR};

static const char *const modes[] = {[CR_MODE_ENFORCE] = "Enforce", [CR_MODE_PLAN] = "Plan"};
static const char *const restart_methods[] = {[CR_RESTART_AUTO] = "Auto",
                                              [CR_RESTART_ROLLOUT] = "Rollout",
                                              [CR_RESTART_EVICT] = "Evict",
                                              [CR_RESTART_NEVER] = "Never"};

static const char *const unknowns[] = {[CR_UNKNOWN_RESTART] = "Restart", [CR_UNKNOWN_REPORT] = "Report"};

static const char *const single_replica[] = {
    [CR_SINGLE_SURGE] = "Surge", [CR_SINGLE_WARN] = "Warn", [CR_SINGLE_BLOCK] = "Block"};

/* A kind that this version does not know, perhaps by a slip of the pen. */
static void unknown_kind(struct cr_policy *policy, const struct cr_node *node, const struct cr_policy_consumer *target)
{
    cr_autofree char *which =
        cr_asprintf("%s.targetRef.kind '%.63s' of %.253s", node->path, target->kind, target->api_version);
    cr_strvec_add_unique(&policy->unsupported, which);
}

static void dispose_secret(struct cr_policy_secret *secret)
{
    free(secret->name);
    free(secret->certificate);
    free(secret->private_key);
    free(secret->trust);
    cr_strvec_dispose(&secret->opaque);
}

static void dispose_consumer(struct cr_policy_consumer *consumer)
{
    free(consumer->name);
    free(consumer->api_version);
    free(consumer->kind);
    free(consumer->target);
    free(consumer->component);
    cr_strvec_dispose(&consumer->after);
    cr_policy_verify_dispose(&consumer->verify);
    *consumer = (struct cr_policy_consumer){0};
}

void cr_policy_free(struct cr_policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->secrets_len; i++)
        dispose_secret(&policy->secrets[i]);
    for (size_t i = 0; i < policy->consumers_len; i++)
        dispose_consumer(&policy->consumers[i]);
    free(policy->secrets);
    free(policy->consumers);
    free(policy->ns);
    free(policy->name);
    free(policy->uid);
    free(policy->resource_version);
    cr_selector_dispose(&policy->secret_selector);
    cr_policy_windows_dispose(&policy->restart);
    cr_policy_trust_dispose(&policy->trust);
    cr_strvec_dispose(&policy->unsupported);
    free(policy);
}

const struct cr_policy_secret *cr_policy_secret_of(const struct cr_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->secrets_len; i++)
        if (cr_streq(policy->secrets[i].name, name))
            return &policy->secrets[i];
    return NULL;
}

const struct cr_policy_consumer *cr_policy_consumer_of(const struct cr_policy *policy, const char *kind,
                                                       const char *target)
{
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].target, target) && cr_streq(policy->consumers[i].kind, kind))
            return &policy->consumers[i];
    return NULL;
}

bool cr_policy_may_have_consumers(const struct cr_policy *policy)
{
    return policy->consumers_len || policy->discover.enabled || policy->unsupported.len;
}

static bool decode_metadata(const struct cr_node *root, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(root, "metadata", &node, err))
        return false;
    policy->generation = cr_json_int_at(node.json, 0, "generation");
    const char *created = cr_json_string_at(node.json, "creationTimestamp");
    if (created && !cr_time_parse(created, &policy->created_ms, NULL))
        policy->created_ms = 0;
    policy->deleting = cr_node_has(&node, "deletionTimestamp");
    return cr_node_required(&node, "namespace", &policy->ns, err) &&
           cr_node_required(&node, "name", &policy->name, err) && cr_node_string(&node, "uid", "", &policy->uid, err) &&
           cr_node_string(&node, "resourceVersion", "", &policy->resource_version, err);
}

static bool decode_opaque_keys(const struct cr_node *keys, struct cr_policy_secret *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(keys, "opaque", CR_POLICY_OPAQUE_MAX, &array, err))
        return false;
    out->has_opaque = array.json != NULL;
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        const char *name = cr_json_string(item);
        if (!name || !*name)
            return cr_error_set(err, CR_ERR_INVALID, "%s must be a list of names of keys", array.path);
        cr_strvec_add_unique(&out->opaque, name);
    }
    return true;
}

static bool decode_secret(const struct cr_node *node, struct cr_policy_secret *out, struct cr_error *err)
{
    struct cr_node keys;
    return cr_node_required(node, "name", &out->name, err) && cr_node_object(node, "keys", &keys, err) &&
           cr_node_string(&keys, "certificate", "tls.crt", &out->certificate, err) &&
           cr_node_string(&keys, "privateKey", "tls.key", &out->private_key, err) &&
           cr_node_string(&keys, "trust", "ca.crt", &out->trust, err) && decode_opaque_keys(&keys, out, err);
}

static bool secret_is_new(const struct cr_policy *policy, size_t index, struct cr_error *err)
{
    const char *name = policy->secrets[index].name;
    for (size_t i = 0; i < index; i++)
        if (cr_streq(policy->secrets[i].name, name))
            return cr_error_set(err, CR_ERR_INVALID, "spec.secrets[%zu].name: '%s' is listed twice", index, name);
    return true;
}

static bool decode_secrets(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "secrets", CR_POLICY_SECRETS_MAX, &array, err))
        return false;
    policy->secrets = cr_calloc(cr_json_len(array.json) + 1, sizeof *policy->secrets);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        size_t index = policy->secrets_len;
        if (!cr_node_item(&array, item, index, &node, err))
            return false;
        policy->secrets_len++; /* before it is complete, so that cr_policy_free sees it */
        if (!decode_secret(&node, &policy->secrets[index], err) || !secret_is_new(policy, index, err))
            return false;
    }
    return true;
}

static bool decode_reload_of(const struct cr_node *reload, enum cr_role role, struct cr_reload_override *out,
                             struct cr_error *err)
{
    /* Not Unknown, which comes first: a policy must not override knowledge with ignorance. */
    const char *words[CR_METHOD_COUNT - 1];
    for (unsigned m = CR_METHOD_WATCH; m < CR_METHOD_COUNT; m++)
        words[m - 1] = cr_method_name((enum cr_method)m);
    struct cr_node node;
    if (!cr_node_object(reload, cr_role_name(role), &node, err))
        return false;
    if (!node.json)
        return true;
    unsigned method = 0;
    if (!cr_node_has(&node, "method"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.method is required", node.path);
    if (!cr_node_enum(&node, "method", words, cr_array_len(words), 0, &method, err))
        return false;
    out->set = true;
    out->method = (enum cr_method)(method + 1);
    return cr_node_duration(&node, "maxDelay", max_delay_range, &out->max_delay_ms, err);
}

static bool decode_reload(const struct cr_node *node, struct cr_policy_consumer *out, struct cr_error *err)
{
    struct cr_node reload;
    if (!cr_node_object(node, "reload", &reload, err))
        return false;
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++)
        if (!decode_reload_of(&reload, (enum cr_role)role, &out->reload[role], err))
            return false;
    for (const struct cr_json *c = cr_json_first(reload.json); c; c = cr_json_next(c)) {
        enum cr_role role;
        if (!cr_role_parse(cr_json_key(c), &role))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.%s is no role: serverLeaf, clientLeaf, clientCA, serverCA, opaque are", reload.path,
                                cr_json_key(c));
    }
    return true;
}

static bool consumer_is_new(const struct cr_policy *policy, size_t index, const char *path, struct cr_error *err)
{
    const struct cr_policy_consumer *added = &policy->consumers[index];
    for (size_t i = 0; i < index; i++) {
        const struct cr_policy_consumer *other = &policy->consumers[i];
        if (cr_streq(other->name, added->name))
            return cr_error_set(err, CR_ERR_INVALID, "%s.name: '%s' is listed twice", path, added->name);
        if (cr_streq(other->kind, added->kind) && cr_streq(other->target, added->target))
            return cr_error_set(err, CR_ERR_INVALID, "%s.targetRef: %s %s is already the target of consumer '%s'", path,
                                added->kind, added->target, other->name);
    }
    return true;
}

static bool decode_consumer(const struct cr_node *node, struct cr_policy *policy, struct cr_error *err)
{
    size_t index = policy->consumers_len;
    struct cr_policy_consumer *out = &policy->consumers[index];
    bool known = false;
    policy->consumers_len++; /* before it is complete, so that cr_policy_free sees it */
    if (!cr_node_required(node, "name", &out->name, err) || !cr_policy_target_decode(node, out, &known, err) ||
        !cr_node_string(node, "component", NULL, &out->component, err) || !decode_reload(node, out, err) ||
        !cr_node_bool(node, "optional", false, &out->optional, err) || !cr_policy_order_decode(node, out, err) ||
        !cr_policy_verify_decode(node, &out->verify, err) || !cr_policy_target_check(node, out, err) ||
        !consumer_is_new(policy, index, node->path, err))
        return false;
    if (!known) {
        unknown_kind(policy, node, out);
        dispose_consumer(out);
        policy->consumers_len--;
    }
    return true;
}

static bool decode_consumers(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "consumers", CR_POLICY_CONSUMERS_MAX, &array, err))
        return false;
    policy->consumers = cr_calloc(cr_json_len(array.json) + 1, sizeof *policy->consumers);
    size_t index = 0;
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item), index++) {
        struct cr_node node;
        if (!cr_node_item(&array, item, index, &node, err) || !decode_consumer(&node, policy, err))
            return false;
    }
    return true;
}

static bool decode_breaker(const struct cr_node *restart, struct cr_breaker *out, struct cr_error *err)
{
    struct cr_node breaker;
    return cr_node_object(restart, "breaker", &breaker, err) &&
           cr_node_int(&breaker, "restarts", breaker_restarts_range, &out->restarts, err) &&
           cr_node_duration(&breaker, "within", breaker_within_range, &out->within_ms, err);
}

static bool decode_restart(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node restart;
    return cr_node_object(spec, "restart", &restart, err) &&
           CR_NODE_ENUM(&restart, "method", restart_methods, CR_RESTART_AUTO, &policy->restart.method, err) &&
           cr_node_int(&restart, "maxConcurrent", concurrency_range, &policy->restart.max_concurrent, err) &&
           cr_node_duration(&restart, "coalesce", coalesce_range, &policy->restart.coalesce_ms, err) &&
           decode_breaker(&restart, &policy->restart.breaker, err) &&
           cr_policy_windows_decode(&restart, &policy->restart, err) &&
           CR_NODE_ENUM(&restart, "singleReplica", single_replica, CR_SINGLE_SURGE, &policy->restart.single, err);
}

static bool decode_discover(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node discover;
    return cr_node_object(spec, "discover", &discover, err) &&
           cr_node_bool(&discover, "enabled", false, &policy->discover.enabled, err) &&
           CR_NODE_ENUM(&discover, "unknown", unknowns, CR_UNKNOWN_RESTART, &policy->discover.unknown, err);
}

/* It names a label that must be there. */
static bool is_positive(const struct cr_selector *selector)
{
    for (size_t i = 0; i < selector->len; i++)
        if (selector->items[i].operator== CR_SELECTOR_IN || selector->items[i].operator== CR_SELECTOR_EXISTS)
            return true;
    return false;
}

/* A list of Secrets by labels that they do not have would be nearly all of the namespace, those of other tools too. */
static bool decode_selector(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    if (!cr_selector_decode(spec, "secretSelector", &policy->secret_selector, err))
        return false;
    return !policy->secret_selector.len || is_positive(&policy->secret_selector) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "spec.secretSelector has only NotIn and DoesNotExist, which nearly every Secret of the "
                        "namespace meets: add a label that a Secret must have (matchLabels, In or Exists)");
}

struct cr_policy *cr_policy_decode(const struct cr_json *object, struct cr_error *err)
{
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_new(struct cr_policy);
    struct cr_node root = {.json = object};
    struct cr_node spec;
    bool ok = decode_metadata(&root, policy, err) && cr_node_object(&root, "spec", &spec, err) &&
              cr_node_bool(&spec, "suspend", false, &policy->suspend, err) &&
              CR_NODE_ENUM(&spec, "mode", modes, CR_MODE_ENFORCE, &policy->mode, err) &&
              decode_secrets(&spec, policy, err) && decode_consumers(&spec, policy, err) &&
              cr_policy_order_check(&spec, policy, err) && decode_selector(&spec, policy, err) &&
              decode_discover(&spec, policy, err) && cr_policy_verify_check(&spec, policy, err) &&
              decode_restart(&spec, policy, err) && cr_policy_trust_decode(&spec, policy, err);
    return ok ? cr_steal(&policy) : NULL;
}
