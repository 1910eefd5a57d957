/* Which roles a Secret plays in a container: from the parameters that point into the mount. */
#include "catalogue/catalogue_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "catalogue/settings.h"
#include "catalogue/usage.h"

static const unsigned leaf_roles = CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF);
static const unsigned trust_roles = CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA);
static const unsigned opaque_roles = CR_ROLE_BIT(CR_ROLE_OPAQUE);

void cr_parameter_uses_dispose(struct cr_parameter_uses *uses)
{
    free(uses->items);
    *uses = (struct cr_parameter_uses){0};
}

/* One question: this usage, in this container of this component. */
struct search {
    const struct cr_component *component;
    const struct cr_usage *usage;
    const struct cr_policy_secret *secret;
    const char *working_dir;
    struct cr_settings settings;
    struct cr_parameter_uses *out;
};

static bool same_use(const struct cr_parameter_use *a, const struct cr_parameter_use *b)
{
    return a->parameter == b->parameter && a->role == b->role && strcmp(a->key, b->key) == 0;
}

/* What a parameter of the component gives; parameter NULL: not known. */
struct gift {
    const char *parameter;
    unsigned roles;
    bool hands_on;
};

static void add_use(struct search *search, const struct gift *gift, enum cr_role role, const char *key)
{
    struct cr_parameter_use use = {.parameter = gift->parameter, .role = role, .hands_on = gift->hands_on};
    size_t len = strlen(key);
    if (len < sizeof use.key)
        memcpy(use.key, key, len + 1);
    struct cr_parameter_uses *out = search->out;
    for (size_t i = 0; i < out->len; i++)
        if (same_use(&out->items[i], &use))
            return;
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] = use;
}

static void add_roles(struct search *search, const struct gift *gift, const char *key)
{
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++)
        if (gift->roles & CR_ROLE_BIT(role))
            add_use(search, gift, (enum cr_role)role, key);
}

/* --- paths --- */

/* Owned: without empty and "." segments, ".." taken back, no slash at the end. */
static char *clean_path(const char *path)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    while (*path) {
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        if (len == 2 && strncmp(path, "..", 2) == 0)
            while (buf.len && buf.data[--buf.len] != '/')
                ;
        else if (len && !(len == 1 && *path == '.'))
            cr_buf_printf(&buf, "/%.*s", (int)len, path);
        path += len;
    }
    if (buf.data)
        buf.data[buf.len] = '\0';
    return cr_buf_steal(&buf);
}

/* Below a directory: the rest of the path; "" for the directory itself; NULL: elsewhere. */
static const char *below(const char *directory, const char *path)
{
    size_t len = strlen(directory);
    if (strncmp(path, directory, len) != 0 || (path[len] != '\0' && path[len] != '/'))
        return NULL;
    const char *rest = path[len] == '/' ? path + len + 1 : "";
    return cr_starts_with(rest, "..data/") ? rest + strlen("..data/") : rest;
}

/* The key that a path inside of the usage names: "" when the path is a directory of it, NULL when it is none of it. */
static const char *key_at(const struct cr_usage *usage, const char *path)
{
    cr_autofree char *directory = clean_path(cr_or_empty(usage->directory));
    const char *rest = below(directory, path);
    if (!rest)
        return NULL;
    for (size_t i = 0; i < usage->keys.len; i++) {
        cr_autofree char *file = clean_path(usage->paths.items[i]);
        const char *in = below(directory, file);
        if (in && strcmp(in, rest) == 0)
            return usage->keys.items[i];
        if (in && below(path, file))
            return "";
    }
    if (usage->keys.len)
        return NULL;
    /* What an unknown subPath holds is not known either; a Secret has no folders. */
    if (usage->kind == CR_USAGE_SUBPATH || !*rest)
        return "";
    return strchr(rest, '/') ? NULL : rest;
}

static bool add_path(struct search *search, const struct gift *gift, const char *text)
{
    cr_autofree char *joined = *text == '/' ? cr_strdup(text) : cr_asprintf("%s/%s", search->working_dir, text);
    cr_autofree char *path = clean_path(joined);
    const char *found = key_at(search->usage, path);
    if (!found)
        return false;
    cr_autofree char *key = cr_strdup(found);
    add_roles(search, gift, key);
    return true;
}

