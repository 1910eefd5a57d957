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
