#include "policy/rules/breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

/* Times are in seconds here; now is 1,000,000. */
enum { NOW = 1000 * 1000, LISTED_MAX = CR_RESTART_TIMES_MAX + 1 };

static const struct cr_restart_step nothing;

/* Ends with a 0. */
static struct cr_restart_times times(const int64_t *seconds)
{
    struct cr_restart_times out = {0};
    while (seconds[out.len]) {
        out.at_ms[out.len] = seconds[out.len] * 1000;
        out.len++;
    }
    return out;
}

static void restarts_of_a_while_hold_the_next_one(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int restarts;
        int64_t within;
        int64_t known[LISTED_MAX]; /* newest first */
        int64_t ends;              /* 0: not held */
    } cases[] = {
        {"never restarted", 3, 3600, {0}, 0},
        {"fewer than that", 3, 3600, {NOW - 1, NOW - 2}, 0},
        {"as many: until the first of them is long ago", 3, 3600, {NOW - 1, NOW - 2, NOW - 30}, NOW - 30 + 3600},
        {"to the end of its time", 3, 3600, {NOW - 1, NOW - 2, NOW - 3599}, NOW + 1},
        {"and no longer", 3, 3600, {NOW - 1, NOW - 2, NOW - 3600}, 0},
        {"of more, the newest count", 2, 3600, {NOW - 1, NOW - 20, NOW - 30, NOW - 40}, NOW - 20 + 3600},
        {"one is as many", 1, 60, {NOW - 10}, NOW + 50},
        {"at this very moment", 1, 60, {NOW}, NOW + 60},
        {"no limit", 1, 0, {NOW, NOW - 1, NOW - 2}, 0},
        {"of a clock that is ahead", 2, 60, {NOW + 5, NOW - 1}, NOW - 1 + 60},
        {"of a clock that says nothing", 2, 60, {NOW + 61, NOW - 1}, 0},
        {"after a clock was set back", 2, 60, {NOW - 1, NOW + 1000, NOW - 5}, NOW - 5 + 60},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_breaker rule = {.restarts = cases[i].restarts, .within_ms = cases[i].within * 1000};
        struct cr_restart_times known = times(cases[i].known);
        if (cr_breaker_ends_ms(rule, &known, NOW * INT64_C(1000)) != cases[i].ends * 1000)
            fail_msg("%s", cases[i].rule);
    }
}

static void a_restart_is_counted_once_and_no_more_than_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int restarts;
        int64_t within;
        int64_t known[LISTED_MAX];
        int64_t last;
        int64_t then[LISTED_MAX];
    } cases[] = {
        {"none", 3, 60, {0}, 0, {0}},
        {"the first", 3, 60, {0}, NOW, {NOW}},
        {"the same", 3, 60, {NOW - 1}, NOW - 1, {NOW - 1}},
        {"the next", 3, 60, {NOW - 5}, NOW, {NOW, NOW - 5}},
        {"an older template was put back", 3, 60, {NOW - 1, NOW - 5}, NOW - 5, {NOW - 1, NOW - 5}},
        {"the oldest goes", 2, 60, {NOW - 1, NOW - 5}, NOW, {NOW, NOW - 1}},
        {"one is enough", 1, 60, {NOW - 1}, NOW, {NOW}},
        {"the policy counts fewer now", 2, 60, {NOW - 1, NOW - 5, NOW - 9, NOW - 11}, NOW, {NOW, NOW - 1}},
        {"the policy counts more now", 4, 60, {NOW - 1, NOW - 5}, NOW, {NOW, NOW - 1, NOW - 5}},
        {"nothing is counted", 3, 0, {0}, NOW, {0}},
        {"after a clock was set back", 3, 60, {NOW + 1000}, NOW, {NOW, NOW + 1000}},
        {"and the same again", 3, 60, {NOW + 1000}, NOW + 1000, {NOW + 1000}},
        {"all that a list has room for", 5, 60, {4, 3, 2, 1}, 5, {5, 4, 3, 2, 1}},
        {"and no more", 5, 60, {5, 4, 3, 2, 1}, 6, {6, 5, 4, 3, 2}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_breaker rule = {.restarts = cases[i].restarts, .within_ms = cases[i].within * 1000};
        struct cr_restart_times known = times(cases[i].known);
        struct cr_restart_times then = times(cases[i].then);
        bool news = then.len != known.len || (then.len && then.at_ms[0] != known.at_ms[0]);
        bool added = cr_breaker_note(rule, cases[i].last * 1000, &nothing, NOW * INT64_C(1000), &known);
        if (added != news || known.len != then.len ||
            memcmp(known.at_ms, then.at_ms, known.len * sizeof known.at_ms[0]) != 0)
            fail_msg("%s", cases[i].rule);
    }
}

