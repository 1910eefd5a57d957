#include "pki/bundle_rule.h"

#include <string.h>

/* --- what cannot stay --- */

static bool is_duplicate(const struct cr_bundle_ca *cas, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(cas[i].fingerprint, cas[at].fingerprint) == 0)
            return true;
    return false;
}

static enum cr_bundle_fate first_fate(const struct cr_bundle_question *q, size_t at)
{
    if (q->cas[at].not_after_ms <= q->now_ms)
        return CR_BUNDLE_EXPIRED;
    if (is_duplicate(q->cas, at))
        return CR_BUNDLE_DUPLICATE;
    return q->cas[at].current ? CR_BUNDLE_KEPT : CR_BUNDLE_RETIRED;
}

/* --- what must --- */

static bool is_candidate(enum cr_bundle_fate fate)
{
    return fate == CR_BUNDLE_KEPT || fate == CR_BUNDLE_RETIRED;
}

static const bool *row(const struct cr_bundle_question *q, size_t leaf)
{
    return q->verifies + leaf * q->cas_len;
}

static bool is_root_of(const struct cr_bundle_question *q, size_t leaf, size_t ca, const enum cr_bundle_fate *fates)
{
    return row(q, leaf)[ca] && q->cas[ca].root && is_candidate(fates[ca]);
}

static bool has_begun(const struct cr_bundle_question *q, size_t ca)
{
    return q->cas[ca].not_before_ms <= q->now_ms;
}

/* One that has not begun helps no client yet: it counts for a leaf that has no other. */
static bool counts(const struct cr_bundle_question *q, size_t leaf, size_t ca, const enum cr_bundle_fate *fates)
{
    if (!is_root_of(q, leaf, ca, fates))
        return false;
    if (has_begun(q, ca))
        return true;
    for (size_t i = 0; i < q->cas_len; i++)
        if (has_begun(q, i) && is_root_of(q, leaf, i, fates))
            return false;
    return true;
}

static bool has_root(const struct cr_bundle_question *q, size_t leaf, const enum cr_bundle_fate *fates)
{
    for (size_t i = 0; i < q->cas_len; i++)
        if (fates[i] == CR_BUNDLE_KEPT && counts(q, leaf, i, fates))
            return true;
    return false;
}

/* Its only one, or cas_len. */
static size_t only_root(const struct cr_bundle_question *q, size_t leaf, const enum cr_bundle_fate *fates)
{
    size_t found = q->cas_len;
    for (size_t i = 0; i < q->cas_len; i++) {
        if (!counts(q, leaf, i, fates))
            continue;
        if (found < q->cas_len)
            return q->cas_len;
        found = i;
    }
    return found;
}

static bool is_waited_for(const struct cr_bundle_question *q, size_t ca, const enum cr_bundle_fate *fates)
{
    for (size_t leaf = 0; leaf < q->leaves_len; leaf++)
        if (counts(q, leaf, ca, fates) && !has_root(q, leaf, fates))
            return true;
    return false;
}

/* First those without which a leaf has none, then the newest of each that still has none: CA by CA, so that the order
 * of the leaves, which may be another each time, is no matter. */
static void keep_roots(const struct cr_bundle_question *q, enum cr_bundle_fate *fates)
{
    for (size_t leaf = 0; leaf < q->leaves_len; leaf++) {
        size_t root = only_root(q, leaf, fates);
        if (root < q->cas_len)
            fates[root] = CR_BUNDLE_KEPT;
    }
    for (size_t i = 0; i < q->cas_len; i++)
        if (is_waited_for(q, i, fates))
            fates[i] = CR_BUNDLE_KEPT;
}

static void keep_intermediates(const struct cr_bundle_question *q, enum cr_bundle_fate *fates)
{
    for (size_t leaf = 0; leaf < q->leaves_len; leaf++)
        for (size_t i = 0; i < q->cas_len; i++)
            if (row(q, leaf)[i] && !q->cas[i].root && is_candidate(fates[i]))
                fates[i] = CR_BUNDLE_KEPT;
}

static bool is_issued_by(const struct cr_bundle_question *q, size_t ca, size_t issuer, const enum cr_bundle_fate *fates)
{
    return issuer != ca && q->issued[ca * q->cas_len + issuer] && is_candidate(fates[issuer]);
}

/* One that has begun, if there is one; of several the newest. */
static size_t issuer_of(const struct cr_bundle_question *q, size_t ca, const enum cr_bundle_fate *fates)
{
    size_t found = q->cas_len;
    for (size_t i = q->cas_len; i-- > 0;)
        if (is_issued_by(q, ca, i, fates) && (found == q->cas_len || has_begun(q, i) || !has_begun(q, found)))
            found = i;
    return found;
}

static bool has_issuer(const struct cr_bundle_question *q, size_t ca, const enum cr_bundle_fate *fates)
{
    for (size_t i = 0; i < q->cas_len; i++)
        if (fates[i] == CR_BUNDLE_KEPT && has_begun(q, i) && is_issued_by(q, ca, i, fates))
            return true;
    return false;
}

/* Each that is kept is looked at again until none keeps another. */
static void keep_issuers(const struct cr_bundle_question *q, enum cr_bundle_fate *fates)
{
    for (size_t i = 0; q->issued && i < q->cas_len; i++) {
        if (fates[i] != CR_BUNDLE_KEPT || q->cas[i].root || has_issuer(q, i, fates))
            continue;
        size_t issuer = issuer_of(q, i, fates);
        if (issuer == q->cas_len || fates[issuer] == CR_BUNDLE_KEPT)
            continue;
        fates[issuer] = CR_BUNDLE_KEPT;
        i = (size_t)-1; /* it may have one of its own, before this one */
    }
}

/* --- what may --- */

static void fill(const struct cr_bundle_question *q, enum cr_bundle_fate *fates)
{
    size_t previous = 0;
    for (size_t i = 0; i < q->cas_len; i++)
        previous += fates[i] == CR_BUNDLE_KEPT && !q->cas[i].current;
    for (size_t i = 0; i < q->cas_len && previous < q->retain_previous; i++) {
        if (fates[i] != CR_BUNDLE_RETIRED)
            continue;
        fates[i] = CR_BUNDLE_KEPT;
        previous++;
    }
}

void cr_bundle_choose(const struct cr_bundle_question *question, enum cr_bundle_fate *fates)
{
    for (size_t i = 0; i < question->cas_len; i++)
        fates[i] = first_fate(question, i);
    keep_roots(question, fates);
    keep_intermediates(question, fates);
    keep_issuers(question, fates);
    fill(question, fates);
    keep_issuers(question, fates);
}
