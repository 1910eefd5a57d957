#include "evidence/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* A state of material in a line: leaf "serial/key/issuer/chain" or NULL; anchors and trust in words. A CA is
 * "identity" or "identity:certificate" when one identity has several certificates. */
struct state {
    const char *leaf;
    const char *key;
    const char *issuer;
    const char *chain;
    const char *anchors[4];
    const char *trust[4];
    const char *opaque; /* "h", digested by key 1; "2:h", by key 2; CR_OPAQUE_UNREAD */
    const char *entries[3];
};

static void set_digest(char out[CR_SHA256_HEX], const char *word)
{
    if (word)
        cr_sha256_hex(word, strlen(word), out);
}

static void set_opaque(char out[CR_OPAQUE_TEXT], const char *word)
{
    char hex[CR_SHA256_HEX];
    if (!word || strcmp(word, CR_OPAQUE_UNREAD) == 0) {
        snprintf(out, CR_OPAQUE_TEXT, "%s", word ? word : "");
        return;
    }
    const char *colon = strchr(word, ':');
    set_digest(hex, colon ? colon + 1 : word);
    snprintf(out, CR_OPAQUE_TEXT, "0000000%c:%s", colon ? *word : '1', hex);
}

static void make(const struct state *state, struct cr_material *m)
{
    *m = (struct cr_material){.has_leaf = state->leaf != NULL};
    set_digest(m->leaf, state->leaf);
    set_digest(m->key, state->key ? state->key : state->leaf);
    set_digest(m->issuer, state->issuer);
    set_digest(m->chain, state->chain ? state->chain : state->leaf);
    set_opaque(m->opaque, state->opaque);
    for (size_t i = 0; i < 3 && state->entries[i]; i++)
        cr_strvec_add(&m->opaque_keys, state->entries[i]);
    for (size_t i = 0; i < 4 && state->anchors[i]; i++) {
        char hex[CR_SHA256_HEX];
        set_digest(hex, state->anchors[i]);
        cr_strvec_add(&m->anchors, hex);
    }
    m->trust = cr_calloc(4, sizeof *m->trust);
    for (size_t i = 0; i < 4 && state->trust[i]; i++) {
        cr_autofree char *identity = cr_strndup(state->trust[i], strcspn(state->trust[i], ":"));
        set_digest(m->trust[i].identity, identity);
        set_digest(m->trust[i].fingerprint, state->trust[i]);
        m->trust_len++;
    }
}

enum {
    LEAF = CR_CHANGE_LEAF_RENEWED,
    KEY = CR_CHANGE_KEY_CHANGED,
    ISSUER = CR_CHANGE_ISSUER_CHANGED,
    ADDED = CR_CHANGE_TRUST_ADDED,
    REMOVED = CR_CHANGE_TRUST_REMOVED,
    RENEWED = CR_CHANGE_TRUST_RENEWED,
    REPLACED = CR_CHANGE_TRUST_REPLACED,
    OPAQUE = CR_CHANGE_OPAQUE,
};

