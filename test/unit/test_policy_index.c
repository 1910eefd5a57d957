/* Which policies an event is reported to: the rules as a table, and what is looked up against what each policy would
 * say if it were asked by itself. */
#include "cluster/policy_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "kube/object.h"
#include "workload/discover.h"
#include "support/yamltext.h"

static bool put(struct cr_policy_index *index, const char *yaml, struct cr_strvec *notified)
{
    CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(yaml);
    struct cr_error err = {0};
    return cr_policy_index_put(index, object, cr_policy_decode(object, &err), notified);
}

#define CONFLICT(status) "conditions: [{type: Ready, status: 'False'}, {type: Conflict, status: '" status "'}]"

static void what_is_wanted_changes_with_names_memory_and_selectors_only(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *status;
        bool other;
    } steps[] = {
        {"secrets: [{name: a}]", "{}", true},
        {"secrets: [{name: a}]", "{secrets: [{name: a, observedResourceVersion: '7'}]}", false},
        {"secrets: [{name: a}], suspend: true", "{" CONFLICT("True") "}", false},
        {"secrets: [{name: a}]", "{secrets: [{name: a}, {name: b}]}", true},
        {"secrets: [{name: a}]", "{}", true},
        {"secrets: [{name: a}, {name: c}]", "{}", true},
        {"secrets: [{name: c}]", "{}", true},
        {"secrets: [{name: c}], secretSelector: {matchLabels: {x: y}}", "{}", true},
        {"secrets: [{name: c}], secretSelector: {matchLabels: {x: y}}", "{stage: Idle}", false},
        {"secrets: [{name: c}], secretSelector: {matchLabels: {x: z}}", "{}", true},
        {"secrets: [{name: c}]", "{}", true},
        {"secrets: 7", "{}", true}, /* cannot be used */
        {"secrets: [{name: c}]", "{}", true},
    };
    CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
        cr_autofree char *text =
            cr_asprintf("{metadata: {name: p, namespace: ns}, spec: {%s}, status: %s}", steps[i].spec, steps[i].status);
        if (put(index, text, &notified) != steps[i].other)
            fail_msg("step %zu: %s", i, text);
    }
}

/* A policy on the Secrets, at a generation, that remembers Secrets and may say Conflict. */
static void put_policy(struct cr_policy_index *index, const char *name, const char *secrets, int generation,
                       const char *status, struct cr_strvec *notified)
{
    cr_autofree char *text = cr_asprintf("{metadata: {name: %s, namespace: ns, generation: %d}, spec: {secrets: [%s]}, "
                                         "status: {%s}}",
                                         name, generation, secrets, status);
    put(index, text, notified);
}

static void a_neighbour_is_notified_of_what_may_concern_it_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *secrets, *status; /* of the neighbour */
        const char *before;           /* Secrets of the policy that moved; NULL: it was not there */
        const char *after;
        bool only_status;
        bool notified;
    } cases[] = {
        {"a policy comes", "{name: s}", "", NULL, "{name: s}", false, true},
        {"with nothing in common", "{name: s}", "", NULL, "{name: t}", false, false},
        {"a policy goes", "{name: s}", "", "{name: s}", NULL, false, true},
        {"it lets go of a Secret", "{name: s}", "", "{name: s}", "{name: t}", false, true},
        {"a Secret that the neighbour only remembers", "{name: u}", "secrets: [{name: s}]", "{name: s}", "{name: s}",
         false, true},
        {"its status moves", "{name: s}", CONFLICT("False"), "{name: s}", "{name: s}", true, false},
        {"and who never said Conflict waits for nothing", "{name: s}", "", "{name: s}", "{name: s}", true, false},
        {"but who says it waits for that", "{name: s}", CONFLICT("True"), "{name: s}", "{name: s}", true, true},
        {"for what they have in common", "{name: s}", CONFLICT("True"), "{name: t}", "{name: t}", true, false},
        {"a neighbour that cannot be read has nothing", "7", "secrets: [{name: s}]", NULL, "{name: s}", false, false},
        {"a policy that cannot be read any more lets go of what it had", "{name: s}", "", "{name: s}", "7", false,
         true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
        CR_CLEANUP(cr_strvec) struct cr_strvec ignored = {0};
        CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
        put_policy(index, "neighbour", cases[i].secrets, 1, cases[i].status, &ignored);
        if (cases[i].before)
            put_policy(index, "p", cases[i].before, 1, "", &ignored);
        if (cases[i].after)
            put_policy(index, "p", cases[i].after, cases[i].only_status ? 1 : 2, "stage: Idle", &notified);
        else
            cr_policy_index_remove(index, "ns", "p", &notified);
        cr_autofree char *keys = cr_strvec_join(&notified, " ");
        if (!cr_streq(keys, cases[i].notified ? "ns/neighbour" : ""))
            fail_msg("%s: '%s'", cases[i].rule, keys);
    }
}