/* All paths of a value: "--tls-sni-cert-key=/certs/tls.crt,/certs/tls.key:example.com" has two. A whole value first: a
 * path may have any of the separators in it. */
static void add_value(struct search *search, const struct gift *gift, const char *value)
{
    static const char between[] = ",;:= \t\"'";
    if (!*value || add_path(search, gift, value))
        return;
    for (const char *p = value + strspn(value, between); *p; p += strspn(p, between)) {
        size_t len = strcspn(p, between);
        cr_autofree char *token = cr_strndup(p, len);
        if (len != strlen(value))
            add_path(search, gift, token);
        p += len;
    }
}

/* --- what the template shows --- */

static bool is_flag(const char *flag, const char *name)
{
    return strcmp(flag + strspn(flag, "-"), name) == 0;
}

/* Calls back for each parameter of the component that a setting gives. */
static void match_setting(struct search *search, const struct cr_setting *setting)
{
    for (size_t i = 0; setting->value && i < search->component->uses_len; i++) {
        const struct cr_use *use = &search->component->uses[i];
        const struct cr_strvec *names = setting->env ? &use->env : &use->flags;
        for (size_t k = 0; k < names->len; k++) {
            const char *name = names->items[k];
            struct gift gift = {.parameter = name, .roles = use->roles, .hands_on = use->hands_on};
            if (setting->env ? cr_streq(name, setting->name) : is_flag(name, setting->name))
                add_value(search, &gift, setting->value);
        }
    }
}

/* A variable that holds the material itself is a parameter by its own name. */
static void match_variables(struct search *search)
{
    const struct cr_usage *usage = search->usage;
    for (size_t i = 0; i < search->component->uses_len; i++) {
        const struct cr_use *use = &search->component->uses[i];
        for (size_t n = 0; n < use->env.len; n++) {
            struct gift gift = {.parameter = use->env.items[n], .roles = use->roles, .hands_on = use->hands_on};
            for (size_t k = 0; k < usage->keys.len; k++)
                if (cr_streq(gift.parameter, usage->paths.items[k]))
                    add_roles(search, &gift, usage->keys.items[k]);
        }
    }
}

/* What it reads without a setting. */
static void match_paths(struct search *search)
{
    for (size_t i = 0; i < search->component->uses_len; i++) {
        const struct cr_use *use = &search->component->uses[i];
        for (size_t k = 0; k < use->paths.len; k++) {
            struct gift gift = {.parameter = use->paths.items[k], .roles = use->roles, .hands_on = use->hands_on};
            add_path(search, &gift, use->paths.items[k]);
        }
    }
}

static void match_shown(struct search *search)
{
    if (search->usage->kind == CR_USAGE_ENV) {
        match_variables(search);
        return;
    }
    match_paths(search);
    for (size_t i = 0; i < search->settings.len; i++)
        match_setting(search, &search->settings.items[i]);
}

/* --- kinds of files --- */

static bool is_leaf_key(const struct cr_policy_secret *secret, const char *key)
{
    return cr_streq(key, secret->certificate) || cr_streq(key, secret->private_key);
}

/* The roles that a file of this key can play by its kind. */
static unsigned roles_of_key(const struct cr_policy_secret *secret, const char *key)
{
    if (is_leaf_key(secret, key))
        return leaf_roles;
    return cr_streq(key, secret->trust) ? trust_roles : opaque_roles;
}

/* Kinds of files that the usage brings, as a mask of the roles that they can play. */
static unsigned reachable(const struct search *search)
{
    if (search->usage->keys.len == 0)
        return leaf_roles | trust_roles | opaque_roles;
    unsigned mask = 0;
    for (size_t i = 0; i < search->usage->keys.len; i++)
        mask |= roles_of_key(search->secret, search->usage->keys.items[i]);
    return mask;
}

/* Kinds of files to which a parameter points that we see. */
static unsigned roles_shown(const struct search *search)
{
    unsigned mask = 0;
    for (size_t i = 0; i < search->out->len; i++) {
        const struct cr_parameter_use *use = &search->out->items[i];
        if (use->key[0])
            mask |= roles_of_key(search->secret, use->key);
        else
            mask |= CR_ROLE_BIT(use->role) & leaf_roles    ? leaf_roles
                    : CR_ROLE_BIT(use->role) & trust_roles ? trust_roles
                                                           : opaque_roles;
    }
    return mask;
}