/* clang-format off */
static const struct diff_case {
    const char *rule;
    struct state before;
    struct state after;
    unsigned changes;
} diffs[] = {
    {"nothing in both is no change", {0}, {0}, 0},
    {"the same material is no change",
     {.leaf = "1", .key = "k", .issuer = "A", .anchors = {"A"}, .trust = {"A"}, .opaque = "h"},
     {.leaf = "1", .key = "k", .issuer = "A", .anchors = {"A"}, .trust = {"A"}, .opaque = "h"},
     0},
    {"the order of a bundle alone is no change",
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A", "B"}},
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"B", "A"}},
     0},
    {"the order of several certificates of one identity is no change",
     {.trust = {"A:1", "A:2"}}, {.trust = {"A:2", "A:1"}}, 0},
    {"a new leaf with the same key and issuer is renewed",
     {.leaf = "1", .key = "k", .issuer = "A"}, {.leaf = "2", .key = "k", .issuer = "A"}, LEAF},
    {"a new leaf with another key",
     {.leaf = "1", .key = "k", .issuer = "A"}, {.leaf = "2", .key = "l", .issuer = "A"}, LEAF | KEY},
    {"a new leaf by another issuer",
     {.leaf = "1", .key = "k", .issuer = "A"}, {.leaf = "2", .key = "k", .issuer = "B"}, LEAF | ISSUER},
    {"a new leaf with another key by another issuer",
     {.leaf = "1", .key = "k", .issuer = "A"}, {.leaf = "2", .key = "l", .issuer = "B"}, LEAF | KEY | ISSUER},
    {"an issuer that is not known on one side has not changed",
     {.leaf = "1", .key = "k"}, {.leaf = "2", .key = "k", .issuer = "B"}, LEAF},
    {"another chain under the same leaf is renewed: peers see it",
     {.leaf = "1", .issuer = "A", .chain = "1+I"}, {.leaf = "1", .issuer = "A", .chain = "1+J"}, LEAF},
    {"the same leaf whose issuer became known in the bundle keeps its issuer",
     {.leaf = "1", .issuer = "name of A", .trust = {"B"}},
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"B", "A"}},
     ADDED},
    {"a leaf that appears", {.trust = {"A"}}, {.leaf = "1", .issuer = "A", .trust = {"A"}}, LEAF | KEY},
    {"a leaf that vanishes", {.leaf = "1", .trust = {"A"}}, {.trust = {"A"}}, LEAF | KEY},
    {"trust that appears as a whole is added",
     {.leaf = "1", .issuer = "A"}, {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A"}}, ADDED},
    {"trust that vanishes as a whole is removed, not replaced",
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A"}}, {.leaf = "1", .issuer = "A"}, REMOVED},
    {"a CA added beside the one in use overlaps",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A"}}, {.leaf = "1", .anchors = {"A"}, .trust = {"B", "A"}}, ADDED},
    {"the unused CA removed overlaps",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A", "B"}}, {.leaf = "1", .anchors = {"A"}, .trust = {"A"}}, REMOVED},
    {"another certificate of the same identity is renewed",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A:1"}}, {.leaf = "1", .anchors = {"A"}, .trust = {"A:2"}}, RENEWED},
    {"a second certificate of an identity that is there is renewed, not added",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A:1"}}, {.leaf = "1", .anchors = {"A"}, .trust = {"A:1", "A:2"}}, RENEWED},
    {"a renewal and another CA at once",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A:1"}},
     {.leaf = "1", .anchors = {"A"}, .trust = {"A:2", "B"}},
     ADDED | RENEWED},
    {"the naive rotation: another CA and a leaf of it in one write",
     {.leaf = "1", .key = "k", .issuer = "A", .anchors = {"A"}, .trust = {"A"}},
     {.leaf = "2", .key = "l", .issuer = "B", .anchors = {"B"}, .trust = {"B"}},
     LEAF | KEY | ISSUER | ADDED | REMOVED | REPLACED},
    {"[new, old] and the new leaf in one write: who has only the old CA refuses the new leaf",
     {.leaf = "1", .key = "k", .issuer = "A", .anchors = {"A"}, .trust = {"A"}},
     {.leaf = "2", .key = "l", .issuer = "B", .anchors = {"B"}, .trust = {"B", "A"}},
     LEAF | KEY | ISSUER | ADDED | REPLACED},
    {"trust was there first: the new leaf overlaps",
     {.leaf = "1", .key = "k", .issuer = "A", .anchors = {"A"}, .trust = {"B", "A"}},
     {.leaf = "2", .key = "k", .issuer = "B", .anchors = {"B"}, .trust = {"B", "A"}},
     LEAF | ISSUER},
    {"the old CA dropped after all leaves moved overlaps",
     {.leaf = "2", .issuer = "B", .anchors = {"B"}, .trust = {"B", "A"}},
     {.leaf = "2", .issuer = "B", .anchors = {"B"}, .trust = {"B"}},
     REMOVED},
    {"a CA dropped that the leaf still needs",
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A", "B"}},
     {.leaf = "1", .issuer = "A", .trust = {"B"}},
     REMOVED | REPLACED},
    {"the CA replaced under a leaf that stays",
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A"}},
     {.leaf = "1", .issuer = "A", .trust = {"B"}},
     ADDED | REMOVED | REPLACED},
    {"a leaf that both CAs anchor (cross-signed) overlaps",
     {.leaf = "1", .issuer = "A", .anchors = {"A"}, .trust = {"A"}},
     {.leaf = "2", .key = "1", .issuer = "B", .anchors = {"A", "B"}, .trust = {"B", "A"}},
     LEAF | ISSUER | ADDED},
    {"without leaves an identity in common is the overlap",
     {.trust = {"A", "B"}}, {.trust = {"B", "C"}}, ADDED | REMOVED},
    {"without leaves nothing in common is replaced", {.trust = {"A"}}, {.trust = {"B"}}, ADDED | REMOVED | REPLACED},
    {"a leaf of another PKI says nothing: an identity in common is the overlap",
     {.leaf = "1", .issuer = "X", .trust = {"A", "B"}}, {.leaf = "1", .issuer = "X", .trust = {"B"}}, REMOVED},
    {"a leaf of another PKI says nothing: nothing in common is replaced",
     {.leaf = "1", .issuer = "X", .trust = {"A"}},
     {.leaf = "1", .issuer = "X", .trust = {"B"}},
     ADDED | REMOVED | REPLACED},
    {"opaque material", {.opaque = "h"}, {.opaque = "i"}, OPAQUE},
    {"opaque material that appears", {0}, {.opaque = "i"}, OPAQUE},
    {"opaque material that vanishes", {.opaque = "h"}, {0}, OPAQUE},
    {"the same under another key is no change", {.opaque = "h"}, {.opaque = "2:h"}, 0},
    {"another under another key cannot be told", {.opaque = "h"}, {.opaque = "2:i"}, 0},
    {"opaque material without a key to digest it", {.opaque = "h"}, {.opaque = CR_OPAQUE_UNREAD}, 0},
    {"opaque material that can be digested at last", {.opaque = CR_OPAQUE_UNREAD}, {.opaque = "h"}, 0},
    {"opaque material that was never digested and is gone", {.opaque = CR_OPAQUE_UNREAD}, {0}, 0},
    {"everything at once vanishes",
     {.leaf = "1", .anchors = {"A"}, .trust = {"A"}, .opaque = "h"}, {0}, LEAF | KEY | REMOVED | OPAQUE},
};
/* clang-format on */

static void test_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(diffs); i++) {
        CR_CLEANUP(cr_material) struct cr_material before = {0};
        CR_CLEANUP(cr_material) struct cr_material after = {0};
        make(&diffs[i].before, &before);
        make(&diffs[i].after, &after);
        unsigned changes = cr_diff(&before, &after);
        if (changes != diffs[i].changes) {
            cr_autofree char *want = cr_diff_describe(diffs[i].changes);
            cr_autofree char *have = cr_diff_describe(changes);
            fail_msg("%s: wanted 0x%x (%s), have 0x%x (%s)", diffs[i].rule, diffs[i].changes, want, changes, have);
        }
    }
}

static void test_a_change_and_its_reverse_touch_the_same_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(diffs); i++) {
        CR_CLEANUP(cr_material) struct cr_material before = {0};
        CR_CLEANUP(cr_material) struct cr_material after = {0};
        make(&diffs[i].before, &before);
        make(&diffs[i].after, &after);
        if (cr_diff_classes(cr_diff(&before, &after)) != cr_diff_classes(cr_diff(&after, &before)))
            fail_msg("%s: not symmetric", diffs[i].rule);
    }
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(cr_diff_classes(0), 0);
    assert_int_equal(cr_diff_classes(LEAF), CR_CLASS_LEAF);
    assert_int_equal(cr_diff_classes(KEY), CR_CLASS_LEAF);
    assert_int_equal(cr_diff_classes(ISSUER), CR_CLASS_LEAF);
    assert_int_equal(cr_diff_classes(ADDED), CR_CLASS_TRUST);
    assert_int_equal(cr_diff_classes(REMOVED), CR_CLASS_TRUST);
    assert_int_equal(cr_diff_classes(RENEWED), CR_CLASS_TRUST);
    assert_int_equal(cr_diff_classes(REPLACED), CR_CLASS_TRUST);
    assert_int_equal(cr_diff_classes(OPAQUE), CR_CLASS_OPAQUE);
    assert_int_equal(cr_diff_classes(LEAF | RENEWED | OPAQUE), CR_CLASS_LEAF | CR_CLASS_TRUST | CR_CLASS_OPAQUE);
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        unsigned changes;
        const char *words;
        const char *sentence;
    } cases[] = {
        {0, "nothing", "nothing changed"},
        {LEAF, "leaf renewed", "the leaf was renewed"},
        {LEAF | KEY, "leaf renewed with a new key", "the leaf was renewed with a new key"},
        {LEAF | ISSUER, "leaf renewed by another issuer", "the leaf was renewed by another issuer"},
        {LEAF | KEY | ISSUER | ADDED | REMOVED | REPLACED,
         "leaf renewed with a new key by another issuer; CA replaced without overlap",
         "the leaf was renewed with a new key by another issuer and the CA was replaced without overlap"},
        {REPLACED, "CA replaced without overlap", "the CA was replaced without overlap"},
        {ADDED | REPLACED, "CA added together with a leaf that only it verifies",
         "a CA was added together with a leaf that only it verifies"},
        {REMOVED | REPLACED, "CA removed that a leaf still needs", "a CA was removed that a leaf still needs"},
        {ADDED, "CA added", "a CA was added"},
        {REMOVED, "CA removed", "a CA was removed"},
        {ADDED | REMOVED, "CA added and another removed", "a CA was added and another removed"},
        {RENEWED, "CA renewed with the same key", "a CA was renewed with the same key"},
        {LEAF | ADDED | RENEWED | OPAQUE,
         "leaf renewed; CA added; CA renewed with the same key; opaque material changed",
         "the leaf was renewed and a CA was added and a CA was renewed with the same key and the opaque material was "
         "changed"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *words = cr_diff_describe(cases[i].changes);
        cr_autofree char *sentence = cr_diff_sentence(cases[i].changes);
        assert_string_equal(words, cases[i].words);
        assert_string_equal(sentence, cases[i].sentence);
    }
}

/* --- which opaque entries --- */

static void test_opaque_keys_that_changed(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct state before;
        struct state after;
        bool known;
        const char *names;
    } cases[] = {
        {"changed", {.opaque = "h", .entries = {"a=1", "b=1"}}, {.opaque = "i", .entries = {"a=1", "b=2"}}, true, "b"},
        {"added", {.opaque = "h", .entries = {"a=1"}}, {.opaque = "i", .entries = {"a=1", "b=2"}}, true, "b"},
        {"removed", {.opaque = "h", .entries = {"a=1", "b=1"}}, {.opaque = "i", .entries = {"a=1"}}, true, "b"},
        {"all gone", {.opaque = "h", .entries = {"a=1"}}, {0}, true, "a"},
        {"the first", {0}, {.opaque = "h", .entries = {"a=1"}}, true, "a"},
        {"all of them",
         {.opaque = "h", .entries = {"a=1", "b=1"}},
         {.opaque = "i", .entries = {"a=2", "b=2"}},
         true,
         "a b"},
        {"too many before", {.opaque = "h"}, {.opaque = "i", .entries = {"a=1"}}, false, ""},
        {"too many now", {.opaque = "h", .entries = {"a=1"}}, {.opaque = "i"}, false, ""},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_material) struct cr_material before = {0};
        CR_CLEANUP(cr_material) struct cr_material after = {0};
        make(&cases[i].before, &before);
        make(&cases[i].after, &after);
        CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
        bool known = cr_diff_opaque_keys(&before, &after, &names);
        cr_autofree char *text = cr_strvec_join(&names, " ");
        if (known != cases[i].known || strcmp(text, cases[i].names) != 0)
            fail_msg("%s: %d, '%s'", cases[i].rule, known, text);
    }
}

