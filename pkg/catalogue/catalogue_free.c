/* Frees the catalogue. */
#include "catalogue/catalogue_internal.h"

#include "base/alloc.h"

static void rule_dispose(struct cr_rule *rule)
{
    cr_strvec_dispose(&rule->tags);
    cr_strvec_dispose(&rule->mentions);
    cr_strvec_dispose(&rule->pod_mentions);
    cr_strvec_dispose(&rule->settings);
    free(rule->trigger);
    free(rule->says);
    free(rule->source);
}

static void use_dispose(struct cr_use *use)
{
    cr_strvec_dispose(&use->flags);
    cr_strvec_dispose(&use->env);
    cr_strvec_dispose(&use->config);
    cr_strvec_dispose(&use->paths);
    free(use->source);
    for (size_t i = 0; i < use->rules_len; i++)
        rule_dispose(&use->rules[i]);
    free(use->rules);
}

void cr_component_dispose(struct cr_component *component)
{
    free(component->name);
    free(component->title);
    free(component->distribution);
    free(component->note);
    cr_strvec_dispose(&component->images);
    for (size_t i = 0; i < component->uses_len; i++)
        use_dispose(&component->uses[i]);
    free(component->uses);
    for (size_t i = 0; i < component->key_types_len; i++) {
        cr_strvec_dispose(&component->key_types[i].types);
        free(component->key_types[i].source);
    }
    free(component->key_types);
}

void cr_catalogue_free(struct cr_catalogue *catalogue)
{
    if (!catalogue)
        return;
    for (size_t i = 0; i < catalogue->len; i++)
        cr_component_dispose(&catalogue->items[i]);
    free(catalogue->items);
    free(catalogue);
}
