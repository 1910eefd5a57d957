#include "policy/rules/conflict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

/* A policy on Secret "s" (unless other) and Deployment "web" (unless other). */
struct side {
    const char *name;
    int64_t created_ms;
    bool suspend, plan, deleting, leaving;
    const char *secret;
    const char *kind;
    const char *target;
};

enum { SIDES_MAX = 3 };

struct made {
    struct cr_policy policy;
    struct cr_policy_secret secret;
    struct cr_policy_consumer consumer;
};

static char *text(const char *word, const char *fallback)
{
    return (char *)(uintptr_t)(word ? word : fallback);
}

static void make(const struct side *side, struct made *out)
{
    out->secret = (struct cr_policy_secret){.name = text(side->secret, "s"), .leaving = side->leaving};
    out->consumer =
        (struct cr_policy_consumer){.kind = text(side->kind, "Deployment"), .target = text(side->target, "web")};
    out->policy = (struct cr_policy){.name = text(side->name, NULL),
                                     .created_ms = side->created_ms,
                                     .suspend = side->suspend,
                                     .mode = side->plan ? CR_MODE_PLAN : CR_MODE_ENFORCE,
                                     .deleting = side->deleting,
                                     .secrets = &out->secret,
                                     .secrets_len = 1,
                                     .consumers = &out->consumer,
                                     .consumers_len = 1};
}

/* Who has self's pair. Borrowed from the rivals; NULL: self. */
static const char *owner_of(const struct made *self, const struct made *const *rivals, size_t len)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_strvec_add(&used, self->secret.name);
    const struct cr_strvec *uses[] = {&used};
    CR_CLEANUP(cr_conflicts) struct cr_conflicts *conflicts = cr_conflicts_new(&self->policy, uses);
    for (size_t i = 0; i < len; i++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        cr_conflicts_add(conflicts, &rivals[i]->policy, &status);
    }
    cr_autofree struct cr_world_other *others = cr_conflicts_of(conflicts, 0);
    for (size_t i = 0; others && i < len; i++)
        if (cr_streq(others[0].policy, rivals[i]->policy.name))
            return rivals[i]->policy.name;
    return NULL;
}

static void a_pair_has_one_policy(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct side self;
        struct side rivals[SIDES_MAX];
        const char *owner; /* NULL: self */
    } cases[] = {
        {"alone", {.name = "a", .created_ms = 5}, {{0}}, NULL},
        {"the older wins", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4}}, "b"},
        {"so the younger does not", {.name = "b", .created_ms = 4}, {{.name = "a", .created_ms = 5}}, NULL},
        {"as old: by name", {.name = "b", .created_ms = 5}, {{.name = "a", .created_ms = 5}}, "a"},
        {"as old: by name, seen from there", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 5}}, NULL},
        {"the oldest of several",
         {.name = "a", .created_ms = 5},
         {{.name = "b", .created_ms = 4}, {.name = "c", .created_ms = 2}, {.name = "d", .created_ms = 3}},
         "c"},
        {"another Secret", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4, .secret = "t"}}, NULL},
        {"another workload", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4, .target = "db"}}, NULL},
        {"another kind", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4, .kind = "DaemonSet"}}, NULL},
        {"suspended keeps", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4, .suspend = true}}, "b"},
        {"mode Plan has nothing", {.name = "a", .created_ms = 5}, {{.name = "b", .created_ms = 4, .plan = true}}, NULL},
        {"and loses nothing", {.name = "a", .created_ms = 5, .plan = true}, {{.name = "b", .created_ms = 4}}, NULL},
        {"who is being deleted gives it away",
         {.name = "a", .created_ms = 5},
         {{.name = "b", .created_ms = 4, .deleting = true}},
         NULL},
        {"to the next",
         {.name = "a", .created_ms = 5},
         {{.name = "b", .created_ms = 3, .deleting = true}, {.name = "c", .created_ms = 4}},
         "c"},
        {"who leaves the Secret in the middle of a change finishes it",
         {.name = "a", .created_ms = 4},
         {{.name = "b", .created_ms = 5, .leaving = true}},
         "b"},
        {"also seen from there",
         {.name = "b", .created_ms = 5, .leaving = true},
         {{.name = "a", .created_ms = 4}},
         NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct made self;
        struct made rivals[SIDES_MAX];
        const struct made *pointers[SIDES_MAX];
        size_t count = 0;
        make(&cases[i].self, &self);
        for (; count < SIDES_MAX && cases[i].rivals[count].name; count++) {
            make(&cases[i].rivals[count], &rivals[count]);
            pointers[count] = &rivals[count];
        }
        const char *name = owner_of(&self, pointers, count);
        if (!cr_streq(name, cases[i].owner))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(name));
    }
}

