/* What one entry of the catalogue takes over from another. */
#include "catalogue/catalogue_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

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

void cr_use_copy_parameters(struct cr_use *to, const struct cr_use *from)
{
    cr_strvec_copy(&to->flags, &from->flags);
    cr_strvec_copy(&to->env, &from->env);
    cr_strvec_copy(&to->config, &from->config);
    cr_strvec_copy(&to->paths, &from->paths);
    to->roles = from->roles;
    to->hands_on = from->hands_on;
    to->source = cr_strdup_or_null(from->source);
}

void cr_use_copy_rules(struct cr_use *to, const struct cr_use *from)
{
    to->rules = cr_calloc(from->rules_len, sizeof *to->rules);
    for (size_t i = 0; i < from->rules_len; i++)
        copy_rule(&to->rules[to->rules_len++], &from->rules[i]);
}

void cr_component_copy_key_types(struct cr_component *to, const struct cr_component *from)
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