/* --- lists that were too long to be remembered --- */

static void summarize(struct cr_material *m)
{
    m->trust_summary = cr_material_summarize_trust(m);
    free(m->trust);
    m->trust = NULL;
    m->trust_len = 0;
    cr_strvec_dispose(&m->anchors);
}

static void test_summarized_trust(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct state before;
        struct state after;
        unsigned changes;
    } cases[] = {
        {"the same", {.trust = {"A", "B"}}, {.trust = {"A", "B"}}, 0},
        {"another order", {.trust = {"A", "B"}}, {.trust = {"B", "A"}}, 0},
        {"one more is anything", {.trust = {"A"}}, {.trust = {"A", "B"}}, ADDED | REMOVED | REPLACED},
        {"a renewed one is anything", {.trust = {"A"}}, {.trust = {"A:2"}}, ADDED | REMOVED | REPLACED},
        {"none now", {.trust = {"A"}}, {0}, REMOVED},
        {"the leaf is compared as ever", {.leaf = "1", .trust = {"A"}}, {.leaf = "2", .trust = {"A"}}, LEAF | KEY},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_material) struct cr_material before = {0};
        CR_CLEANUP(cr_material) struct cr_material after = {0};
        make(&cases[i].before, &before);
        make(&cases[i].after, &after);
        cr_autofree char *annotation = cr_restart_annotation_value(&before, CR_CLASS_TRUST);
        summarize(&before);
        if (cr_diff(&before, &after) != cases[i].changes)
            fail_msg("%s: %x", cases[i].rule, cr_diff(&before, &after));
        assert_true(cr_restart_annotation_covers(annotation, &before, CR_CLASS_TRUST));
        summarize(&after);
        if (cr_diff(&before, &after) != cases[i].changes)
            fail_msg("%s, both: %x", cases[i].rule, cr_diff(&before, &after));
    }
}