/* By what its status says, in our words or in those of the API server. */
static void a_budget_concerns_who_says_that_it_waits_for_one(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *status;
        bool notified;
    } steps[] = {
        {"nothing is said", "{}", false},
        {"one of two", "{consumers: [{name: a}, {name: b, blockedReason: BudgetWait}]}", true},
        {"waits for something else, whatever its text names",
         "{consumers: [{name: a, blockedReason: Order, blockedBy: 'after: waits for a PodDisruptionBudget'}]}", false},
        {"a person must mend it", "{consumers: [{name: a, blockedReason: Budget}]}", true},
        {"a word of another version", "{consumers: [{name: a, blockedReason: BudgetPerhaps}]}", false},
        {"the API server refused an eviction", "{consumers: [{name: a, blockedReason: RefusedByBudget}]}", true},
        {"its only pod is held, which may depend on budgets", "{consumers: [{name: a, blockedReason: SingleReplica}]}",
         true},
        {"its pods are evicted one by one", "{consumers: [{name: a, state: Restarting, evicting: u-1}]}", true},
        {"they were, and it is over", "{consumers: [{name: a, state: Converged, evicting: u-1}]}", false},
        {"a rollout asks no budget", "{consumers: [{name: a, state: Restarting}]}", false},
        {"done", "{consumers: [{name: a, state: Converged}]}", false},
    };
    CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec ignored = {0};
        CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
        CR_CLEANUP(cr_strvec) struct cr_strvec elsewhere = {0};
        cr_autofree char *text = cr_asprintf("{metadata: {name: p, namespace: ns}, spec: {secrets: [{name: s}]}, "
                                             "status: %s}",
                                             steps[i].status);
        put(index, text, &ignored);
        cr_policy_index_of_budgets(index, "ns", &notified);
        cr_policy_index_of_budgets(index, "other", &elsewhere);
        if (notified.len != (steps[i].notified ? 1 : 0) || elsewhere.len)
            fail_msg("%s: %zu notified", steps[i].rule, notified.len);
    }
}

/* --- what all of them want --- */

static void note_pair(void *arg, const char *ns, const char *what)
{
    cr_autofree char *pair = cr_asprintf("%s/%s", ns, what);
    cr_strvec_add(arg, pair);
}

static char *secrets_of(struct cr_policy_index *index)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec pairs = {0};
    cr_policy_index_visit_secrets(index, note_pair, &pairs);
    cr_strvec_sort(&pairs);
    return cr_strvec_join(&pairs, " ");
}

static char *selectors_of(struct cr_policy_index *index)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec pairs = {0};
    cr_policy_index_visit_selectors(index, note_pair, &pairs);
    cr_strvec_sort(&pairs);
    return cr_strvec_join(&pairs, " ");
}

