/* The parts of an entry from YAML, strictly: a misspelled field would otherwise be a claim that the author did not
 * make. */
#include "catalogue/catalogue_internal.h"

#include <string.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"

enum { MAX_RULES = 32, MAX_STRINGS = 64, MAX_STRING = 512 };

static const int64_t max_delay_limit_ms = INT64_C(24) * 3600 * 1000;

bool cr_catalogue_read_fields(const struct cr_node *node, const char *const *allowed, struct cr_error *err)
{
    for (const struct cr_json *field = cr_json_first(node->json); field; field = cr_json_next(field)) {
        const char *const *name = allowed;
        while (*name && !cr_streq(*name, cr_json_key(field)))
            name++;
        if (!*name)
            return cr_error_set(err, CR_ERR_INVALID, "%s%s%s is no field of the catalogue", node->path,
                                *node->path ? "." : "", cr_json_key(field));
    }
    return true;
}

/* A list of strings, none empty; absent is an empty list. */
bool cr_catalogue_read_strings(const struct cr_node *node, const char *key, struct cr_strvec *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_array(node, key, MAX_STRINGS, &list, err))
        return false;
    for (const struct cr_json *item = cr_json_first(list.json); item; item = cr_json_next(item)) {
        const char *text = cr_json_string(item);
        if (!text || !*text || strlen(text) > MAX_STRING)
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s[%zu] must be a string of 1 to %d bytes; quote what looks like "
                                "a number",
                                list.path, out->len, MAX_STRING);
        if (!cr_strvec_add_unique(out, text))
            return cr_error_set(err, CR_ERR_INVALID, "%s has \"%s\" twice", list.path, text);
    }
    return true;
}

bool cr_catalogue_read_roles(const struct cr_node *node, unsigned *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    if (!cr_catalogue_read_strings(node, "roles", &names, err))
        return false;
    for (size_t i = 0; i < names.len; i++) {
        enum cr_role role;
        if (!cr_role_parse(names.items[i], &role))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.roles[%zu] must be serverLeaf, clientLeaf, clientCA, serverCA or "
                                "opaque, not \"%s\"",
                                node->path, i, names.items[i]);
        *out |= CR_ROLE_BIT(role);
    }
    return *out ? true : cr_error_set(err, CR_ERR_INVALID, "%s.roles must name at least one role", node->path);
}

static bool read_method(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    cr_autofree char *word = NULL;
    if (!cr_node_required(node, "method", &word, err))
        return false;
    if (!cr_method_parse(word, &rule->method))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.method must be Watch, PerHandshake, Poll, Signal, HTTP, Command, "
                            "ApiWatch, Restart or Unknown, not \"%s\"",
                            node->path, word);
    return true;
}

