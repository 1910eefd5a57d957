/* What a program may have without proof: it was notified in part, notified without success, or notified by a process
 * that is gone. */
#include "sidecar/delivery.h"

#include "support/deliveryplay.h"

static const struct cr_delivery_rules both = {.triggers = 2, .proof = true, .proof_timeout_ms = 10000};

static void what_was_begun_is_notified_to_its_end(void **state)
{
    (void)state;
    struct cr_delivery_rules nothing_is_known = blind;
    nothing_is_known.recorded = true; /* of a process that ended while it notified */
    const struct play plays[] = {
        {"material that is taken back, of which a trigger was pulled",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "event", NULL},
          {"read", "A", "Pending"},
          {"output", "ok", "Pending"},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", "Delivered"},
          {"rest", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Delivered"},
          {"rest"}}},
        {"or failed, and may have worked",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Pending"},
          {"trigger 0"}}},
        {"also where the leaf is looked at: CAs need not show",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"look", "old", NULL},
          {"wait", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Pending"},
          {"trigger 0"}}},
        {"an output that changed, and nobody was told of",
         blind,
         {DELIVERED_A,
          {"rest", "event", NULL},
          {"read", "A", NULL},
          {"output", "changed", "Pending"},
          {"trigger 0", "event", NULL},
          {"read", "B", NULL},
          {"output", "fails", "Failing"},
          {"wait", "event", NULL},
          {"read", "A", NULL},
          {"output", "ok", "Pending"},
          {"trigger 0"}}},
        {"by a process before", nothing_is_known, {{"read", "A", NULL}, {"output", "ok", "Pending"}, {"trigger 0"}}},
        {"a leaf that is served does not hide that another trigger fails",
         both,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Failing"},
          {"trigger 0", "ok", NULL},
          {"trigger 1", "ok", NULL},
          {"look", "new", "Delivered"}}},
    };
    play_all(plays, cr_array_len(plays));
}

/* After a trigger that has failed. */
static void of_cas_that_do_not_show_the_leaf_proves_nothing(void **state)
{
    (void)state;
    static const struct {
        bool trust_seen;
        enum cr_delivery_act next;
    } cases[] = {{false, CR_ACT_TRIGGER}, {true, CR_ACT_WAIT}};
    const struct play play = {"",
                              seeing,
                              {PROVEN_A,
                               {"rest", "event", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL},
                               {"trigger 0", "fails", "Failing"},
                               {"wait", "pass 2s", NULL},
                               {"read", "B", NULL},
                               {"output", "ok", NULL}}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct stage s;
        play_run(&play, &s);
        memset(s.d.found.trust, 'T', sizeof s.d.found.trust - 1);
        const struct cr_proof proof = {.verdict = CR_PROOF_NEW, .trust_seen = cases[i].trust_seen};
        cr_delivery_look(&s.d, &proof, play_now(&s));
        assert_int_equal(cr_delivery_next(&s.d, s.now_ms).act, cases[i].next);
        assert_int_equal(s.d.state == CR_DELIVERY_DELIVERED, cases[i].trust_seen);
    }
}

/* After a trigger that has failed: a leaf that was served before shows nothing of what it comes with. */
static void a_chain_does_not_show(void **state)
{
    (void)state;
    struct cr_delivery_rules nothing_is_known = seeing;
    nothing_is_known.recorded = true; /* of a process that ended while it notified */
    const struct play plays[] = {
        {"the leaf is the same, its chain another",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "a", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "a", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Failing"},
          {"trigger 0", "ok", NULL},
          {"look", "new", "Delivered"},
          {"rest"}}},
        {"it is not known which leaf was before",
         nothing_is_known,
         {{"read", "A", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "A", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Failing"},
          {"trigger 0", "ok", NULL},
          {"look", "new", "Delivered"}}},
        {"a trigger that failed may have brought it with another chain",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "b", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "event", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "B", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Failing"},
          {"trigger 0"}}},
        {"both are others: the leaf shows that the file was taken",
         seeing,
         {PROVEN_A,
          {"rest", "event", NULL},
          {"read", "b", NULL},
          {"output", "ok", NULL},
          {"trigger 0", "fails", "Failing"},
          {"wait", "pass 2s", NULL},
          {"read", "b", NULL},
          {"output", "ok", NULL},
          {"look", "new", "Delivered"}}},
    };
    play_all(plays, cr_array_len(plays));
}

/* Else a part of it may have failed behind the leaf that is served. */
static void a_leaf_is_conclusive_where_the_triggers_are_one_step(void **state)
{
    (void)state;
    static const char head[] =
        "materials: [{name: web, certificate: /c, privateKey: /k, proof: {endpoints: [{port: 1}]}, "
        "triggers: [";
    static const struct {
        const char *triggers;
        bool conclusive;
    } cases[] = {
        {"{type: Signal, signal: {process: nginx}}", true},
        {"{type: Signal, signal: {process: nginx}}, {type: Signal, signal: {process: nginx}}", false},
        {"{type: Command, command: {argv: [/reload]}}", true},
        {"{type: Socket, socket: {address: /s, exchanges: [{send: all}]}}", true},
        {"{type: Socket, socket: {address: /s, exchanges: [{send: one}, {send: two}]}}", false},
        {"{type: Socket, socket: {address: /s, eachAnew: true, exchanges: [{send: one}, {send: two}]}}", false},
        {"{type: HAProxy, haproxy: {address: /s, certificates: [a.pem]}}", true},
        {"{type: HAProxy, haproxy: {address: /s, certificates: [a.pem, b.pem]}}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        char text[512];
        struct cr_error err = {0};
        CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config = {0};
        snprintf(text, sizeof text, "%s%s]}]", head, cases[i].triggers);
        if (!cr_sidecar_config_parse(text, strlen(text), &config, &err))
            fail_msg("%s: %s", cases[i].triggers, err.text);
        if (cr_delivery_rules_of(&config.materials[0]).proof_is_conclusive != cases[i].conclusive)
            fail_msg("%s", cases[i].triggers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_begun_is_notified_to_its_end),
        cmocka_unit_test(of_cas_that_do_not_show_the_leaf_proves_nothing),
        cmocka_unit_test(a_chain_does_not_show),
        cmocka_unit_test(a_leaf_is_conclusive_where_the_triggers_are_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
