#include "runtime/election_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fakeapi.h"

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define LEASE_OF(holder)                                                                                               \
    "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"" holder                   \
    "\",\"leaseDurationSeconds\":15}}"

/* clang-format off */
static const struct {
    const char *rule;
    enum cr_election_step step;
    struct fake_answer answer;
    enum cr_election_step next;
    enum cr_error_kind err; /* None: it is left alone */
} cases[] = {
    {"nobody has it", CR_ELECTION_GET, {.expect = "GET ", .status = 404, .body = STATUS("NotFound")}, CR_ELECTION_CREATE, CR_ERR_NONE},
    {"another has it", CR_ELECTION_GET, {.expect = "GET ", .body = LEASE_OF("other")}, CR_ELECTION_WAIT, CR_ERR_NONE},
    {"it was given up", CR_ELECTION_GET, {.expect = "GET ", .body = LEASE_OF("")}, CR_ELECTION_UPDATE, CR_ERR_NONE},
    {"it is ours", CR_ELECTION_CREATE, {.expect = "POST ", .has = "\"holderIdentity\":\"me\"", .body = LEASE_OF("me")}, CR_ELECTION_WAIT, CR_ERR_NONE},
    {"another was faster", CR_ELECTION_CREATE, {.expect = "POST ", .status = 409, .body = STATUS("AlreadyExists")}, CR_ELECTION_WAIT, CR_ERR_CONFLICT},
    {"its namespace is not there", CR_ELECTION_CREATE, {.expect = "POST ", .status = 404, .body = STATUS("NotFound")}, CR_ELECTION_WAIT, CR_ERR_NOT_FOUND},
    {"renewed", CR_ELECTION_UPDATE, {.expect = "PATCH ", .has = "\"resourceVersion\":\"6\"", .body = LEASE_OF("me")}, CR_ELECTION_WAIT, CR_ERR_NONE},
    {"it was deleted", CR_ELECTION_UPDATE, {.expect = "PATCH ", .status = 404, .body = STATUS("NotFound")}, CR_ELECTION_CREATE, CR_ERR_NONE},
    {"written by another since", CR_ELECTION_UPDATE, {.expect = "PATCH ", .status = 409, .body = STATUS("Conflict")}, CR_ELECTION_WAIT, CR_ERR_CONFLICT},
    {"no right", CR_ELECTION_UPDATE, {.expect = "PATCH ", .status = 403, .body = STATUS("Forbidden")}, CR_ELECTION_WAIT, CR_ERR_FORBIDDEN},
};
/* clang-format on */

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void each_outcome_is_given_to_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fake_api api;
        pthread_t thread;
        assert_true(fake_api_start(&api, &cases[i].answer, 1));
        CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
        struct cr_client *client = fake_client(loop, api.port);
        assert_int_equal(pthread_create(&thread, NULL, run_loop, loop), 0);
        const struct cr_lease_place place = {client, "ns", "lease"};
        struct cr_election election = {.times = cr_election_default_times,
                                       .identity = "me",
                                       .seen = {.holder = cr_strdup(""), .resource_version = cr_strdup("6")}};
        struct cr_error err = {0};
        enum cr_election_step next = cr_election_request(&election, cases[i].step, &place, &err);
        if (next != cases[i].next || err.kind != cases[i].err)
            fail_msg("%s: step %d, %s", cases[i].rule, (int)next, err.text);
        cr_election_dispose(&election);
        cr_loop_stop(loop);
        pthread_join(thread, NULL);
        cr_client_free(client);
        fake_api_stop(&api);
        if (api.problem[0])
            fail_msg("%s: %s", cases[i].rule, api.problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_outcome_is_given_to_the_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
