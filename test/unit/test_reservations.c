#include "policy/controller/reservations.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { NOW = 1000 * 1000 };

/* Reservations, and who was called, in that order: "ns/a ns/b ". */
struct fixture {
    struct cr_reservations *all;
    char called[1024];
    int unseen_ends;
    char ended_in[16]; /* the last one */
};

static void on_place(void *arg, const char *policy)
{
    struct fixture *f = arg;
    size_t len = strlen(f->called);
    assert_true(len + strlen(policy) + 2 < sizeof f->called);
    strcat(strcat(f->called, policy), " ");
}

static void on_unseen_end(void *arg, const char *ns)
{
    struct fixture *f = arg;
    snprintf(f->ended_in, sizeof f->ended_in, "%s", ns);
    f->unseen_ends++;
}

/* Nothing is expected. */
static void start(struct fixture *f, int per_namespace, int total)
{
    *f = (struct fixture){0};
    f->all = cr_reservations_new(
        &(struct cr_reservations_options){.limits = {.per_namespace = per_namespace, .total = total},
                                          .on_place = on_place,
                                          .on_unseen_end = on_unseen_end,
                                          .arg = f});
    cr_reservations_expect(f->all, &(struct cr_strvec){0}, NOW);
}

static void end(struct fixture *f)
{
    cr_reservations_free(f->all);
}

static void assert_called(struct fixture *f, const char *names)
{
    assert_string_equal(f->called, names);
    f->called[0] = '\0';
}

/* A policy "ns/p" has the Deployment "p" of that namespace. */
static char *ns_of(const char *policy)
{
    return cr_strndup(policy, (size_t)(strchr(policy, '/') - policy));
}

static struct cr_reserved own(const char *policy)
{
    return (struct cr_reserved){.kind = "Deployment", .name = strchr(policy, '/') + 1};
}

static bool take_of(struct fixture *f, const char *policy, struct cr_reserved workload, bool under_budget,
                    uint64_t *moves)
{
    cr_autofree char *ns = ns_of(policy);
    struct cr_reservation what = {
        .policy = policy, .ns = ns, .workload = workload, .version = "7", .under_budget = under_budget, .moves = moves};
    return cr_reservations_take(f->all, &what, NOW);
}

static bool take(struct fixture *f, const char *policy)
{
    uint64_t moves = 0;
    return take_of(f, policy, own(policy), false, &moves);
}

static void answer(struct fixture *f, const char *policy, bool accepted)
{
    cr_autofree char *ns = ns_of(policy);
    uint64_t moves = 0;
    struct cr_reservation what = {.policy = policy, .ns = ns, .workload = own(policy), .moves = &moves};
    cr_reservations_answered(f->all, &what, accepted, NOW);
}

static void wait_for(struct fixture *f, const char *policy)
{
    cr_autofree char *ns = ns_of(policy);
    cr_reservations_wait(f->all, policy, ns, NOW);
}

/* A plan that sees its workload being restarted, or not. */
static void plan(struct fixture *f, const char *policy, bool under_way)
{
    cr_autofree char *ns = ns_of(policy);
    struct cr_reserved workload = own(policy);
    cr_reservations_follow(f->all, policy, ns, &workload, under_way, NOW);
}

static struct cr_world_claim claim(struct fixture *f, const char *policy, const char *version, int64_t now_ms)
{
    cr_autofree char *ns = ns_of(policy);
    return cr_reservations_claim(f->all, policy, ns, own(policy), version, now_ms);
}

static bool may_begin(struct fixture *f, const char *policy)
{
    cr_autofree char *ns = ns_of(policy);
    struct cr_world_limits limits = cr_reservations_limits(f->all, policy, ns);
    return !limits.unknown && (!limits.per_namespace || limits.namespace_free > 0) &&
           (!limits.total || limits.total_free > 0);
}

/* --- limits --- */

