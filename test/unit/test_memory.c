#include "evidence/memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

/* A policy that asks one endpoint. */
struct question {
    const char *client; /* Secret; NULL: none */
    struct cr_verify_endpoint endpoint;
};

static const struct question plain = {.endpoint = {.port = 8443}};

static struct cr_policy_verify asks(const struct question *question)
{
    return (struct cr_policy_verify){.endpoints = (struct cr_verify_endpoint *)(uintptr_t)&question->endpoint,
                                     .endpoints_len = 1,
                                     .client_secret_name = (char *)(uintptr_t)question->client};
}

static void probed(struct cr_memory *memory, const char *uid, int64_t started_ms, const struct question *question,
                   const struct cr_sighting *sighting)
{
    const struct cr_policy_verify verify = asks(question);
    cr_memory_probed(memory, uid, started_ms, &verify, 0, sighting);
}

static struct cr_sighting sighting_of(struct cr_memory *memory, int64_t started_ms, const struct question *question)
{
    const struct cr_policy_verify verify = asks(question);
    struct cr_sighting seen;
    memset(&seen, 0xaa, sizeof seen);
    cr_memory_sightings(memory, "u", started_ms, &verify, &seen);
    return seen;
}

static void what_is_not_known_is_all_zero(void **state)
{
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    struct cr_pod_memory pod = cr_memory_pod(memory, "u");
    assert_int_equal(pod.nudges + pod.nudged_ms + pod.nudged_since_ms, 0);
    struct cr_sighting seen = sighting_of(memory, 10, &plain);
    assert_int_equal(seen.seen, CR_SEEN_NOTHING);
    assert_int_equal(seen.at_ms, 0);
    assert_string_equal(seen.leaf, "");
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "k");
    assert_int_equal(note.count + note.at_ms, 0);
    assert_null(note.text);
    /* Nothing to forget is nothing. */
    cr_memory_forget_pod(memory, "u");
    cr_memory_drop_note(memory, "k");
    cr_memory_forget_keys(memory, "");
    cr_memory_free(NULL);
}

static void nudges_are_counted_per_change(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *uid;
        int64_t since_ms;
        int64_t now_ms;
        int nudges;
    } cases[] = {
        {"the first", "a", 100, 1000, 1},
        {"another one for the same change", "a", 100, 2000, 2},
        {"of another pod", "b", 100, 2500, 1},
        {"a new change starts anew", "a", 200, 3000, 1},
        {"and goes on", "a", 200, 4000, 2},
        {"an older one, too, is another one", "a", 100, 5000, 1},
        {"a pod whose first change has no time", "c", 0, 6000, 1},
        {"and goes on", "c", 0, 7000, 2},
    };
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_memory_nudged(memory, cases[i].uid, cases[i].since_ms, cases[i].now_ms);
        struct cr_pod_memory pod = cr_memory_pod(memory, cases[i].uid);
        if (pod.nudges != cases[i].nudges || pod.nudged_ms != cases[i].now_ms ||
            pod.nudged_since_ms != cases[i].since_ms)
            fail_msg("%s: %d nudges, last %lld", cases[i].rule, pod.nudges, (long long)pod.nudged_ms);
    }
}

static void the_last_probe_counts_and_nudges_stay(void **state)
{
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    const struct cr_sighting leaf = {.seen = CR_SEEN_LEAF, .client = CR_CLIENT_ACCEPTED, .at_ms = 100, .leaf = "abcd"};
    const struct cr_sighting nobody = {.seen = CR_SEEN_UNREACHABLE, .at_ms = 200, .words = "nobody there"};
    cr_memory_nudged(memory, "u", 5, 50);
    probed(memory, "u", 10, &plain, &leaf);
    struct cr_sighting seen = sighting_of(memory, 10, &plain);
    assert_int_equal(seen.seen, CR_SEEN_LEAF);
    assert_int_equal(seen.client, CR_CLIENT_ACCEPTED);
    assert_string_equal(seen.leaf, "abcd");
    assert_string_equal(seen.words, "");
    assert_int_equal(seen.at_ms, 100);
    assert_int_equal(sighting_of(memory, 20, &plain).at_ms, 0); /* another start is another process */

    probed(memory, "u", 20, &plain, &nobody);
    seen = sighting_of(memory, 20, &plain);
    assert_int_equal(seen.seen, CR_SEEN_UNREACHABLE);
    assert_int_equal(seen.client, CR_CLIENT_NONE);
    assert_string_equal(seen.leaf, ""); /* not the one seen before */
    assert_string_equal(seen.words, "nobody there");
    assert_int_equal(sighting_of(memory, 10, &plain).at_ms, 0);
    assert_int_equal(cr_memory_pod(memory, "u").nudges, 1);

    cr_memory_forget_pod(memory, "u");
    assert_int_equal(sighting_of(memory, 20, &plain).at_ms + cr_memory_pod(memory, "u").nudges, 0);
}

