#include "certgen/plan.h"

#include <stdlib.h>
#include <string.h>

#include "api/trust_problem.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "pki/bundle.h"

enum { RETAIN_PREVIOUS = 1 };

struct work {
    const struct cr_certgen_question *q;
    struct cr_certgen_plan *plan;
    struct cr_buf all;            /* PEM: every CA at hand, the new one first */
    struct cr_pem_input *trusts;  /* of each Secret; len 0: none that can be read */
    char identity[CR_SHA256_HEX]; /* of the CA that issues; "" */
    struct cr_error *err;
};

static void work_cleanup(struct work *w)
{
    cr_buf_dispose(&w->all);
    free(w->trusts);
}

void cr_certgen_plan_dispose(struct cr_certgen_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        cr_material_dispose(&plan->materials[i]);
    free(plan->materials);
    free(plan->tasks);
    free(plan->bundle);
    cr_strvec_dispose(&plan->warnings);
    *plan = (struct cr_certgen_plan){0};
}

bool cr_certgen_plan_is_done(const struct cr_certgen_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->tasks[i].opaque || plan->tasks[i].trust || plan->tasks[i].leaf)
            return false;
    return true;
}

static void warn(struct work *w, const char *fmt, ...) CR_PRINTF(2, 3);
static void warn(struct work *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *text = cr_vasprintf(fmt, args);
    va_end(args);
    cr_strvec_add_unique(&w->plan->warnings, text);
}

static const char *name_of(const struct work *w, size_t i)
{
    return w->q->set->secrets[i].name;
}

static bool is_leaf(const struct work *w, size_t i)
{
    return !w->q->set->secrets[i].opaque_key;
}

/* --- reading --- */

static bool has_trusted(const struct cr_material *m, const char *identity)
{
    for (size_t i = 0; i < m->trust_len; i++)
        if (cr_streq(m->trust[i].identity, identity))
            return true;
    return false;
}

/* Most Secrets of a set have the same. */
static bool is_known(const struct work *w, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (w->trusts[k].len == w->trusts[i].len && memcmp(w->trusts[k].data, w->trusts[i].data, w->trusts[i].len) == 0)
            return true;
    return false;
}

/* Only what can be read as a whole: half a bundle would look like a bundle without the rest. */
static void read_trust(struct work *w, size_t i)
{
    const struct cr_pem_input in = cr_certgen_entry(&w->q->found[i], CR_CERTGEN_DATA_TRUST);
    struct cr_material_input alone = {.trust = in};
    enum cr_material_problem problem;
    struct cr_error why = {0};
    if (!in.data)
        return;
    CR_CLEANUP(cr_material) struct cr_material read = {0};
    if (!cr_material_parse(&alone, w->q->now_ms, &read, &problem, &why)) {
        warn(w, "Secret %s: %s", name_of(w, i), why.text);
        return;
    }
    w->trusts[i] = in;
    if (is_known(w, i))
        return;
    cr_buf_puts(&w->all, in.data);
    cr_buf_puts(&w->all, "\n");
}

static bool read_authority(struct work *w)
{
    if (!w->q->authority)
        return true;
    struct cr_material_input alone = {.trust = {w->q->authority, strlen(w->q->authority)}};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_material) struct cr_material read = {0};
    if (!cr_material_parse(&alone, w->q->now_ms, &read, &problem, w->err))
        return cr_error_wrap(w->err, "the new CA");
    memcpy(w->identity, read.trust[0].identity, sizeof w->identity);
    cr_buf_puts(&w->all, w->q->authority);
    return true;
}

