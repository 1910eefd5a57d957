#include "cluster/watch_scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { NONE = CR_SHARED_NONE, TLS = CR_SHARED_TLS, USUAL = CR_SHARED_USUAL, ALL = CR_SHARED_ALL, MOST = 400 };
enum { AUTO = CR_SECRET_SCOPE_AUTO, NAMED = CR_SECRET_SCOPE_NAMED };

/* So many Secrets of each sort, and what becomes of them with a limit of 50. */
static const struct scope_case {
    const char *rule;
    int scope, present;
    struct {
        size_t tls, opaque, token, passed_over, selected, selectors, late_selectors;
        bool listing;
    } has;
    int shared;
    bool relist;
    size_t own;
} cases[] = {
    /* clang-format off */
    {"nothing wanted, nothing watched", AUTO, NONE, {0}, NONE, false, 0},
    {"few: each by name", AUTO, NONE, {.tls = 3}, NONE, false, 3},
    {"few of any type", AUTO, NONE, {.tls = 2, .opaque = 2, .token = 1}, NONE, false, 5},
    {"a selector is one watch", AUTO, NONE, {.tls = 3, .selectors = 2}, NONE, false, 5},
    {"what a selector's watch has needs none", AUTO, NONE, {.selected = 300, .selectors = 1}, NONE, false, 1},
    {"as many as the limit", AUTO, NONE, {.tls = 50}, NONE, false, 50},
    {"one more: all of TLS in one", AUTO, NONE, {.tls = 51}, TLS, false, 0},
    {"beside it by name what is not in it", AUTO, NONE, {.tls = 60, .opaque = 3, .token = 1}, TLS, false, 4},
    {"beside it selectors, which take any type", AUTO, NONE, {.tls = 60, .selectors = 2}, TLS, false, 2},
    {"many of other types: the usual ones in one", AUTO, NONE, {.opaque = 51}, USUAL, false, 0},
    {"which has what selectors take", AUTO, NONE, {.opaque = 40, .selectors = 20}, USUAL, false, 0},
    {"beside it by name what is not in it", AUTO, NONE, {.opaque = 51, .token = 4}, USUAL, false, 4},
    {"many that do not exist, and may come as anything: all in one", AUTO, NONE, {.token = 51}, ALL, false, 0},

    /* --- with a shared one --- */
    {"below the limit it stays", AUTO, TLS, {.tls = 50}, TLS, false, 0},
    {"well below it goes", AUTO, TLS, {.tls = 30}, NONE, false, 30},
    {"just above that it stays", AUTO, TLS, {.tls = 31}, TLS, false, 0},
    {"what is not in it is watched beside it", AUTO, TLS, {.tls = 60, .opaque = 50}, TLS, false, 50},
    {"too much beside it: a wider one", AUTO, TLS, {.tls = 60, .opaque = 51}, USUAL, false, 0},
    {"and back not at once", AUTO, USUAL, {.tls = 60, .opaque = 31}, USUAL, false, 0},
    {"but well below", AUTO, USUAL, {.tls = 60, .opaque = 30}, TLS, false, 30},
    {"and to names when these are few", AUTO, USUAL, {.tls = 3, .opaque = 1}, NONE, false, 4},
    {"one that has all stays above, too", AUTO, ALL, {.token = 31}, ALL, false, 0},
    {"and becomes as narrow as it can be", AUTO, ALL, {.tls = 100, .opaque = 100, .token = 1}, USUAL, false, 1},

    /* --- what came after its list --- */
    {"few that it has passed over are watched by name", AUTO, TLS, {.tls = 60, .passed_over = 5}, TLS, false, 5},
    {"as many as the limit", AUTO, TLS, {.tls = 60, .opaque = 10, .passed_over = 40}, TLS, false, 50},
    {"more: it is begun anew, and has them", AUTO, TLS, {.tls = 60, .opaque = 10, .passed_over = 41}, TLS, true, 10},
    {"a selector that the usual ones have passed over", AUTO, USUAL, {.opaque = 60, .late_selectors = 2}, USUAL, false, 2},
    {"many of these", AUTO, USUAL, {.opaque = 60, .late_selectors = 51}, USUAL, true, 0},
    {"of one that has all", AUTO, ALL, {.token = 60, .passed_over = 60}, ALL, true, 0},
    {"few, while it has its list", AUTO, TLS, {.tls = 60, .passed_over = 5, .listing = true}, TLS, false, 5},
    {"more: they wait for its list, after which it is begun anew", AUTO, TLS, {.tls = 60, .opaque = 10, .passed_over = 41, .listing = true}, TLS, false, 10},
    {"selectors, too", AUTO, USUAL, {.opaque = 60, .late_selectors = 51, .listing = true}, USUAL, false, 0},
    {"a wider one passes nothing over", AUTO, TLS, {.opaque = 60, .passed_over = 60}, USUAL, false, 0},

    /* --- by name only --- */
    {"however many", NAMED, NONE, {.tls = 300, .opaque = 50, .token = 10}, NONE, false, 360},
    /* clang-format on */
};

static void add(struct cr_watch_scope_item *items, size_t *len, size_t count, struct cr_watch_scope_item item)
{
    for (size_t i = 0; i < count && *len < MOST; i++)
        items[(*len)++] = item;
}

