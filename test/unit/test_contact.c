#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controlplane/agent/contact.h"

static void test_in_contact_it_may_be_asked(void **state)
{
    (void)state;
    struct cr_contact contact = {0};
    assert_true(cr_contact_may_ask(&contact, 1));
    assert_int_equal(cr_contact_wait_ms(&contact, 1), 0);
    assert_int_equal(cr_contact_made(&contact, 5), 0);
    assert_false(cr_contact_is_lost(&contact, INT64_C(1) << 40));
}

static void test_pauses_grow_to_half_a_minute_and_it_is_never_given_up(void **state)
{
    (void)state;
    struct cr_contact contact = {0};
    int64_t now_ms = 1000;
    int64_t longest_ms = 0;
    int tries = 0;
    for (; now_ms < 24 * 3600 * 1000; tries++) {
        (void)cr_contact_failed(&contact, false, now_ms);
        int64_t wait_ms = cr_contact_wait_ms(&contact, now_ms);
        assert_in_range(wait_ms, 500, CR_CONTACT_MOST_MS);
        assert_false(cr_contact_may_ask(&contact, now_ms + wait_ms - 1));
        longest_ms = wait_ms > longest_ms ? wait_ms : longest_ms;
        now_ms += wait_ms;
        assert_true(cr_contact_may_ask(&contact, now_ms));
    }
    assert_in_range(longest_ms, CR_CONTACT_MOST_MS / 2, CR_CONTACT_MOST_MS);
    assert_true(tries > 24 * 3600 * 1000 / CR_CONTACT_MOST_MS);
    assert_true(cr_contact_is_lost(&contact, now_ms));
}

/* It is we who made it go away, and the operator waits for us. */
static void test_while_something_is_under_way_it_is_asked_often(void **state)
{
    (void)state;
    struct cr_contact contact = {0};
    for (int i = 0; i < 100; i++) {
        (void)cr_contact_failed(&contact, true, 1000);
        assert_in_range(cr_contact_wait_ms(&contact, 1000), 500, CR_CONTACT_HURRY_MS);
    }
}

static void test_it_is_logged_once_and_once_more_when_it_is_lost(void **state)
{
    (void)state;
    struct cr_contact contact = {0};
    assert_true(cr_contact_failed(&contact, false, 1000));
    assert_false(cr_contact_failed(&contact, false, 2000));
    assert_false(cr_contact_failed(&contact, false, 1000 + CR_CONTACT_LOST_MS - 1));
    assert_true(cr_contact_failed(&contact, false, 1000 + CR_CONTACT_LOST_MS));
    assert_false(cr_contact_failed(&contact, false, 2000 + CR_CONTACT_LOST_MS));
    assert_int_equal(cr_contact_made(&contact, 11000 + CR_CONTACT_LOST_MS), 10000 + CR_CONTACT_LOST_MS);
    assert_true(cr_contact_may_ask(&contact, 0));
    assert_true(cr_contact_failed(&contact, false, 3000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_contact_it_may_be_asked),
        cmocka_unit_test(test_pauses_grow_to_half_a_minute_and_it_is_never_given_up),
        cmocka_unit_test(test_while_something_is_under_way_it_is_asked_often),
        cmocka_unit_test(test_it_is_logged_once_and_once_more_when_it_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