/* --- what it does not show --- */

/* A parameter that is set, but to what the template does not say. */
static bool is_set_from_elsewhere(const struct search *search, bool env, const char *name)
{
    for (size_t i = 0; i < search->settings.len; i++) {
        const struct cr_setting *s = &search->settings.items[i];
        if (s->env == env && !s->value && (env ? cr_streq(name, s->name) : is_flag(name, s->name)))
            return true;
    }
    return false;
}

enum shown { FLAGS, VARIABLES, CONFIGURATION };

static void add_hidden_names(struct search *search, const struct cr_use *use, enum shown from, unsigned roles)
{
    const struct cr_strvec *names = from == FLAGS ? &use->flags : from == VARIABLES ? &use->env : &use->config;
    bool all = from == CONFIGURATION || search->settings.cut || (from == VARIABLES && search->settings.hidden_env);
    for (size_t i = 0; i < names->len; i++) {
        struct gift gift = {.parameter = names->items[i], .roles = roles};
        if (all || is_set_from_elsewhere(search, from == VARIABLES, names->items[i]))
            add_roles(search, &gift, "");
    }
}

static void add_hidden(struct search *search, unsigned roles_left)
{
    for (size_t i = 0; i < search->component->uses_len; i++) {
        const struct cr_use *use = &search->component->uses[i];
        unsigned roles = use->hands_on ? 0 : use->roles & roles_left;
        add_hidden_names(search, use, CONFIGURATION, roles);
        add_hidden_names(search, use, FLAGS, roles);
        add_hidden_names(search, use, VARIABLES, roles);
    }
}

/* All keys of the Secret come along, wanted or not: a volume without items. */
static bool takes_all(const struct search *search)
{
    return search->usage->keys.len == 0 && cr_usage_refreshes(search->usage->kind);
}

/* All roles of a kind about which the catalogue says nothing. But known software is not taken to read what merely lies
 * beside its certificates: issuers put keystores there that change with every renewal. */
static unsigned roles_or_all(const struct search *search, unsigned kind)
{
    unsigned roles = search->component ? search->component->roles & kind : 0;
    if (kind == opaque_roles && search->component && takes_all(search))
        return roles;
    return roles ? roles : kind;
}

static bool is_shown(const struct search *search, const char *key)
{
    for (size_t i = 0; i < search->out->len; i++)
        if (cr_streq(search->out->items[i].key, key))
            return true;
    return false;
}

/* A key that is picked out of a Secret has a use, whatever the catalogue knows of that use. */
static void add_picked(struct search *search)
{
    struct gift gift = {.roles = opaque_roles};
    for (size_t i = 0; i < search->usage->keys.len; i++) {
        const char *key = search->usage->keys.items[i];
        if (roles_of_key(search->secret, key) == opaque_roles && !is_shown(search, key))
            add_roles(search, &gift, key);
    }
    if (search->usage->keys.len == 0 && search->usage->kind == CR_USAGE_ENV)
        add_roles(search, &gift, "");
}

static void add_defaults(struct search *search, unsigned files)
{
    static const unsigned *const kinds[] = {&leaf_roles, &trust_roles, &opaque_roles};
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        struct gift gift = {.roles = roles_or_all(search, *kinds[i])};
        if (files & *kinds[i])
            add_roles(search, &gift, "");
    }
}

void cr_catalogue_roles(const struct cr_component *component, const struct cr_json *container,
                        const struct cr_usage *usage, const struct cr_policy_secret *secret,
                        struct cr_parameter_uses *out)
{
    *out = (struct cr_parameter_uses){0};
    struct search search = {.component = component,
                            .usage = usage,
                            .secret = secret,
                            .working_dir = cr_or_empty(cr_json_string_at(container, "workingDir")),
                            .out = out};
    unsigned files = reachable(&search);
    if (component) {
        cr_settings_collect(container, &search.settings);
        match_shown(&search);
    }
    /* Nothing is known of what was not even read. */
    unsigned shown = search.settings.cut ? 0 : roles_shown(&search);
    if (component && out->len) {
        add_hidden(&search, files & ~shown);
        add_picked(&search);
    } else {
        add_defaults(&search, files);
    }
    cr_settings_dispose(&search.settings);
}