static void as_many_are_taken_as_there_are_places(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int per_namespace, total;
        const char *policies[4];
        bool taken[4];
    } cases[] = {
        {"no limit", 0, 0, {"x/a", "x/b", "y/c", "y/d"}, {true, true, true, true}},
        {"of a namespace", 1, 0, {"x/a", "x/b", "y/c", "y/d"}, {true, false, true, false}},
        {"of all", 0, 3, {"x/a", "x/b", "y/c", "y/d"}, {true, true, true, false}},
        {"both", 2, 3, {"x/a", "x/b", "x/c", "y/d"}, {true, true, false, true}},
        {"one workload, taken twice, is one", 1, 1, {"x/a", "x/a", "x/b", "y/d"}, {true, true, false, false}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        start(&f, cases[i].per_namespace, cases[i].total);
        for (size_t k = 0; k < cr_array_len(cases[i].policies); k++)
            if (take(&f, cases[i].policies[k]) != cases[i].taken[k])
                fail_msg("%s: %s", cases[i].rule, cases[i].policies[k]);
        end(&f);
    }
}

static void a_workload_that_is_restarted_for_two_policies_has_one_place(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t moves = 0;
    start(&f, 1, 1);
    assert_true(take(&f, "x/a"));
    assert_true(take_of(&f, "x/b", own("x/a"), false, &moves));
    assert_false(may_begin(&f, "x/c"));
    plan(&f, "x/a", false);
    assert_false(may_begin(&f, "x/c")); /* it is still restarted for b */
    plan(&f, "x/b", false);
    assert_true(may_begin(&f, "x/c"));
    end(&f);
}

/* --- giving back --- */

static void a_place_is_given_back_by_the_plan_that_sees_its_end(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    answer(&f, "x/a", true);
    plan(&f, "x/a", true);
    assert_false(take(&f, "x/b"));
    plan(&f, "x/a", false);
    assert_true(take(&f, "x/b"));
    cr_reservations_forget(f.all, "x/b", NOW); /* the policy is gone */
    assert_true(take(&f, "x/c"));
    end(&f);
}

static void what_was_refused_has_no_place_and_what_was_not_answered_keeps_it(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    assert_true(claim(&f, "x/a", "7", NOW).unanswered);
    assert_false(take(&f, "x/b"));
    answer(&f, "x/a", false);
    assert_false(claim(&f, "x/a", "7", NOW).any);
    assert_true(take(&f, "x/b"));
    end(&f);
}

/* A refusal of the second says nothing of the first. */
static void a_refused_restart_leaves_the_one_before_its_place(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    answer(&f, "x/a", true);
    plan(&f, "x/a", true);
    assert_true(take(&f, "x/a"));
    answer(&f, "x/a", false);
    assert_true(claim(&f, "x/a", "7", NOW).ours);
    assert_false(take(&f, "x/b"));
    end(&f);
}

static void a_lost_answer_is_found_in_the_workload_itself(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *version; /* as it is seen; written to at version 7 */
        int64_t later_ms;
        bool unanswered;
    } cases[] = {
        {"as it was", "7", 0, true},
        {"as it was, for as long as a write may take", "7", CR_RESERVATIONS_UNANSWERED_MS - 1, true},
        {"as it was, for longer than that", "7", CR_RESERVATIONS_UNANSWERED_MS, false},
        {"written, by us or by others", "8", 0, false},
        {"gone", NULL, 0, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        start(&f, 0, 1);
        assert_true(take(&f, "x/a"));
        struct cr_world_claim seen = claim(&f, "x/a", cases[i].version, NOW + cases[i].later_ms);
        if (!seen.ours || seen.unanswered != cases[i].unanswered)
            fail_msg("%s", cases[i].rule);
        end(&f);
    }
}

