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

static bool has_root(const struct cr_bundle_question *q, const bool *verifies, const enum cr_bundle_fate *fates)
{
    for (size_t i = 0; i < q->cas_len; i++)
        if (verifies[i] && q->cas[i].root && fates[i] == CR_BUNDLE_KEPT)
            return true;
    return false;
}

static void keep_root(const struct cr_bundle_question *q, const bool *verifies, enum cr_bundle_fate *fates)
{
    for (size_t i = 0; i < q->cas_len; i++) {
        if (!verifies[i] || !q->cas[i].root || !is_candidate(fates[i]))
            continue;
        fates[i] = CR_BUNDLE_KEPT;
        return;
    }
}

static void keep_for(const struct cr_bundle_question *q, const bool *verifies, enum cr_bundle_fate *fates)
{
    if (!has_root(q, verifies, fates))
        keep_root(q, verifies, fates);
    for (size_t i = 0; i < q->cas_len; i++)
        if (verifies[i] && !q->cas[i].root && is_candidate(fates[i]))
            fates[i] = CR_BUNDLE_KEPT;
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
    for (size_t leaf = 0; leaf < question->leaves_len; leaf++)
        keep_for(question, question->verifies + leaf * question->cas_len, fates);
    fill(question, fates);
}
