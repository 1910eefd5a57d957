#include "policy/rules/conflict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

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
        const struct cr_policy *pointers[SIDES_MAX];
        size_t count = 0;
        make(&cases[i].self, &self);
        for (; count < SIDES_MAX && cases[i].rivals[count].name; count++) {
            make(&cases[i].rivals[count], &rivals[count]);
            pointers[count] = &rivals[count].policy;
        }
        int owner = cr_conflict_owner(&self.policy, pointers, count, &self.secret, &self.consumer);
        const char *name = owner == CR_CONFLICT_NONE ? NULL : pointers[owner]->name;
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
            const struct cr_policy *rivals[COUNT];
            size_t len = 0;
            for (int k = 0; k < COUNT; k++)
                if (k != i)
                    rivals[len++] = &sides[k].policy;
            owners += cr_conflict_takes_part(&sides[i].policy) &&
                      cr_conflict_owner(&sides[i].policy, rivals, len, &sides[i].secret, &sides[i].consumer) ==
                          CR_CONFLICT_NONE;
        }
        assert_int_equal(owners, taking_part ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_has_one_policy),
        cmocka_unit_test(each_pair_has_just_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
