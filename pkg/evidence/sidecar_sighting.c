#include "evidence/sidecar_sighting.h"

#include <stdio.h>

#include "base/strings.h"

/* One part of a material, the leaf or the CAs, as question and page have it. */
struct part {
    const char *noun; /* "leaf" */
    const char *wanted;
    const struct cr_strvec *old; /* NULL: nothing shows that it is old */
    size_t found, delivered;     /* offsets in an entry */
    size_t proven;
};

static const char *text_at(const struct cr_sidecar_entry *entry, size_t offset)
{
    return (const char *)entry + offset;
}

/* --- which material is of the Secret --- */

static bool is_one_of(const char *digest, const char *a, const char *b)
{
    return digest[0] && (cr_streq(digest, a) || cr_streq(digest, b));
}

static bool is_its_leaf(const struct cr_sidecar_question *q, const char *leaf)
{
    return is_one_of(leaf, q->leaf, q->settled_leaf) ||
           (leaf[0] && q->old_leaves && cr_strvec_has(q->old_leaves, leaf));
}

static bool has_leaf(const struct cr_sidecar_entry *entry)
{
    return entry->found_leaf[0] || entry->delivered_leaf[0];
}

/* What a port shows counts for CAs alone, which may be reported with a proof: a material with a leaf is known by that
 * leaf. */
static bool is_by_leaf(const struct cr_sidecar_question *q, const struct cr_sidecar_entry *entry)
{
    return is_its_leaf(q, entry->found_leaf) || is_its_leaf(q, entry->delivered_leaf) ||
           (!has_leaf(entry) && is_its_leaf(q, entry->served_leaf));
}

/* others: leaves of other Secrets that have these CAs as well. */
static bool has_trust(const struct cr_sidecar_entry *entry, const char *trust, const struct cr_strvec *others)
{
    bool of_another =
        others && (cr_strvec_has(others, entry->found_leaf) || cr_strvec_has(others, entry->delivered_leaf));
    return !of_another && (is_one_of(entry->found_trust, trust, "") || is_one_of(entry->delivered_trust, trust, ""));
}

static bool is_by_trust(const struct cr_sidecar_question *q, const struct cr_sidecar_entry *entry)
{
    return has_trust(entry, q->trust, q->others) || has_trust(entry, q->settled_trust, q->others_settled);
}

/* CAs alone, and the new ones: beside a material that is known by its leaf, CAs of another Secret are unlikely. */
static bool is_new_trust_alone(const struct cr_sidecar_question *q, const struct cr_sidecar_entry *entry)
{
    return !has_leaf(entry) && has_trust(entry, q->trust, NULL);
}

static bool has_part(const struct cr_sidecar_entry *entry, const struct part *part)
{
    return text_at(entry, part->found)[0] || text_at(entry, part->delivered)[0];
}

/* The first entry behind this one that has this part of the Secret; NULL: none has. */
static const struct cr_sidecar_entry *next_of(const struct cr_sidecar_question *q, const struct part *part,
                                              const struct cr_sidecar_entry *entry)
{
    const struct cr_sidecar_sighting *sighting = q->sighting;
    bool by_leaf = false;
    for (size_t i = 0; i < sighting->len; i++)
        by_leaf = by_leaf || (has_part(&sighting->entries[i], part) && is_by_leaf(q, &sighting->entries[i]));
    for (size_t i = entry ? (size_t)(entry - sighting->entries) + 1 : 0; i < sighting->len; i++) {
        const struct cr_sidecar_entry *next = &sighting->entries[i];
        bool is_its = by_leaf ? is_by_leaf(q, next) || is_new_trust_alone(q, next) : is_by_trust(q, next);
        if (is_its && has_part(next, part))
            return next;
    }
    return NULL;
}

/* --- what one material shows of one part --- */

static enum cr_shown say(const struct cr_sidecar_entry *entry, const char *text, const struct part *part,
                         enum cr_shown shown, char why[CR_SHOWN_WHY])
{
    snprintf(why, CR_SHOWN_WHY, "its certroll-sidecar %s the %s%s%s", text, part->noun, entry->words[0] ? ": " : "",
             entry->words);
    return shown;
}

/* The result is not known as long as a proof is under way; a proof that cannot be had is not waited for. */
static bool is_settled(const struct cr_sidecar_entry *entry)
{
    return entry->state == CR_SIDECAR_DELIVERED || entry->state == CR_SIDECAR_REFUSED;
}

