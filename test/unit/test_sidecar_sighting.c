#include "evidence/sidecar_sighting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { SINCE = 1000 * 1000, SEEN = SINCE + 500 };
enum {
    NEW = CR_SHOWN_NEW,
    DELIVERED = CR_SHOWN_DELIVERED,
    OLD = CR_SHOWN_OLD,
    UNKNOWN = CR_SHOWN_UNKNOWN,
};
enum { P = CR_SIDECAR_PENDING, D = CR_SIDECAR_DELIVERED, R = CR_SIDECAR_REFUSED, F = CR_SIDECAR_FAILING };

/* Words stand for digests: "new", "old" and "older" of leaves, "T" and "t" of sets of CAs, "other" is another Secret's.
 */
struct entry {
    int state;
    const char *found_leaf, *found_trust, *delivered_leaf, *delivered_trust, *served;
    bool leaf_proven, trust_proven;
    const char *words;
};

/* clang-format off */
static const struct page_case {
    const char *rule;
    struct entry entries[3];
    size_t len;
    int leaf, trust;
    bool leaf_found, trust_found;
    const char *why; /* of the leaf, unless that is well: of the CAs; NULL: not looked at */
} cases[] = {
    {"all new and proven", {{D, "new", "T", "new", "T", "new", true, true, ""}}, 1, NEW, NEW, true, true, ""},
    {"the leaf proven, the CAs not", {{D, "new", "T", "new", "T", "new", true, false, ""}}, 1, NEW, DELIVERED, true, true, ""},
    {"neither can be proven", {{D, "new", "T", "new", "T", "", false, false, ""}}, 1, DELIVERED, DELIVERED, true, true, ""},
    {"a proof is under way", {{P, "new", "T", "new", "T", "", false, false, ""}}, 1, UNKNOWN, UNKNOWN, true, true,
     "its certroll-sidecar has not yet seen in use the new leaf"},
    {"a proof fails, nothing is seen", {{F, "new", "T", "new", "T", "", false, false, "connection refused"}}, 1, UNKNOWN,
     UNKNOWN, true, true, "its certroll-sidecar has not yet seen in use the new leaf: connection refused"},
    {"a proof fails, the old leaf is seen", {{F, "new", "T", "new", "T", "old", false, false, "it serves another leaf"}}, 1,
     OLD, UNKNOWN, true, true, "its certroll-sidecar still sees an old one served in place of the new leaf: it serves another leaf"},
    {"a leaf of long ago is old as well", {{F, "new", "T", "old", "T", "older", false, false, ""}}, 1, OLD, UNKNOWN, true,
     true, NULL},
    {"a leaf that nobody knows is not old", {{F, "new", "T", "old", "T", "strange", false, false, ""}}, 1, UNKNOWN, UNKNOWN,
     true, true, "its certroll-sidecar has not yet passed on the new leaf"},
    {"a trigger fails", {{F, "new", "T", "old", "t", "", false, false, "no such process"}}, 1, UNKNOWN, UNKNOWN, true, true,
     "its certroll-sidecar has not yet passed on the new leaf: no such process"},
    {"the volume is old", {{D, "old", "t", "old", "t", "", false, false, ""}}, 1, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has not yet found in its volume the new leaf"},
    {"the volume is old, and so is what is served", {{D, "old", "t", "old", "t", "old", true, false, ""}}, 1, OLD, UNKNOWN,
     false, false, "its certroll-sidecar still sees an old one served in place of the new leaf"},
    {"what it refuses is not old", {{R, "old", "t", "old", "t", "old", true, false, "the key does not belong to it"}}, 1,
     UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar cannot use what its volume has in place of the new leaf: the key does not belong to it"},
    {"what came after is refused, what is wanted was delivered", {{R, "new", "T", "new", "T", "", false, false, "x"}}, 1,
     DELIVERED, DELIVERED, true, true, ""},
    {"with another leaf in its files it may tell of that", {{P, "strange", "T", "new", "T", "new", true, true, ""}}, 1,
     UNKNOWN, NEW, false, true, "its certroll-sidecar has not yet found in its volume the new leaf"},
    {"what was taken back is not there yet", {{P, "old", "t", "new", "T", "new", true, true, ""}}, 1, UNKNOWN, UNKNOWN, false,
     false, "its certroll-sidecar has not yet found in its volume the new leaf"},
    {"and may be gone: it was refused while it was told of another", {{R, "old", "t", "new", "T", "", false, false, "x"}}, 1,
     UNKNOWN, UNKNOWN, false, false, "its certroll-sidecar cannot use what its volume has in place of the new leaf: x"},

    /* --- parts --- */
    {"a material without CAs", {{D, "new", "", "new", "", "new", true, false, ""}}, 1, NEW, UNKNOWN, true, false,
     "its certroll-sidecar has no material with the new set of CAs of this Secret"},
    {"CAs alone", {{D, "", "T", "", "T", "", false, true, ""}}, 1, UNKNOWN, NEW, false, true,
     "its certroll-sidecar has no material with the new leaf of this Secret"},
    {"the leaf of one, the CAs of another", {{D, "new", "", "new", "", "new", true, false, ""},
     {D, "new", "T", "new", "T", "", false, true, ""}}, 2, DELIVERED, NEW, true, true, ""},

    /* --- CAs that are reported by themselves --- */
    {"the leaf of one, the CAs alone of another", {{D, "new", "", "new", "", "new", true, false, ""},
     {D, "", "T", "", "T", "", false, false, ""}}, 2, NEW, DELIVERED, true, true, ""},
    {"the same, which the volume does not have yet", {{D, "old", "", "old", "", "", false, false, ""},
     {D, "", "t", "", "t", "", false, false, ""}}, 2, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has not yet found in its volume the new leaf"},
    {"the same, and the port shows a leaf of long ago", {{D, "new", "", "new", "", "new", true, false, ""},
     {F, "", "T", "", "t", "strange", false, false, "no such process"}}, 2, NEW, UNKNOWN, true, true,
     "its certroll-sidecar has not yet passed on the new set of CAs: no such process"},
    {"beside those of the leaf", {{D, "new", "T", "new", "T", "new", true, true, ""},
     {F, "", "T", "", "t", "", false, false, "no such process"}}, 2, NEW, UNKNOWN, true, true,
     "its certroll-sidecar has not yet passed on the new set of CAs: no such process"},
    {"beside those of the leaf, of another Secret", {{D, "new", "T", "new", "T", "new", true, true, ""},
     {D, "", "t", "", "t", "", false, false, ""}}, 2, NEW, NEW, true, true, ""},

    /* --- which material --- */
    {"none", {{0}}, 0, UNKNOWN, UNKNOWN, false, false, "its certroll-sidecar has no material with the new leaf of this Secret"},
    {"of another Secret", {{D, "other", "x", "other", "x", "other", true, true, ""}}, 1, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has no material with the new leaf of this Secret"},
    {"of another Secret that has the same CAs", {{D, "other", "T", "other", "T", "other", true, true, ""}}, 1, UNKNOWN,
     UNKNOWN, false, false, "its certroll-sidecar has no material with the new leaf of this Secret"},
    {"both: by the leaf", {{D, "other", "T", "other", "T", "other", true, true, ""},
     {P, "old", "t", "old", "t", "", false, false, ""}}, 2, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has not yet found in its volume the new leaf"},
    {"of another Secret, with a port that shows a leaf of this one", {{D, "new", "T", "new", "T", "new", true, true, ""},
     {R, "other", "x", "other", "x", "old", false, false, ""}}, 2, NEW, NEW, true, true, ""},
    {"the CAs of this Secret beside the leaf of another that has none", {{D, "strange", "T", "strange", "T", "", false, true,
     ""}}, 1, UNKNOWN, NEW, false, true, NULL},
    {"two of this Secret: both must have it", {{D, "new", "T", "new", "T", "new", true, true, ""},
     {P, "old", "t", "old", "t", "", false, false, "second"}}, 2, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has not yet found in its volume the new leaf: second"},
    {"an old one outweighs what is unknown", {{P, "new", "T", "old", "t", "", false, false, "first"},
     {F, "new", "T", "old", "t", "old", false, false, "second"}, {D, "new", "T", "new", "T", "new", true, true, ""}}, 3, OLD,
     UNKNOWN, true, true, "its certroll-sidecar still sees an old one served in place of the new leaf: second"},
    {"one that was never read could be any", {{R, "", "", "", "", "", false, false, "tls.crt is empty"}}, 1, UNKNOWN, UNKNOWN,
     false, false, "its certroll-sidecar has no material with the new leaf of this Secret: tls.crt is empty"},
    {"known by what is served alone", {{P, "", "", "", "", "old", false, false, ""}}, 1, UNKNOWN, UNKNOWN, false, false,
     "its certroll-sidecar has no material with the new leaf of this Secret"},
};
/* clang-format on */

static void digest(const char *word, char out[CR_SHA256_HEX])
{
    out[0] = '\0';
    if (word && *word)
        cr_sha256_hex(word, strlen(word), out);
}

static void fill(const struct page_case *c, struct cr_sidecar_sighting *seen)
{
    *seen = (struct cr_sidecar_sighting){
        .at_ms = SEEN, .read = true, .entries = cr_calloc(c->len, sizeof *seen->entries), .len = c->len};
    for (size_t i = 0; i < c->len; i++) {
        const struct entry *from = &c->entries[i];
        struct cr_sidecar_entry *to = &seen->entries[i];
        to->state = (enum cr_sidecar_state)from->state;
        to->leaf_proven = from->leaf_proven;
        to->trust_proven = from->trust_proven;
        digest(from->found_leaf, to->found_leaf);
        digest(from->found_trust, to->found_trust);
        digest(from->delivered_leaf, to->delivered_leaf);
        digest(from->delivered_trust, to->delivered_trust);
        digest(from->served, to->served_leaf);
        snprintf(to->words, sizeof to->words, "%s", from->words);
    }
}

static void ask(const struct cr_sidecar_sighting *seen, struct cr_sidecar_shown *out)
{
    char new[CR_SHA256_HEX], old[CR_SHA256_HEX], older[CR_SHA256_HEX], other[CR_SHA256_HEX], trust[CR_SHA256_HEX],
        before[CR_SHA256_HEX];
    digest("new", new);
    digest("old", old);
    digest("older", older);
    digest("other", other);
    digest("T", trust);
    digest("t", before);
    CR_CLEANUP(cr_strvec) struct cr_strvec old_leaves = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec others = {0};
    cr_strvec_add(&old_leaves, old);
    cr_strvec_add(&old_leaves, older);
    cr_strvec_add(&others, other);
    cr_sidecar_judge(&(struct cr_sidecar_question){.leaf = new,
                                                   .old_leaves = &old_leaves,
                                                   .settled_leaf = old,
                                                   .trust = trust,
                                                   .settled_trust = before,
                                                   .others = &others,
                                                   .others_settled = &others,
                                                   .port = 9950,
                                                   .since_ms = SINCE,
                                                   .sighting = seen},
                     out);
}

static void test_what_a_page_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct page_case *c = &cases[i];
        struct cr_sidecar_shown shown;
        CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen;
        fill(c, &seen);
        ask(&seen, &shown);
        if ((int)shown.leaf.shown != c->leaf || (int)shown.trust.shown != c->trust)
            fail_msg("%s: leaf %d (%s), trust %d (%s)", c->rule, shown.leaf.shown, shown.leaf.why, shown.trust.shown,
                     shown.trust.why);
        if (shown.leaf_found != c->leaf_found || shown.trust_found != c->trust_found)
            fail_msg("%s: found %d, %d", c->rule, shown.leaf_found, shown.trust_found);
        const char *why = shown.leaf.why[0] ? shown.leaf.why : shown.trust.why;
        if (c->why && !cr_streq(why, c->why))
            fail_msg("%s:\nwanted %s\nhave   %s", c->rule, c->why, why);
        assert_int_equal(shown.leaf.old_ms, c->leaf == OLD ? SEEN : 0);
        assert_int_equal(shown.trust.old_ms, 0);
    }
}

static void test_what_was_not_read_since_says_nothing(void **state)
{
    (void)state;
    struct cr_sidecar_shown shown;
    ask(NULL, &shown);
    assert_int_equal(shown.leaf.shown, UNKNOWN);
    assert_string_equal(shown.leaf.why, "its certroll-sidecar has not been asked yet");
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen;
    fill(&cases[0], &seen);
    seen.at_ms = SINCE - 1;
    ask(&seen, &shown);
    assert_int_equal(shown.leaf.shown, UNKNOWN);
    assert_string_equal(shown.trust.why, "its certroll-sidecar has not been asked yet");
    seen.at_ms = SINCE;
    ask(&seen, &shown);
    assert_int_equal(shown.leaf.shown, NEW);
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting failed = {.at_ms = SEEN, .words = "HTTP status 404"};
    ask(&failed, &shown);
    assert_int_equal(shown.trust.shown, UNKNOWN);
    assert_string_equal(shown.trust.why, "the page of its certroll-sidecar (port 9950) was not read: HTTP status 404");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_page_shows),
        cmocka_unit_test(test_what_was_not_read_since_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
