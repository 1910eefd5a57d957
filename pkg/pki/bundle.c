#include "pki/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "pki/bundle_cutoff.h"
#include "pki/bundle_order.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "pki/x509.h"

enum { CHAIN_MAX = 32 }; /* of a chain that is asked about */

/* Certificates of what is published, as indexes. */
struct published {
    size_t *cas;
    size_t len;
};

struct work {
    const struct cr_bundle_input *in;
    int64_t now_ms;
    STACK_OF(X509) * cas;        /* current, then previous; each once */
    size_t current;              /* so many of them are current */
    struct published *published; /* of each of in->previous */
    struct cr_bundle_ca *facts;  /* of each CA */
    STACK_OF(X509) * *chains;    /* of in->leaves; NULL: only digests are known */
    bool costly;                 /* what one of them verifies against is not known */
    X509 **certs;                /* borrowed: cas as a list */
    bool *issued;
    bool *verifies;
    enum cr_bundle_fate *fates;
    struct cr_bundle *out;
    struct cr_error *err;
};

static void work_cleanup(struct work *w)
{
    cr_x509_list_free(w->cas);
    for (size_t i = 0; w->chains && i < w->in->leaves_len; i++)
        cr_x509_list_free(w->chains[i]);
    for (size_t i = 0; w->published && i < w->in->previous_len; i++)
        free(w->published[i].cas);
    free(w->published);
    free(w->chains);
    free(w->facts);
    free(w->certs);
    free(w->issued);
    free(w->verifies);
    free(w->fates);
}

void cr_bundle_dispose(struct cr_bundle *bundle)
{
    free(bundle->pem);
    cr_strvec_dispose(&bundle->beyond);
    cr_strvec_dispose(&bundle->gaps);
    cr_strvec_dispose(&bundle->strangers);
    *bundle = (struct cr_bundle){0};
}

/* --- CAs --- */

static size_t find_ca(const struct work *w, X509 *cert)
{
    size_t at = 0;
    while (at < (size_t)sk_X509_num(w->cas) && X509_cmp(sk_X509_value(w->cas, (int)at), cert) != 0)
        at++;
    return at;
}

/* Takes it. Its index. */
static bool add_ca(struct work *w, X509 *cert, size_t *at)
{
    *at = find_ca(w, cert);
    if (*at < (size_t)sk_X509_num(w->cas)) {
        X509_free(cert);
        return true;
    }
    if (*at == CR_BUNDLE_CAS_MAX || sk_X509_push(w->cas, cert) <= 0) {
        X509_free(cert);
        return *at == CR_BUNDLE_CAS_MAX
                   ? cr_error_set(w->err, CR_ERR_INVALID, "there are more than %d CAs", CR_BUNDLE_CAS_MAX)
                   : cr_error_set(w->err, CR_ERR_INTERNAL, "no memory for certificates");
    }
    return true;
}

static bool take(struct work *w, const struct cr_pem_input *in, struct published *listed)
{
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, w->err);
    if (!read)
        return false;
    listed->cas = cr_calloc((size_t)sk_X509_num(read) + 1, sizeof *listed->cas);
    while (sk_X509_num(read)) {
        size_t at;
        size_t i = 0;
        if (!add_ca(w, sk_X509_shift(read), &at))
            return false;
        while (i < listed->len && listed->cas[i] != at)
            i++;
        listed->cas[i] = at;
        listed->len += i == listed->len;
    }
    return true;
}

static void describe(struct work *w, int at)
{
    X509 *ca = sk_X509_value(w->cas, at);
    struct cr_bundle_ca *fact = &w->facts[at];
    *fact = (struct cr_bundle_ca){.not_before_ms = cr_x509_not_before_ms(ca),
                                  .not_after_ms = cr_x509_not_after_ms(ca),
                                  .current = (size_t)at < w->current,
                                  .root = cr_x509_is_root(ca)};
    cr_x509_fingerprint(ca, fact->fingerprint);
    w->certs[at] = ca;
}