static enum cr_shown judge_entry(const struct cr_sidecar_entry *entry, const struct part *part, char why[CR_SHOWN_WHY])
{
    bool found = cr_streq(text_at(entry, part->found), part->wanted);
    bool delivered = cr_streq(text_at(entry, part->delivered), part->wanted);
    bool proven = *(const bool *)text_at(entry, part->proven);
    why[0] = '\0';
    /* With anything else in its files, the program may have been notified of that since. */
    if (found && delivered && (proven || is_settled(entry)))
        return proven ? CR_SHOWN_NEW : CR_SHOWN_DELIVERED;
    if (entry->state == CR_SIDECAR_REFUSED)
        return say(entry, "cannot use what its volume has in place of", part, CR_SHOWN_UNKNOWN, why);
    if (part->old && cr_strvec_has(part->old, entry->served_leaf))
        return say(entry, "still sees an old one served in place of", part, CR_SHOWN_OLD, why);
    if (!found)
        return say(entry, "has not yet found in its volume", part, CR_SHOWN_UNKNOWN, why);
    return say(entry, delivered ? "has not yet seen in use" : "has not yet passed on", part, CR_SHOWN_UNKNOWN, why);
}

/* --- all of them --- */

static int weight(enum cr_shown shown)
{
    static const int order[] = {[CR_SHOWN_NOTHING] = 0,
                                [CR_SHOWN_NEW] = 1,
                                [CR_SHOWN_DELIVERED] = 2,
                                [CR_SHOWN_UNKNOWN] = 3,
                                [CR_SHOWN_OLD] = 4};
    return order[shown];
}

/* A material that was never read could be any. */
static const char *words_of_unread(const struct cr_sidecar_sighting *sighting)
{
    for (size_t i = 0; i < sighting->len; i++)
        if (!sighting->entries[i].found_leaf[0] && !sighting->entries[i].found_trust[0])
            return sighting->entries[i].words;
    return "";
}

static void judge_part(const struct cr_sidecar_question *q, const struct part *part, struct cr_shown_leaf *out,
                       bool *found)
{
    *found = true;
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    for (const struct cr_sidecar_entry *entry = next_of(q, part, NULL); entry; entry = next_of(q, part, entry)) {
        char why[CR_SHOWN_WHY];
        enum cr_shown shown = judge_entry(entry, part, why);
        *found = *found && cr_streq(text_at(entry, part->found), part->wanted);
        if (weight(shown) <= weight(out->shown))
            continue;
        *out = (struct cr_shown_leaf){.shown = shown, .old_ms = shown == CR_SHOWN_OLD ? q->sighting->at_ms : 0};
        snprintf(out->why, sizeof out->why, "%s", why);
    }
    if (out->shown != CR_SHOWN_NOTHING)
        return;
    const char *words = words_of_unread(q->sighting);
    *found = false;
    out->shown = CR_SHOWN_UNKNOWN;
    snprintf(out->why, sizeof out->why, "its certroll-sidecar has no material with the %s of this Secret%s%s",
             part->noun, words[0] ? ": " : "", words);
}

static void know_nothing(struct cr_sidecar_shown *out, const char *why)
{
    *out = (struct cr_sidecar_shown){.leaf.shown = CR_SHOWN_UNKNOWN, .trust.shown = CR_SHOWN_UNKNOWN};
    snprintf(out->leaf.why, sizeof out->leaf.why, "%s", why);
    snprintf(out->trust.why, sizeof out->trust.why, "%s", why);
}

void cr_sidecar_judge(const struct cr_sidecar_question *q, struct cr_sidecar_shown *out)
{
    const struct cr_sidecar_sighting *sighting = q->sighting;
    if (!sighting || !sighting->at_ms || sighting->at_ms < q->since_ms) {
        know_nothing(out, "its certroll-sidecar has not been asked yet");
        return;
    }
    if (!sighting->read) {
        char why[CR_SHOWN_WHY];
        snprintf(why, sizeof why, "the page of its certroll-sidecar (port %d) was not read: %s", q->port,
                 sighting->words);
        know_nothing(out, why);
        return;
    }
    const struct part leaf = {.noun = "new leaf",
                              .wanted = q->leaf,
                              .old = q->old_leaves,
                              .found = offsetof(struct cr_sidecar_entry, found_leaf),
                              .delivered = offsetof(struct cr_sidecar_entry, delivered_leaf),
                              .proven = offsetof(struct cr_sidecar_entry, leaf_proven)};
    const struct part trust = {.noun = "new set of CAs",
                               .wanted = q->trust,
                               .found = offsetof(struct cr_sidecar_entry, found_trust),
                               .delivered = offsetof(struct cr_sidecar_entry, delivered_trust),
                               .proven = offsetof(struct cr_sidecar_entry, trust_proven)};
    judge_part(q, &leaf, &out->leaf, &out->leaf_found);
    judge_part(q, &trust, &out->trust, &out->trust_found);
}
