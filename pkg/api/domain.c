#include "api/domain.h"

#include "api/domain_issue.h"
#include "api/domain_target.h"
#include "api/node.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

/* spec.leaves: Secrets with a leaf that a trust domain writes. */

static const char *const sources[] = {[CR_LEAF_MIRROR] = "Mirror", [CR_LEAF_ISSUE] = "Issue"};

static void leaf_dispose(struct cr_domain_leaf *leaf)
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

/* All of them. The domain's own names and authority have been read; out's list is to be freed also on failure. */
static bool leaves_decode(const struct cr_node *spec, struct cr_domain *out, struct cr_error *err)
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

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static const struct cr_node_range retain_range = {0, CR_DOMAIN_RETAIN_MAX, 1};
static const struct cr_node_range deadline_range = {SECOND, INT64_C(168) * HOUR, HOUR};

static const char *const retires[] = {
    [CR_RETIRE_NEXT_ROTATION] = "NextRotation", [CR_RETIRE_CONVERGED] = "Converged", [CR_RETIRE_NEVER] = "Never"};
static const char *const levels[] = {[CR_LEVEL_INFERRED] = "Inferred", [CR_LEVEL_VERIFIED] = "Verified"};
static const char *const uncovered[] = {[CR_UNCOVERED_WAIT] = "Wait", [CR_UNCOVERED_DELAY] = "Delay"};
static const char *const rotates[] = {
    [CR_ROTATE_CA] = "CA", [CR_ROTATE_LEAVES] = "Leaves", [CR_ROTATE_PREVIOUS_LEAVES] = "PreviousLeaves"};

void cr_domain_free(struct cr_domain *domain)
{
    if (!domain)
        return;
    for (size_t i = 0; i < domain->leaves_len; i++)
        leaf_dispose(&domain->leaves[i]);
    for (size_t i = 0; i < domain->targets_len; i++)
        cr_domain_target_dispose(&domain->targets[i]);
    cr_domain_issue_ca_dispose(&domain->ca);
    free(domain->leaves);
    free(domain->targets);
    free(domain->ns);
    free(domain->name);
    free(domain->uid);
    free(domain->resource_version);
    free(domain->rotate_token);
    cr_strvec_dispose(&domain->distrust);
    free(domain);
}

bool cr_domain_distrusts(const struct cr_domain *domain, const char *fingerprint)
{
    return cr_strvec_has(&domain->distrust, fingerprint);
}

char *cr_domain_title(const struct cr_domain *domain)
{
    return domain->cluster ? cr_strdup(domain->name) : cr_asprintf("%s/%s", domain->ns, domain->name);
}

static bool decode_kind(const struct cr_json *object, struct cr_domain *domain, struct cr_error *err)
{
    const char *kind = cr_json_string_at(object, "kind");
    domain->cluster = cr_streq(kind, CR_CLUSTER_DOMAIN_KIND);
    return domain->cluster || cr_streq(kind, CR_DOMAIN_KIND) ||
           cr_error_set(err, CR_ERR_INVALID, "kind must be " CR_DOMAIN_KIND " or " CR_CLUSTER_DOMAIN_KIND);
}

static bool decode_metadata(const struct cr_node *root, struct cr_domain *domain, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(root, "metadata", &node, err))
        return false;
    domain->generation = cr_json_int_at(node.json, 0, "generation");
    const char *created = cr_json_string_at(node.json, "creationTimestamp");
    if (created && !cr_time_parse(created, &domain->created_ms, NULL))
        domain->created_ms = 0;
    domain->deleting = cr_node_has(&node, "deletionTimestamp");
    return (domain->cluster || cr_node_required(&node, "namespace", &domain->ns, err)) &&
           cr_node_required(&node, "name", &domain->name, err) && cr_node_string(&node, "uid", "", &domain->uid, err) &&
           cr_node_string(&node, "resourceVersion", "", &domain->resource_version, err);
}

static bool decode_evidence(const struct cr_node *spec, struct cr_domain_evidence_spec *out, struct cr_error *err)
{
    struct cr_node node;
    return cr_node_object(spec, "evidence", &node, err) &&
           CR_NODE_ENUM(&node, "trust", levels, CR_LEVEL_INFERRED, &out->trust, err) &&
           CR_NODE_ENUM(&node, "leaf", levels, CR_LEVEL_INFERRED, &out->leaf, err) &&
           CR_NODE_ENUM(&node, "uncovered", uncovered, CR_UNCOVERED_WAIT, &out->uncovered, err) &&
           cr_node_duration(&node, "stageDeadline", deadline_range, &out->stage_deadline_ms, err);
}

static bool decode_distrust(const struct cr_node *spec, struct cr_strvec *out, struct cr_error *err)
{
    if (!cr_node_strings(spec, "distrust", CR_DOMAIN_DISTRUST_MAX, out, err))
        return false;
    for (size_t i = 0; i < out->len; i++)
        if (!cr_status_is_digest(out->items[i]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.distrust: '%s' is no fingerprint of a CA: 64 digits of hex in small letters, as "
                                "status.cas has them",
                                spec->path, out->items[i]);
    return true;
}

/* A CA that others hold is not ours to rotate. */
static bool check_rotate(const struct cr_domain *domain, const char *path, struct cr_error *err)
{
    return domain->rotate == CR_ROTATE_PREVIOUS_LEAVES || domain->authority == CR_AUTHORITY_ISSUE ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s.what: %s are made anew only by a domain that issues (spec.authority.type Issue); with "
                        "External, ask whoever writes the sources",
                        path, domain->rotate == CR_ROTATE_CA ? "CAs" : "leaves");
}