static void a_secret_is_wanted_as_long_as_a_policy_names_or_remembers_it(void **state)
{
    (void)state;
    static const struct {
        const char *after;
        const char *policy; /* put; or the name of one that goes */
        const char *secrets;
        const char *selectors;
    } steps[] = {
        {"one policy", "{metadata: {name: p, namespace: ns}, spec: {secrets: [{name: a}, {name: b}]}}", "ns/a ns/b",
         ""},
        {"another of the same Secret, one of them selects",
         "{metadata: {name: q, namespace: ns}, spec: {secrets: [{name: a}], secretSelector: {matchLabels: {x: y}}}}",
         "ns/a ns/b", "ns/x=y"},
        {"one that remembers, of another namespace",
         "{metadata: {name: p, namespace: other}, spec: {secretSelector: {matchLabels: {x: y}}}, "
         "status: {secrets: [{name: c}]}}",
         "ns/a ns/b other/c", "ns/x=y other/x=y"},
        {"the first goes", "p", "ns/a other/c", "ns/x=y other/x=y"},
        {"the second selects no more", "{metadata: {name: q, namespace: ns}, spec: {secrets: [{name: d}]}}",
         "ns/d other/c", "other/x=y"},
        {"and goes", "q", "other/c", "other/x=y"},
        {"one that cannot be read wants nothing", "{metadata: {name: p, namespace: other}, spec: {secrets: 7}}", "",
         ""},
    };
    CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
        if (*steps[i].policy == '{')
            put(index, steps[i].policy, &notified);
        else
            cr_policy_index_remove(index, "ns", steps[i].policy, &notified);
        cr_autofree char *secrets = secrets_of(index);
        cr_autofree char *selectors = selectors_of(index);
        if (!cr_streq(secrets, steps[i].secrets) || !cr_streq(selectors, steps[i].selectors))
            fail_msg("%s: '%s', '%s'", steps[i].after, secrets, selectors);
        assert_true(cr_policy_index_wants_secret(index, "ns", "a") == (strstr(secrets, "ns/a") != NULL));
        assert_true(cr_policy_index_selects(index, "ns") == (strstr(selectors, "ns/") != NULL));
    }
}

/* --- against each policy, asked by itself --- */

enum { POLICIES = 12, NAMES = 5, ROUNDS = 3000 };

/* As the index is notified of them; policy NULL: it cannot be read. */
struct one {
    struct cr_json *object; /* NULL: it is not there */
    struct cr_policy *policy;
};

static bool remembers(const struct one *one, const char *secret)
{
    const struct cr_json *entries = cr_json_at(one->object, "status", "secrets");
    for (const struct cr_json *c = cr_json_first(entries); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, "name"), secret))
            return true;
    return false;
}

static bool takes(const struct one *one, const char *name, const struct cr_json *secret)
{
    return one->policy && (cr_policy_secret_of(one->policy, name) || remembers(one, name) ||
                           (secret && one->policy->secret_selector.len &&
                            cr_discover_selects(one->policy, cr_json_string_at(secret, "type"),
                                                cr_json_at(secret, "metadata", "labels"))));
}

static bool has_user(const struct one *one, const char *kind, const char *name, const struct cr_used_secret *used,
                     size_t len)
{
    if (!one->policy || cr_policy_consumer_of(one->policy, kind, name))
        return one->policy != NULL;
    for (size_t i = 0; one->policy->discover.enabled && i < len; i++)
        if (takes(one, used[i].name, used[i].secret))
            return true;
    return false;
}

static bool says_conflict(const struct one *one)
{
    return cr_streq(
        cr_json_string(cr_json_get(cr_json_first(cr_json_at(one->object, "status", "conditions")), "status")), "True");
}

/* Whether one of the Secrets that other names or remembers is one that this policy does. */
static bool shares(const struct one *one, const struct one *other)
{
    for (int i = 0; i < NAMES; i++) {
        const char name[] = {(char)('a' + i), 0};
        bool others = remembers(other, name) || (other->policy && cr_policy_secret_of(other->policy, name));
        if (others && takes(one, name, NULL))
            return true;
    }
    return false;
}

static bool is_neighbour(const struct one *one, const struct one *before, const struct one *after)
{
    bool only_status =
        before->object && after->object && cr_obj_generation(before->object) == cr_obj_generation(after->object);
    return one->policy && (!only_status || says_conflict(one)) && (shares(one, before) || shares(one, after));
}

static unsigned dice = 7;

static int roll(int sides)
{
    dice = dice * 1103515245u + 12345u;
    return (int)((dice >> 16) % (unsigned)sides);
}

static struct cr_json *random_policy(int number)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text, "{metadata: {namespace: %s, name: p%d, generation: %d}, spec: {mode: %s, secrets: [",
                  number % 3 ? "ns" : "other", number, roll(2), roll(9) ? "Enforce" : "Perhaps");
    for (int i = 0; i < NAMES; i++)
        if (!roll(4))
            cr_buf_printf(&text, "{name: %c},", 'a' + i);
    cr_buf_puts(&text, "], consumers: [");
    for (int i = 0; i < 2; i++)
        if (!roll(2))
            cr_buf_printf(&text, "{name: c%d, targetRef: {kind: %s, name: w%d}},", i,
                          roll(2) ? "Deployment" : "DaemonSet", roll(3));
    cr_buf_printf(&text, "]%s%s}, status: {conditions: [{type: Conflict, status: '%s'}], secrets: [",
                  roll(3) ? "" : ", secretSelector: {matchLabels: {x: y}}",
                  roll(2) ? ", discover: {enabled: true}" : "", roll(2) ? "True" : "False");
    for (int i = 0; i < NAMES; i++)
        if (!roll(6))
            cr_buf_printf(&text, "{name: %c},", 'a' + i);
    cr_buf_puts(&text, "]}}");
    return test_yaml(cr_buf_text(&text));
}

