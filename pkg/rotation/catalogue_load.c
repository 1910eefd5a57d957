/* From YAML to the catalogue, strictly: a field that is misspelled would otherwise be a claim that nobody made. */
#include "rotation/catalogue_internal.h"

#include <string.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"

/* Made by the build from pkg/rotation/catalogue.yaml. */
extern const char cr_catalogue_yaml[];
extern const size_t cr_catalogue_yaml_len;

enum { MAX_COMPONENTS = 500, MAX_USES = 64, MAX_RULES = 32, MAX_STRINGS = 64, MAX_STRING = 512, SCHEMA = 1 };

static const int64_t max_delay_limit_ms = INT64_C(24) * 3600 * 1000;

/* --- freeing --- */

static void rule_dispose(struct cr_rule *rule)
{
    cr_strvec_dispose(&rule->tags);
    cr_strvec_dispose(&rule->mentions);
    cr_strvec_dispose(&rule->pod_mentions);
    free(rule->trigger);
    free(rule->says);
    free(rule->source);
}

static void use_dispose(struct cr_use *use)
{
    cr_strvec_dispose(&use->flags);
    cr_strvec_dispose(&use->env);
    cr_strvec_dispose(&use->config);
    free(use->source);
    for (size_t i = 0; i < use->rules_len; i++)
        rule_dispose(&use->rules[i]);
    free(use->rules);
}

static void component_dispose(struct cr_component *component)
{
    free(component->name);
    free(component->title);
    free(component->distribution);
    cr_strvec_dispose(&component->images);
    for (size_t i = 0; i < component->uses_len; i++)
        use_dispose(&component->uses[i]);
    free(component->uses);
}

void cr_catalogue_free(struct cr_catalogue *catalogue)
{
    if (!catalogue)
        return;
    for (size_t i = 0; i < catalogue->len; i++)
        component_dispose(&catalogue->items[i]);
    free(catalogue->items);
    free(catalogue);
}

/* --- reading --- */

static bool check_fields(const struct cr_node *node, const char *const *allowed, struct cr_error *err)
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
static bool read_strings(const struct cr_node *node, const char *key, struct cr_strvec *out, struct cr_error *err)
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

