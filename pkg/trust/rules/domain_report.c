/* What the status says of each object and each CA. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- what an object waits for --- */

/* Why the evidence of it is not enough. Owned; NULL: it is. */
static char *lacking(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, at);
    if (!evidence)
        return cr_strdup("what is published is being put on record");
    if (evidence->why)
        return cr_strdup(evidence->why);
    if (!cr_domain_has_trust(ctx, evidence))
        return cr_strdup("trust is inferred, not observed, and spec.evidence.trust demands Verified");
    if (!cr_domain_has_leaf(ctx, evidence))
        return cr_strdup("the leaf is inferred, not observed, and spec.evidence.leaf demands Verified");
    return NULL;
}

static char *leaf_waits_for(const struct domain_ctx *ctx, const struct domain_leaf *leaf)
{
    if (leaf->held_back)
        return cr_strdup("its next leaf is held back: what was published before has not arrived everywhere");
    if (!leaf->waits)
        return NULL;
    const struct cr_domain_object *blocker = &ctx->world->objects[leaf->waits_on];
    cr_autofree char *title = cr_domain_object_title(blocker);
    if (cr_domain_is_foreign(blocker))
        return cr_asprintf("its next leaf would not be trusted by those who read %s, which is not ours any more (%s): "
                           "give it back, or take it out of the spec",
                           title, cr_trust_reason_name(blocker->refused));
    if (blocker->refused == CR_TRUST_CANNOT_READ)
        return cr_asprintf("its next leaf would not be trusted by those who have read %s, which cannot be read now: it "
                           "waits until that can, or is no longer published into",
                           title);
    if (!blocker->found)
        return cr_asprintf("its next leaf would not be trusted by those who have read %s, which has been deleted: it "
                           "waits until that is there again",
                           title);
    cr_autofree char *why = lacking(ctx, leaf->waits_on);
    return cr_asprintf("its next leaf waits until %s is known to trust it%s%s", title, why ? ": " : "",
                       cr_or_empty(why));
}

static char *waits_for(const struct domain_ctx *ctx, size_t at)
{
    char *of_leaf = leaf_waits_for(ctx, &ctx->leaves[at]);
    if (of_leaf)
        return of_leaf;
    return cr_domain_is_there(ctx, at) ? lacking(ctx, at) : NULL;
}

/* --- why it is not written --- */

struct problem {
    enum cr_trust_reason reason;
    const char *message; /* borrowed */
    bool contested;      /* another program writes it as well, and that is all */
};

static struct problem problem_of(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    const struct domain_leaf *leaf = &ctx->leaves[at];
    if (object->refused)
        return (struct problem){object->refused, cr_or_empty(object->refused_text)};
    if (leaf->problem)
        return (struct problem){leaf->problem, leaf->problem_text};
    if (object->published.costly)
        return (struct problem){object->published.problem, object->published.problem_text};
    if (object->kept)
        return (struct problem){object->kept, cr_or_empty(object->kept_text)};
    if (!object->found && cr_domain_is_ca_bundle(ctx, object))
        return (struct problem){CR_TRUST_NOT_FOUND, "it does not exist, and is not created by a trust domain"};
    if (object->contested_text)
        return (struct problem){CR_TRUST_OTHER_WRITER, object->contested_text, true};
    return (struct problem){CR_TRUST_FINE, NULL};
}

bool cr_domain_is_contested(const struct domain_ctx *ctx, size_t at)
{
    return problem_of(ctx, at).contested;
}

bool cr_domain_has_problem(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        struct problem problem = problem_of(ctx, i);
        if (problem.reason && !problem.contested)
            return true;
    }
    return false;
}