/* Two policies may ask one pod at two places, or one policy be changed. */
static void sightings_are_distinguished_by_what_was_asked(void **state)
{
    (void)state;
    const struct {
        const char *rule;
        struct question question;
        bool same;
    } cases[] = {
        {"the same", {.endpoint = {.port = 8443}}, true},
        {"whose leaf it must show is no other question",
         {.endpoint = {.port = 8443, .secret_name = (char[]){"web"}}},
         true},
        {"another port", {.endpoint = {.port = 8444}}, false},
        {"another name", {.endpoint = {.port = 8443, .server_name = (char[]){"web"}}}, false},
        {"another protocol", {.endpoint = {.port = 8443, .protocol = CR_PROBE_MYSQL}}, false},
        {"with a client certificate", {.client = "client", .endpoint = {.port = 8443}}, false},
    };
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    const struct cr_sighting leaf = {.seen = CR_SEEN_LEAF, .at_ms = 100, .leaf = "abcd"};
    probed(memory, "u", 10, &plain, &leaf);
    for (size_t i = 0; i < cr_array_len(cases); i++)
        if ((sighting_of(memory, 10, &cases[i].question).at_ms == 100) != cases[i].same)
            fail_msg("%s", cases[i].rule);
}

static int64_t trust_seen_ms(struct cr_memory *memory, int64_t started_ms)
{
    const struct cr_policy_verify verify = asks(&plain);
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
    cr_memory_trust(memory, "u", started_ms, &verify, 1000, &seen);
    return seen.at_ms;
}

static void what_a_pod_trusts_is_kept_until_it_goes(void **state)
{
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    const struct cr_policy_verify verify = asks(&plain);
    const struct cr_endpoint_trust trust = {.reached = true};
    assert_int_equal(trust_seen_ms(memory, 10), 0);
    cr_memory_saw_trust(memory, "u", 10, &verify, 0, &trust, 100);
    assert_int_equal(trust_seen_ms(memory, 10), 100);
    assert_int_equal(trust_seen_ms(memory, 20), 0); /* another start is another process */
    cr_memory_nudged(memory, "u", 5, 50);
    assert_int_equal(trust_seen_ms(memory, 10), 100);
    cr_memory_forget_pod(memory, "u");
    assert_int_equal(trust_seen_ms(memory, 10), 0);
}

/* A policy with ports that change for ever costs no more than a few sightings. */
static void the_oldest_sighting_makes_room(void **state)
{
    enum { MANY = 100, KEPT = 2 * CR_VERIFY_ENDPOINTS_MAX };
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 1; i <= MANY; i++) {
            const struct question question = {.endpoint = {.port = i}};
            const struct cr_sighting sighting = {.seen = CR_SEEN_LEAF, .at_ms = i, .leaf = "abcd"};
            if (pass == 0)
                probed(memory, "u", 10, &question, &sighting);
            else
                assert_int_equal(sighting_of(memory, 10, &question).at_ms, i > MANY - KEPT ? i : 0);
        }
    }
}

static void note_text(struct cr_memory *memory, const char *key, int64_t at_ms, const char *text)
{
    cr_memory_take_note(memory, key, &(struct cr_note_input){.at_ms = at_ms, .text = text});
}