static void describe_all(struct work *w)
{
    w->facts = cr_calloc((size_t)sk_X509_num(w->cas), sizeof *w->facts);
    w->certs = cr_calloc((size_t)sk_X509_num(w->cas), sizeof(X509 *));
    for (int i = 0; i < sk_X509_num(w->cas); i++)
        describe(w, i);
}

static bool read_cas(struct work *w)
{
    struct published current = {0};
    w->published = cr_calloc(w->in->previous_len + 1, sizeof *w->published);
    w->cas = sk_X509_new_null();
    if (!w->cas)
        return cr_error_set(w->err, CR_ERR_INTERNAL, "no memory for certificates");
    bool taken = take(w, &w->in->current, &current);
    free(current.cas);
    if (!taken)
        return cr_error_wrap(w->err, "the new CA");
    w->current = (size_t)sk_X509_num(w->cas);
    for (size_t i = 0; i < w->in->previous_len; i++)
        if (w->in->previous[i].len && !take(w, &w->in->previous[i], &w->published[i]))
            return cr_error_wrap(w->err, "a previous CA");
    return true;
}

/* --- leaves --- */

struct found {
    bool now;
    bool ever;
    bool before; /* ever, against one that is in the first of previous */
};

static bool is_published(const struct work *w, int at)
{
    for (size_t i = 0; w->in->previous_len && i < w->published[0].len; i++)
        if (w->published[0].cas[i] == (size_t)at)
            return true;
    return false;
}

static bool verify_chain(const struct work *w, STACK_OF(X509) * chain, bool *verifies, struct found *found,
                         struct cr_error *err)
{
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_paths_of_chain(chain, w->cas, true, err);
    if (!paths)
        return false;
    size_t sent = cr_paths_sent(chain);
    cr_paths_ask_as_go(paths);
    for (size_t i = 0; i < (size_t)sk_X509_num(w->cas); i++) {
        bool ever = false;
        if (!cr_paths_verify(paths, sent + i, CR_PATHS_WHEN_BOTH, w->now_ms, &verifies[i], NULL, err) ||
            (!verifies[i] && !cr_paths_verify(paths, sent + i, CR_PATHS_AT_NO_TIME, 0, &ever, NULL, err)))
            return false;
        found->now |= verifies[i];
        found->ever |= verifies[i] || ever;
        found->before |= (verifies[i] || ever) && is_published(w, (int)i);
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
        found.before |= known && is_published(w, i);
    }
    return found;
}

/* Servers send longer ones, and clients verify them: such a leaf is one of which nothing is known. */
static bool is_short(const STACK_OF(X509) * chain, struct cr_error *err)
{
    return sk_X509_num(chain) <= CHAIN_MAX ||
           cr_error_set(err, CR_ERR_INVALID, "its chain has more than %d certificates", CHAIN_MAX);
}

static bool find_for(struct work *w, size_t at, bool *verifies, struct found *found)
{
    const struct cr_bundle_leaf *leaf = &w->in->leaves[at];
    if (!leaf->chain.len) {
        *found = compare_anchors(w, leaf->anchors, verifies);
        return true;
    }
    struct cr_error err = {0};
    w->chains[at] = cr_x509_read(&leaf->chain, CR_BUNDLE_CAS_MAX, w->in->strangers ? NULL : w->err);
    if (!w->chains[at])
        return w->in->strangers || cr_error_wrap(w->err, "%s", leaf->name);
    if (is_short(w->chains[at], &err) && verify_chain(w, w->chains[at], verifies, found, &err))
        return true;
    w->costly = err.kind == CR_ERR_INVALID;
    *found = (struct found){true, true, true}; /* nothing is said of it */
    return w->costly || cr_error_set(w->err, err.kind, "%s: %s", leaf->name, err.text);
}

static bool note_leaf(struct work *w, size_t at, const struct found *found)
{
    const char *name = w->in->leaves[at].name;
    if (!found->ever)
        cr_strvec_add(&w->out->strangers, name);
    if (!found->ever)
        return w->in->strangers ||
               cr_error_set(w->err, CR_ERR_INVALID,
                            "the leaf of %s is in use and verifies against no CA at hand: a bundle without its CA "
                            "would cut it off",
                            name);
    if (!found->now)
        cr_strvec_add(&w->out->beyond, name);
    if (w->in->previous_len && w->in->previous[0].len && !found->before)
        cr_strvec_add(&w->out->gaps, name);
    return true;
}