/* --- the annotation --- */

static void test_annotation_name_is_short_and_per_secret(void **state)
{
    (void)state;
    char name[CR_ANNOTATION_NAME];
    char other[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("envoy-rate-limit", name);
    cr_restart_annotation_name("envoy", other);
    assert_true(cr_starts_with(name, "certroll.dev/"));
    assert_int_equal(strlen(name), strlen("certroll.dev/") + 16);
    assert_int_equal(strspn(name + strlen("certroll.dev/"), "0123456789abcdef"), 16);
    assert_string_not_equal(name, other);
    /* Pods of a running cluster carry it: it must never change. */
    assert_string_equal(other, "certroll.dev/84532b306f259587");
}

static const struct state full = {.leaf = "1", .anchors = {"A"}, .trust = {"A", "B"}, .opaque = "h"};

static void test_annotation_holds_only_the_classes_that_forced_it(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *none = cr_restart_annotation_value(&m, 0);
    cr_autofree char *trust = cr_restart_annotation_value(&m, CR_CLASS_TRUST);
    cr_autofree char *all = cr_restart_annotation_value(&m, CR_CLASS_LEAF | CR_CLASS_TRUST | CR_CLASS_OPAQUE);
    assert_string_equal(none, "");
    assert_true(cr_starts_with(trust, "trust="));
    assert_int_equal(strlen(trust), strlen("trust=") + 16);
    assert_null(strchr(trust, ','));
    assert_true(cr_starts_with(all, "leaf="));
    assert_non_null(strstr(all, trust));
    assert_non_null(strstr(all, ",opaque="));
}

static void test_annotation_of_absent_material_is_none(void **state)
{
    (void)state;
    struct cr_material empty = {0};
    cr_autofree char *value = cr_restart_annotation_value(&empty, CR_CLASS_LEAF | CR_CLASS_TRUST | CR_CLASS_OPAQUE);
    assert_string_equal(value, "leaf=none,trust=none,opaque=none");
    assert_true(cr_restart_annotation_covers(value, &empty, CR_CLASS_LEAF | CR_CLASS_TRUST));
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    assert_false(cr_restart_annotation_covers(value, &m, CR_CLASS_LEAF));
}

static void test_annotation_follows_each_class(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct state other;
        unsigned differs;
    } cases[] = {
        {"another leaf", {.leaf = "2", .anchors = {"A"}, .trust = {"A", "B"}, .opaque = "h"}, CR_CLASS_LEAF},
        {"another chain", {.leaf = "1", .chain = "1+I", .trust = {"A", "B"}, .opaque = "h"}, CR_CLASS_LEAF},
        {"another bundle", {.leaf = "1", .trust = {"A"}, .opaque = "h"}, CR_CLASS_TRUST},
        {"a renewed CA", {.leaf = "1", .trust = {"A", "B:2"}, .opaque = "h"}, CR_CLASS_TRUST},
        {"the bundle in another order", {.leaf = "1", .trust = {"B", "A"}, .opaque = "h"}, 0},
        {"another secret", {.leaf = "1", .trust = {"A", "B"}, .opaque = "i"}, CR_CLASS_OPAQUE},
    };
    static const unsigned classes[] = {CR_CLASS_LEAF, CR_CLASS_TRUST, CR_CLASS_OPAQUE};
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *value = cr_restart_annotation_value(&m, CR_CLASS_LEAF | CR_CLASS_TRUST | CR_CLASS_OPAQUE);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_material) struct cr_material other = {0};
        make(&cases[i].other, &other);
        for (size_t k = 0; k < cr_array_len(classes); k++)
            if (cr_restart_annotation_covers(value, &other, classes[k]) == (bool)(cases[i].differs & classes[k]))
                fail_msg("%s: class %u", cases[i].rule, classes[k]);
    }
}