static void notes_count_and_keep_the_last_text(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ms;
        const char *text;
    } taken[] = {{100, "one"}, {50, "two"}, {70, NULL}};
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    for (size_t i = 0; i < cr_array_len(taken); i++) {
        note_text(memory, "k", taken[i].at_ms, taken[i].text);
        CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "k");
        assert_int_equal(note.count, i + 1);
        assert_int_equal(note.at_ms, taken[i].at_ms);
        assert_true(cr_streq(note.text, taken[i].text));
        /* A copy: the caller may do with it what it likes. */
        if (note.text)
            note.text[0] = '!';
    }
    cr_memory_drop_note(memory, "k");
    note_text(memory, "k", 1, "again");
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "k");
    assert_int_equal(note.count, 1);
    assert_string_equal(note.text, "again");
}

static void a_note_keeps_its_reason_until_the_next_one(void **state)
{
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    cr_memory_take_note(memory, "k", &(struct cr_note_input){.at_ms = 7, .reason = 3, .about = "digest", .text = "no"});
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "k");
    assert_int_equal(note.reason, 3);
    assert_string_equal(note.about, "digest");
    assert_string_equal(note.text, "no");
    assert_int_equal(note.at_ms, 7);
    note_text(memory, "k", 8, "the pod's disruption budget");
    CR_CLEANUP(cr_note) struct cr_note next = cr_memory_note(memory, "k");
    assert_int_equal(next.count, 2);
    assert_int_equal(next.reason, 0);
    assert_null(next.about);
}

static void keys_are_forgotten_by_their_beginning(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool kept;
    } cases[] = {
        {"ns/web/one/refused", false}, {"ns/web/", false},         {"ns/web", true},
        {"ns/web2/one/refused", true}, {"other/ns/web/one", true}, {"", true},
    };
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    for (size_t i = 0; i < cr_array_len(cases); i++)
        note_text(memory, cases[i].key, 1, "x");
    cr_memory_forget_keys(memory, "ns/web/");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, cases[i].key);
        if ((note.count == 1) != cases[i].kept)
            fail_msg("'%s' is %s", cases[i].key, note.count ? "kept" : "gone");
    }
}

enum { THREADS = 4, ROUNDS = 500 };

static void *work(void *arg)
{
    struct cr_memory *memory = arg;
    for (int i = 0; i < ROUNDS; i++) {
        cr_memory_nudged(memory, "shared", 7, i);
        const struct cr_sighting sighting = {.seen = CR_SEEN_UNREACHABLE, .at_ms = i + 1, .words = "nobody there"};
        probed(memory, "shared", 1, &plain, &sighting);
        probed(memory, "u", 1, &plain, &sighting);
        (void)sighting_of(memory, 1, &plain);
        const struct cr_policy_verify verify = asks(&plain);
        struct cr_trust_sighting page = {.page_read = true};
        cr_memory_saw_trust(memory, "u", 1, &verify, 0, &(struct cr_endpoint_trust){.reached = true}, i + 1);
        cr_memory_saw_page(memory, "shared", 1, &verify, &page, i + 1);
        (void)trust_seen_ms(memory, 1);
        note_text(memory, "ns/p/shared", i, "text");
        note_text(memory, "ns/q/passing", i, "text");
        CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "ns/q/passing");
        (void)cr_memory_pod(memory, "shared");
        cr_memory_forget_keys(memory, "ns/q/");
        cr_memory_forget_pod(memory, "passing");
    }
    return NULL;
}

static void workers_share_it(void **state)
{
    (void)state;
    CR_CLEANUP(cr_memory) struct cr_memory *memory = cr_memory_new();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, memory), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(cr_memory_pod(memory, "shared").nudges, THREADS * ROUNDS);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, "ns/p/shared");
    assert_int_equal(note.count, THREADS * ROUNDS);
    CR_CLEANUP(cr_note) struct cr_note gone = cr_memory_note(memory, "ns/q/passing");
    assert_int_equal(gone.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_is_all_zero),
        cmocka_unit_test(nudges_are_counted_per_change),
        cmocka_unit_test(the_last_probe_counts_and_nudges_stay),
        cmocka_unit_test(sightings_are_distinguished_by_what_was_asked),
        cmocka_unit_test(what_a_pod_trusts_is_kept_until_it_goes),
        cmocka_unit_test(the_oldest_sighting_makes_room),
        cmocka_unit_test(notes_count_and_keep_the_last_text),
        cmocka_unit_test(a_note_keeps_its_reason_until_the_next_one),
        cmocka_unit_test(keys_are_forgotten_by_their_beginning),
        cmocka_unit_test(workers_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
