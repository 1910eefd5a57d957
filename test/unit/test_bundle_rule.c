#include "pki/bundle_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

enum { CAS = 6, LEAVES = 3, NOW_MS = 1000000 };

/* Per CA a word: its name, then N(ew), x for expired, f for one that has not begun, i for an intermediate. Per leaf the
 * names of the CAs that it verifies against. Expected: the names that are kept. */
static const struct scenario {
    const char *what;
    const char *cas[CAS];
    size_t retain;
    const char *leaves[LEAVES];
    const char *kept;
} scenarios[] = {
    {"the first CA of all", {"bN"}, 1, {0}, "b"},
    {"the new one before the previous", {"bN", "a"}, 1, {"a"}, "ba"},
    {"at most 1 + retainPrevious", {"dN", "c", "b", "a"}, 1, {0}, "dc"},
    {"at most 1 + retainPrevious, two of them", {"dN", "c", "b", "a"}, 2, {0}, "dcb"},
    {"nothing retained where nobody needs it", {"bN", "a"}, 0, {0}, "b"},
    {"nothing retained, but a leaf needs it", {"bN", "a"}, 0, {"a"}, "ba"},
    {"a leaf of the new CA needs no other", {"bN", "a"}, 0, {"b"}, "b"},
    {"expired CAs go", {"cN", "bx", "a"}, 1, {0}, "ca"},
    {"an expired CA goes also when a leaf was issued by it", {"bN", "ax"}, 1, {"a"}, "b"},
    {"duplicates go, and take no place", {"cN", "c", "b", "b", "a"}, 2, {0}, "cba"},
    {"one needed takes the place of one that is not", {"cN", "b", "a"}, 1, {"a"}, "ca"},
    {"needed ones beyond the limit stay", {"cN", "b", "a"}, 1, {"a", "b"}, "cba"},
    {"a second change in the middle of a first", {"cN", "b", "a"}, 1, {"b", "a"}, "cba"},
    {"a second change before the first had leaves", {"cN", "b", "a"}, 1, {"a"}, "ca"},
    {"cross-signed: the leaf verifies against both, the new one is enough", {"bN", "a"}, 0, {"ba"}, "b"},
    {"a leaf of two previous CAs keeps the newer", {"cN", "b", "a"}, 0, {"ba"}, "cb"},
    {"one that stays anyway is enough for another leaf", {"cN", "b", "a"}, 0, {"a", "ba"}, "ca"},
    {"the same, whatever the order of the leaves", {"cN", "b", "a"}, 0, {"ba", "a"}, "ca"},
    {"a leaf of an expired root and a good one needs the good one", {"cN", "bx", "a"}, 0, {"ba"}, "ca"},
    {"of three leaves with a choice each has one", {"dN", "c", "b", "a"}, 0, {"cb", "ba", "ca"}, "dcb"},
    {"all new ones stay", {"cN", "bN", "a"}, 0, {0}, "cb"},
    {"a new one that expired goes", {"cNx", "bN", "a"}, 0, {0}, "b"},
    {"an intermediate stays with its root", {"cN", "bi", "a"}, 0, {"ba"}, "cba"},
    {"an intermediate stays with the root that is new", {"aN", "bi"}, 0, {"ba"}, "ab"},
    {"an intermediate alone, where no root is at hand", {"cN", "bi", "a"}, 0, {"b"}, "cb"},
    {"both ways to one root stay", {"dN", "ci", "bi", "a"}, 0, {"cba"}, "dcba"},
    {"room is counted in previous ones that stay", {"dN", "c", "b", "a"}, 2, {"a"}, "dca"},
    {"order is that of the input, whoever is needed", {"dN", "c", "b", "a"}, 3, {"a", "b"}, "dcba"},
    {"one that has not begun takes no place of another", {"bNf", "a"}, 0, {"ba"}, "ba"},
    {"one that has not begun is enough where there is no other", {"cN", "bf", "a"}, 0, {"b"}, "cb"},
    {"of two that have not begun the newer", {"cN", "bf", "af"}, 0, {"ba"}, "cb"},
    {"one that has not begun beside an expired one", {"cN", "bf", "ax"}, 0, {"ba"}, "cb"},
    {"a leaf that verifies against nothing keeps nothing", {"bN", "a"}, 0, {""}, "b"},
};

static size_t load(const struct scenario *s, struct cr_bundle_ca *cas)
{
    size_t len = 0;
    for (; len < CAS && s->cas[len]; len++) {
        const char *word = s->cas[len];
        cas[len] = (struct cr_bundle_ca){.not_before_ms = strchr(word, 'f') ? NOW_MS + 1 : NOW_MS,
                                         .not_after_ms = strchr(word, 'x') ? NOW_MS : NOW_MS + 2,
                                         .current = strchr(word, 'N'),
                                         .root = !strchr(word, 'i')};
        cas[len].fingerprint[0] = word[0];
    }
    return len;
}

static size_t load_leaves(const struct scenario *s, const struct cr_bundle_ca *cas, size_t cas_len, bool *verifies)
{
    size_t len = 0;
    for (; len < LEAVES && s->leaves[len]; len++)
        for (size_t i = 0; i < cas_len; i++)
            verifies[len * cas_len + i] = strchr(s->leaves[len], cas[i].fingerprint[0]);
    return len;
}

static void the_bundle_of_each_scenario(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(scenarios); i++) {
        const struct scenario *s = &scenarios[i];
        struct cr_bundle_ca cas[CAS];
        bool verifies[LEAVES * CAS];
        enum cr_bundle_fate fates[CAS];
        char kept[CAS + 1] = "";
        size_t kept_len = 0;
        size_t len = load(s, cas);
        size_t leaves = load_leaves(s, cas, len, verifies);
        cr_bundle_choose(&(struct cr_bundle_question){cas, len, NULL, verifies, leaves, s->retain, NOW_MS}, fates);
        for (size_t ca = 0; ca < len; ca++)
            if (fates[ca] == CR_BUNDLE_KEPT)
                kept[kept_len++] = *cas[ca].fingerprint;
        if (strcmp(kept, s->kept) != 0)
            fail_msg("%s: want %s, got %s", s->what, s->kept, kept);
    }
}

static void each_that_goes_has_its_reason(void **state)
{
    (void)state;
    struct cr_bundle_ca cas[] = {{"c", 0, NOW_MS + 1, true, true},
                                 {"c", 0, NOW_MS + 1, false, true},
                                 {"b", 0, NOW_MS, false, true},
                                 {"a", 0, NOW_MS + 1, false, true}};
    enum cr_bundle_fate fates[4];
    cr_bundle_choose(&(struct cr_bundle_question){.cas = cas, .cas_len = 4, .now_ms = NOW_MS}, fates);
    assert_int_equal(fates[0], CR_BUNDLE_KEPT);
    assert_int_equal(fates[1], CR_BUNDLE_DUPLICATE);
    assert_int_equal(fates[2], CR_BUNDLE_EXPIRED);
    assert_int_equal(fates[3], CR_BUNDLE_RETIRED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bundle_of_each_scenario),
        cmocka_unit_test(each_that_goes_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