static struct cr_json *random_secret(void)
{
    static const char *const secrets[] = {NULL, "{metadata: {labels: {x: y}}}", "{metadata: {labels: {x: z}}}",
                                          "{type: helm.sh/release.v1, metadata: {labels: {x: y}}}"};
    const char *text = secrets[roll(cr_array_len(secrets))];
    return text ? test_yaml(text) : NULL;
}

static void add_key(const struct one *one, bool notified, struct cr_strvec *keys)
{
    cr_autofree char *key = cr_obj_key(one->object);
    if (notified)
        cr_strvec_add(keys, key);
}

static void expect_same(const char *what, int round, struct cr_strvec *walked, struct cr_strvec *found)
{
    cr_strvec_sort(walked);
    cr_strvec_sort(found);
    cr_autofree char *a = cr_strvec_join(walked, " ");
    cr_autofree char *b = cr_strvec_join(found, " ");
    if (strcmp(a, b) != 0)
        fail_msg("%s, round %d: asked '%s', found '%s'", what, round, a, b);
}

/* One policy comes, changes or goes. */
static void move_one(struct cr_policy_index *index, struct one *all, int round)
{
    int moved = roll(POLICIES);
    struct one before = all[moved];
    struct one after = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec walked = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec found = {0};
    struct cr_error err = {0};
    cr_autofree char *name = cr_asprintf("p%d", moved);
    if (roll(4)) {
        after.object = random_policy(moved);
        after.policy = cr_policy_decode(after.object, &err);
        cr_policy_index_put(index, after.object, cr_policy_decode(after.object, &err), &found);
    } else {
        cr_policy_index_remove(index, moved % 3 ? "ns" : "other", name, &found);
    }
    for (int i = 0; i < POLICIES; i++)
        if (i != moved && (i % 3 == 0) == (moved % 3 == 0) && (before.object || after.object))
            add_key(&all[i], is_neighbour(&all[i], &before, &after), &walked);
    expect_same("neighbours", round, &walked, &found);
    cr_json_free(before.object);
    cr_policy_free(before.policy);
    all[moved] = after;
}

static void ask_of_secret(struct cr_policy_index *index, const struct one *all, int round)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec walked = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec found = {0};
    CR_CLEANUP(cr_json) struct cr_json *before = random_secret();
    CR_CLEANUP(cr_json) struct cr_json *after = random_secret();
    const char name[] = {(char)('a' + roll(NAMES)), 0};
    cr_policy_index_of_secret(index, "ns", name, before, after, &found);
    for (int i = 0; i < POLICIES; i++)
        if (i % 3 && all[i].object)
            add_key(&all[i], takes(&all[i], name, before) || takes(&all[i], name, after), &walked);
    expect_same("of a Secret", round, &walked, &found);
}

static void ask_of_user(struct cr_policy_index *index, const struct one *all, int round)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec walked = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec shared = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec found = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec found_shared = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec all_users = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec found_all = {0};
    CR_CLEANUP(cr_json) struct cr_json *first = random_secret();
    CR_CLEANUP(cr_json) struct cr_json *second = random_secret();
    const struct cr_used_secret used[] = {{roll(2) ? "a" : "b", first}, {roll(2) ? "c" : "z", second}};
    size_t len = (size_t)roll(3);
    const char *kind = roll(2) ? "Deployment" : "DaemonSet";
    const char *name = roll(2) ? "w0" : "w1";
    cr_policy_index_of_user(index, "ns", kind, name, used, len, CR_INDEX_DISCOVERING, &found);
    cr_policy_index_of_user(index, "ns", kind, name, used, len, CR_INDEX_ALL, &found_all);
    cr_policy_index_of_secrets(index, "ns", used, len, &found_shared);
    for (int i = 0; i < POLICIES; i++) {
        bool any = false;
        for (size_t s = 0; s < len; s++)
            any |= takes(&all[i], used[s].name, used[s].secret);
        if (i % 3 && all[i].object) {
            add_key(&all[i], has_user(&all[i], kind, name, used, len), &walked);
            add_key(&all[i], any, &shared);
            add_key(&all[i], any || has_user(&all[i], kind, name, used, len), &all_users);
        }
    }
    expect_same("of a user", round, &walked, &found);
    expect_same("of its Secrets", round, &shared, &found_shared);
    expect_same("of a user, whoever takes its Secrets", round, &all_users, &found_all);
}

