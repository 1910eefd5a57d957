#include "sidecar/delivery.h"

#include "support/deliveryplay.h"

static const struct cr_delivery_rules watched = {.proof = true, .proof_timeout_ms = 10000};

static void at_its_start_it_notifies_no_program_without_need(void **state)
{
    (void)state;
    const struct play plays[] = {
        {"the program begins with what is there",
         blind,
         {{"read", "A", "Pending"}, {"output", "ok", "Delivered"}, {"rest", NULL, NULL}}},
        {"an output of before was another one",
         blind,
         {{"read", "A", NULL},
          {"output", "changed", "Pending"},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"},
          {"rest", NULL, NULL}}},
        {"it serves it", seeing, {{"read", "A", NULL}, {"output", "ok", NULL}, {"look", "new", "Delivered"}, {"rest"}}},
        {"it serves another",
         seeing,
         {{"read", "A", NULL},
          {"output", "ok", NULL},
          {"look", "old", "Pending"},
          {"trigger 0", "ok", NULL},
          {"look", "new", "Delivered"}}},
        {"it has not begun: it is not told, however long that takes",
         seeing,
         {{"read", "A", NULL},
          {"output", "ok", NULL},
          {"look", "away", "Pending"},
          {"wait", "pass 10s", NULL},
          {"look", "away", "Pending"},
          {"wait", "pass 10s", NULL},
          {"look", "new", "Delivered"}}},
        {"nothing of it can be seen",
         seeing,
         {{"read", "A", NULL}, {"output", "ok", NULL}, {"look", "none", "Delivered"}}},
    };
    play_all(plays, cr_array_len(plays));
}

static void a_record_says_what_the_process_before_has_done(void **state)
{
    (void)state;
    struct cr_delivery_rules same = blind;
    same.recorded = true;
    same.record = play_material('A');
    struct cr_delivery_rules proven = seeing;
    proven.recorded = true;
    proven.record = play_material('A');
    const struct play plays[] = {
        {"it was delivered", same, {{"read", "A", NULL}, {"output", "ok", "Delivered"}, {"rest"}}},
        {"it ended before the trigger", same, {{"read", "B", NULL}, {"output", "ok", NULL}, {"trigger 0", "ok", NULL}}},
        {"a proof is better",
         proven,
         {{"read", "A", NULL}, {"output", "ok", NULL}, {"look", "old", NULL}, {"trigger 0"}}},
    };
    play_all(plays, cr_array_len(plays));
}

static void a_change_is_notified_once(void **state)
{
    (void)state;
    const struct play plays[] = {
        {"in the order of the triggers",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", "Pending"},
          {"output", "changed", NULL},
          {"trigger 0", "ok", "Pending"},
          {"trigger 1", "ok", "Delivered"},
          {"rest", "event", NULL},
          {"read", "B", "Delivered"},
          {"output", "ok", "Delivered"},
          {"rest"}}},
        {"files that are touched are no change",
         seeing,
         {PROVEN_A, {"rest", "event", NULL}, {"read", "A", "Delivered"}, {"output", "ok", "Delivered"}, {"rest"}}},
        {"another password is one",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "A", NULL},
          {"output", "changed", "Pending"},
          {"trigger 0", "ok", NULL}}},
        {"a program without triggers sees its files by itself",
         watched,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "changed", NULL},
          {"look", "old", "Pending"},
          {"wait", "pass 1s", NULL},
          {"look", "new", "Delivered"}}},
        {"files that are touched while it is waited for do not tell it again",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"look", "old", NULL},
          {"wait", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Delivered"}}},
        {"one that comes on the way begins anew, and its files are read before any trigger",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "event", NULL},
          {"read", "C", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"}}},
    };
    play_all(plays, cr_array_len(plays));
}

static void what_fails_is_tried_again_from_the_files_on(void **state)
{
    (void)state;
    const struct play plays[] = {
        {"a trigger",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "fails", "Failing"},
          {"wait", "pass 2s", "Failing"},
          {"read", "B", "Failing"},
          {"output", "ok", "Failing"},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"}}},
        {"an output: nobody is told",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"}}},
        {"a trigger that says that it failed, and worked",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "changed", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Delivered"},
          {"rest"}}},
        {"the proof, past its time: the trigger is pulled again",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", "Pending"},
          {"look", "old", "Pending"},
          {"wait", "pass 11s", NULL},
          {"look", "old", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"look", "old", "Failing"},
          {"trigger 0", "ok", NULL},
          {"look", "new", "Delivered"}}},
        {"a new material does not wait for the failure of another",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "event", NULL},
          {"read", "C", "Pending"},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL}}},
        {"what was there before is back: nobody need know",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "fails", "Failing"},
          {"wait", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Delivered"}}},
    };
    play_all(plays, cr_array_len(plays));
}