/* The leaf, judged by every CA of the set; and the trust of its own Secret. */
static void read_material(struct work *w, size_t i)
{
    const struct cr_certgen_found *found = &w->q->found[i];
    struct cr_material *out = &w->plan->materials[i];
    const struct cr_material_input own = {.trust = w->trusts[i]};
    const struct cr_material_input whole = {.certificate = cr_certgen_entry(found, CR_CERTGEN_DATA_CERTIFICATE),
                                            .private_key = cr_certgen_entry(found, CR_CERTGEN_DATA_PRIVATE_KEY),
                                            .trust = {w->all.data, w->all.len}};
    enum cr_material_problem problem;
    struct cr_error why = {0};
    CR_CLEANUP(cr_material) struct cr_material trust = {0};
    bool trusts = own.trust.len && cr_material_parse(&own, w->q->now_ms, &trust, &problem, &why);
    bool any = whole.certificate.data || whole.private_key.data;
    bool leaf = any && cr_material_parse(&whole, w->q->now_ms, out, &problem, &why);
    if (!leaf)
        warn(w, "Secret %s: %s%s", name_of(w, i), any ? why.text : "there is no leaf in it",
             w->q->overwrite ? "" : "; --overwrite makes another");
    if (!leaf)
        *out = (struct cr_material){0};
    free(out->trust);
    out->trust = trusts ? cr_steal(&trust.trust) : NULL;
    out->trust_len = trusts ? trust.trust_len : 0;
    trust.trust_len = 0;
}

static bool read_all(struct work *w)
{
    size_t len = w->q->set->secrets_len;
    w->trusts = cr_calloc(len, sizeof *w->trusts);
    w->plan->tasks = cr_calloc(len, sizeof *w->plan->tasks);
    w->plan->materials = cr_calloc(len, sizeof *w->plan->materials);
    w->plan->len = len;
    if (!read_authority(w))
        return false;
    for (size_t i = 0; i < len; i++)
        if (is_leaf(w, i))
            read_trust(w, i);
    for (size_t i = 0; i < len; i++)
        if (is_leaf(w, i) && w->q->found[i].found)
            read_material(w, i);
    return true;
}

/* --- what is to be done --- */

static bool is_issued_by_new(const struct work *w, size_t i)
{
    return *w->identity && cr_strvec_has(&w->plan->materials[i].anchors, w->identity);
}

static bool is_issued_by_this_rotation(const struct work *w, size_t i)
{
    return w->plan->materials[i].has_leaf && w->q->rotation && cr_streq(w->q->found[i].rotation, w->q->rotation);
}

/* Whether another leaf is to be issued. */
static bool wants_leaf(const struct work *w, size_t i)
{
    bool stays = !w->q->overwrite || is_issued_by_new(w, i) || is_issued_by_this_rotation(w, i);
    return !w->q->found[i].found || !stays;
}

static bool plan_leaves(struct work *w)
{
    bool any = false;
    for (size_t i = 0; i < w->plan->len; i++) {
        struct cr_certgen_task *task = &w->plan->tasks[i];
        task->opaque = !is_leaf(w, i) && !w->q->found[i].has_opaque;
        task->leaf = is_leaf(w, i) && wants_leaf(w, i);
        any |= task->leaf;
    }
    w->plan->needs_authority = any && !w->q->authority;
    return any;
}

static bool refuse_foreign(const struct work *w)
{
    for (size_t i = 0; i < w->plan->len; i++) {
        const struct cr_certgen_task *task = &w->plan->tasks[i];
        if ((task->opaque || task->trust || task->leaf) && w->q->found[i].owner)
            return cr_error_set(w->err, CR_ERR_INVALID, "%s: Secret %s is not written: it belongs to %s",
                                cr_trust_reason_name(CR_TRUST_NOT_OURS), name_of(w, i), w->q->found[i].owner);
    }
    return true;
}

/* --- the bundle --- */

/* Includes leaves that we cannot use and that are replaced: when one client refuses a leaf, or its key does not match,
 * other clients may still verify it. */
static size_t leaves_in_use(struct work *w, struct cr_bundle_leaf *leaves)
{
    size_t len = 0;
    for (size_t i = 0; i < w->plan->len; i++) {
        struct cr_pem_input chain = cr_certgen_entry(&w->q->found[i], CR_CERTGEN_DATA_CERTIFICATE);
        if (is_leaf(w, i) && chain.len)
            leaves[len++] = (struct cr_bundle_leaf){.name = name_of(w, i), .chain = chain};
    }
    return len;
}

/* For a leaf that verifies against nothing at hand, nothing can be kept: a warning says so. */
static void warn_strangers(struct work *w, const struct cr_strvec *strangers)
{
    for (size_t i = 0; i < strangers->len; i++)
        warn(w, "Secret %s: its leaf verifies against no CA of the set, so nobody can be made to trust it longer",
             strangers->items[i]);
}