static void test_annotation_covers_what_it_names(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *trust = cr_restart_annotation_value(&m, CR_CLASS_TRUST);
    assert_true(cr_restart_annotation_covers(trust, &m, CR_CLASS_TRUST));
    assert_true(cr_restart_annotation_covers(trust, &m, 0));
    assert_true(cr_restart_annotation_covers(NULL, &m, 0));
    assert_false(cr_restart_annotation_covers(trust, &m, CR_CLASS_LEAF));
    assert_false(cr_restart_annotation_covers(trust, &m, CR_CLASS_LEAF | CR_CLASS_TRUST));
    assert_false(cr_restart_annotation_covers(NULL, &m, CR_CLASS_TRUST));
}

static void test_annotation_that_a_person_edited_covers_nothing(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *good = cr_restart_annotation_value(&m, CR_CLASS_TRUST);
    cr_autofree char *longer = cr_asprintf("%sff", good);
    cr_autofree char *prefixed = cr_asprintf("x%s", good);
    cr_autofree char *shorter = cr_strndup(good, strlen(good) - 1);
    const char *const values[] = {"", ",", "trust", "trust=", "=", longer, prefixed, shorter, "true"};
    for (size_t i = 0; i < cr_array_len(values); i++)
        if (cr_restart_annotation_covers(values[i], &m, CR_CLASS_TRUST))
            fail_msg("\"%s\" covers", values[i]);
    cr_autofree char *among = cr_asprintf("x=1,,%s,y", good);
    assert_true(cr_restart_annotation_covers(among, &m, CR_CLASS_TRUST));
}