static bool read_roles(const struct cr_node *node, unsigned *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    if (!read_strings(node, "roles", &names, err))
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
    bool needed =
        rule->method == CR_METHOD_SIGNAL || rule->method == CR_METHOD_HTTP || rule->method == CR_METHOD_COMMAND;
    if (needed)
        return cr_node_required(node, "trigger", &rule->trigger, err);
    if (cr_node_has(node, "trigger"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.trigger belongs to Signal, HTTP and Command only", node->path);
    return true;
}

static bool read_delay(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    int64_t fallback = cr_method_default_delay_ms(rule->method);
    if (cr_node_has(node, "maxDelay") && !fallback)
        return cr_error_set(err, CR_ERR_INVALID, "%s.maxDelay belongs to Watch, PerHandshake, Poll and ApiWatch only",
                            node->path);
    if (rule->method == CR_METHOD_POLL && !cr_node_has(node, "maxDelay"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.maxDelay is required: how long may a poll take?", node->path);
    struct cr_node_range range = {.least = 0, .most = max_delay_limit_ms, .fallback = fallback};
    return cr_node_duration(node, "maxDelay", range, &rule->max_delay_ms, err);
}

static bool read_versions(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    cr_autofree char *text = NULL;
    if (!cr_node_string(node, "versions", NULL, &text, err))
        return false;
    rule->has_versions = text != NULL;
    if (text && !cr_version_range_parse(text, &rule->versions, err))
        return cr_error_wrap(err, "%s.versions", node->path);
    return true;
}

static bool read_claim(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    static const char *const words[] = {"verified", "documented", "experiment", "memory"};
    unsigned confidence = 0;
    if (!cr_node_has(node, "confidence"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.confidence is required", node->path);
    if (!cr_node_enum(node, "confidence", words, cr_array_len(words), 0, &confidence, err) ||
        !cr_node_required(node, "source", &rule->source, err) || !cr_node_string(node, "says", NULL, &rule->says, err))
        return false;
    rule->confidence = (enum cr_confidence)confidence;
    return true;
}

static bool read_rule(const struct cr_node *node, struct cr_rule *rule, struct cr_error *err)
{
    static const char *const fields[] = {"versions", "tags", "mentions",   "podMentions", "method", "maxDelay",
                                         "trigger",  "says", "confidence", "source",      NULL};
    return check_fields(node, fields, err) && read_versions(node, rule, err) &&
           read_strings(node, "tags", &rule->tags, err) && read_strings(node, "mentions", &rule->mentions, err) &&
           read_strings(node, "podMentions", &rule->pod_mentions, err) && read_method(node, rule, err) &&
           read_trigger(node, rule, err) && read_delay(node, rule, err) && read_claim(node, rule, err);
}

static bool is_conditional(const struct cr_rule *rule)
{
    return rule->has_versions || rule->tags.len || rule->mentions.len || rule->pod_mentions.len;
}

/* Each list ends in what holds otherwise, so that no container falls through it. */
static bool check_order(const struct cr_node *list, const struct cr_rule *rules, size_t len, struct cr_error *err)
{
    if (len == 0)
        return cr_error_set(err, CR_ERR_INVALID, "%s must have at least one rule", list->path);
    for (size_t i = 0; i < len; i++) {
        bool last = i + 1 == len;
        if (last && is_conditional(&rules[i]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s[%zu], the last rule, must be without a condition: what holds "
                                "otherwise?",
                                list->path, i);
        if (!last && !is_conditional(&rules[i]))
            return cr_error_set(err, CR_ERR_INVALID, "%s[%zu] has no condition, so the rules behind it never hold",
                                list->path, i);
    }
    return true;
}

static bool read_rules(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
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

static bool read_hands_on(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    if (cr_node_has(node, "rules"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.rules and handsOn exclude each other", node->path);
    return cr_node_required(node, "source", &use->source, err);
}

static bool read_use(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    static const char *const fields[] = {"flags", "env", "config", "roles", "handsOn", "source", "rules", NULL};
    return check_fields(node, fields, err) && read_strings(node, "flags", &use->flags, err) &&
           read_strings(node, "env", &use->env, err) && read_strings(node, "config", &use->config, err) &&
           read_roles(node, &use->roles, err) && cr_node_bool(node, "handsOn", false, &use->hands_on, err) &&
           (use->hands_on ? read_hands_on(node, use, err) : read_rules(node, use, err));
}

static bool read_uses(const struct cr_node *node, struct cr_component *component, struct cr_error *err)
{
    struct cr_node list;
    struct cr_node item;
    if (!cr_node_array(node, "uses", MAX_USES, &list, err))
        return false;
    if (cr_json_len(list.json) == 0)
        return cr_error_set(err, CR_ERR_INVALID, "uses must have at least one element");
    component->uses = cr_calloc(cr_json_len(list.json), sizeof *component->uses);
    for (const struct cr_json *j = cr_json_first(list.json); j; j = cr_json_next(j)) {
        size_t i = component->uses_len++;
        if (!cr_node_item(&list, j, i, &item, err) || !read_use(&item, &component->uses[i], err))
            return false;
        if (!component->uses[i].hands_on)
            component->roles |= component->uses[i].roles;
    }
    return true;
}

static void copy_rule(const struct cr_rule *from, struct cr_rule *to)
{
    *to = *from;
    to->tags = to->mentions = to->pod_mentions = (struct cr_strvec){0};
    cr_strvec_copy(&to->tags, &from->tags);
    cr_strvec_copy(&to->mentions, &from->mentions);
    cr_strvec_copy(&to->pod_mentions, &from->pod_mentions);
    to->trigger = cr_strdup_or_null(from->trigger);
    to->says = cr_strdup_or_null(from->says);
    to->source = cr_strdup_or_null(from->source);
}

static void copy_parameters(const struct cr_use *from, struct cr_use *to)
{
    cr_strvec_copy(&to->flags, &from->flags);
    cr_strvec_copy(&to->env, &from->env);
    cr_strvec_copy(&to->config, &from->config);
    to->roles = from->roles;
    to->hands_on = from->hands_on;
    to->source = cr_strdup_or_null(from->source);
}

static void copy_rules(const struct cr_use *from, struct cr_use *to)
{
    to->rules = cr_calloc(from->rules_len, sizeof *to->rules);
    for (size_t i = 0; i < from->rules_len; i++)
        copy_rule(&from->rules[i], &to->rules[to->rules_len++]);
}

/* How many of the names are parameters of the use. */
static size_t names_of_use(const struct cr_use *use, const struct cr_strvec *names)
{
    size_t found = 0;
    for (size_t i = 0; i < names->len; i++)
        found += cr_use_parameter(use, names->items[i]) != NULL;
    return found;
}

/* Another distribution of known software: the same parameters, for each of which the rules here hold instead. The rules
 * are read once per use, since each use owns its own. */
static bool copy_uses(const struct cr_component *base, const struct cr_node *node, struct cr_component *component,
                      struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec except = {0};
    if (!read_strings(node, "except", &except, err))
        return false;
    component->uses = cr_calloc(base->uses_len, sizeof *component->uses);
    component->roles = base->roles;
    size_t excepted = 0;
    for (size_t i = 0; i < base->uses_len; i++) {
        struct cr_use *use = &component->uses[component->uses_len++];
        size_t named = names_of_use(&base->uses[i], &except);
        excepted += named;
        copy_parameters(&base->uses[i], use);
        if (named || use->hands_on)
            copy_rules(&base->uses[i], use);
        else if (!read_rules(node, use, err))
            return false;
    }
    if (excepted < except.len)
        return cr_error_set(err, CR_ERR_INVALID, "except names what is no parameter of \"%s\"", base->name);
    return true;
}

static bool read_parameters_of(const struct cr_catalogue *catalogue, const struct cr_node *node, const char *base_name,
                               struct cr_component *component, struct cr_error *err)
{
    const struct cr_component *base = cr_catalogue_by_name(catalogue, base_name);
    if (!base || base == component)
        return cr_error_set(err, CR_ERR_INVALID, "parametersOf names \"%s\", which is no entry before this one",
                            base_name);
    return copy_uses(base, node, component, err);
}

static bool read_body(const struct cr_catalogue *catalogue, const struct cr_node *node, struct cr_component *component,
                      struct cr_error *err)
{
    cr_autofree char *base = NULL;
    if (!cr_node_string(node, "parametersOf", NULL, &base, err))
        return false;
    if (!base)
        return read_uses(node, component, err);
    return read_parameters_of(catalogue, node, base, component, err);
}

static bool read_component(const struct cr_catalogue *catalogue, const struct cr_node *node,
                           struct cr_component *component, struct cr_error *err)
{
    static const char *const with_uses[] = {"name", "title", "distribution", "images", "uses", NULL};
    static const char *const with_base[] = {"name",         "title",  "distribution", "images",
                                            "parametersOf", "except", "rules",        NULL};
    if (!cr_node_required(node, "name", &component->name, err))
        return false;
    const struct cr_component *twin = cr_catalogue_by_name(catalogue, component->name);
    if (twin && twin != component)
        return cr_error_set(err, CR_ERR_INVALID, "name stands twice in the catalogue");
    return check_fields(node, cr_node_has(node, "parametersOf") ? with_base : with_uses, err) &&
           cr_node_string(node, "title", NULL, &component->title, err) &&
           cr_node_string(node, "distribution", "upstream", &component->distribution, err) &&
           read_strings(node, "images", &component->images, err) && read_body(catalogue, node, component, err);
}

static bool read_catalogue(const struct cr_node *root, struct cr_catalogue *catalogue, struct cr_error *err)
{
    static const char *const fields[] = {"schema", "components", NULL};
    struct cr_node list;
    int schema = 0;
    struct cr_node_range range = {.least = SCHEMA, .most = SCHEMA};
    if (!check_fields(root, fields, err) || !cr_node_int(root, "schema", range, &schema, err) ||
        !cr_node_array(root, "components", MAX_COMPONENTS, &list, err))
        return false;
    catalogue->items = cr_calloc(cr_json_len(list.json), sizeof *catalogue->items);
    for (const struct cr_json *j = cr_json_first(list.json); j; j = cr_json_next(j)) {
        struct cr_node item;
        if (!cr_node_item(&list, j, catalogue->len, &item, err))
            return false;
        item.path[0] = '\0';
        struct cr_component *component = &catalogue->items[catalogue->len++];
        if (!read_component(catalogue, &item, component, err))
            return cr_error_wrap(err, "entry %zu (%s)", catalogue->len - 1,
                                 component->name ? component->name : "without a name");
    }
    return true;
}

struct cr_catalogue *cr_catalogue_load(const char *yaml, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *document = cr_yaml_parse(yaml, len, err);
    if (!document) {
        cr_error_wrap(err, "catalogue");
        return NULL;
    }
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_new(struct cr_catalogue);
    struct cr_node root = {.json = document};
    if (!cr_json_is_object(document)) {
        cr_error_set(err, CR_ERR_INVALID, "catalogue: must be a mapping with schema and components");
        return NULL;
    }
    if (!read_catalogue(&root, catalogue, err)) {
        cr_error_wrap(err, "catalogue");
        return NULL;
    }
    return cr_steal(&catalogue);
}

struct cr_catalogue *cr_catalogue_builtin(struct cr_error *err)
{
    return cr_catalogue_load(cr_catalogue_yaml, cr_catalogue_yaml_len, err);
}