/* --- the restarts of one rotation --- */

/* NULL: for no rotation. */
static struct cr_restart_step step_of(const char *rotation)
{
    struct cr_restart_step step = {.restarts = rotation ? 1 : 0};
    snprintf(step.rotation, sizeof step.rotation, "%s", cr_or_empty(rotation));
    return step;
}

/* A restart each second, of which the breaker lets three go. */
static void the_restarts_of_one_rotation_count_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *rotations; /* of each restart, by a letter; -: of none */
        int done;              /* before the first that is held */
        int counted;
    } cases[] = {
        {"one rotation", "aaa", 3, 1},
        {"and three", "aaabbbccc", 9, 3},
        {"a fourth is held", "abcd", 3, 3},
        {"what has begun goes on", "a--aa-", 5, 3},
        {"two rotations at a time", "ababb", 5, 2},
        {"what goes on for ever counts again", "aaaa", 4, 2},
        {"of no rotation", "----", 3, 3},
    };
    const struct cr_breaker rule = {.restarts = 3, .within_ms = 3600 * 1000};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_restart_times known = {0};
        int done = 0;
        for (; cases[i].rotations[done]; done++) {
            int64_t now_ms = (NOW + done) * INT64_C(1000);
            char letter[] = {cases[i].rotations[done], '\0'};
            struct cr_restart_step step = step_of(*letter == '-' ? NULL : letter);
            if (cr_breaker_ends_ms(rule, &known, now_ms) && !cr_breaker_continues(&known, &step))
                break;
            if (!cr_breaker_note(rule, now_ms, &step, now_ms, &known) || known.at_ms[0] != now_ms)
                fail_msg("%s", cases[i].rule);
        }
        if (done != cases[i].done || known.len != (size_t)cases[i].counted)
            fail_msg("%s: %d restarts, of which %zu count", cases[i].rule, done, known.len);
    }
}

/* At most three restarts stand behind one that counts. */
static void no_order_of_steps_restarts_without_end(void **state)
{
    (void)state;
    static const char *const rotations[] = {NULL, "a1", "a1", "a1", "b1", "b1", "b1"};
    for (int limit = 1; limit <= CR_RESTART_TIMES_MAX; limit++) {
        const struct cr_breaker rule = {.restarts = limit, .within_ms = 3600 * 1000};
        struct cr_restart_times known = {0};
        int done = 0;
        uint32_t dice = 1;
        for (int i = 0; i < 3000; i++) {
            dice = dice * 1103515245u + 12345u;
            struct cr_restart_step step = step_of(rotations[dice / 65536 % cr_array_len(rotations)]);
            int64_t now_ms = (NOW + i) * INT64_C(1000);
            if (cr_breaker_ends_ms(rule, &known, now_ms) && !cr_breaker_continues(&known, &step))
                continue;
            cr_breaker_note(rule, now_ms, &step, now_ms, &known);
            done++;
        }
        assert_in_range(done, limit, 3 * limit);
    }
}

/* The domain's record came after the restart. */
static void what_a_restart_was_for_may_be_known_later(void **state)
{
    (void)state;
    const struct cr_breaker rule = {.restarts = 3, .within_ms = 3600 * 1000};
    const struct cr_restart_step rotation = step_of("a1");
    struct cr_restart_times known = {0};
    assert_true(cr_breaker_note(rule, 1000, &nothing, 9000, &known));
    assert_true(cr_breaker_note(rule, 1000, &rotation, 9000, &known));
    assert_false(cr_breaker_note(rule, 1000, &rotation, 9000, &known));
    assert_true(cr_breaker_note(rule, 2000, &nothing, 9000, &known));
    assert_int_equal(known.len, 2);
    assert_true(cr_breaker_note(rule, 2000, &rotation, 9000, &known));
    assert_int_equal(known.len, 1);
    assert_int_equal(known.at_ms[0], 2000);
    assert_int_equal(known.steps[0].restarts, 2);
    /* And not another one afterwards. */
    assert_false(cr_breaker_note(rule, 2000, &(struct cr_restart_step){"b1", 1}, 9000, &known));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts_of_a_while_hold_the_next_one),
        cmocka_unit_test(a_restart_is_counted_once_and_no_more_than_are_asked_for),
        cmocka_unit_test(the_restarts_of_one_rotation_count_once),
        cmocka_unit_test(no_order_of_steps_restarts_without_end),
        cmocka_unit_test(what_a_restart_was_for_may_be_known_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