static void what_nobody_looks_after_goes_to_the_next(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    wait_for(&f, "x/b");
    wait_for(&f, "x/c");
    cr_reservations_sweep(f.all, NOW + CR_RESERVATIONS_KEPT_MS);
    assert_called(&f, "");
    cr_reservations_sweep(f.all, NOW + CR_RESERVATIONS_KEPT_MS + 1);
    assert_called(&f, "x/b ");
    cr_reservations_sweep(f.all, NOW + 2LL * CR_RESERVATIONS_KEPT_MS); /* and b does not come */
    assert_called(&f, "x/c ");
    end(&f);
}

/* --- after a start --- */

static void nothing_begins_before_every_policy_was_looked_at(void **state)
{
    (void)state;
    struct fixture f = {0};
    f.all =
        cr_reservations_new(&(struct cr_reservations_options){.limits = {.total = 2}, .on_place = on_place, .arg = &f});
    assert_false(may_begin(&f, "x/a"));
    CR_CLEANUP(cr_strvec) struct cr_strvec known = {0};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    static const char *const names[] = {"x/a", "x/b", "x/broken", "x/late", "x/gone"};
    for (size_t i = 0; i < cr_array_len(names); i++)
        cr_strvec_add(&known, names[i]);
    cr_reservations_expect(f.all, &known, NOW);
    plan(&f, "x/a", false);
    wait_for(&f, "x/a");
    plan(&f, "x/b", true); /* it had been begun before the start */
    cr_reservations_put_off(f.all, "x/broken", "x", &status, false, NOW);
    cr_reservations_put_off(f.all, "x/late", "x", &status, true, NOW);
    assert_false(may_begin(&f, "x/a"));
    cr_reservations_forget(f.all, "x/gone", NOW);
    assert_called(&f, "");
    cr_reservations_put_off(f.all, "x/late", "x", &status, true, NOW + CR_RESERVATIONS_EXPECTED_MS);
    assert_called(&f, "x/a "); /* no policy waits for ever for one that waits */
    assert_true(take(&f, "x/a"));
    assert_false(may_begin(&f, "x/c"));
    end(&f);
}

static void without_a_limit_nothing_is_waited_for(void **state)
{
    (void)state;
    struct fixture f = {0};
    f.all = cr_reservations_new(&(struct cr_reservations_options){.on_place = on_place, .arg = &f});
    assert_true(may_begin(&f, "x/a"));
    assert_true(take(&f, "x/a"));
    end(&f);
}

static void a_policy_that_cannot_be_planned_has_what_its_status_calls_restarting(void **state)
{
    (void)state;
    struct fixture f;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    struct cr_consumer_status *consumer = cr_status_consumer_add(&status, "one");
    consumer->kind = cr_strdup("Deployment");
    consumer->target = cr_strdup("a");
    consumer->state = CR_CONSUMER_RESTARTING;
    cr_status_consumer_add(&status, "nobody")->state =
        CR_CONSUMER_RESTARTING; /* the CRD lets it be without targetRef */
    start(&f, 0, 1);
    cr_reservations_put_off(f.all, "x/a", "x", &status, false, NOW);
    assert_false(take(&f, "x/b"));
    plan(&f, "x/a", false);
    assert_true(take(&f, "x/b"));
    cr_reservations_put_off(f.all, "x/a", "x", &status, false, NOW); /* what was planned is known better */
    assert_false(claim(&f, "x/a", "7", NOW).any);
    end(&f);
}

static void only_who_was_planned_is_remembered(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_false(cr_reservations_limits(f.all, "x/a", "x").remembers);
    plan(&f, "x/a", true);
    assert_true(cr_reservations_limits(f.all, "x/a", "x").remembers);
    cr_reservations_forget(f.all, "x/a", NOW);
    assert_false(cr_reservations_limits(f.all, "x/a", "x").remembers);
    end(&f);
}

/* --- the line --- */