static void test_merge_keeps_the_other_classes(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material before = {0};
    CR_CLEANUP(cr_material) struct cr_material after = {0};
    make(&full, &before);
    make(&(struct state){.leaf = "2", .anchors = {"C"}, .trust = {"C"}, .opaque = "h"}, &after);
    cr_autofree char *first = cr_restart_annotation_value(&before, CR_CLASS_LEAF | CR_CLASS_TRUST);
    cr_autofree char *second = cr_restart_annotation_merge(first, &after, CR_CLASS_TRUST, NULL);
    assert_true(cr_restart_annotation_covers(second, &before, CR_CLASS_LEAF));
    assert_true(cr_restart_annotation_covers(second, &after, CR_CLASS_TRUST));
    assert_false(cr_restart_annotation_covers(second, &before, CR_CLASS_TRUST));
    cr_autofree char *again = cr_restart_annotation_merge(second, &after, CR_CLASS_TRUST, NULL);
    assert_string_equal(again, second);
    cr_autofree char *cleaned = cr_restart_annotation_merge("x=1,trust=", &after, CR_CLASS_LEAF, NULL);
    assert_null(strstr(cleaned, "x=1"));
    assert_null(strstr(cleaned, "trust="));
}

static void test_annotation_has_a_version_for_each_class(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *first = cr_restart_annotation_merge(NULL, &m, CR_CLASS_LEAF, "100");
    cr_autofree char *value = cr_restart_annotation_merge(first, &m, CR_CLASS_TRUST, "2000");
    assert_true(cr_restart_annotation_covers(value, &m, CR_CLASS_LEAF | CR_CLASS_TRUST));
    static const struct {
        enum cr_class class;
        const char *after, *until;
        bool between;
    } cases[] = {
        {CR_CLASS_LEAF, "99", "100", true},     {CR_CLASS_LEAF, "100", "101", false},
        {CR_CLASS_LEAF, "9", "99", false},      {CR_CLASS_TRUST, "100", "2000", true},
        {CR_CLASS_TRUST, "100", "1999", false}, {CR_CLASS_OPAQUE, "1", "9999", false},
        {CR_CLASS_LEAF, NULL, "101", false},    {CR_CLASS_LEAF, "99", NULL, false},
        {CR_CLASS_LEAF, "x", "101", false},     {CR_CLASS_LEAF, "99", "x", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if (cr_restart_annotation_is_between(value, cases[i].class, cases[i].after, cases[i].until) != cases[i].between)
            fail_msg("case %zu of %s", i, value);
    /* What is no number, or longer than any, is not remembered; a class that is restarted for again loses its old one.
     */
    static const char *const not_versions[] = {NULL, "", "0", "12x", "-1", "123456789012345678901"};
    for (size_t i = 0; i < cr_array_len(not_versions); i++) {
        cr_autofree char *without = cr_restart_annotation_merge(value, &m, CR_CLASS_LEAF, not_versions[i]);
        assert_null(strstr(without, "leaf.version"));
        assert_non_null(strstr(without, ",trust.version=2000"));
    }
    assert_true(cr_restart_annotation_is_at(value, CR_CLASS_TRUST, "2000"));
    assert_false(cr_restart_annotation_is_at(value, CR_CLASS_TRUST, "2001"));
    assert_false(cr_restart_annotation_is_at(value, CR_CLASS_OPAQUE, "2000"));
    cr_autofree char *newest = cr_restart_annotation_newest(value);
    assert_string_equal(newest, "2000");
    cr_autofree char *unversioned = cr_restart_annotation_value(&m, CR_CLASS_LEAF);
    assert_null(cr_restart_annotation_newest(unversioned));
    assert_null(cr_restart_annotation_newest(NULL));
}

static void test_annotation_is_for_one_workload(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    make(&full, &m);
    cr_autofree char *plain = cr_restart_annotation_value(&m, CR_CLASS_TRUST);
    cr_autofree char *value = cr_restart_annotation_for(plain, "uid-1", 1790000000123);
    assert_true(cr_restart_annotation_covers(value, &m, CR_CLASS_TRUST));
    CR_CLEANUP(cr_json) struct cr_json *annotations = cr_json_new_object();
    cr_json_set_string(annotations, "new", value);
    cr_json_set_string(annotations, "old", plain);
    assert_string_equal(cr_restart_annotation_read(annotations, "new", "uid-1"), value);
    assert_null(cr_restart_annotation_read(annotations, "new", "uid-2"));
    assert_null(cr_restart_annotation_read(annotations, "new", NULL));
    /* Written before it was said for whom. */
    assert_string_equal(cr_restart_annotation_read(annotations, "old", "uid-2"), plain);
    assert_null(cr_restart_annotation_read(annotations, "none", "uid-1"));
    /* Taken further, it is recorded again. */
    cr_autofree char *merged = cr_restart_annotation_merge(value, &m, CR_CLASS_LEAF, NULL);
    assert_null(strstr(merged, "workload="));
    assert_null(strstr(merged, ",at="));
}

/* A workload with these annotations in its template. Owned. */
static struct cr_json *workload_with(const char *const *values, size_t count)
{
    struct cr_json *workload = cr_json_new_object();
    cr_json_set_string(cr_json_object_in(workload, "metadata"), "uid", "uid-1");
    struct cr_json *template = cr_json_object_in(cr_json_object_in(workload, "spec"), "template");
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(template, "metadata"), "annotations");
    for (size_t i = 0; i < count; i++) {
        char name[CR_ANNOTATION_NAME];
        cr_restart_annotation_name((const char[]){(char)('a' + i), '\0'}, name);
        cr_json_set_string(annotations, name, values[i]);
    }
    cr_json_set_string(annotations, "example.org/x", "leaf=1,at=1790000000999");
    return workload;
}

static void test_annotation_says_when_the_workload_was_restarted(void **state)
{
    (void)state;
    cr_autofree char *own = cr_restart_annotation_for("leaf=1", "uid-1", 1790000000123);
    cr_autofree char *later = cr_restart_annotation_for("leaf=1", "uid-1", 1790000000456);
    cr_autofree char *copied = cr_restart_annotation_for("leaf=1", "uid-2", 1790000000789);
    const struct {
        const char *rule;
        const char *values[2];
        int64_t at_ms;
    } cases[] = {
        {"of one Secret", {own, "leaf=1"}, 1790000000123},
        {"the newest of several", {later, own}, 1790000000456},
        {"not what was copied from another workload", {copied, own}, 1790000000123},
        {"none, as it was written before", {"leaf=1", "trust=2"}, 0},
        {"no number", {"leaf=1,at=now", "leaf=1,at=-5"}, 0},
        {"not beyond what a time is", {"leaf=1,at=17900000000000", "leaf=1,at="}, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *workload = workload_with(cases[i].values, 2);
        if (cr_restart_annotation_at_ms(workload) != cases[i].at_ms)
            fail_msg("%s", cases[i].rule);
    }
}

static void test_annotation_names_the_key_of_an_opaque_digest(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *then;
        const char *now;
        bool covers;
        bool rekeyed;
    } cases[] = {
        {"the same", "h", "h", true, false},
        {"another", "h", "i", false, false},
        {"the same under another key", "h", "2:h", false, true},
        {"another under another key", "h", "2:i", false, true},
        {"gone", "h", NULL, false, false},
        {"none then", NULL, "h", false, false},
        {"cannot be digested now", "h", CR_OPAQUE_UNREAD, false, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_material) struct cr_material then = {0};
        CR_CLEANUP(cr_material) struct cr_material now = {0};
        make(&(struct state){.leaf = "1", .opaque = cases[i].then}, &then);
        make(&(struct state){.leaf = "1", .opaque = cases[i].now}, &now);
        cr_autofree char *value = cr_restart_annotation_value(&then, CR_CLASS_LEAF | CR_CLASS_OPAQUE);
        if (cr_restart_annotation_covers(value, &now, CR_CLASS_OPAQUE) != cases[i].covers ||
            cr_restart_annotation_is_rekeyed(value, &now) != cases[i].rekeyed)
            fail_msg("%s: %s", cases[i].rule, value);
        assert_true(cr_restart_annotation_covers(value, &now, CR_CLASS_LEAF));
        /* A later restart for the leaf keeps what was said of the opaque material, whichever key said it. */
        cr_autofree char *merged = cr_restart_annotation_merge(value, &now, CR_CLASS_LEAF, NULL);
        assert_true(cr_restart_annotation_covers(merged, &then, CR_CLASS_OPAQUE));
        assert_false(cr_restart_annotation_is_rekeyed("leaf=0123456789abcdef", &now));
        assert_false(cr_restart_annotation_is_rekeyed(NULL, &now));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_a_change_and_its_reverse_touch_the_same_classes),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_opaque_keys_that_changed),
        cmocka_unit_test(test_summarized_trust),
        cmocka_unit_test(test_annotation_has_a_version_for_each_class),
        cmocka_unit_test(test_annotation_is_for_one_workload),
        cmocka_unit_test(test_annotation_says_when_the_workload_was_restarted),
        cmocka_unit_test(test_annotation_names_the_key_of_an_opaque_digest),
        cmocka_unit_test(test_annotation_name_is_short_and_per_secret),
        cmocka_unit_test(test_annotation_holds_only_the_classes_that_forced_it),
        cmocka_unit_test(test_annotation_of_absent_material_is_none),
        cmocka_unit_test(test_annotation_follows_each_class),
        cmocka_unit_test(test_annotation_covers_what_it_names),
        cmocka_unit_test(test_annotation_that_a_person_edited_covers_nothing),
        cmocka_unit_test(test_merge_keeps_the_other_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
