#include "api/domain_leaf.h"

#include "api/domain_issue.h"
#include "base/alloc.h"

static const char *const sources[] = {[CR_LEAF_MIRROR] = "Mirror", [CR_LEAF_ISSUE] = "Issue"};

void cr_domain_leaf_dispose(struct cr_domain_leaf *leaf)
{
    free(leaf->name);
    free(leaf->ns);
    free(leaf->secret);
    free(leaf->mirror);
    free(leaf->common_name);
    cr_strvec_dispose(&leaf->dns_names);
    cr_strvec_dispose(&leaf->addresses);
    cr_strvec_dispose(&leaf->uris);
    cr_strvec_dispose(&leaf->emails);
    cr_strvec_dispose(&leaf->organizations);
    free(leaf->keystore.password_secret);
    free(leaf->keystore.password_key);
    *leaf = (struct cr_domain_leaf){0};
}

static bool decode_mirror(const struct cr_node *source, struct cr_domain_leaf *out, struct cr_error *err)
{
    struct cr_node mirror;
    if (!cr_node_must_have(source, "mirror", err) || !cr_node_object(source, "mirror", &mirror, err) ||
        !cr_node_required(&mirror, "secretName", &out->mirror, err))
        return false;
    return !cr_streq(out->mirror, out->secret) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s.secretName is the leaf's own Secret: its source must be another one, or whoever writes it "
                        "would be followed by no stage",
                        mirror.path);
}

static bool decode_issue(const struct cr_node *source, enum cr_authority_type authority, struct cr_domain_leaf *out,
                         struct cr_error *err)
{
    struct cr_node issue;
    if (!cr_node_must_have(source, "issue", err) || !cr_node_object(source, "issue", &issue, err))
        return false;
    if (authority != CR_AUTHORITY_ISSUE)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s: leaves are issued by a CA of the domain's own: spec.authority.type must be Issue",
                            issue.path);
    return cr_domain_issue_leaf_decode(&issue, out, err);
}

/* One of the two, as type says. */
static bool decode_source(const struct cr_node *leaf, const struct cr_domain *domain, struct cr_domain_leaf *out,
                          struct cr_error *err)
{
    struct cr_node source;
    if (!cr_node_must_have(leaf, "source", err) || !cr_node_object(leaf, "source", &source, err) ||
        !cr_node_must_have(&source, "type", err) ||
        !CR_NODE_ENUM(&source, "type", sources, CR_LEAF_MIRROR, &out->source, err))
        return false;
    bool issued = out->source == CR_LEAF_ISSUE;
    if (cr_node_has(&source, issued ? "mirror" : "issue"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.%s belongs to type %s: set that, or remove it", source.path,
                            issued ? "mirror" : "issue", sources[!issued]);
    return issued ? decode_issue(&source, domain->authority, out, err) : decode_mirror(&source, out, err);
}

static bool decode_keystore(const struct cr_node *leaf, struct cr_domain_keystore *out, struct cr_error *err)
{
    struct cr_node keystore;
    struct cr_node ref;
    if (!cr_node_object(leaf, "keystore", &keystore, err))
        return false;
    if (!keystore.json)
        return true;
    out->set = true;
    return cr_node_must_have(&keystore, "passwordSecretRef", err) &&
           cr_node_object(&keystore, "passwordSecretRef", &ref, err) &&
           cr_node_required(&ref, "name", &out->password_secret, err) &&
           cr_node_string(&ref, "key", "password", &out->password_key, err);
}

/* The cluster kind names a namespace for each; the other refers to its own alone. */
static bool decode_namespace(const struct cr_node *leaf, const struct cr_domain *domain, struct cr_domain_leaf *out,
                             struct cr_error *err)
{
    if (domain->cluster)
        return cr_node_required(leaf, "namespace", &out->ns, err);
    cr_strset(&out->ns, domain->ns);
    return !cr_node_has(leaf, "namespace") ||
           cr_error_set(err, CR_ERR_INVALID, "%s.namespace: a TrustDomain writes to its own namespace only",
                        leaf->path);
}

static bool decode_leaf(const struct cr_node *node, const struct cr_domain *domain, struct cr_domain_leaf *out,
                        struct cr_error *err)
{
    return cr_node_required(node, "name", &out->name, err) && decode_namespace(node, domain, out, err) &&
           cr_node_string(node, "secretName", out->name, &out->secret, err) && decode_source(node, domain, out, err) &&
           decode_keystore(node, &out->keystore, err);
}

static bool is_new(const struct cr_domain *domain, const struct cr_domain_leaf *leaf, const char *path,
                   struct cr_error *err)
{
    for (const struct cr_domain_leaf *other = domain->leaves; other < leaf; other++) {
        if (cr_streq(other->name, leaf->name))
            return cr_error_set(err, CR_ERR_INVALID, "%s.name: '%s' is listed twice", path, leaf->name);
        if (cr_streq(other->ns, leaf->ns) && cr_streq(other->secret, leaf->secret))
            return cr_error_set(err, CR_ERR_INVALID, "%s.secretName: Secret '%s' is already that of leaf '%s'", path,
                                leaf->secret, other->name);
    }
    return true;
}

bool cr_domain_leaves_decode(const struct cr_node *spec, struct cr_domain *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(spec, "leaves", CR_DOMAIN_LEAVES_MAX, &array, err))
        return false;
    out->leaves = cr_calloc(cr_json_len(array.json) + 1, sizeof *out->leaves);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        struct cr_domain_leaf *leaf = &out->leaves[out->leaves_len];
        if (!cr_node_item(&array, item, out->leaves_len, &node, err))
            return false;
        out->leaves_len++; /* before it is complete, so that it is freed */
        if (!decode_leaf(&node, out, leaf, err) || !is_new(out, leaf, node.path, err))
            return false;
    }
    return true;
}