static bool look_at_leaves(struct work *w)
{
    size_t width = (size_t)sk_X509_num(w->cas);
    w->verifies = cr_calloc(w->in->leaves_len * width + 1, sizeof *w->verifies);
    w->chains = cr_calloc(w->in->leaves_len + 1, sizeof *w->chains);
    for (size_t i = 0; i < w->in->leaves_len; i++) {
        struct found found = {0};
        if (!find_for(w, i, w->verifies + i * width, &found) || !note_leaf(w, i, &found))
            return false;
    }
    return true;
}

/* --- who would be cut off --- */

/* Strangers, too: a client may verify what RFC 5280 does not let pass. Which are asked for, in asked. */
static bool add_leaves(struct work *w, struct cr_cutoff *cutoff, size_t *asked)
{
    size_t len = 0;
    for (size_t i = 0; i < w->in->leaves_len && !cr_cutoff_is_spent(cutoff); i++) {
        struct cr_error err = {0};
        if (!w->chains[i])
            continue;
        asked[len++] = i;
        if (cr_cutoff_add_leaf(cutoff, w->chains[i], &err))
            continue;
        if (err.kind != CR_ERR_INVALID)
            return cr_error_set(w->err, err.kind, "%s", err.text);
        cr_cutoff_spend(cutoff);
    }
    return true;
}

static enum cr_order_wish wish_of(const struct work *w, size_t at)
{
    switch (w->fates[at]) {
    case CR_BUNDLE_KEPT:
        return w->facts[at].current ? CR_ORDER_MUST : CR_ORDER_WANTED;
    case CR_BUNDLE_RETIRED:
        return CR_ORDER_SPARE;
    case CR_BUNDLE_EXPIRED:
    case CR_BUNDLE_DUPLICATE:
        break;
    }
    return CR_ORDER_OUT;
}

/* What the rule wants; or with grown all of that bundle, in its order. */
static void wish(const struct work *w, const struct cr_ordered *grown, enum cr_order_wish *wishes, size_t *preferred)
{
    size_t len = (size_t)sk_X509_num(w->cas);
    size_t next = 0;
    cr_autofree bool *done = cr_calloc(len + 1, sizeof *done);
    for (size_t i = 0; grown && i < grown->len; i++) {
        wishes[grown->bundle[i]] = CR_ORDER_MUST;
        preferred[next++] = grown->bundle[i];
        done[grown->bundle[i]] = true;
    }
    for (size_t i = 0; i < len; i++) {
        if (done[i])
            continue;
        wishes[i] = grown ? CR_ORDER_OUT : wish_of(w, i);
        preferred[next++] = i;
    }
}

static void arrange(struct work *w, struct cr_cutoff *cutoff, const struct cr_ordered *grown,
                    struct cr_ordered *ordered)
{
    size_t len = (size_t)sk_X509_num(w->cas);
    cr_autofree enum cr_order_wish *wishes = cr_calloc(len, sizeof *wishes);
    cr_autofree size_t *preferred = cr_calloc(len, sizeof *preferred);
    struct cr_order_question question = {
        .wishes = wishes, .preferred = preferred, .len = len, .as_it_is = grown != NULL};
    wish(w, grown, wishes, preferred);
    if (w->in->previous_len) {
        question.published = w->published[0].cas;
        question.published_len = w->published[0].len;
    }
    cr_bundle_arrange(cutoff, &question, ordered);
}

static bool refuse(struct work *w, const struct cr_ordered *ordered, const size_t *asked)
{
    return cr_error_set(
        w->err, CR_ERR_INVALID,
        "%s: %s verifies its leaf with what is published, and would with no bundle that has the new CA: "
        "two CAs that clients take for one another cannot stand in one bundle",
        w->in->leaves[asked[ordered->leaf]].name, cr_bundle_client_name(ordered->client));
}

