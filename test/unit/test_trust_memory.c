#include "evidence/trust_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { STARTED = 10, NOW = 1000 * 1000 };

static struct cr_policy_verify asks(struct cr_verify_endpoint *endpoints, size_t len, int certs_port)
{
    static char path[] = "/certs";
    return (struct cr_policy_verify){
        .endpoints = endpoints, .endpoints_len = len, .certs_port = certs_port, .certs_path = certs_port ? path : NULL};
}

static const struct cr_endpoint_trust asked = {.reached = true,
                                               .announced = {.asked = true, .len = 1, .names = {{7}}},
                                               .canary = CR_CANARY_TRUSTED,
                                               .canary_ca = "ca"};

static struct cr_trust_sighting page_with(const char *ca)
{
    struct cr_trust_sighting page = {.page_read = true, .contexts_len = 1};
    page.contexts = cr_calloc(1, sizeof *page.contexts);
    cr_strvec_add(&page.contexts[0].cas, ca);
    page.contexts[0].ca_path = cr_strdup("/certs/ca.crt");
    return page;
}

static int64_t age_of(struct cr_trust_memory **memory, int64_t started_ms, const struct cr_policy_verify *verify,
                      int64_t now_ms)
{
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
    cr_trust_memory_recall(memory, started_ms, verify, now_ms, &seen);
    assert_true(seen.at_ms || (!seen.endpoints && !seen.contexts && !seen.page_read));
    return seen.at_ms;
}

static void nothing_is_known_before_it_was_seen(void **state)
{
    (void)state;
    CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
    struct cr_verify_endpoint endpoint = {.port = 8443};
    const struct cr_policy_verify verify = asks(&endpoint, 1, 9902);
    assert_int_equal(age_of(&memory, STARTED, &verify, NOW), 0);
    assert_null(memory);
}

/* A verdict about a part would count for the whole. */
static void all_that_is_asked_for_must_have_been_seen(void **state)
{
    (void)state;
    CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
    struct cr_verify_endpoint endpoints[] = {{.port = 8443}, {.port = 8444}};
    const struct cr_policy_verify verify = asks(endpoints, 2, 9902);
    cr_trust_memory_keep_endpoint(&memory, STARTED, &endpoints[0], &asked, NOW - 10);
    assert_int_equal(age_of(&memory, STARTED, &verify, NOW), 0);
    cr_trust_memory_keep_endpoint(&memory, STARTED, &endpoints[1], &(struct cr_endpoint_trust){0}, NOW - 20);
    assert_int_equal(age_of(&memory, STARTED, &verify, NOW), 0);
    struct cr_trust_sighting page = page_with("a1");
    cr_trust_memory_keep_page(&memory, STARTED, &verify, &page, NOW - 5);
    assert_null(page.contexts); /* taken */

    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
    cr_trust_memory_recall(&memory, STARTED, &verify, NOW, &seen);
    assert_int_equal(seen.at_ms, NOW - 20); /* as old as its oldest part */
    assert_int_equal(seen.endpoints_len, 2);
    assert_memory_equal(&seen.endpoints[0], &asked, sizeof asked);
    assert_false(seen.endpoints[1].reached);
    assert_true(seen.page_read);
    assert_int_equal(seen.contexts_len, 1);
    assert_string_equal(seen.contexts[0].cas.items[0], "a1");
    assert_string_equal(seen.contexts[0].ca_path, "/certs/ca.crt");
    assert_int_equal(age_of(&memory, STARTED + 1, &verify, NOW), 0); /* another start is another process */
}

static void the_last_look_replaces_the_one_before(void **state)
{
    (void)state;
    CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
    struct cr_verify_endpoint endpoint = {.port = 8443};
    const struct cr_policy_verify verify = asks(&endpoint, 1, 9902);
    for (int i = 1; i <= 2; i++) {
        struct cr_trust_sighting page = i == 1 ? page_with("a1") : (struct cr_trust_sighting){.words = "gone"};
        cr_trust_memory_keep_endpoint(&memory, STARTED, &endpoint, i == 1 ? &asked : &(struct cr_endpoint_trust){0},
                                      NOW + i);
        cr_trust_memory_keep_page(&memory, STARTED, &verify, &page, NOW + i);
    }
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
    cr_trust_memory_recall(&memory, STARTED, &verify, NOW + 2, &seen);
    assert_int_equal(seen.at_ms, NOW + 2);
    assert_false(seen.endpoints[0].reached);
    assert_string_equal(seen.endpoints[0].canary_ca, "");
    assert_false(seen.page_read);
    assert_int_equal(seen.contexts_len, 0);
    assert_string_equal(seen.words, "gone");
}