static void who_came_first_is_called_first_and_his_place_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    wait_for(&f, "x/b");
    wait_for(&f, "y/c");
    wait_for(&f, "x/b"); /* he stands in line already */
    assert_called(&f, "");
    plan(&f, "x/a", false);
    assert_called(&f, "x/b ");
    assert_false(may_begin(&f, "x/a"));
    assert_false(take(&f, "x/a"));
    assert_true(may_begin(&f, "x/b"));
    assert_true(take(&f, "x/b"));
    plan(&f, "x/b", false);
    assert_called(&f, "y/c ");
    cr_reservations_leave(f.all, "y/c", NOW); /* a window has closed meanwhile, say */
    assert_true(take(&f, "x/a"));
    end(&f);
}

/* Somebody else has begun a rollout meanwhile, and a plan has found it. */
static void who_is_called_begins_nothing_when_his_place_has_gone(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 1, 0);
    assert_true(take(&f, "x/a"));
    wait_for(&f, "x/b");
    plan(&f, "x/a", false);
    assert_called(&f, "x/b ");
    plan(&f, "x/c", true);
    assert_false(may_begin(&f, "x/b"));
    assert_false(take(&f, "x/b"));
    plan(&f, "x/c", false);
    assert_true(take(&f, "x/b"));
    end(&f);
}

static void who_waits_for_his_namespace_keeps_no_other_waiting(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 1, 2);
    assert_true(take(&f, "x/a"));
    assert_true(take(&f, "y/b"));
    wait_for(&f, "x/c");
    wait_for(&f, "z/d");
    plan(&f, "y/b", false);
    assert_called(&f, "z/d ");
    plan(&f, "x/a", false);
    assert_called(&f, "x/c ");
    end(&f);
}

static void the_namespace_with_the_fewest_places_comes_next(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 3, 3);
    assert_true(take(&f, "many/a"));
    assert_true(take(&f, "many/b"));
    assert_true(take(&f, "few/a"));
    static const char *const line[] = {"many/c", "many/d", "few/b", "none/a", "none/b"};
    for (size_t i = 0; i < cr_array_len(line); i++)
        wait_for(&f, line[i]);
    assert_called(&f, "");
    plan(&f, "many/a", false); /* many 1, few 1, none 0 */
    assert_called(&f, "none/a ");
    plan(&f, "few/a", false); /* many 1, few 0, none 1 */
    assert_called(&f, "few/b ");
    plan(&f, "many/b", false); /* many 0, few 1, none 1 */
    assert_called(&f, "many/c ");
    end(&f);
}

static void rollouts_that_never_end_hold_up_their_own_namespace_only(void **state)
{
    (void)state;
    struct fixture f;
    int64_t later = NOW + CR_RESERVATIONS_HELD_MS;
    static const char *const stuck[] = {"stuck/a", "stuck/b"};
    start(&f, 2, 2);
    for (size_t i = 0; i < cr_array_len(stuck); i++)
        assert_true(take(&f, stuck[i]));
    wait_for(&f, "stuck/c");
    wait_for(&f, "other/a");
    for (int64_t now = NOW; now < later; now += 60 * 1000) {
        for (size_t i = 0; i < cr_array_len(stuck); i++) {
            struct cr_reserved workload = own(stuck[i]);
            cr_reservations_follow(f.all, stuck[i], "stuck", &workload, 1, now); /* still under way */
        }
        cr_reservations_sweep(f.all, now);
    }
    assert_called(&f, "");
    cr_reservations_sweep(f.all, later);
    assert_called(&f, "other/a ");
    assert_true(take(&f, "other/a"));
    assert_false(take(&f, "stuck/c"));
    assert_true(take(&f, "other/b"));
    assert_false(take(&f, "third/a")); /* there are two of them, again */
    plan(&f, "stuck/a", false);        /* ended after all: its place was given away already */
    assert_false(take(&f, "third/a"));
    assert_called(&f, "");
    plan(&f, "other/a", false);
    assert_called(&f, "stuck/c ");
    end(&f);
}

static void a_place_that_was_given_back_before_the_wait_is_not_missed(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    assert_false(may_begin(&f, "x/b"));
    plan(&f, "x/a", false);
    wait_for(&f, "x/b");
    assert_called(&f, "x/b ");
    end(&f);
}

