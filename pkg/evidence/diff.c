#include "evidence/diff.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

static const unsigned leaf_bits = CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED | CR_CHANGE_ISSUER_CHANGED;
static const unsigned trust_bits =
    CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED | CR_CHANGE_TRUST_RENEWED | CR_CHANGE_TRUST_REPLACED;

/* --- leaf --- */

static unsigned diff_leaf(const struct cr_material *before, const struct cr_material *after)
{
    if (!before->has_leaf && !after->has_leaf)
        return 0;
    if (before->has_leaf != after->has_leaf)
        return CR_CHANGE_LEAF_RENEWED | CR_CHANGE_KEY_CHANGED;
    if (strcmp(before->leaf, after->leaf) == 0)
        return strcmp(before->chain, after->chain) == 0 ? 0 : CR_CHANGE_LEAF_RENEWED;

    unsigned changes = CR_CHANGE_LEAF_RENEWED;
    if (strcmp(before->key, after->key) != 0)
        changes |= CR_CHANGE_KEY_CHANGED;
    if (before->issuer[0] && after->issuer[0] && strcmp(before->issuer, after->issuer) != 0)
        changes |= CR_CHANGE_ISSUER_CHANGED;
    return changes;
}

/* --- trust --- */

static bool has_identity(const struct cr_material *m, const char *identity)
{
    for (size_t i = 0; i < m->trust_len; i++)
        if (strcmp(m->trust[i].identity, identity) == 0)
            return true;
    return false;
}

static bool has_fingerprint(const struct cr_material *m, const char *fingerprint)
{
    for (size_t i = 0; i < m->trust_len; i++)
        if (strcmp(m->trust[i].fingerprint, fingerprint) == 0)
            return true;
    return false;
}

/* Certificates of `from` that `in` has not: `gone` for another identity, `renewed` for one that is in both. */
static unsigned missing(const struct cr_material *from, const struct cr_material *in, unsigned gone)
{
    unsigned changes = 0;
    for (size_t i = 0; i < from->trust_len; i++) {
        if (!has_identity(in, from->trust[i].identity))
            changes |= gone;
        else if (!has_fingerprint(in, from->trust[i].fingerprint))
            changes |= CR_CHANGE_TRUST_RENEWED;
    }
    return changes;
}

static bool share_an_identity(const struct cr_material *a, const struct cr_material *b)
{
    for (size_t i = 0; i < a->trust_len; i++)
        if (has_identity(b, a->trust[i].identity))
            return true;
    return false;
}

/* Whether peers with the trust of `verifier` accept the leaf of `holder`. A leaf without anchors is signed by a PKI
 * that this trust does not contain: then the identities that both states share are all there is to judge by. */
static bool verifies(const struct cr_material *holder, const struct cr_material *verifier)
{
    if (!holder->has_leaf || holder->anchors.len == 0)
        return share_an_identity(holder, verifier);
    for (size_t i = 0; i < holder->anchors.len; i++)
        if (has_identity(verifier, holder->anchors.items[i]))
            return true;
    return false;
}

/* Holders of either state accept holders of the other. A leaf that stays is accepted by the trust before as it was. */
static bool overlap(const struct cr_material *before, const struct cr_material *after)
{
    bool same_leaf = before->has_leaf && after->has_leaf && strcmp(before->leaf, after->leaf) == 0;
    return verifies(before, after) && (same_leaf || verifies(after, before));
}

/* Only the digest of a summary is known: what changed may be anything. */
static unsigned diff_summaries(const struct cr_material *before, const struct cr_material *after)
{
    char a[CR_SHA256_HEX];
    char b[CR_SHA256_HEX];
    cr_material_trust_digest(before, a);
    cr_material_trust_digest(after, b);
    if (strcmp(a, b) == 0)
        return 0;
    if (!cr_material_has_trust(before))
        return CR_CHANGE_TRUST_ADDED;
    if (!cr_material_has_trust(after))
        return CR_CHANGE_TRUST_REMOVED;
    return CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED | CR_CHANGE_TRUST_REPLACED;
}

static unsigned diff_trust(const struct cr_material *before, const struct cr_material *after)
{
    if (before->trust_summary.count || after->trust_summary.count)
        return diff_summaries(before, after);
    unsigned changes = missing(before, after, CR_CHANGE_TRUST_REMOVED) | missing(after, before, CR_CHANGE_TRUST_ADDED);
    bool moved = changes & (CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED);
    if (moved && before->trust_len && after->trust_len && !overlap(before, after))
        changes |= CR_CHANGE_TRUST_REPLACED;
    return changes;
}