static void set_problem(struct domain_ctx *ctx, size_t at, struct cr_domain_object_status *record)
{
    struct problem problem = problem_of(ctx, at);
    bool news =
        problem.reason && (record->problem != problem.reason || !cr_streq(record->problem_message, problem.message));
    if (news) {
        cr_autofree char *title = cr_domain_object_title(&ctx->world->objects[at]);
        cr_domain_say(ctx, true, cr_trust_reason_name(problem.reason),
                      problem.contested ? cr_strdup(problem.message)
                                        : cr_asprintf("%s is left as it is: %s", title, problem.message));
    }
    record->problem = problem.reason;
    cr_strset(&record->problem_message, problem.message);
}

/* --- evidence --- */

static void report_object(struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_evidence *evidence = cr_domain_is_there(ctx, at) ? cr_domain_evidence_of(ctx, at) : NULL;
    struct cr_domain_object_status *record = &ctx->plan->status.objects[at];
    bool trust = evidence && *record->trust && cr_domain_has_trust(ctx, evidence);
    bool leaf = evidence && *record->leaf && cr_domain_has_leaf(ctx, evidence);
    record->trust_evidence = trust ? evidence->trust : CR_ARRIVAL_NOT_YET;
    record->leaf_evidence = leaf ? evidence->leaf : CR_ARRIVAL_NOT_YET;
    free(record->waits_for);
    record->waits_for = waits_for(ctx, at);
    set_problem(ctx, at, record);
}

/* --- CAs --- */

/* False: it is none. */
static bool find_part(const struct domain_ctx *ctx, size_t ca, enum cr_ca_part *part)
{
    bool next = ctx->has_next && ctx->world->authority.next_ca == ca;
    *part = next ? CR_CA_NEXT : ctx->current[ca] ? CR_CA_CURRENT : CR_CA_PREVIOUS;
    return *part != CR_CA_PREVIOUS || (ctx->anywhere[ca] && !cr_domain_is_expired(ctx, ca));
}

/* Without a CA that shall be current. */
static bool is_alone(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->current[ca] && cr_domain_leaf_verifies(leaf, ca))
            return false;
    return true;
}

/* The leaves that verify against it, and first those that verify against nothing else that stays: another one may need
 * it for its way alone. */
static void name_leaves(const struct domain_ctx *ctx, size_t ca, bool alone, struct cr_domain_ca_status *out)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        for (int at = 0; at < CR_LEAVES_AT && cr_domain_keeps_cas(object); at++) {
            const struct cr_domain_leaf_view *leaf = cr_domain_leaf_at(object, (enum cr_domain_leaf_at)at);
            if (!cr_domain_leaf_verifies(leaf, ca) || (alone && !is_alone(ctx, leaf)))
                continue;
            if (out->needed_by_leaves++)
                continue;
            out->needed_by = cr_domain_object_title(object);
            out->needed_at = (enum cr_domain_leaf_at)at;
        }
    }
}

static void report_needed(const struct domain_ctx *ctx, size_t ca, struct cr_domain_ca_status *out)
{
    if (out->part != CR_CA_PREVIOUS || !ctx->needed[ca])
        return;
    name_leaves(ctx, ca, true, out);
    if (!out->needed_by)
        name_leaves(ctx, ca, false, out);
}

/* --- a new one that clients cannot use alone --- */

static bool has_issuer(const struct domain_ctx *ctx, size_t ca)
{
    size_t len = ctx->world->cas_len;
    for (size_t i = 0; i < len; i++)
        if (i != ca && ctx->world->issued[ca * len + i] && !cr_domain_is_expired(ctx, i))
            return true;
    return false;
}

static void warn_of_issuer(struct domain_ctx *ctx, size_t ca)
{
    const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
    if (!ctx->current[ca] || at_hand->root || !ctx->world->issued || has_issuer(ctx, ca) ||
        cr_domain_was_listed(ctx, at_hand->fingerprint))
        return;
    cr_domain_say(ctx, true, cr_trust_reason_name(CR_TRUST_NEEDS_ISSUER),
                  cr_trust_problem_text(CR_TRUST_NEEDS_ISSUER, &(struct cr_trust_about){.ca = at_hand->subject}));
}

