#include "policy/controller/trust_sources.h"

#include <string.h>

#include "base/alloc.h"
#include "pki/ca_set.h"

void cr_trust_sources_dispose(struct cr_trust_sources *sources)
{
    for (size_t i = 0; i < sources->leaves_len; i++) {
        free(sources->leaves[i].name);
        cr_entry_dispose(&sources->leaves[i].chain);
    }
    free(sources->leaves);
    cr_buf_dispose(&sources->current);
    *sources = (struct cr_trust_sources){0};
}

static struct cr_trust_source_leaf *add_leaf(struct cr_trust_sources *sources, const char *secret)
{
    sources->leaves = cr_reallocarray(sources->leaves, sources->leaves_len + 1, sizeof *sources->leaves);
    struct cr_trust_source_leaf *added = &sources->leaves[sources->leaves_len++];
    *added = (struct cr_trust_source_leaf){.name = cr_asprintf("Secret %s", secret)};
    return added;
}

/* Each block begins on a line of its own. */
void cr_trust_sources_add(struct cr_trust_sources *sources, const char *secret, struct cr_entry *trust,
                          struct cr_entry *chain)
{
    if (trust->bytes.len) {
        cr_buf_puts(&sources->current, cr_buf_text(&trust->bytes));
        cr_buf_puts(&sources->current, "\n");
    }
    if (chain->bytes.len) {
        add_leaf(sources, secret)->chain = *chain;
        *chain = (struct cr_entry){0};
    }
}

bool cr_trust_sources_make(const struct cr_trust_sources *sources, const struct cr_pem_input *previous,
                           size_t retain_previous, int64_t now_ms, struct cr_bundle *out, struct cr_error *err)
{
    cr_autofree struct cr_bundle_leaf *leaves = cr_calloc(sources->leaves_len + 1, sizeof *leaves);
    for (size_t i = 0; i < sources->leaves_len; i++)
        leaves[i] =
            (struct cr_bundle_leaf){.name = sources->leaves[i].name, .chain = cr_entry_pem(&sources->leaves[i].chain)};
    const struct cr_bundle_input in = {.current = {cr_buf_text(&sources->current), sources->current.len},
                                       .previous = previous,
                                       .previous_len = 1,
                                       .retain_previous = retain_previous,
                                       .leaves = leaves,
                                       .leaves_len = sources->leaves_len,
                                       .strangers = true};
    return cr_bundle_make(&in, now_ms, out, err);
}

static bool has_issuer(const bool *issued, size_t len, size_t ca)
{
    for (size_t i = 0; i < len; i++)
        if (i != ca && issued[ca * len + i])
            return true;
    return false;
}

char *cr_trust_sources_needing(const struct cr_bundle *bundle, const struct cr_pem_input *previous)
{
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *set = cr_ca_set_new();
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *before = cr_ca_set_new();
    if (!cr_ca_set_add(set, &(struct cr_pem_input){bundle->pem, strlen(bundle->pem)}, NULL, NULL))
        return NULL;
    (void)!cr_ca_set_add(before, previous, NULL, NULL);
    cr_ca_set_sort(set);
    cr_ca_set_sort(before);
    size_t len = cr_ca_set_len(set);
    cr_autofree bool *issued = cr_calloc(len * len + 1, sizeof *issued);
    cr_ca_set_find_issuers(set, issued);
    for (size_t i = 0; i < len; i++) {
        const struct cr_ca_facts *ca = cr_ca_set_facts(set, i);
        bool is_new = cr_ca_set_find(before, ca->fingerprint) == cr_ca_set_len(before);
        if (is_new && !ca->root && !has_issuer(issued, len, i))
            return cr_strdup(ca->subject);
    }
    return NULL;
}