static void looks_are_distinguished_by_what_was_asked(void **state)
{
    const struct {
        const char *rule;
        struct cr_verify_endpoint endpoint;
        bool same;
    } cases[] = {
        {"the same", {.port = 8443, .server_name = (char[]){"web"}}, true},
        {"whose leaf it must show is no other question",
         {.port = 8443, .server_name = (char[]){"web"}, .secret_name = (char[]){"s"}},
         true},
        {"another port", {.port = 8444, .server_name = (char[]){"web"}}, false},
        {"another name, which may be of another context", {.port = 8443, .server_name = (char[]){"api"}}, false},
        {"no name", {.port = 8443}, false},
        {"another protocol", {.port = 8443, .server_name = (char[]){"web"}, .protocol = CR_PROBE_MYSQL}, false},
    };
    (void)state;
    CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
    cr_trust_memory_keep_endpoint(&memory, STARTED, &cases[0].endpoint, &asked, NOW);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_verify_endpoint endpoint = cases[i].endpoint;
        const struct cr_policy_verify verify = asks(&endpoint, 1, 0);
        if ((age_of(&memory, STARTED, &verify, NOW) == NOW) != cases[i].same)
            fail_msg("%s", cases[i].rule);
    }
}

static void what_is_old_or_of_another_clock_is_forgotten(void **state)
{
    static const struct {
        const char *rule;
        int64_t now_ms;
        bool known;
    } cases[] = {
        {"at once", NOW, true},
        {"as long as it is kept", NOW + CR_TRUST_KEPT_MS, true},
        {"longer", NOW + CR_TRUST_KEPT_MS + 1, false},
        {"it was seen later than now", NOW - 1, false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
        struct cr_verify_endpoint endpoint = {.port = 8443};
        const struct cr_policy_verify verify = asks(&endpoint, 1, 9902);
        struct cr_trust_sighting page = page_with("a1");
        cr_trust_memory_keep_endpoint(&memory, STARTED, &endpoint, &asked, NOW);
        cr_trust_memory_keep_page(&memory, STARTED, &verify, &page, NOW);
        if ((age_of(&memory, STARTED, &verify, cases[i].now_ms) != 0) != cases[i].known ||
            (memory != NULL) != cases[i].known)
            fail_msg("%s", cases[i].rule);
    }
}

/* A policy with ports that change for ever costs no more than a few looks. */
static void the_oldest_makes_room(void **state)
{
    enum { MANY = 100, KEPT = 2 * CR_VERIFY_ENDPOINTS_MAX, PAGES = 2 };
    (void)state;
    CR_CLEANUP(cr_trust_memory) struct cr_trust_memory *memory = NULL;
    for (int i = 1; i <= MANY; i++) {
        const struct cr_verify_endpoint endpoint = {.port = i};
        const struct cr_policy_verify verify = asks(NULL, 0, i);
        struct cr_trust_sighting page = page_with("a1");
        cr_trust_memory_keep_endpoint(&memory, STARTED, &endpoint, &asked, NOW + i);
        cr_trust_memory_keep_page(&memory, STARTED, &verify, &page, NOW + i);
    }
    for (int i = 1; i <= MANY; i++) {
        struct cr_verify_endpoint endpoint = {.port = i};
        const struct cr_policy_verify by_name = asks(&endpoint, 1, 0);
        const struct cr_policy_verify by_page = asks(NULL, 0, i);
        assert_int_equal(age_of(&memory, STARTED, &by_name, NOW + MANY), i > MANY - KEPT ? NOW + i : 0);
        assert_int_equal(age_of(&memory, STARTED, &by_page, NOW + MANY), i > MANY - PAGES ? NOW + i : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_before_it_was_seen),
        cmocka_unit_test(all_that_is_asked_for_must_have_been_seen),
        cmocka_unit_test(the_last_look_replaces_the_one_before),
        cmocka_unit_test(looks_are_distinguished_by_what_was_asked),
        cmocka_unit_test(what_is_old_or_of_another_clock_is_forgotten),
        cmocka_unit_test(the_oldest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