static void report_ca(struct domain_ctx *ctx, size_t ca)
{
    struct cr_domain_status *status = &ctx->plan->status;
    const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
    struct cr_domain_ca_status *added = &status->cas[status->cas_len++];
    *added = (struct cr_domain_ca_status){.subject = cr_strdup_or_null(at_hand->subject),
                                          .not_after_ms = at_hand->not_after_ms};
    (void)find_part(ctx, ca, &added->part);
    memcpy(added->fingerprint, at_hand->fingerprint, sizeof added->fingerprint);
    report_needed(ctx, ca, added);
    warn_of_issuer(ctx, ca);
}

/* --- those that are on record --- */

/* Those that leaves need, by their parts, then all others. Owned. */
static size_t *list_by_part(const struct domain_ctx *ctx, size_t *len)
{
    size_t *order = cr_calloc(ctx->world->cas_len + 1, sizeof *order);
    enum cr_ca_part found;
    *len = 0;
    for (int others = 0; others <= 1; others++)
        for (int part = CR_CA_NEXT; part <= CR_CA_PREVIOUS; part++)
            for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
                if (ctx->needed[ca] != others && find_part(ctx, ca, &found) && found == (enum cr_ca_part)part)
                    order[(*len)++] = ca;
    return order;
}

/* There is room for a limited number. */
struct picks {
    const size_t *order;
    size_t len;
    bool *picked; /* [cas_len] */
    size_t picked_len;
};

static void pick(struct picks *picks, size_t ca)
{
    if (picks->picked[ca] || picks->picked_len == CR_DOMAIN_CAS_MAX)
        return;
    picks->picked[ca] = true;
    picks->picked_len++;
}

/* One that it verifies against, a root if there is one. */
static void pick_for_leaf(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf, struct picks *picks)
{
    size_t best = ctx->world->cas_len;
    for (size_t i = 0; i < picks->len; i++) {
        size_t ca = picks->order[i];
        if (!cr_domain_leaf_verifies(leaf, ca))
            continue;
        if (picks->picked[ca])
            return;
        if (best == ctx->world->cas_len || (ctx->world->cas[ca].root && !ctx->world->cas[best].root))
            best = ca;
    }
    if (best < ctx->world->cas_len)
        pick(picks, best);
}

/* The CA of a leaf in a source is in that source. */
static void pick_for_leaves(const struct domain_ctx *ctx, enum cr_leaf_source source, struct picks *picks)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_object *object = &ctx->world->objects[i];
        if (!cr_domain_keeps_cas(object) || cr_domain_leaf_of(ctx, i)->source != source)
            continue;
        pick_for_leaf(ctx, &object->published, picks);
        pick_for_leaf(ctx, &object->previous, picks);
    }
}

/* What is not on record may count as somebody else's, and one source may bring any number. So one CA for each leaf that
 * is published, or kept to be put back, comes first; of those, leaves that the domain issues, since the Secrets of
 * others vouch for their CAs. */
static void report_cas(struct domain_ctx *ctx)
{
    size_t len;
    cr_autofree size_t *order = list_by_part(ctx, &len);
    cr_autofree bool *picked = cr_calloc(ctx->world->cas_len + 1, sizeof *picked);
    struct picks picks = {.order = order, .len = len, .picked = picked};
    pick_for_leaves(ctx, CR_LEAF_ISSUE, &picks);
    pick_for_leaves(ctx, CR_LEAF_MIRROR, &picks);
    for (size_t i = 0; i < len; i++)
        pick(&picks, order[i]);
    cr_domain_status_forget_cas(&ctx->plan->status);
    for (size_t i = 0; i < len; i++)
        if (picked[order[i]])
            report_ca(ctx, order[i]);
}

void cr_domain_plan_report(struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        report_object(ctx, i);
    report_cas(ctx);
}
