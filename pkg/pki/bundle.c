#include "pki/bundle.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "pki/x509.h"

enum { CHAIN_MAX = 32 };

struct work {
    const struct cr_bundle_input *in;
    int64_t now_ms;
    STACK_OF(X509) * cas;       /* current, then previous */
    int current;                /* so many of them are current */
    struct cr_bundle_ca *facts; /* of each */
    bool *verifies;
    enum cr_bundle_fate *fates;
    struct cr_bundle *out;
    struct cr_error *err;
};

static void work_cleanup(struct work *w)
{
    cr_x509_list_free(w->cas);
    free(w->facts);
    free(w->verifies);
    free(w->fates);
}

void cr_bundle_dispose(struct cr_bundle *bundle)
{
    free(bundle->pem);
    cr_strvec_dispose(&bundle->beyond);
    *bundle = (struct cr_bundle){0};
}

/* --- CAs --- */

static bool take(struct work *w, const struct cr_pem_input *in)
{
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, w->err);
    if (!read)
        return false;
    while (sk_X509_num(read)) {
        if (sk_X509_push(w->cas, sk_X509_value(read, 0)) <= 0)
            return cr_error_set(w->err, CR_ERR_INTERNAL, "no memory for certificates");
        (void)sk_X509_shift(read);
    }
    return sk_X509_num(w->cas) <= CR_BUNDLE_CAS_MAX
               ? true
               : cr_error_set(w->err, CR_ERR_INVALID, "there are more than %d CAs", CR_BUNDLE_CAS_MAX);
}

static void describe(struct work *w, int at)
{
    X509 *ca = sk_X509_value(w->cas, at);
    struct cr_bundle_ca *fact = &w->facts[at];
    *fact = (struct cr_bundle_ca){
        .not_after_ms = cr_x509_not_after_ms(ca), .current = at < w->current, .root = cr_x509_is_root(ca)};
    cr_x509_fingerprint(ca, fact->fingerprint);
}

static void describe_all(struct work *w)
{
    w->facts = cr_calloc((size_t)sk_X509_num(w->cas), sizeof *w->facts);
    for (int i = 0; i < sk_X509_num(w->cas); i++)
        describe(w, i);
}

static bool read_cas(struct work *w)
{
    w->cas = sk_X509_new_null();
    if (!w->cas)
        return cr_error_set(w->err, CR_ERR_INTERNAL, "no memory for certificates");
    if (!take(w, &w->in->current))
        return cr_error_wrap(w->err, "the new CA");
    w->current = sk_X509_num(w->cas);
    for (size_t i = 0; i < w->in->previous_len; i++)
        if (w->in->previous[i].len && !take(w, &w->in->previous[i]))
            return cr_error_wrap(w->err, "a previous CA");
    return true;
}

/* --- leaves --- */

struct found {
    bool now;
    bool ever;
};

static bool verify_chain(const struct work *w, STACK_OF(X509) * chain, bool *verifies, struct found *found)
{
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_paths_of_chain(chain, w->cas, true, w->err);
    if (!paths)
        return false;
    size_t sent = cr_paths_sent(chain);
    for (size_t i = 0; i < (size_t)sk_X509_num(w->cas); i++) {
        bool ever = false;
        if (!cr_paths_verify(paths, sent + i, CR_PATHS_WHEN_BOTH, w->now_ms, &verifies[i], NULL, w->err) ||
            (!verifies[i] && !cr_paths_verify(paths, sent + i, CR_PATHS_AT_NO_TIME, 0, &ever, NULL, w->err)))
            return false;
        found->now |= verifies[i];
        found->ever |= verifies[i] || ever;
    }
    return true;
}

static struct found compare_anchors(const struct work *w, const struct cr_strvec *anchors, bool *verifies)
{
    char identity[CR_SHA256_HEX];
    struct found found = {0};
    for (int i = 0; anchors && i < sk_X509_num(w->cas); i++) {
        cr_x509_identity(sk_X509_value(w->cas, i), identity);
        bool known = cr_strvec_has(anchors, identity);
        verifies[i] = known && w->facts[i].not_after_ms > w->now_ms;
        found.now |= verifies[i];
        found.ever |= known;
    }
    return found;
}

static bool find_for(struct work *w, const struct cr_bundle_leaf *leaf, bool *verifies, struct found *found)
{
    if (!leaf->chain.len) {
        *found = compare_anchors(w, leaf->anchors, verifies);
        return true;
    }
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *chain = cr_x509_read(&leaf->chain, CHAIN_MAX, w->err);
    if (chain && verify_chain(w, chain, verifies, found))
        return true;
    return cr_error_wrap(w->err, "%s", leaf->name);
}

static bool look_at_leaves(struct work *w)
{
    size_t width = (size_t)sk_X509_num(w->cas);
    w->verifies = cr_calloc(w->in->leaves_len * width + 1, sizeof *w->verifies);
    for (size_t i = 0; i < w->in->leaves_len; i++) {
        const struct cr_bundle_leaf *leaf = &w->in->leaves[i];
        struct found found = {0};
        if (!find_for(w, leaf, w->verifies + i * width, &found))
            return false;
        if (!found.ever)
            return cr_error_set(w->err, CR_ERR_INVALID,
                                "the leaf of %s is in use and verifies against no CA at hand: a bundle without its CA "
                                "would cut it off",
                                leaf->name);
        if (!found.now)
            cr_strvec_add(&w->out->beyond, leaf->name);
    }
    return true;
}

/* --- the bundle --- */

static bool write_kept(struct work *w)
{
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(CR_BUNDLE_BYTES_MAX);
    for (int i = 0; i < sk_X509_num(w->cas); i++) {
        if (w->fates[i] != CR_BUNDLE_KEPT)
            continue;
        if (!cr_x509_write(sk_X509_value(w->cas, i), &pem, w->err))
            return cr_error_wrap(w->err, "the bundle is too large");
        w->out->len++;
        w->out->previous += !w->facts[i].current;
    }
    if (w->out->len == w->out->previous)
        return cr_error_set(w->err, CR_ERR_INVALID, "the new CA has expired: it cannot be published");
    w->out->pem = cr_buf_steal(&pem);
    return true;
}

static bool make(struct work *w)
{
    if (!read_cas(w))
        return false;
    describe_all(w);
    if (!look_at_leaves(w))
        return false;
    size_t len = (size_t)sk_X509_num(w->cas);
    w->fates = cr_calloc(len, sizeof *w->fates);
    const struct cr_bundle_question question = {w->facts, len, w->verifies, w->in->leaves_len, w->in->retain_previous,
                                                w->now_ms};
    cr_bundle_choose(&question, w->fates);
    return write_kept(w);
}

bool cr_bundle_make(const struct cr_bundle_input *in, int64_t now_ms, struct cr_bundle *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    *out = (struct cr_bundle){0};
    __attribute__((cleanup(work_cleanup))) struct work w = {.in = in, .now_ms = now_ms, .out = out, .err = err};
    if (make(&w))
        return true;
    cr_bundle_dispose(out);
    return false;
}
