#include "api/policy_trust.h"

#include "base/alloc.h"

static const struct cr_node_range retain_range = {0, 3, 1};
static const char *const kinds[] = {"ConfigMap", "Secret"};

void cr_policy_trust_dispose(struct cr_policy_trust *trust)
{
    for (size_t i = 0; i < trust->targets_len; i++) {
        free(trust->targets[i].name);
        free(trust->targets[i].key);
    }
    free(trust->targets);
    *trust = (struct cr_policy_trust){0};
}

static bool is_new(const struct cr_policy_trust *trust, const struct cr_policy_trust_target *target, const char *path,
                   struct cr_error *err)
{
    for (const struct cr_policy_trust_target *other = trust->targets; other < target; other++)
        if (other->is_secret == target->is_secret && cr_streq(other->name, target->name))
            return cr_error_set(err, CR_ERR_INVALID, "%s: %s '%s' is listed twice", path, kinds[target->is_secret],
                                target->name);
    return true;
}

/* What is read is not written. */
static bool is_no_source(const struct cr_policy *policy, const struct cr_policy_trust_target *target, const char *path,
                         struct cr_error *err)
{
    return !target->is_secret || !cr_policy_secret_of(policy, target->name) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s: Secret '%s' is one of spec.secrets: the bundle must go to another one, since whoever "
                        "writes that Secret would overwrite it",
                        path, target->name);
}

static bool decode_target(const struct cr_node *node, struct cr_policy_trust_target *out, struct cr_error *err)
{
    unsigned kind = 0;
    if (!cr_node_must_have(node, "kind", err) ||
        !cr_node_enum(node, "kind", kinds, cr_array_len(kinds), kind, &kind, err))
        return false;
    out->is_secret = kind == 1;
    return cr_node_required(node, "name", &out->name, err) && cr_node_string(node, "key", "ca.crt", &out->key, err);
}

static bool decode_targets(const struct cr_node *array, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_policy_trust *out = &policy->trust;
    out->targets = cr_calloc(cr_json_len(array->json) + 1, sizeof *out->targets);
    for (const struct cr_json *item = cr_json_first(array->json); item; item = cr_json_next(item)) {
        struct cr_node node;
        struct cr_policy_trust_target *target = &out->targets[out->targets_len];
        if (!cr_node_item(array, item, out->targets_len, &node, err))
            return false;
        out->targets_len++; /* before it is complete, so that it is disposed of */
        if (!decode_target(&node, target, err) || !is_new(out, target, node.path, err) ||
            !is_no_source(policy, target, node.path, err))
            return false;
    }
    return true;
}

bool cr_policy_trust_decode(const struct cr_node *spec, struct cr_policy *policy, struct cr_error *err)
{
    struct cr_node trust;
    struct cr_node array;
    if (!cr_node_object(spec, "trust", &trust, err) ||
        !cr_node_int(&trust, "retainPrevious", retain_range, &policy->trust.retain_previous, err) ||
        !cr_node_array(&trust, "targets", CR_POLICY_TRUST_TARGETS_MAX, &array, err))
        return false;
    if (trust.json && !cr_json_len(array.json))
        return cr_error_set(err, CR_ERR_INVALID, "%s.targets: list at least one", trust.path);
    return decode_targets(&array, policy, err);
}