static struct cr_watch_scope_in in_of(const struct scope_case *c, struct cr_watch_scope_item *items)
{
    struct cr_watch_scope_in in = {.scope = (enum cr_secret_scope)c->scope,
                                   .limit = cr_watch_scope_share(1),
                                   .present = (enum cr_shared_scope)c->present,
                                   .listing = c->has.listing,
                                   .items = items};
    add(items, &in.len, c->has.tls, (struct cr_watch_scope_item){.least = CR_SHARED_TLS});
    add(items, &in.len, c->has.opaque, (struct cr_watch_scope_item){.least = CR_SHARED_USUAL});
    add(items, &in.len, c->has.token, (struct cr_watch_scope_item){.least = CR_SHARED_ALL});
    add(items, &in.len, c->has.passed_over, (struct cr_watch_scope_item){.least = CR_SHARED_TLS, .passed_over = true});
    add(items, &in.len, c->has.selected, (struct cr_watch_scope_item){.least = CR_SHARED_TLS, .selected = true});
    add(items, &in.len, c->has.selectors, (struct cr_watch_scope_item){.least = CR_SHARED_USUAL});
    add(items, &in.len, c->has.late_selectors,
        (struct cr_watch_scope_item){.least = CR_SHARED_USUAL, .passed_over = true});
    return in;
}

static void watches_are_as_narrow_as_what_is_wanted(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_watch_scope_item items[MOST];
        const struct cr_watch_scope_in in = in_of(&cases[i], items);
        const struct cr_watch_scope out = cr_watch_scope_decide(&in);
        size_t own = 0;
        for (size_t k = 0; k < in.len; k++)
            own += cr_watch_scope_own(&in, out, &in.items[k]);
        if ((int)out.shared != cases[i].shared || out.relist != cases[i].relist || own != cases[i].own)
            fail_msg("%s: shared %d, relist %d, %zu of their own", cases[i].rule, out.shared, out.relist, own);
    }
}

/* Each item has a watch that has it: one of its own, the shared one, or a selector's; or will have, once the shared one
 * has had its list. */
static void nothing_wanted_is_without_a_watch(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_watch_scope_item items[MOST];
        const struct cr_watch_scope_in in = in_of(&cases[i], items);
        const struct cr_watch_scope out = cr_watch_scope_decide(&in);
        bool fresh = out.relist || out.later || out.shared != in.present;
        assert_true(!out.later || in.listing);
        for (size_t k = 0; k < in.len; k++) {
            const struct cr_watch_scope_item *item = &in.items[k];
            bool in_shared = out.shared != CR_SHARED_NONE && item->least <= out.shared && (fresh || !item->passed_over);
            if (!in_shared && !item->selected && !cr_watch_scope_own(&in, out, item))
                fail_msg("%s: item %zu", cases[i].rule, k);
        }
    }
}

/* What was decided is decided again: nothing is begun for ever. */
static void a_decision_stands(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_watch_scope_item items[MOST];
        struct cr_watch_scope_in in = in_of(&cases[i], items);
        in.listing = false;
        const struct cr_watch_scope first = cr_watch_scope_decide(&in);
        assert_false(first.later);
        for (size_t k = 0; k < in.len && (first.relist || first.shared != in.present); k++)
            items[k].passed_over = false;
        in.present = first.shared;
        const struct cr_watch_scope second = cr_watch_scope_decide(&in);
        if (second.shared != first.shared || second.relist)
            fail_msg("%s: shared %d, then %d, relist %d", cases[i].rule, first.shared, second.shared, second.relist);
    }
}

static void groups_share_the_limit(void **state)
{
    (void)state;
    assert_int_equal(cr_watch_scope_share(0), CR_WATCH_SCOPE_LIMIT);
    assert_int_equal(cr_watch_scope_share(1), CR_WATCH_SCOPE_LIMIT);
    assert_int_equal(cr_watch_scope_share(2), CR_WATCH_SCOPE_LIMIT / 2);
    assert_int_equal(cr_watch_scope_share(1000), 5);
}

static void a_shared_watch_has_what_its_selector_lets_through(void **state)
{
    (void)state;
    assert_int_equal(cr_shared_scope_of_type("kubernetes.io/tls"), CR_SHARED_TLS);
    assert_int_equal(cr_shared_scope_of_type("Opaque"), CR_SHARED_USUAL);
    assert_int_equal(cr_shared_scope_of_type(NULL), CR_SHARED_USUAL);
    assert_int_equal(cr_shared_scope_of_type("kubernetes.io/service-account-token"), CR_SHARED_ALL);
    assert_int_equal(cr_shared_scope_of_type("helm.sh/release.v1"), CR_SHARED_ALL);
    assert_string_equal(cr_shared_scope_field_selector(CR_SHARED_TLS), "type=kubernetes.io/tls");
    assert_string_equal(cr_shared_scope_field_selector(CR_SHARED_USUAL),
                        "type!=kubernetes.io/service-account-token,type!=helm.sh/release.v1");
    assert_null(cr_shared_scope_field_selector(CR_SHARED_ALL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_are_as_narrow_as_what_is_wanted),
        cmocka_unit_test(nothing_wanted_is_without_a_watch),
        cmocka_unit_test(a_decision_stands),
        cmocka_unit_test(groups_share_the_limit),
        cmocka_unit_test(a_shared_watch_has_what_its_selector_lets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