static bool make_bundle(struct work *w)
{
    cr_autofree struct cr_bundle_leaf *leaves = cr_calloc(w->plan->len, sizeof *leaves);
    const struct cr_bundle_input in = {.current = {w->q->authority, strlen(w->q->authority)},
                                       .previous = w->trusts,
                                       .previous_len = w->plan->len,
                                       .retain_previous = RETAIN_PREVIOUS,
                                       .leaves = leaves,
                                       .leaves_len = leaves_in_use(w, leaves),
                                       .strangers = true};
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    if (!cr_bundle_make(&in, w->q->now_ms, &bundle, w->err)) {
        enum cr_trust_reason reason = cr_trust_reason_of_bundle(bundle.proof);
        return cr_error_wrap(w->err, "%s: ca.crt", cr_trust_reason_name(reason ? reason : CR_TRUST_INVALID));
    }
    if (bundle.proof == CR_BUNDLE_TOO_COSTLY) {
        cr_autofree char *text =
            cr_trust_problem_text(CR_TRUST_BUNDLE_TOO_COSTLY, &(struct cr_trust_about){.object = "ca.crt of the set"});
        warn(w, "%s: %s", cr_trust_reason_name(CR_TRUST_BUNDLE_TOO_COSTLY), text);
    }
    warn_strangers(w, &bundle.strangers);
    w->plan->bundle_len = bundle.len;
    w->plan->bundle = cr_steal(&bundle.pem);
    return true;
}

/* A bundle that has all of it already is not written again: it never shrinks within a run, since a peer may still
 * present what was replaced a moment ago. */
static bool lacks_any(const struct cr_material *published, const struct cr_material *wanted)
{
    for (size_t i = 0; i < wanted->trust_len; i++) {
        size_t at = 0;
        while (at < published->trust_len && !cr_streq(published->trust[at].fingerprint, wanted->trust[i].fingerprint))
            at++;
        if (at == published->trust_len)
            return true;
    }
    return false;
}

static bool plan_trust(struct work *w)
{
    if (!make_bundle(w))
        return false;
    const struct cr_material_input in = {.trust = {w->plan->bundle, strlen(w->plan->bundle)}};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_material) struct cr_material wanted = {0};
    if (!cr_material_parse(&in, w->q->now_ms, &wanted, &problem, w->err))
        return false;
    for (size_t i = 0; i < w->plan->len; i++)
        w->plan->tasks[i].trust = is_leaf(w, i) && w->q->found[i].found && lacks_any(&w->plan->materials[i], &wanted);
    return true;
}

/* --- what is left alone, and should not be --- */

static void warn_untrusted(struct work *w, size_t leaf, size_t trust)
{
    const struct cr_material *presented = &w->plan->materials[leaf];
    for (size_t i = 0; i < presented->anchors.len; i++)
        if (has_trusted(&w->plan->materials[trust], presented->anchors.items[i]))
            return;
    warn(w, "the leaf in Secret %s is not trusted by ca.crt of Secret %s; --overwrite mends that", name_of(w, leaf),
         name_of(w, trust));
}

static void warn_inconsistent(struct work *w)
{
    for (size_t leaf = 0; leaf < w->plan->len; leaf++)
        for (size_t trust = 0; trust < w->plan->len; trust++)
            if (w->plan->materials[leaf].has_leaf && w->q->found[trust].found && is_leaf(w, trust))
                warn_untrusted(w, leaf, trust);
}

bool cr_certgen_plan_make(const struct cr_certgen_question *question, struct cr_certgen_plan *out, struct cr_error *err)
{
    *out = (struct cr_certgen_plan){0};
    CR_CLEANUP(work) struct work w = {.q = question, .plan = out, .err = err};
    bool ok = read_all(&w);
    bool issues = ok && plan_leaves(&w);
    if (ok && question->authority)
        ok = plan_trust(&w);
    ok = ok && refuse_foreign(&w);
    if (ok && !issues && !question->overwrite)
        warn_inconsistent(&w);
    if (!ok)
        cr_certgen_plan_dispose(out);
    return ok;
}
