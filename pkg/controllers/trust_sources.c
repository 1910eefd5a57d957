#include "controllers/trust_sources.h"

#include "base/alloc.h"

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

void cr_trust_made_dispose(struct cr_trust_made *made)
{
    cr_bundle_dispose(&made->bundle);
    cr_strvec_dispose(&made->gaps);
    *made = (struct cr_trust_made){0};
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

/* Whether a bundle can be made of this that the leaf verifies against. */
static bool can_have(struct cr_bundle_input in, const struct cr_bundle_leaf *leaf, int64_t now_ms)
{
    in.leaves = leaf;
    in.leaves_len = 1;
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    return cr_bundle_make(&in, now_ms, &bundle, NULL);
}

static bool is_trusted_by(const struct cr_pem_input *cas, const struct cr_bundle_leaf *leaf, int64_t now_ms)
{
    return can_have((struct cr_bundle_input){.current = *cas}, leaf, now_ms);
}

bool cr_trust_sources_make(const struct cr_trust_sources *sources, const struct cr_pem_input *previous,
                           size_t retain_previous, int64_t now_ms, struct cr_trust_made *out, struct cr_error *err)
{
    *out = (struct cr_trust_made){0};
    struct cr_bundle_input in = {.current = {cr_buf_text(&sources->current), sources->current.len},
                                 .previous = previous,
                                 .previous_len = 1,
                                 .retain_previous = retain_previous};
    if (!cr_bundle_make(&in, now_ms, &out->bundle, err))
        return false;
    cr_bundle_dispose(&out->bundle);
    cr_autofree struct cr_bundle_leaf *leaves = cr_calloc(sources->leaves_len + 1, sizeof *leaves);
    size_t count = 0;
    for (size_t i = 0; i < sources->leaves_len; i++) {
        leaves[count] =
            (struct cr_bundle_leaf){.name = sources->leaves[i].name, .chain = cr_entry_pem(&sources->leaves[i].chain)};
        if (!can_have(in, &leaves[count], now_ms))
            continue;
        if (previous->len && !is_trusted_by(previous, &leaves[count], now_ms))
            cr_strvec_add(&out->gaps, leaves[count].name);
        count++;
    }
    in.leaves = leaves;
    in.leaves_len = count;
    if (cr_bundle_make(&in, now_ms, &out->bundle, err))
        return true;
    cr_strvec_dispose(&out->gaps);
    return false;
}