/* --- opaque --- */

static unsigned diff_opaque(const struct cr_material *before, const struct cr_material *after)
{
    bool same = strcmp(before->opaque, after->opaque) == 0;
    return !same && cr_opaque_comparable(before->opaque, after->opaque) ? CR_CHANGE_OPAQUE : 0u;
}

static bool entries_are_known(const struct cr_material *m)
{
    return !m->opaque[0] || m->opaque_keys.len;
}

static void add_missing_entries(const struct cr_material *from, const struct cr_material *in, struct cr_strvec *names)
{
    for (size_t i = 0; i < from->opaque_keys.len; i++) {
        const char *element = from->opaque_keys.items[i];
        if (cr_strvec_has(&in->opaque_keys, element))
            continue;
        cr_autofree char *name = cr_strndup(element, cr_opaque_key_len(element));
        cr_strvec_add_unique(names, name);
    }
}

bool cr_diff_opaque_keys(const struct cr_material *before, const struct cr_material *after, struct cr_strvec *names)
{
    if (!entries_are_known(before) || !entries_are_known(after))
        return false;
    add_missing_entries(before, after, names);
    add_missing_entries(after, before, names);
    return true;
}

unsigned cr_diff(const struct cr_material *before, const struct cr_material *after)
{
    return diff_leaf(before, after) | diff_trust(before, after) | diff_opaque(before, after);
}

unsigned cr_diff_classes(unsigned changes)
{
    return (changes & leaf_bits ? CR_CLASS_LEAF : 0u) | (changes & trust_bits ? CR_CLASS_TRUST : 0u) |
           (changes & CR_CHANGE_OPAQUE ? CR_CLASS_OPAQUE : 0u);
}

/* --- words --- */

/* "leaf renewed" after a colon, "the leaf was renewed" in a sentence. */
struct words {
    const char *article;
    const char *subject;
    const char *predicate; /* NULL: nothing to say */
};

static struct words leaf_words(unsigned changes)
{
    struct words words = {"the", "leaf", NULL};
    bool key = changes & CR_CHANGE_KEY_CHANGED;
    bool issuer = changes & CR_CHANGE_ISSUER_CHANGED;
    if (key && issuer)
        words.predicate = "renewed with a new key by another issuer";
    else if (key)
        words.predicate = "renewed with a new key";
    else if (issuer)
        words.predicate = "renewed by another issuer";
    else if (changes & CR_CHANGE_LEAF_RENEWED)
        words.predicate = "renewed";
    return words;
}

static struct words set_words(unsigned changes)
{
    bool added = changes & CR_CHANGE_TRUST_ADDED;
    bool removed = changes & CR_CHANGE_TRUST_REMOVED;
    if (changes & CR_CHANGE_TRUST_REPLACED) {
        if (added && !removed)
            return (struct words){"a", "CA", "added together with a leaf that only it verifies"};
        if (removed && !added)
            return (struct words){"a", "CA", "removed that a leaf still needs"};
        return (struct words){"the", "CA", "replaced without overlap"};
    }
    if (added && removed)
        return (struct words){"a", "CA", "added and another removed"};
    if (added)
        return (struct words){"a", "CA", "added"};
    return (struct words){"a", "CA", removed ? "removed" : NULL};
}

enum { WORDS = 4 };

static void all_words(unsigned changes, struct words out[WORDS])
{
    out[0] = leaf_words(changes);
    out[1] = set_words(changes);
    out[2] = (struct words){"a", "CA", changes & CR_CHANGE_TRUST_RENEWED ? "renewed with the same key" : NULL};
    out[3] = (struct words){"the", "opaque material", changes & CR_CHANGE_OPAQUE ? "changed" : NULL};
}

char *cr_diff_describe(unsigned changes)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    struct words words[WORDS];
    all_words(changes, words);
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].predicate)
            cr_buf_printf(&buf, "%s%s %s", buf.len ? "; " : "", words[i].subject, words[i].predicate);
    if (!buf.len)
        cr_buf_puts(&buf, "nothing");
    return cr_buf_steal(&buf);
}

char *cr_diff_sentence(unsigned changes)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    struct words words[WORDS];
    all_words(changes, words);
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].predicate)
            cr_buf_printf(&buf, "%s%s %s was %s", buf.len ? " and " : "", words[i].article, words[i].subject,
                          words[i].predicate);
    if (!buf.len)
        cr_buf_puts(&buf, "nothing changed");
    return cr_buf_steal(&buf);
}
