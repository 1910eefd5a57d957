/* From YAML texts to the catalogue: entries, what they take from others, and which replaces which. */
#include "catalogue/catalogue_internal.h"

#include <string.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"

/* --- what one entry of the catalogue takes over from another --- */

static void copy_rule(struct cr_rule *to, const struct cr_rule *from)
{
    *to = *from;
    to->tags = to->mentions = to->pod_mentions = to->settings = (struct cr_strvec){0};
    cr_strvec_copy(&to->tags, &from->tags);
    cr_strvec_copy(&to->mentions, &from->mentions);
    cr_strvec_copy(&to->pod_mentions, &from->pod_mentions);
    cr_strvec_copy(&to->settings, &from->settings);
    to->trigger = cr_strdup_or_null(from->trigger);
    to->says = cr_strdup_or_null(from->says);
    to->source = cr_strdup_or_null(from->source);
}

/* --- catalogue_load.c --- */
static void use_copy_parameters(struct cr_use *to, const struct cr_use *from)
{
    cr_strvec_copy(&to->flags, &from->flags);
    cr_strvec_copy(&to->env, &from->env);
    cr_strvec_copy(&to->config, &from->config);
    cr_strvec_copy(&to->paths, &from->paths);
    to->roles = from->roles;
    to->hands_on = from->hands_on;
    to->source = cr_strdup_or_null(from->source);
}

static void use_copy_rules(struct cr_use *to, const struct cr_use *from)
{
    to->rules = cr_calloc(from->rules_len, sizeof *to->rules);
    for (size_t i = 0; i < from->rules_len; i++)
        copy_rule(&to->rules[to->rules_len++], &from->rules[i]);
}

static void component_copy_key_types(struct cr_component *to, const struct cr_component *from)
{
    to->key_types = cr_calloc(from->key_types_len, sizeof *to->key_types);
    for (size_t i = 0; i < from->key_types_len; i++) {
        struct cr_key_types *entry = &to->key_types[to->key_types_len++];
        *entry = from->key_types[i];
        entry->types = (struct cr_strvec){0};
        cr_strvec_copy(&entry->types, &from->key_types[i].types);
        entry->source = cr_strdup_or_null(from->key_types[i].source);
    }
}

enum { MAX_COMPONENTS = 500, MAX_USES = 64, SCHEMA = 1 };

/* --- uses --- */