/* A method that waits to be triggered must say by what; another must not. */
static bool read_trigger(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    if (cr_method_is_notified(rule->method))
        return cr_node_required(node, "trigger", &rule->trigger, err);
    if (cr_node_has(node, "trigger"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.trigger belongs to Signal, HTTP and Command only", node->path);
    return true;
}

static bool read_delay(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    int64_t fallback = cr_method_default_delay_ms(rule->method);
    if (cr_node_has(node, "maxDelay") && !fallback && !cr_method_is_notified(rule->method))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.maxDelay belongs to methods that reload, not to Restart and Unknown", node->path);
    if (rule->method == CR_METHOD_POLL && !cr_node_has(node, "maxDelay"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.maxDelay is required: how long may a poll take?", node->path);
    struct cr_node_range range = {.least = 0, .most = max_delay_limit_ms, .fallback = fallback};
    return cr_node_duration(node, "maxDelay", range, &rule->max_delay_ms, err);
}

static bool read_versions(const struct cr_node *node, bool *has, struct cr_version_range *range, struct cr_error *err)
{
    cr_autofree char *text = NULL;
    if (!cr_node_string(node, "versions", NULL, &text, err))
        return false;
    *has = text != NULL;
    if (text && !cr_version_range_parse(text, range, err))
        return cr_error_wrap(err, "%s.versions", node->path);
    return true;
}

const char *const cr_confidence_names[CR_CONFIDENCE_COUNT] = {
    [CR_CONFIDENCE_VERIFIED] = "verified",
    [CR_CONFIDENCE_DOCUMENTED] = "documented",
    [CR_CONFIDENCE_EXPERIMENT] = "experiment",
    [CR_CONFIDENCE_MEMORY] = "memory",
};

/* The source of a claim: how sure it is, and where it stands. */
static bool read_claim(const struct cr_node *node, enum cr_confidence *out, char **source, struct cr_error *err)
{
    unsigned confidence = 0;
    if (!cr_node_has(node, "confidence"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.confidence is required", node->path);
    if (!cr_node_enum(node, "confidence", cr_confidence_names, CR_CONFIDENCE_COUNT, 0, &confidence, err) ||
        !cr_node_required(node, "source", source, err))
        return false;
    *out = (enum cr_confidence)confidence;
    return true;
}

/* "NAME" or "NAME=PATTERN"; a pattern that is empty would hold for an empty value only. */
static bool read_settings(const struct cr_node *node, struct cr_strvec *out, struct cr_error *err)
{
    if (!cr_catalogue_read_strings(node, "settings", out, err))
        return false;
    for (size_t i = 0; i < out->len; i++) {
        size_t name = strcspn(out->items[i], "=");
        if (strspn(out->items[i], "-") >= name || (out->items[i][name] && !out->items[i][name + 1]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.settings[%zu] must be a flag or variable, alone or with a pattern of its value: "
                                "\"--flag=on*\", \"NAME\"",
                                node->path, i);
    }
    return true;
}

static bool read_conditions(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    return read_versions(node, &rule->has_versions, &rule->versions, err) &&
           cr_catalogue_read_strings(node, "tags", &rule->tags, err) &&
           cr_catalogue_read_strings(node, "mentions", &rule->mentions, err) &&
           cr_catalogue_read_strings(node, "podMentions", &rule->pod_mentions, err) &&
           read_settings(node, &rule->settings, err);
}

static bool read_rule(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    static const char *const fields[] = {"versions", "tags",    "mentions", "podMentions", "settings", "method",
                                         "maxDelay", "trigger", "says",     "confidence",  "source",   NULL};
    return cr_catalogue_read_fields(node, fields, err) && read_conditions(node, rule, err) &&
           read_method(node, rule, err) && read_trigger(node, rule, err) && read_delay(node, rule, err) &&
           read_claim(node, &rule->confidence, &rule->source, err) &&
           cr_node_string(node, "says", NULL, &rule->says, err);
}

/* Each list ends in what holds otherwise, so that no container falls through it. */
static bool check_order(const struct cr_node *list, const struct cr_rule *rules, size_t len, struct cr_error *err)
{
    if (len == 0)
        return cr_error_set(err, CR_ERR_INVALID, "%s must have at least one rule", list->path);
    for (size_t i = 0; i < len; i++) {
        bool last = i + 1 == len;
        if (last && cr_rule_is_conditional(&rules[i]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s[%zu], the last rule, must be without a condition: what holds "
                                "otherwise?",
                                list->path, i);
        if (!last && !cr_rule_is_conditional(&rules[i]))
            return cr_error_set(err, CR_ERR_INVALID, "%s[%zu] has no condition, so the rules behind it never hold",
                                list->path, i);
    }
    return true;
}

bool cr_catalogue_read_rules(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    struct cr_node list;
    struct cr_node item;
    if (!cr_node_array(node, "rules", MAX_RULES, &list, err))
        return false;
    use->rules = cr_calloc(cr_json_len(list.json), sizeof *use->rules);
    for (const struct cr_json *j = cr_json_first(list.json); j; j = cr_json_next(j)) {
        size_t i = use->rules_len++;
        if (!cr_node_item(&list, j, i, &item, err) || !read_rule(&item, &use->rules[i], err))
            return false;
    }
    return check_order(&list, use->rules, use->rules_len, err);
}

/* --- key types --- */

static bool read_key_types_entry(const struct cr_node *node, struct cr_key_types *entry, struct cr_error *err)
{
    static const char *const fields[] = {"roles", "versions", "types", "confidence", "source", NULL};
    if (!cr_catalogue_read_fields(node, fields, err) || !cr_catalogue_read_roles(node, &entry->roles, err) ||
        !read_versions(node, &entry->has_versions, &entry->versions, err) ||
        !cr_catalogue_read_strings(node, "types", &entry->types, err) ||
        !read_claim(node, &entry->confidence, &entry->source, err))
        return false;
    if (entry->types.len == 0)
        return cr_error_set(err, CR_ERR_INVALID, "%s.types must name at least one type, such as RSA or ECDSA-P256",
                            node->path);
    for (size_t i = 0; i < entry->types.len; i++) {
        const char *type = entry->types.items[i];
        if (!cr_starts_with(type, "RSA") && !cr_starts_with(type, "ECDSA") && !cr_starts_with(type, "Ed"))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.types[%zu] must be RSA, ECDSA, ECDSA-P256, Ed25519 or the like, not \"%s\"",
                                node->path, i, type);
    }
    return true;
}

bool cr_catalogue_read_key_types(const struct cr_node *node, struct cr_component *component, struct cr_error *err)
{
    struct cr_node list;
    struct cr_node item;
    if (!cr_node_array(node, "keyTypes", MAX_RULES, &list, err))
        return false;
    component->key_types = cr_calloc(cr_json_len(list.json), sizeof *component->key_types);
    for (const struct cr_json *j = cr_json_first(list.json); j; j = cr_json_next(j)) {
        size_t i = component->key_types_len++;
        if (!cr_node_item(&list, j, i, &item, err) || !read_key_types_entry(&item, &component->key_types[i], err))
            return false;
    }
    return true;
}
