/* Whether the software takes the new leaf's kind of key at all. */
#include "rotation/decide_internal.h"

#include "base/alloc.h"

/* Only a leaf of its own: whose leaf a CA will verify is in another Secret. */
bool cr_finding_refuses_key(const struct cr_finding *finding, const struct cr_program *program, const char *key_type)
{
    bool own = finding->role == CR_ROLE_SERVER_LEAF || finding->role == CR_ROLE_CLIENT_LEAF;
    return own && finding->class == CR_CLASS_LEAF &&
           cr_catalogue_accepts(program, key_type, finding->role) == CR_ACCEPTANCE_NO;
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

/* As of a change of the whole leaf. */
char *cr_decide_refuses_key(const struct cr_policy_consumer *consumer, const struct cr_json *pod_spec,
                            const struct cr_catalogue *catalogue, const struct cr_policy_secret *secret,
                            const char *key_type)
{
    const struct cr_secret_change change = {
        .secret = secret, .changes = CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED, .key_type = key_type};
    const struct cr_decide_input input = {
        .consumer = consumer, .pod_spec = pod_spec, .catalogue = catalogue, .changes = &change, .changes_len = 1};
    CR_CLEANUP(cr_decision) struct cr_decision decision = {0};
    cr_decide(&input, &decision);
    if (!decision.not_accepted)
        return NULL;
    return decision.component ? cr_steal(&decision.component) : cr_strdup("software");
}
