/* Whether the software takes the new leaf's kind of key at all. */
#include "policy/rules/decide_internal.h"

#include "base/alloc.h"

enum {
    OWN_LEAF = CR_ROLE_BIT(CR_ROLE_SERVER_LEAF) | CR_ROLE_BIT(CR_ROLE_CLIENT_LEAF),
    LEAF_OF_PEER = CR_ROLE_BIT(CR_ROLE_CLIENT_CA) | CR_ROLE_BIT(CR_ROLE_SERVER_CA),
};

bool cr_finding_refuses_key(const struct cr_finding *finding, const struct cr_program *program,
                            const struct cr_secret_change *change)
{
    unsigned asked = CR_ROLE_BIT(finding->role) & (change->key_roles ? change->key_roles : OWN_LEAF);
    bool met =
        finding->class == CR_CLASS_LEAF ? asked & OWN_LEAF : finding->class == CR_CLASS_TRUST && (asked & LEAF_OF_PEER);
    return met && cr_catalogue_accepts(program, change->key_type, finding->role) == CR_ACCEPTANCE_NO;
}

char *cr_decide_not_accepted(const struct cr_decide_input *input, const struct cr_findings *findings)
{
    for (size_t i = 0; i < findings->len; i++) {
        const struct cr_finding *finding = &findings->items[i];
        if (!finding->not_accepted)
            continue;
        const struct cr_secret_change *change = &input->changes[finding->secret];
        char title[128];
        cr_component_title(finding->component, title, sizeof title);
        return cr_asprintf("%s takes no leaf with a key of type %s, which Secret %s has now", title, change->key_type,
                           change->secret->name);
    }
    return NULL;
}

/* As of a change of all that is in the Secret. */
char *cr_decide_refuses_key(const struct cr_policy_consumer *consumer, const struct cr_json *pod_spec,
                            const struct cr_catalogue *catalogue, const struct cr_policy_secret *secret,
                            const char *key_type, unsigned roles)
{
    const struct cr_secret_change change = {.secret = secret,
                                            .changes =
                                                CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED | CR_CHANGE_TRUST_ADDED,
                                            .key_type = key_type,
                                            .key_roles = roles};
    const struct cr_decide_input input = {
        .consumer = consumer, .pod_spec = pod_spec, .catalogue = catalogue, .changes = &change, .changes_len = 1};
    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&input, &decision);
    if (!decision.not_accepted)
        return NULL;
    return decision.component ? cr_steal(&decision.component) : cr_strdup("software");
}