static void what_cannot_be_used_stops_everything(void **state)
{
    (void)state;
    const struct play plays[] = {
        {"a writer between two files is not told of",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "bad", "Delivered"},
          {"wait", "pass 1s", NULL},
          {"read", "bad", "Delivered"},
          {"wait", "event", NULL},
          {"read", "B", "Pending"}}},
        {"after some readings it is, and the triggers rest",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "event", NULL},
          {"read", "bad", NULL},
          {"wait", "pass 1s", NULL},
          {"read", "bad", NULL},
          {"wait", "pass 1s", NULL},
          {"read", "bad", "Refused"},
          {"wait", "pass 100s", "Refused"},
          {"read", "B", "Pending"},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"}}},
        {"the old one is back",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "bad", NULL},
          {"wait", "event", NULL},
          {"read", "bad", NULL},
          {"wait", "event", NULL},
          {"read", "bad", "Refused"},
          {"wait", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Delivered"},
          {"rest"}}},
    };
    play_all(plays, cr_array_len(plays));
}

static void the_waits_grow_and_differ(void **state)
{
    (void)state;
    struct cr_delivery one;
    struct cr_delivery other;
    const struct cr_delivery_digests a = play_material('A');
    cr_delivery_init(&one, &blind, 1);
    cr_delivery_init(&other, &blind, 2);
    int64_t now = 0, expected = CR_DELIVERY_RETRY_MS;
    bool differ = false;
    for (int i = 0; i < 12; i++) {
        const struct cr_delivery_now at = {.monotonic_ms = now, .wall_ms = now + 1};
        cr_delivery_read(&one, &a, at);
        cr_delivery_read(&other, &a, at);
        cr_delivery_output(&one, false, "disk full", at);
        cr_delivery_output(&other, false, "disk full", at);
        int64_t wait = cr_delivery_next(&one, now).wait_ms;
        if (wait < expected * 4 / 5 || wait > expected * 6 / 5)
            fail_msg("failure %d: %lld ms", i, (long long)wait);
        differ = differ || wait != cr_delivery_next(&other, now).wait_ms;
        expected = expected * 2 < CR_DELIVERY_RETRY_MOST_MS ? expected * 2 : CR_DELIVERY_RETRY_MOST_MS;
        now += wait;
    }
    assert_true(differ);
}

static void the_page_has_what_was_seen(void **state)
{
    (void)state;
    const struct play play = {"",
                              seeing,
                              {PROVEN_A,
                               {"rest", "event", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL},
                               {"trigger 0", "ok", NULL},
                               {"look", "old", NULL}}};
    const struct cr_delivery_digests a = play_material('A');
    const struct cr_delivery_digests b = play_material('B');
    struct stage s;
    play_run(&play, &s);
    assert_true(cr_delivery_same(&s.d.found, &b));
    assert_true(cr_delivery_same(&s.d.delivered, &a));
    assert_string_equal(s.d.served, "oooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo");
    assert_false(s.d.leaf_proven);
    assert_int_equal(s.d.attempts, 1);
    s.now_ms += 3000;
    play_expect(&s, "look", "later");
    play_look(&s, "new");
    assert_true(cr_delivery_same(&s.d.delivered, &b));
    assert_true(s.d.leaf_proven);
    assert_int_equal(s.d.took_ms, 3000);
    assert_string_equal(s.d.words, "");
    assert_string_equal(s.d.served, b.leaf);
}

static void triggers_that_were_not_pulled_are_no_attempt(void **state)
{
    (void)state;
    const struct play play = {"",
                              blind,
                              {DELIVERED_A,
                               {"rest", "event", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL},
                               {"trigger 0", "event", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL},
                               {"trigger 0", "ok", NULL},
                               {"trigger 1", "event", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL},
                               {"trigger 0", "ok", NULL},
                               {"trigger 1", "ok", "Delivered"}}};
    struct stage s;
    play_run(&play, &s);
    assert_int_equal(s.d.attempts, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_its_start_it_notifies_no_program_without_need),
        cmocka_unit_test(a_record_says_what_the_process_before_has_done),
        cmocka_unit_test(a_change_is_notified_once),
        cmocka_unit_test(what_fails_is_tried_again_from_the_files_on),
        cmocka_unit_test(what_cannot_be_used_stops_everything),
        cmocka_unit_test(the_waits_grow_and_differ),
        cmocka_unit_test(the_page_has_what_was_seen),
        cmocka_unit_test(triggers_that_were_not_pulled_are_no_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