/* *asked_all: each leaf can be asked about at all. */
static bool ask_clients(struct work *w, const struct cr_ordered *grown, struct cr_ordered *ordered, size_t *asked,
                        bool *asked_all)
{
    size_t len = (size_t)sk_X509_num(w->cas);
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(w->certs, len, w->now_ms);
    for (size_t i = 0; i < w->in->previous_len; i++)
        if (w->published[i].len)
            cr_cutoff_add_published(cutoff, w->published[i].cas, w->published[i].len);
    if (w->costly)
        cr_cutoff_spend(cutoff);
    if (!add_leaves(w, cutoff, asked))
        return false;
    *asked_all = !cr_cutoff_is_spent(cutoff);
    arrange(w, cutoff, grown, ordered);
    return true;
}

/* Too many bundles were tried. What is left to be tried is one: what is published, and what is new behind it. */
static bool grow(struct work *w, struct cr_ordered *ordered, size_t *asked)
{
    bool asked_all = false;
    CR_CLEANUP(cr_ordered) struct cr_ordered grown = *ordered;
    *ordered = (struct cr_ordered){0};
    if (!ask_clients(w, &grown, ordered, asked, &asked_all))
        return false;
    return ordered->proof == CR_BUNDLE_PROVED ||
           cr_error_set(w->err, CR_ERR_INVALID,
                        "to verify all leaves in use with another bundle would take more than certroll may spend, and "
                        "with the new CAs behind the published ones it is not proved either: it stays as it is");
}

static bool keep_all_leaves(struct work *w, struct cr_ordered *ordered)
{
    bool asked_all = false;
    cr_autofree size_t *asked = cr_calloc(w->in->leaves_len + 1, sizeof *asked);
    if (!ask_clients(w, NULL, ordered, asked, &asked_all))
        return false;
    w->out->proof = ordered->proof;
    if (ordered->proof == CR_BUNDLE_TOO_COSTLY && asked_all)
        return grow(w, ordered, asked);
    return ordered->bundle || refuse(w, ordered, asked);
}

/* --- the bundle --- */

static bool write_bundle(struct work *w, const struct cr_ordered *ordered)
{
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(CR_BUNDLE_BYTES_MAX);
    for (size_t i = 0; i < ordered->len; i++) {
        w->out->previous += ordered->bundle[i] >= w->current;
        if (!cr_x509_write(w->certs[ordered->bundle[i]], &pem, w->err))
            return cr_error_wrap(w->err, "the bundle is too large");
    }
    w->out->len = ordered->len;
    w->out->pem = cr_buf_steal(&pem);
    return w->out->len > w->out->previous ||
           cr_error_set(w->err, CR_ERR_INVALID, "the new CA has expired: it cannot be published");
}

static bool make(struct work *w)
{
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered = {0};
    if (!read_cas(w))
        return false;
    describe_all(w);
    if (!look_at_leaves(w))
        return false;
    size_t len = (size_t)sk_X509_num(w->cas);
    w->fates = cr_calloc(len, sizeof *w->fates);
    w->issued = cr_calloc(len * len, sizeof *w->issued);
    cr_x509_find_issuers(w->certs, len, w->issued);
    const struct cr_bundle_question question = {.cas = w->facts,
                                                .cas_len = len,
                                                .issued = w->issued,
                                                .verifies = w->verifies,
                                                .leaves_len = w->in->leaves_len,
                                                .retain_previous = w->in->retain_previous,
                                                .now_ms = w->now_ms};
    cr_bundle_choose(&question, w->fates);
    return keep_all_leaves(w, &ordered) && write_bundle(w, &ordered);
}

bool cr_bundle_make(const struct cr_bundle_input *in, int64_t now_ms, struct cr_bundle *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    *out = (struct cr_bundle){0};
    __attribute__((cleanup(work_cleanup))) struct work w = {.in = in, .now_ms = now_ms, .out = out, .err = err};
    if (make(&w))
        return true;
    enum cr_bundle_proof proof = out->proof;
    cr_bundle_dispose(out);
    out->proof = proof;
    return false;
}