static void who_is_gone_is_not_called(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 1);
    assert_true(take(&f, "x/a"));
    wait_for(&f, "x/b");
    wait_for(&f, "x/c");
    cr_reservations_forget(f.all, "x/b", NOW);
    plan(&f, "x/a", false);
    assert_called(&f, "x/c ");
    cr_reservations_forget(f.all, "x/c", NOW); /* called, and gone */
    assert_true(may_begin(&f, "x/d"));
    end(&f);
}

/* --- budgets --- */

static void what_was_computed_without_others_does_not_begin(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, 0, 0);
    uint64_t a = cr_reservations_moves(f.all, "x");
    uint64_t b = cr_reservations_moves(f.all, "x");
    uint64_t elsewhere = cr_reservations_moves(f.all, "y");
    assert_true(take_of(&f, "x/a", own("x/a"), true, &a));
    assert_true(take_of(&f, "x/a", (struct cr_reserved){"Deployment", "second"}, true, &a)); /* its own it knows */
    assert_false(take_of(&f, "x/b", own("x/b"), true, &b));
    assert_true(take_of(&f, "y/d", own("y/d"), true, &elsewhere));
    assert_true(take_of(&f, "x/c", own("x/c"), false, &b)); /* no budget mattered */
    assert_false(take_of(&f, "x/b", own("x/b"), true, &b)); /* and that did not make it newer */
    b = cr_reservations_moves(f.all, "x");
    assert_true(take_of(&f, "x/b", own("x/b"), true, &b));
    end(&f);
}

static void the_workloads_restarted_in_a_namespace_are_listed(void **state)
{
    (void)state;
    struct fixture f;
    CR_CLEANUP(cr_strvec) struct cr_strvec kinds = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec versions = {0};
    start(&f, 0, 0);
    assert_true(take(&f, "x/a"));
    assert_true(take(&f, "y/b"));
    assert_true(take(&f, "x/c"));
    plan(&f, "x/c", false);
    cr_reservations_list(f.all, "x", &kinds, &names, &versions);
    assert_int_equal(names.len, 1);
    assert_string_equal(names.items[0], "a");
    assert_string_equal(kinds.items[0], "Deployment");
    assert_string_equal(versions.items[0], "7");
    end(&f);
}

static void evictions_are_shown_to_others(void **state)
{
    (void)state;
    struct fixture f;
    CR_CLEANUP(cr_strvec) struct cr_strvec kinds = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    uint64_t moves = 0;
    struct cr_reservation what = {
        .policy = "x/a", .ns = "x", .workload = own("x/a"), .version = "7", .evicts = true, .moves = &moves};
    start(&f, 0, 0);
    assert_true(take(&f, "x/b"));
    assert_true(cr_reservations_take(f.all, &what, NOW));
    cr_reservations_list_evicting(f.all, "x/a", "x", &kinds, &names);
    cr_reservations_list_evicting(f.all, "y/b", "y", &kinds, &names);
    assert_int_equal(names.len, 0);
    cr_reservations_list_evicting(f.all, "x/b", "x", &kinds, &names);
    assert_int_equal(names.len, 1);
    assert_string_equal(names.items[0], "a");
    assert_string_equal(kinds.items[0], "Deployment");
    end(&f);
}

/* The end of a rollout shows in the workload, whose event wakes who waits. */
static void the_end_of_what_no_event_shows_is_notified(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t moves = 0;
    struct cr_reservation evictions = {
        .policy = "x/a", .ns = "x", .workload = own("x/a"), .version = "7", .evicts = true, .moves = &moves};
    start(&f, 0, 0);
    assert_true(take(&f, "x/b"));
    answer(&f, "x/b", true);
    plan(&f, "x/b", false);
    assert_int_equal(f.unseen_ends, 0);
    assert_true(cr_reservations_take(f.all, &evictions, NOW));
    answer(&f, "x/a", true);
    plan(&f, "x/a", true);
    assert_int_equal(f.unseen_ends, 0);
    plan(&f, "x/a", false);
    assert_int_equal(f.unseen_ends, 1);
    assert_true(take(&f, "x/c"));
    answer(&f, "x/c", false); /* refused: the cache never shows it */
    assert_int_equal(f.unseen_ends, 2);
    assert_true(take(&f, "x/d")); /* its answer is lost */
    plan(&f, "x/d", false);
    assert_int_equal(f.unseen_ends, 3);
    assert_string_equal(f.ended_in, "x");
    end(&f);
}