static bool decode_rotate(const struct cr_node *spec, struct cr_domain *domain, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(spec, "rotate", &node, err))
        return false;
    return !node.json ||
           (cr_node_required(&node, "token", &domain->rotate_token, err) && cr_node_must_have(&node, "what", err) &&
            CR_NODE_ENUM(&node, "what", rotates, CR_ROTATE_CA, &domain->rotate, err) &&
            check_rotate(domain, node.path, err));
}

/* Something to publish, and CAs to publish it from. */
static bool check_purpose(const struct cr_domain *domain, struct cr_error *err)
{
    if (domain->leaves_len || (domain->authority == CR_AUTHORITY_ISSUE && domain->targets_len))
        return true;
    return cr_error_set(err, CR_ERR_INVALID,
                        domain->authority == CR_AUTHORITY_ISSUE
                            ? "spec: there is nothing to publish: give leaves or trustTargets"
                            : "spec.leaves: list at least one: with an External authority the CAs are those of the "
                              "leaves' sources");
}

static const struct cr_domain_leaf *leaf_of(const struct cr_domain *domain, const char *ns, const char *secret)
{
    for (size_t i = 0; i < domain->leaves_len; i++)
        if (cr_streq(domain->leaves[i].ns, ns) && cr_streq(domain->leaves[i].secret, secret))
            return &domain->leaves[i];
    return NULL;
}

/* What the domain writes itself is neither a source nor the place of something else. */
static bool check_leaves(const struct cr_domain *domain, struct cr_error *err)
{
    for (size_t i = 0; i < domain->leaves_len; i++) {
        const struct cr_domain_leaf *leaf = &domain->leaves[i];
        const struct cr_domain_leaf *other = leaf->mirror ? leaf_of(domain, leaf->ns, leaf->mirror) : NULL;
        if (other)
            return cr_error_set(err, CR_ERR_INVALID,
                                "spec.leaves[%zu].source.mirror.secretName: Secret '%s' is written by this domain "
                                "itself, for leaf '%s'",
                                i, leaf->mirror, other->name);
        if (cr_streq(leaf->ns, domain->ns) && cr_streq(leaf->secret, domain->ca.ca_secret))
            return cr_error_set(err, CR_ERR_INVALID,
                                "spec.leaves[%zu].secretName: Secret '%s' is that of the CA, whose key no workload "
                                "should mount",
                                i, leaf->secret);
    }
    return true;
}

static bool check_targets(const struct cr_domain *domain, struct cr_error *err)
{
    for (size_t i = 0; i < domain->targets_len; i++) {
        const struct cr_domain_target *target = &domain->targets[i];
        if (target->kind != CR_TARGET_SECRET || !target->ns)
            continue;
        if (leaf_of(domain, target->ns, target->name))
            return cr_error_set(err, CR_ERR_INVALID,
                                "spec.trustTargets[%zu].name: Secret '%s' is that of a leaf, and has the bundle in "
                                "ca.crt already",
                                i, target->name);
        if (cr_streq(target->ns, domain->ns) && cr_streq(target->name, domain->ca.ca_secret))
            return cr_error_set(err, CR_ERR_INVALID, "spec.trustTargets[%zu].name: Secret '%s' is that of the CA", i,
                                target->name);
    }
    return true;
}

static bool decode_spec(const struct cr_node *spec, struct cr_domain *domain, struct cr_error *err)
{
    return cr_node_bool(spec, "suspend", false, &domain->suspend, err) &&
           cr_domain_authority_decode(spec, domain->name, domain, err) && leaves_decode(spec, domain, err) &&
           cr_domain_targets_decode(spec, domain, err) &&
           cr_node_int(spec, "retainPrevious", retain_range, &domain->retain_previous, err) &&
           CR_NODE_ENUM(spec, "retire", retires, CR_RETIRE_NEXT_ROTATION, &domain->retire, err) &&
           decode_distrust(spec, &domain->distrust, err) && decode_evidence(spec, &domain->evidence, err) &&
           decode_rotate(spec, domain, err) && check_purpose(domain, err) && check_leaves(domain, err) &&
           check_targets(domain, err);
}

struct cr_domain *cr_domain_decode(const struct cr_json *object, struct cr_error *err)
{
    CR_CLEANUP(cr_domain) struct cr_domain *domain = cr_new(struct cr_domain);
    struct cr_node root = {.json = object};
    struct cr_node spec;
    bool ok = decode_kind(object, domain, err) && decode_metadata(&root, domain, err) &&
              cr_node_object(&root, "spec", &spec, err) && decode_spec(&spec, domain, err);
    return ok ? cr_steal(&domain) : NULL;
}
