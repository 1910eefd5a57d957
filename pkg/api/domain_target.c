#include "api/domain_target.h"

#include "base/alloc.h"

static const char *const kinds[] = {
    [CR_TARGET_CONFIGMAP] = "ConfigMap",
    [CR_TARGET_SECRET] = "Secret",
    [CR_TARGET_VALIDATING_WEBHOOK] = "ValidatingWebhookConfiguration",
    [CR_TARGET_MUTATING_WEBHOOK] = "MutatingWebhookConfiguration",
    [CR_TARGET_API_SERVICE] = "APIService",
    [CR_TARGET_CRD_CONVERSION] = "CustomResourceDefinition",
};
_Static_assert(cr_array_len(kinds) == CR_TARGET_KINDS, "a name for each kind");

const char *cr_trust_target_kind_name(enum cr_trust_target_kind kind)
{
    return (size_t)kind < cr_array_len(kinds) ? kinds[kind] : "";
}

bool cr_trust_target_is_ca_bundle(enum cr_trust_target_kind kind)
{
    return kind != CR_TARGET_CONFIGMAP && kind != CR_TARGET_SECRET;
}

static bool is_webhook(enum cr_trust_target_kind kind)
{
    return kind == CR_TARGET_VALIDATING_WEBHOOK || kind == CR_TARGET_MUTATING_WEBHOOK;
}

void cr_domain_target_dispose(struct cr_domain_target *target)
{
    free(target->name);
    free(target->key);
    free(target->ns);
    cr_selector_dispose(&target->namespaces);
    *target = (struct cr_domain_target){0};
}

static bool forbid(const struct cr_node *node, const char *key, const char *why, struct cr_error *err)
{
    return !cr_node_has(node, key) || cr_error_set(err, CR_ERR_INVALID, "%s.%s: %s", node->path, key, why);
}

/* What it is called there: an entry of a ConfigMap or Secret, one webhook of several. */
static bool decode_place(const struct cr_node *node, struct cr_domain_target *out, struct cr_error *err)
{
    bool bundle = cr_trust_target_is_ca_bundle(out->kind);
    if (bundle && !forbid(node, "key", "the bundle goes into the object's caBundle: remove key", err))
        return false;
    if (is_webhook(out->kind))
        return cr_node_string(node, "webhook", NULL, &out->key, err);
    return forbid(node, "webhook", "belongs to webhook configurations only", err) &&
           (bundle || cr_node_string(node, "key", "ca.crt", &out->key, err));
}

static bool decode_cluster_namespace(const struct cr_node *node, struct cr_domain_target *out, struct cr_error *err)
{
    if (cr_trust_target_is_ca_bundle(out->kind))
        return forbid(node, "namespace", "these objects are in none: remove it", err) &&
               forbid(node, "namespaceSelector", "these objects are in no namespace: remove it", err);
    if (cr_node_has(node, "namespace") == cr_node_has(node, "namespaceSelector"))
        return cr_error_set(err, CR_ERR_INVALID, "%s: give either a namespace or a namespaceSelector", node->path);
    return cr_node_string(node, "namespace", NULL, &out->ns, err) &&
           cr_selector_decode(node, "namespaceSelector", &out->namespaces, err);
}

/* The namespaced kind refers to its own namespace alone. */
static bool decode_namespace(const struct cr_node *node, const struct cr_domain *domain, struct cr_domain_target *out,
                             struct cr_error *err)
{
    if (domain->cluster)
        return decode_cluster_namespace(node, out, err);
    if (cr_trust_target_is_ca_bundle(out->kind))
        return cr_error_set(err, CR_ERR_INVALID, "%s.kind: %s objects belong to the whole cluster: use a %s",
                            node->path, kinds[out->kind], CR_CLUSTER_DOMAIN_KIND);
    cr_strset(&out->ns, domain->ns);
    return forbid(node, "namespace", "a TrustDomain writes to its own namespace only", err) &&
           forbid(node, "namespaceSelector", "a TrustDomain writes to its own namespace only", err);
}

static bool decode_target(const struct cr_node *node, const struct cr_domain *domain, struct cr_domain_target *out,
                          struct cr_error *err)
{
    return cr_node_must_have(node, "kind", err) &&
           CR_NODE_ENUM(node, "kind", kinds, CR_TARGET_CONFIGMAP, &out->kind, err) &&
           cr_node_required(node, "name", &out->name, err) && decode_place(node, out, err) &&
           decode_namespace(node, domain, out, err);
}

/* One object has one entry. With selectors that is known only where they are looked at. */
static bool is_new(const struct cr_domain *domain, const struct cr_domain_target *target, const char *path,
                   struct cr_error *err)
{
    for (const struct cr_domain_target *other = domain->targets; other < target; other++)
        if (other->kind == target->kind && cr_streq(other->name, target->name) && cr_streq(other->ns, target->ns) &&
            !other->namespaces.len && !target->namespaces.len)
            return cr_error_set(err, CR_ERR_INVALID, "%s: %s '%s' is listed twice", path, kinds[target->kind],
                                target->name);
    return true;
}

bool cr_domain_targets_decode(const struct cr_node *spec, struct cr_domain *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "trustTargets", CR_DOMAIN_TARGETS_MAX, &array, err))
        return false;
    out->targets = cr_calloc(cr_json_len(array.json) + 1, sizeof *out->targets);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        struct cr_domain_target *target = &out->targets[out->targets_len];
        if (!cr_node_item(&array, item, out->targets_len, &node, err))
            return false;
        out->targets_len++; /* before it is complete, so that it is freed */
        if (!decode_target(&node, out, target, err) || !is_new(out, target, node.path, err))
            return false;
    }
    return true;
}