static void an_eviction_is_not_sent_once_somebody_else_has_begun(void **state)
{
    (void)state;
    struct fixture f;
    CR_CLEANUP(cr_strvec) struct cr_strvec kinds = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    start(&f, 0, 0);
    uint64_t a = cr_reservations_moves(f.all, "x");
    uint64_t b = cr_reservations_moves(f.all, "x");
    struct cr_reservation what = {
        .policy = "x/a", .ns = "x", .workload = own("x/a"), .under_budget = true, .moves = &a};
    plan(&f, "x/a", true); /* after a start it is found */
    assert_true(cr_reservations_may_evict(f.all, &what));
    cr_reservations_list_evicting(f.all, "x/b", "x", &kinds, &names);
    assert_int_equal(names.len, 1);
    assert_false(take_of(&f, "x/b", own("x/b"), true, &b)); /* which was computed without that */
    b = cr_reservations_moves(f.all, "x");
    assert_true(take_of(&f, "x/b", own("x/b"), true, &b));
    assert_false(cr_reservations_may_evict(f.all, &what));
    what.under_budget = false;
    assert_true(cr_reservations_may_evict(f.all, &what));
    what.under_budget = true;
    a = cr_reservations_moves(f.all, "x");
    assert_true(cr_reservations_may_evict(f.all, &what));
    assert_true(cr_reservations_may_evict(f.all, &what)); /* its own it knows */
    end(&f);
}

/* --- threads --- */

enum { PARTIES = 24, WORKERS = 4, PLACES = 3, RESTARTS = 200 };

/* Policies that wait to be worked on, as the work queue has them: each at most once, and by one worker at a time. */
struct crowd {
    struct cr_reservations *all;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ready[PARTIES], working[PARTIES];
    int restarts[PARTIES]; /* restarts done */
    int finished;
    atomic_int under_way;
    atomic_int most;
};

static void come(void *arg, const char *policy)
{
    struct crowd *crowd = arg;
    pthread_mutex_lock(&crowd->lock);
    crowd->ready[atoi(strchr(policy, '/') + 1)] = true;
    pthread_cond_broadcast(&crowd->changed);
    pthread_mutex_unlock(&crowd->lock);
}

/* The next; -1: all have finished. */
static int take_party(struct crowd *crowd)
{
    int found = -1;
    pthread_mutex_lock(&crowd->lock);
    while (found < 0 && crowd->finished < PARTIES) {
        for (int i = 0; i < PARTIES && found < 0; i++)
            if (crowd->ready[i] && !crowd->working[i])
                found = i;
        if (found < 0)
            pthread_cond_wait(&crowd->changed, &crowd->lock);
    }
    if (found >= 0) {
        crowd->ready[found] = false;
        crowd->working[found] = true;
    }
    pthread_mutex_unlock(&crowd->lock);
    return found;
}

static void put_party(struct crowd *crowd, int party, bool did)
{
    pthread_mutex_lock(&crowd->lock);
    crowd->working[party] = false;
    crowd->restarts[party] += did;
    crowd->finished += did && crowd->restarts[party] == RESTARTS;
    if (did && crowd->restarts[party] < RESTARTS)
        crowd->ready[party] = true;
    pthread_cond_broadcast(&crowd->changed);
    pthread_mutex_unlock(&crowd->lock);
}