static bool read_hands_on(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    if (cr_node_has(node, "rules"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.rules and handsOn exclude each other", node->path);
    return cr_node_required(node, "source", &use->source, err);
}

static bool read_parameters(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    return cr_catalogue_read_strings(node, "flags", &use->flags, err) &&
           cr_catalogue_read_strings(node, "env", &use->env, err) &&
           cr_catalogue_read_strings(node, "config", &use->config, err) &&
           cr_catalogue_read_strings(node, "paths", &use->paths, err);
}

static bool read_use(const struct cr_node *node, struct cr_use *use, struct cr_error *err)
{
    static const char *const fields[] = {"flags",   "env",    "config", "paths", "roles",
                                         "handsOn", "source", "rules",  NULL};
    return cr_catalogue_read_fields(node, fields, err) && read_parameters(node, use, err) &&
           cr_catalogue_read_roles(node, &use->roles, err) &&
           cr_node_bool(node, "handsOn", false, &use->hands_on, err) &&
           (use->hands_on ? read_hands_on(node, use, err) : cr_catalogue_read_rules(node, use, err));
}

static void add_roles_of(struct cr_component *component, const struct cr_use *use)
{
    if (!use->hands_on)
        component->roles |= use->roles;
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
        add_roles_of(component, &component->uses[i]);
    }
    return true;
}

/* --- what is taken from another entry --- */

/* How many of the names are parameters of the use. */
static size_t names_of_use(const struct cr_use *use, const struct cr_strvec *names)
{
    size_t found = 0;
    for (size_t i = 0; i < names->len; i++)
        found += cr_use_parameter(use, names->items[i]) != NULL;
    return found;
}

static bool share_a_parameter(const struct cr_use *a, const struct cr_use *b)
{
    return names_of_use(a, &b->flags) || names_of_use(a, &b->env) || names_of_use(a, &b->config) ||
           names_of_use(a, &b->paths);
}

/* The entry's own uses stand instead of those of the base that share a parameter with them. */
static bool has_use_of_its_own(const struct cr_component *component, size_t own, const struct cr_use *of_base)
{
    for (size_t i = 0; i < own; i++)
        if (share_a_parameter(&component->uses[i], of_base))
            return true;
    return false;
}

/* Another distribution of known software: the same parameters, for each of which the rules here hold instead. The rules
 * are read once per use, since each use owns its own. */
static bool copy_uses(const struct cr_component *base, const struct cr_node *node, struct cr_component *component,
                      struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec except = {0};
    if (!cr_catalogue_read_strings(node, "except", &except, err))
        return false;
    size_t own = component->uses_len;
    component->uses = cr_reallocarray(component->uses, own + base->uses_len, sizeof *component->uses);
    size_t excepted = 0;
    for (size_t i = 0; i < base->uses_len; i++) {
        if (has_use_of_its_own(component, own, &base->uses[i]))
            continue;
        struct cr_use *use = &component->uses[component->uses_len++];
        *use = (struct cr_use){0};
        size_t named = names_of_use(&base->uses[i], &except);
        excepted += named;
        use_copy_parameters(use, &base->uses[i]);
        add_roles_of(component, use);
        if (named || use->hands_on)
            use_copy_rules(use, &base->uses[i]);
        else if (!cr_catalogue_read_rules(node, use, err))
            return false;
    }
    if (excepted < except.len)
        return cr_error_set(err, CR_ERR_INVALID, "except names what is no parameter of \"%s\"", base->name);
    return true;
}

/* The newest entry of the name, but for one that is still being read. */
static struct cr_component *find(const struct cr_catalogue *catalogue, const char *name, const struct cr_component *but)
{
    for (size_t i = catalogue->len; i > 0; i--)
        if (&catalogue->items[i - 1] != but && cr_streq(catalogue->items[i - 1].name, name))
            return &catalogue->items[i - 1];
    return NULL;
}

static bool read_parameters_of(const struct cr_catalogue *catalogue, const struct cr_node *node, const char *base_name,
                               struct cr_component *component, struct cr_error *err)
{
    const struct cr_component *base = find(catalogue, base_name, component);
    if (!base)
        return cr_error_set(err, CR_ERR_INVALID, "parametersOf names \"%s\", which is no entry before this one",
                            base_name);
    if (cr_node_has(node, "uses") && !read_uses(node, component, err))
        return false;
    if (!cr_node_has(node, "keyTypes"))
        component_copy_key_types(component, base);
    return copy_uses(base, node, component, err);
}

/* --- entries --- */

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

static bool read_head(const struct cr_node *node, struct cr_component *component, struct cr_error *err)
{
    static const char *const with_uses[] = {"name", "title",    "note", "distribution", "library", "images",
                                            "uses", "keyTypes", NULL};
    static const char *const with_base[] = {"name", "title",        "note",   "distribution", "library",  "images",
                                            "uses", "parametersOf", "except", "rules",        "keyTypes", NULL};
    return cr_catalogue_read_fields(node, cr_node_has(node, "parametersOf") ? with_base : with_uses, err) &&
           cr_node_string(node, "title", NULL, &component->title, err) &&
           cr_node_string(node, "note", NULL, &component->note, err) &&
           cr_node_string(node, "distribution", "upstream", &component->distribution, err) &&
           cr_node_bool(node, "library", false, &component->library, err) &&
           cr_catalogue_read_strings(node, "images", &component->images, err) &&
           (!cr_node_has(node, "keyTypes") || cr_catalogue_read_key_types(node, component, err));
}

static bool read_component(const struct cr_catalogue *catalogue, const struct cr_node *node,
                           struct cr_component *component, struct cr_error *err)
{
    if (!cr_node_required(node, "name", &component->name, err))
        return false;
    if (strchr(component->name, '@'))
        return cr_error_set(err, CR_ERR_INVALID, "name must be without \"@\", which begins a version in policies");
    struct cr_component *twin = find(catalogue, component->name, component);
    if (twin && twin->layer == component->layer)
        return cr_error_set(err, CR_ERR_INVALID, "name stands twice in the catalogue");
    if (!read_head(node, component, err) || !read_body(catalogue, node, component, err))
        return false;
    if (twin)
        twin->replaced = true;
    return true;
}

/* --- texts --- */

static bool read_entries(const struct cr_node *list, unsigned layer, struct cr_catalogue *catalogue,
                         struct cr_error *err)
{
    size_t count = cr_json_len(list->json);
    catalogue->items = cr_reallocarray(catalogue->items, catalogue->len + count, sizeof *catalogue->items);
    size_t index = 0;
    for (const struct cr_json *j = cr_json_first(list->json); j; j = cr_json_next(j), index++) {
        struct cr_node item;
        if (!cr_node_item(list, j, index, &item, err))
            return false;
        item.path[0] = '\0';
        struct cr_component *component = &catalogue->items[catalogue->len++];
        *component = (struct cr_component){.layer = layer};
        if (!read_component(catalogue, &item, component, err))
            return cr_error_wrap(err, "entry %zu (%s)", index, component->name ? component->name : "without a name");
    }
    return true;
}

static bool read_document(const struct cr_json *document, unsigned layer, struct cr_catalogue *catalogue,
                          struct cr_error *err)
{
    static const char *const fields[] = {"schema", "components", NULL};
    if (!cr_json_is_object(document))
        return cr_error_set(err, CR_ERR_INVALID, "must be a mapping with schema and components");
    struct cr_node root = {.json = document};
    struct cr_node list;
    int schema = 0;
    struct cr_node_range range = {.least = SCHEMA, .most = SCHEMA};
    return cr_catalogue_read_fields(&root, fields, err) && cr_node_int(&root, "schema", range, &schema, err) &&
           cr_node_array(&root, "components", MAX_COMPONENTS, &list, err) && read_entries(&list, layer, catalogue, err);
}

static bool read_text(const struct cr_catalogue_text *text, unsigned layer, struct cr_catalogue *catalogue,
                      struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *document = cr_yaml_parse(text->yaml, text->len, err);
    return document && read_document(document, layer, catalogue, err);
}

static bool read_builtin(struct cr_catalogue *catalogue, struct cr_error *err)
{
    for (size_t i = 0; i < cr_catalogue_files_len; i++) {
        const struct cr_catalogue_file *file = &cr_catalogue_files[i];
        struct cr_catalogue_text text = {.name = file->name, .yaml = file->text, .len = *file->len};
        if (!read_text(&text, 0, catalogue, err))
            return cr_error_wrap(err, "built-in catalogue, %s", file->name);
    }
    return true;
}

/* A replaced entry blocks no other any more. */
static void drop_replaced(struct cr_catalogue *catalogue)
{
    size_t kept = 0;
    for (size_t i = 0; i < catalogue->len; i++) {
        if (catalogue->items[i].replaced)
            cr_component_dispose(&catalogue->items[i]);
        else
            catalogue->items[kept++] = catalogue->items[i];
    }
    catalogue->len = kept;
}

struct cr_catalogue *cr_catalogue_load(const char *yaml, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_new(struct cr_catalogue);
    struct cr_catalogue_text text = {.yaml = yaml, .len = len};
    if (!read_text(&text, 0, catalogue, err)) {
        cr_error_wrap(err, "catalogue");
        return NULL;
    }
    return cr_steal(&catalogue);
}

struct cr_catalogue *cr_catalogue_builtin(struct cr_error *err)
{
    return cr_catalogue_override(NULL, 0, err);
}

struct cr_catalogue *cr_catalogue_override(const struct cr_catalogue_text *texts, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_new(struct cr_catalogue);
    if (!read_builtin(catalogue, err))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (!read_text(&texts[i], 1, catalogue, err)) {
            cr_error_wrap(err, "%s", texts[i].name);
            return NULL;
        }
    }
    drop_replaced(catalogue);
    return cr_steal(&catalogue);
}
