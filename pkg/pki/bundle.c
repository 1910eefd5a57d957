#include "pki/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "pki/bundle_cutoff.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "pki/x509.h"

enum {
    CHAIN_MAX = 32,
    DROPS_MAX = 64, /* tries to do without one: each loads the whole bundle once more */
};

struct work {
    const struct cr_bundle_input *in;
    int64_t now_ms;
    STACK_OF(X509) * cas;       /* current, then previous */
    int current;                /* so many of them are current */
    int *ends;                  /* where each of in->previous ends among them */
    struct cr_bundle_ca *facts; /* of each */
    STACK_OF(X509) * *chains;   /* of in->leaves; NULL: only digests are known */
    bool *left_out;             /* of in->leaves: strangers */
    bool costly;                /* what one of them verifies against is not known */
    bool *issued;
    bool *verifies;
    enum cr_bundle_fate *fates;
    bool new_last;  /* the order of the bundle: what is current comes behind what is published */
    X509 **ordered; /* borrowed; in the order of the bundle */
    size_t ordered_len;
    struct cr_bundle *out;
    struct cr_error *err;
};

static void work_cleanup(struct work *w)
{
    cr_x509_list_free(w->cas);
    for (size_t i = 0; w->chains && i < w->in->leaves_len; i++)
        cr_x509_list_free(w->chains[i]);
    free(w->chains);
    free(w->left_out);
    free(w->ends);
    free(w->facts);
    free(w->issued);
    free(w->verifies);
    free(w->fates);
    free(w->ordered);
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
    *fact = (struct cr_bundle_ca){.not_before_ms = cr_x509_not_before_ms(ca),
                                  .not_after_ms = cr_x509_not_after_ms(ca),
                                  .current = at < w->current,
                                  .root = cr_x509_is_root(ca)};
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
    w->ends = cr_calloc(w->in->previous_len + 1, sizeof *w->ends);
    for (size_t i = 0; i < w->in->previous_len; i++) {
        if (w->in->previous[i].len && !take(w, &w->in->previous[i]))
            return cr_error_wrap(w->err, "a previous CA");
        w->ends[i] = sk_X509_num(w->cas);
    }
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
    return w->in->previous_len && at >= w->current && at < w->ends[0];
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

static bool find_for(struct work *w, size_t at, bool *verifies, struct found *found)
{
    const struct cr_bundle_leaf *leaf = &w->in->leaves[at];
    if (!leaf->chain.len) {
        *found = compare_anchors(w, leaf->anchors, verifies);
        return true;
    }
    struct cr_error err = {0};
    w->chains[at] = cr_x509_read(&leaf->chain, CHAIN_MAX, w->in->strangers ? NULL : w->err);
    if (!w->chains[at])
        return w->in->strangers || cr_error_wrap(w->err, "%s", leaf->name);
    if (verify_chain(w, w->chains[at], verifies, found, &err))
        return true;
    w->costly = err.kind == CR_ERR_INVALID;
    *found = (struct found){true, true, true}; /* nothing is said of it */
    return w->costly || cr_error_set(w->err, err.kind, "%s: %s", leaf->name, err.text);
}

static bool note_leaf(struct work *w, size_t at, const struct found *found)
{
    const char *name = w->in->leaves[at].name;
    w->left_out[at] = !found->ever;
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
    w->left_out = cr_calloc(w->in->leaves_len + 1, sizeof *w->left_out);
    for (size_t i = 0; i < w->in->leaves_len; i++) {
        struct found found = {0};
        if (!find_for(w, i, w->verifies + i * width, &found) || !note_leaf(w, i, &found))
            return false;
    }
    return true;
}

/* --- who would be cut off --- */

/* The first of its copies, which is the one that is kept. */
static int first_of(const struct work *w, int at)
{
    int first = 0;
    while (strcmp(w->facts[first].fingerprint, w->facts[at].fingerprint) != 0)
        first++;
    return first;
}

static void put(struct work *w, int at, bool *done)
{
    if (w->fates[at] != CR_BUNDLE_KEPT || done[at])
        return;
    done[at] = true;
    w->ordered[w->ordered_len++] = sk_X509_value(w->cas, at);
}

/* What is kept, in the order of the bundle. */
static void put_in_order(struct work *w)
{
    cr_autofree bool *done = cr_calloc((size_t)sk_X509_num(w->cas) + 1, sizeof *done);
    w->ordered_len = 0;
    for (int i = w->current; w->new_last && w->in->previous_len && i < w->ends[0]; i++)
        put(w, first_of(w, i), done);
    for (int i = 0; i < sk_X509_num(w->cas); i++)
        put(w, i, done);
}

static bool add_published(struct work *w, struct cr_cutoff *cutoff)
{
    int begin = w->current;
    for (size_t i = 0; i < w->in->previous_len; begin = w->ends[i++]) {
        size_t len = 0;
        for (int at = begin; at < w->ends[i]; at++)
            w->ordered[len++] = sk_X509_value(w->cas, at);
        if (len && !cr_cutoff_add_published(cutoff, w->ordered, len, w->err))
            return false;
    }
    return true;
}

/* Those that are left out verify with nothing, so nothing can cut them off. *len: how many are asked for; which, in
 * asked. */
static bool add_leaves(struct work *w, struct cr_cutoff *cutoff, size_t *asked, bool *spent)
{
    size_t len = 0;
    for (size_t i = 0; i < w->in->leaves_len && !*spent; i++) {
        struct cr_error err = {0};
        if (!w->chains[i] || w->left_out[i])
            continue;
        if (!cr_cutoff_add_leaf(cutoff, w->chains[i], &err)) {
            *spent = err.kind == CR_ERR_INVALID;
            if (!*spent)
                return cr_error_set(w->err, err.kind, "%s", err.text);
        }
        asked[len++] = i;
        *spent |= cr_cutoff_is_spent(cutoff);
    }
    return true;
}

struct guard {
    struct cr_cutoff *cutoff;
    size_t *asked; /* which of the leaves */
    bool spent;
    int clients;                  /* that are to be kept: CR_CLIENTS or CR_CLIENTS_KEPT */
    struct cr_cutoff_found found; /* by the last try */
};

/* Whether what is kept now, in that order, cuts off nobody. */
static bool try_it(struct work *w, struct guard *guard, bool *good)
{
    struct cr_error err = {0};
    put_in_order(w);
    *good = false;
    if (!cr_cutoff_find(guard->cutoff, guard->clients, w->ordered, w->ordered_len, &guard->found, &err)) {
        guard->spent = err.kind == CR_ERR_INVALID;
        return guard->spent || cr_error_set(w->err, err.kind, "%s", err.text);
    }
    guard->spent |= cr_cutoff_is_spent(guard->cutoff);
    *good = !guard->found.any;
    return true;
}

static void keep_everything(struct work *w)
{
    for (int i = 0; i < sk_X509_num(w->cas); i++)
        if (w->fates[i] == CR_BUNDLE_RETIRED)
            w->fates[i] = CR_BUNDLE_KEPT;
}

/* Of what the rule would have dropped, the oldest first: whatever cuts off nobody when it goes. One that goes can let
 * another go, so until none does. */
static bool drop_what_may_go(struct work *w, const enum cr_bundle_fate *rule, struct guard *guard)
{
    bool any = true;
    int tries = 0;
    while (any && !guard->spent) {
        any = false;
        for (int i = sk_X509_num(w->cas) - 1; i >= 0 && !guard->spent; i--) {
            bool good;
            if (rule[i] != CR_BUNDLE_RETIRED || w->fates[i] != CR_BUNDLE_KEPT || tries >= DROPS_MAX)
                continue;
            tries++;
            w->fates[i] = CR_BUNDLE_RETIRED;
            if (!try_it(w, guard, &good))
                return false;
            any |= good;
            if (!good)
                w->fates[i] = CR_BUNDLE_KEPT;
        }
    }
    put_in_order(w);
    return true;
}

static bool refuse(struct work *w, const struct guard *guard)
{
    w->out->proof = CR_BUNDLE_WOULD_CUT_OFF;
    return cr_error_set(
        w->err, CR_ERR_INVALID,
        "%s: %s verifies its leaf with what is published, and would with no bundle that has the new CA: "
        "two CAs that clients take for one another cannot stand in one bundle",
        w->in->leaves[guard->asked[guard->found.leaf]].name, cr_bundle_client_name(guard->found.client));
}

/* All that is published stays first; no client is asked. */
static bool give_up(struct work *w)
{
    w->out->proof = CR_BUNDLE_TOO_COSTLY;
    w->new_last = true;
    keep_everything(w);
    put_in_order(w);
    return true;
}

static bool mend(struct work *w, struct guard *guard)
{
    size_t len = (size_t)sk_X509_num(w->cas);
    cr_autofree enum cr_bundle_fate *rule = cr_calloc(len, sizeof *rule);
    memcpy(rule, w->fates, len * sizeof *rule);
    for (int attempt = 0; attempt < 4; attempt++) {
        bool good;
        w->new_last = attempt % 2;
        guard->clients = attempt < 2 ? CR_CLIENTS : CR_CLIENTS_KEPT;
        keep_everything(w);
        if (!try_it(w, guard, &good))
            return false;
        if (good)
            return drop_what_may_go(w, rule, guard);
        if (guard->spent)
            return give_up(w);
    }
    return refuse(w, guard);
}

static bool cut_off_nobody(struct work *w)
{
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(w->now_ms);
    cr_autofree size_t *asked = cr_calloc(w->in->leaves_len + 1, sizeof *asked);
    struct guard guard = {.cutoff = cutoff, .asked = asked, .spent = w->costly, .clients = CR_CLIENTS};
    bool good = true;
    if (!add_published(w, cutoff) || !add_leaves(w, cutoff, asked, &guard.spent))
        return false;
    bool tried = !guard.spent;
    if (tried && !try_it(w, &guard, &good))
        return false;
    if (tried && good)
        return true;
    return guard.spent ? give_up(w) : mend(w, &guard);
}
/* --- the bundle --- */

static bool write_kept(struct work *w)
{
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(CR_BUNDLE_BYTES_MAX);
    for (size_t i = 0; i < w->ordered_len; i++)
        if (!cr_x509_write(w->ordered[i], &pem, w->err))
            return cr_error_wrap(w->err, "the bundle is too large");
    w->out->pem = cr_buf_steal(&pem);
    return true;
}

static bool count_kept(struct work *w)
{
    for (int i = 0; i < sk_X509_num(w->cas); i++) {
        w->out->len += w->fates[i] == CR_BUNDLE_KEPT;
        w->out->previous += w->fates[i] == CR_BUNDLE_KEPT && !w->facts[i].current;
    }
    return w->out->len > w->out->previous ||
           cr_error_set(w->err, CR_ERR_INVALID, "the new CA has expired: it cannot be published");
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
    w->ordered = cr_calloc(len, sizeof(X509 *));
    w->issued = cr_calloc(len * len, sizeof *w->issued);
    for (size_t i = 0; i < len; i++)
        w->ordered[i] = sk_X509_value(w->cas, (int)i);
    cr_x509_find_issuers(w->ordered, len, w->issued);
    const struct cr_bundle_question question = {.cas = w->facts,
                                                .cas_len = len,
                                                .issued = w->issued,
                                                .verifies = w->verifies,
                                                .leaves_len = w->in->leaves_len,
                                                .retain_previous = w->in->retain_previous,
                                                .now_ms = w->now_ms};
    cr_bundle_choose(&question, w->fates);
    put_in_order(w);
    return cut_off_nobody(w) && count_kept(w) && write_kept(w);
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

/* --- two bundles --- */

static bool add_list(struct cr_cutoff *cutoff, STACK_OF(X509) * certs, struct cr_error *err)
{
    size_t len = (size_t)sk_X509_num(certs);
    cr_autofree X509 **list = cr_calloc(len + 1, sizeof(X509 *));
    for (size_t i = 0; i < len; i++)
        list[i] = sk_X509_value(certs, (int)i);
    return cr_cutoff_add_published(cutoff, list, len, err);
}

static bool find_in_list(struct cr_cutoff *cutoff, int clients, STACK_OF(X509) * certs, struct cr_cutoff_found *found,
                         struct cr_error *err)
{
    size_t len = (size_t)sk_X509_num(certs);
    cr_autofree X509 **list = cr_calloc(len + 1, sizeof(X509 *));
    for (size_t i = 0; i < len; i++)
        list[i] = sk_X509_value(certs, (int)i);
    return cr_cutoff_find(cutoff, clients, list, len, found, err);
}

/* One leaf at a time. False, and Invalid: a limit is passed. */
static bool check_leaf(STACK_OF(X509) * before, STACK_OF(X509) * after, const struct cr_bundle_leaf *leaf, int clients,
                       int64_t now_ms, enum cr_bundle_proof *proof, struct cr_error *err)
{
    struct cr_cutoff_found found = {0};
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *chain = cr_x509_read(&leaf->chain, CHAIN_MAX, err);
    CR_CLEANUP(cr_cutoff) struct cr_cutoff *cutoff = cr_cutoff_new(now_ms);
    if (!chain || !add_list(cutoff, before, err) || !cr_cutoff_add_leaf(cutoff, chain, err) ||
        !find_in_list(cutoff, clients, after, &found, err))
        return false;
    if (found.any)
        *proof = CR_BUNDLE_WOULD_CUT_OFF;
    return true;
}

bool cr_bundle_check(const struct cr_pem_input *published, const struct cr_pem_input *next,
                     const struct cr_bundle_leaf *leaves, size_t leaves_len, bool strict, int64_t now_ms,
                     enum cr_bundle_proof *proof, struct cr_error *err)
{
    int clients = strict ? CR_CLIENTS : CR_CLIENTS_KEPT;
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *before = cr_x509_read(published, CR_BUNDLE_CAS_MAX, NULL);
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *after = cr_x509_read(next, CR_BUNDLE_CAS_MAX, err);
    *proof = CR_BUNDLE_PROVED;
    if (!after || !before)
        return after;
    for (size_t i = 0; i < leaves_len && *proof != CR_BUNDLE_WOULD_CUT_OFF; i++) {
        struct cr_error failed = {0};
        if (!leaves[i].chain.len || check_leaf(before, after, &leaves[i], clients, now_ms, proof, &failed))
            continue;
        if (failed.kind != CR_ERR_INVALID)
            return cr_error_set(err, failed.kind, "%s", failed.text);
        *proof = CR_BUNDLE_TOO_COSTLY;
    }
    return true;
}