/* One restart, if there is a place. */
static bool restart(struct crowd *crowd, const char *policy)
{
    uint64_t moves = 0;
    struct cr_reservation what = {
        .policy = policy, .ns = "x", .workload = own(policy), .version = "7", .moves = &moves};
    if (cr_reservations_limits(crowd->all, policy, "x").total_free < 1 ||
        !cr_reservations_take(crowd->all, &what, NOW)) {
        cr_reservations_wait(crowd->all, policy, "x", NOW);
        return false;
    }
    int now = atomic_fetch_add(&crowd->under_way, 1) + 1;
    for (int most = atomic_load(&crowd->most); now > most;)
        if (atomic_compare_exchange_weak(&crowd->most, &most, now))
            break;
    atomic_fetch_sub(&crowd->under_way, 1);
    cr_reservations_follow(crowd->all, policy, "x", NULL, 0, NOW);
    cr_reservations_leave(crowd->all, policy, NOW);
    return true;
}

static void *work(void *arg)
{
    struct crowd *crowd = arg;
    for (int party; (party = take_party(crowd)) >= 0;) {
        cr_autofree char *policy = cr_asprintf("x/%d", party);
        put_party(crowd, party, restart(crowd, policy));
    }
    return NULL;
}

/* No policy waits for ever: otherwise this ends by its time-out. */
static void every_namespace_gets_a_round_and_never_too_many_run_at_once(void **state)
{
    (void)state;
    struct crowd crowd = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    crowd.all = cr_reservations_new(
        &(struct cr_reservations_options){.limits = {.total = PLACES}, .on_place = come, .arg = &crowd});
    cr_reservations_expect(crowd.all, &(struct cr_strvec){0}, NOW);
    memset(crowd.ready, true, sizeof crowd.ready);
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PARTIES; i++)
        assert_int_equal(crowd.restarts[i], RESTARTS);
    assert_true(crowd.most <= PLACES);
    cr_reservations_free(crowd.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_are_taken_as_there_are_places),
        cmocka_unit_test(a_workload_that_is_restarted_for_two_policies_has_one_place),
        cmocka_unit_test(a_place_is_given_back_by_the_plan_that_sees_its_end),
        cmocka_unit_test(what_was_refused_has_no_place_and_what_was_not_answered_keeps_it),
        cmocka_unit_test(a_refused_restart_leaves_the_one_before_its_place),
        cmocka_unit_test(a_lost_answer_is_found_in_the_workload_itself),
        cmocka_unit_test(what_nobody_looks_after_goes_to_the_next),
        cmocka_unit_test(nothing_begins_before_every_policy_was_looked_at),
        cmocka_unit_test(without_a_limit_nothing_is_waited_for),
        cmocka_unit_test(a_policy_that_cannot_be_planned_has_what_its_status_calls_restarting),
        cmocka_unit_test(only_who_was_planned_is_remembered),
        cmocka_unit_test(who_came_first_is_called_first_and_his_place_is_kept),
        cmocka_unit_test(who_is_called_begins_nothing_when_his_place_has_gone),
        cmocka_unit_test(who_waits_for_his_namespace_keeps_no_other_waiting),
        cmocka_unit_test(the_namespace_with_the_fewest_places_comes_next),
        cmocka_unit_test(rollouts_that_never_end_hold_up_their_own_namespace_only),
        cmocka_unit_test(a_place_that_was_given_back_before_the_wait_is_not_missed),
        cmocka_unit_test(who_is_gone_is_not_called),
        cmocka_unit_test(what_was_computed_without_others_does_not_begin),
        cmocka_unit_test(the_workloads_restarted_in_a_namespace_are_listed),
        cmocka_unit_test(evictions_are_shown_to_others),
        cmocka_unit_test(the_end_of_what_no_event_shows_is_notified),
        cmocka_unit_test(an_eviction_is_not_sent_once_somebody_else_has_begun),
        cmocka_unit_test(every_namespace_gets_a_round_and_never_too_many_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