static void what_is_looked_up_is_what_each_policy_says_by_itself(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
    struct one all[POLICIES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        move_one(index, all, round);
        ask_of_secret(index, all, round);
        ask_of_user(index, all, round);
    }
    for (int i = 0; i < POLICIES; i++) {
        cr_json_free(all[i].object);
        cr_policy_free(all[i].policy);
    }
}

/* 15 labels that a Secret must not have, and one that it does not have. */
static void put_selecting(struct cr_policy_index *index, int number)
{
    CR_CLEANUP(cr_buf) struct cr_buf absent = CR_BUF_INIT(0);
    for (int i = 0; i < 15; i++)
        cr_buf_printf(&absent, "{key: no-%d, operator: DoesNotExist}, ", i);
    cr_autofree char *text = cr_asprintf(
        "{metadata: {name: p%d, namespace: ns, generation: 1}, spec: {discover: {enabled: true}, secretSelector: "
        "{matchExpressions: [%s{key: last, operator: Exists}]}}}",
        number, cr_buf_text(&absent));
    CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
    put(index, text, &notified);
}

static struct cr_json *secret_with_labels(int labels)
{
    struct cr_json *secret = test_yaml("{type: kubernetes.io/tls}");
    struct cr_json *of = cr_json_object_in(cr_json_object_in(secret, "metadata"), "labels");
    for (int i = 0; i < labels; i++) {
        cr_autofree char *name = cr_asprintf("label-%d", i);
        cr_json_set_string(of, name, "x");
    }
    return secret;
}

static size_t count_concerned(struct cr_policy_index *index, const struct cr_used_secret *used, size_t len)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_policy_index_of_user(index, "ns", "Deployment", "web", used, len, CR_INDEX_DISCOVERING, &keys);
    return keys.len;
}

/* Both numbers are a namespace's own choice, and the loop is everybody's. */
static void many_labels_and_many_selectors_are_not_compared_one_by_one(void **state)
{
    enum { SELECTING = 200, SECRETS = 100, LABELS = 2000 };
    (void)state;
    CR_CLEANUP(cr_policy_index) struct cr_policy_index *index = cr_policy_index_new();
    CR_CLEANUP(cr_strvec) struct cr_strvec notified = {0};
    for (int i = 0; i < SELECTING; i++)
        put_selecting(index, i);
    put_policy(index, "by-name", "{name: other}", 1, "", &notified);
    CR_CLEANUP(cr_json) struct cr_json *large = secret_with_labels(LABELS);
    CR_CLEANUP(cr_json) struct cr_json *usual = secret_with_labels(8);
    struct cr_used_secret used[SECRETS];
    for (size_t i = 0; i < SECRETS; i++)
        used[i] = (struct cr_used_secret){.name = "a", .secret = large};
    assert_int_equal(count_concerned(index, used, SECRETS), SELECTING); /* none takes it: that is not found out */
    assert_int_equal(count_concerned(index, &(struct cr_used_secret){.name = "a", .secret = usual}, 1), 0);
    assert_int_equal(count_concerned(index, &(struct cr_used_secret){.name = "a", .unread = true}, 1), SELECTING);
    assert_int_equal(count_concerned(index, &(struct cr_used_secret){.name = "a"}, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wanted_changes_with_names_memory_and_selectors_only),
        cmocka_unit_test(a_neighbour_is_notified_of_what_may_concern_it_and_no_more),
        cmocka_unit_test(a_budget_concerns_who_says_that_it_waits_for_one),
        cmocka_unit_test(a_secret_is_wanted_as_long_as_a_policy_names_or_remembers_it),
        cmocka_unit_test(what_is_looked_up_is_what_each_policy_says_by_itself),
        cmocka_unit_test(many_labels_and_many_selectors_are_not_compared_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