/* Whatever the ages are: of all policies on one pair just one takes itself for its owner. */
static void each_pair_has_just_one(void **state)
{
    (void)state;
    enum { COUNT = 3, VARIANTS = 8 };
    static const char *const names[COUNT] = {"a", "b", "c"};
    for (int variant = 0; variant < VARIANTS * VARIANTS * VARIANTS; variant++) {
        struct made sides[COUNT];
        int digits = variant;
        int taking_part = 0;
        for (int i = 0; i < COUNT; i++, digits /= VARIANTS) {
            struct side side = {
                .name = names[i], .created_ms = digits % 2, .leaving = digits / 2 % 2, .plan = digits / 4 % 2};
            make(&side, &sides[i]);
            taking_part += !side.plan;
        }
        int owners = 0;
        for (int i = 0; i < COUNT; i++) {
            const struct made *rivals[COUNT];
            size_t len = 0;
            for (int k = 0; k < COUNT; k++)
                if (k != i)
                    rivals[len++] = &sides[k];
            owners += cr_conflict_takes_part(&sides[i].policy) && !owner_of(&sides[i], rivals, len);
        }
        assert_int_equal(owners, taking_part ? 1 : 0);
    }
}

/* --- what is kept --- */

/* With Secret "s" in its memory, at that version, and with whatever else there is. */
static void make_status(const char *version, bool pending, struct cr_policy_status *out)
{
    struct cr_secret_status *memory = cr_status_secret_add(out, "s");
    cr_strset(&memory->observed_resource_version, version);
    memory->pending.set = pending;
    cr_status_secret_add(out, "t");
    cr_status_consumer_add(out, "web");
}

static void add(struct cr_conflicts *conflicts, const char *name, int64_t created_ms, bool pending)
{
    struct made rival;
    make(&(struct side){.name = name, .created_ms = created_ms}, &rival);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    make_status(name, pending, &status);
    cr_conflicts_add(conflicts, &rival.policy, &status);
}

static void assert_other(const struct cr_conflicts *conflicts, const char *policy, const char *memory)
{
    cr_autofree struct cr_world_other *others = cr_conflicts_of(conflicts, 0);
    assert_non_null(others);
    assert_true(cr_streq(others[0].policy, policy));
    assert_string_equal(others[0].memory->observed_resource_version, memory);
}

static struct cr_conflicts *of_self(struct made *self, const struct cr_strvec *const *uses)
{
    make(&(struct side){.name = "self", .created_ms = 5000}, self);
    return cr_conflicts_new(&self->policy, uses);
}

/* Whoever may write policies may have any number of them name one Secret. */
static void of_any_number_of_policies_on_one_pair_one_is_kept(void **state)
{
    (void)state;
    enum { COUNT = 1000, OLDEST = 700 };
    struct made self;
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_strvec_add(&used, "s");
    const struct cr_strvec *uses[] = {&used};
    CR_CLEANUP(cr_conflicts) struct cr_conflicts *conflicts = of_self(&self, uses);
    for (int i = 0; i < COUNT; i++) {
        cr_autofree char *name = cr_asprintf("p%d", i);
        add(conflicts, name, i < OLDEST ? 1 + OLDEST - i : i, i % 2);
        assert_int_equal(cr_conflicts_kept(conflicts), 1);
    }
    assert_other(conflicts, "p699", "p699");
}

static void what_is_taken_over_is_of_one_in_the_middle_of_a_change(void **state)
{
    (void)state;
    struct made self;
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_strvec_add(&used, "s");
    const struct cr_strvec *uses[] = {&used};
    CR_CLEANUP(cr_conflicts) struct cr_conflicts *conflicts = of_self(&self, uses);
    add(conflicts, "a", 6000, false);
    add(conflicts, "b", 7000, true);
    add(conflicts, "c", 8000, false);
    assert_other(conflicts, NULL, "b");
    assert_int_equal(cr_conflicts_kept(conflicts), 1);
    add(conflicts, "d", 4000, false);
    assert_other(conflicts, "d", "d");
    assert_int_equal(cr_conflicts_kept(conflicts), 1);
}

static void of_a_workload_that_does_not_exist_or_uses_nothing_none_is_kept(void **state)
{
    (void)state;
    struct made self;
    static const struct cr_strvec none = {0};
    const struct cr_strvec *const cases[] = {NULL, &none};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_conflicts) struct cr_conflicts *conflicts = of_self(&self, &cases[i]);
        add(conflicts, "a", 1, true);
        assert_int_equal(cr_conflicts_kept(conflicts), 0);
        assert_null(cr_conflicts_of(conflicts, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_has_one_policy),
        cmocka_unit_test(each_pair_has_just_one),
        cmocka_unit_test(of_any_number_of_policies_on_one_pair_one_is_kept),
        cmocka_unit_test(what_is_taken_over_is_of_one_in_the_middle_of_a_change),
        cmocka_unit_test(of_a_workload_that_does_not_exist_or_uses_nothing_none_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
