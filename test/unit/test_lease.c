#include "kube/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/fakeapi.h"

static bool read_text(const char *text, struct cr_lease *lease, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_parse(text, strlen(text), err);
    return object && cr_lease_read(object, lease, err);
}

#define LEASE(spec) "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":" spec "}"

static void a_lease_is_read_with_what_it_does_not_say(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *holder;
        int64_t duration_ms;
        int64_t transitions;
        const char *acquired;
    } cases[] = {
        {LEASE(
             "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3,\"acquireTime\":\"then\"}"),
         "me", 15000, 3, "then"},
        {LEASE("{}"), "", 0, 0, NULL},
        {"{\"metadata\":{\"resourceVersion\":\"7\"}}", "", 0, 0, NULL},
        {LEASE("{\"holderIdentity\":null,\"leaseDurationSeconds\":0}"), "", 0, 0, NULL},
        {LEASE("{\"leaseDurationSeconds\":-5}"), "", 0, 0, NULL},
        {LEASE("{\"leaseDurationSeconds\":1e12}"), "", 0, 0, NULL},
        {LEASE("{\"leaseDurationSeconds\":\"15\"}"), "", 0, 0, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
        struct cr_error err = {0};
        if (!read_text(cases[i].text, &lease, &err))
            fail_msg("%s: %s", cases[i].text, err.text);
        if (strcmp(lease.holder, cases[i].holder) != 0 || lease.duration_ms != cases[i].duration_ms ||
            lease.transitions != cases[i].transitions || !cr_streq(lease.acquired, cases[i].acquired))
            fail_msg("%s: %s, %lld", cases[i].text, lease.holder, (long long)lease.duration_ms);
    }
}

static void what_has_no_resource_version_is_no_lease(void **state)
{
    (void)state;
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    struct cr_error err = {0};
    assert_false(read_text("{\"metadata\":{},\"spec\":{\"holderIdentity\":\"me\"}}", &lease, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_null(lease.holder);
}

static void a_renewal_is_another_record_and_a_label_is_not(void **state)
{
    (void)state;
    CR_CLEANUP(cr_lease) struct cr_lease before = {0};
    CR_CLEANUP(cr_lease) struct cr_lease renewed = {0};
    CR_CLEANUP(cr_lease) struct cr_lease labelled = {0};
    assert_true(read_text(LEASE("{\"holderIdentity\":\"a\",\"renewTime\":\"1\"}"), &before, NULL));
    assert_true(read_text(LEASE("{\"holderIdentity\":\"a\",\"renewTime\":\"2\"}"), &renewed, NULL));
    assert_true(read_text("{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"8\",\"labels\":{\"a\":\"b\"}},"
                          "\"spec\":{\"holderIdentity\":\"a\",\"renewTime\":\"1\"}}",
                          &labelled, NULL));
    assert_string_not_equal(before.record, renewed.record);
    assert_string_equal(before.record, labelled.record);
}

/* --- requests --- */

struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    struct cr_client *client;
    pthread_t thread;
    struct cr_lease_place place;
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void open_fixture(struct fixture *f, const struct fake_answer *script, size_t len)
{
    assert_true(fake_api_start(&f->api, script, len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->place = (struct cr_lease_place){f->client, "ns", "name"};
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void close_fixture(struct fixture *f)
{
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

static const struct cr_json *sent(struct fixture *f, size_t i, struct cr_json **body)
{
    const char *text = fake_api_body(&f->api, i);
    *body = cr_json_parse(text, strlen(text), NULL);
    return cr_json_get(*body, "spec");
}

static void an_update_carries_its_precondition(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH /apis/coordination.k8s.io/v1/namespaces/ns/leases/name?",
         .body = LEASE("{\"holderIdentity\":\"me\"}")},
        {.expect = "PATCH ", .status = 409, .body = "{\"kind\":\"Status\",\"reason\":\"Conflict\"}"},
    };
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    open_fixture(&f, script, cr_array_len(script));
    const struct cr_lease_claim claim = {.holder = "me", .duration_ms = 15000, .transitions = 2, .acquired = "then"};
    assert_true(cr_lease_update(&f.place, "41", &claim, &lease, &err));
    assert_string_equal(lease.resource_version, "7");
    CR_CLEANUP(cr_json) struct cr_json *body = NULL;
    const struct cr_json *spec = sent(&f, 0, &body);
    assert_string_equal(cr_json_string_at(body, "metadata", "resourceVersion"), "41");
    assert_string_equal(cr_json_string_at(spec, "holderIdentity"), "me");
    assert_string_equal(cr_json_string_at(spec, "acquireTime"), "then");
    assert_int_equal(cr_json_int_at(spec, 0, "leaseDurationSeconds"), 15);
    assert_int_equal(cr_json_int_at(spec, 0, "leaseTransitions"), 2);
    assert_false(cr_lease_update(&f.place, "41", &claim, &lease, &err));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_string_equal(lease.holder, "me"); /* as it was */
    close_fixture(&f);
}

static void a_lease_that_is_made_is_whole(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases?", .status = 201, .body = LEASE("{}")}};
    struct fixture f;
    struct cr_error err = {0};
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    open_fixture(&f, script, cr_array_len(script));
    const struct cr_lease_claim claim = {.holder = "me", .duration_ms = 1000};
    assert_true(cr_lease_create(&f.place, &claim, &lease, &err));
    CR_CLEANUP(cr_json) struct cr_json *body = NULL;
    const struct cr_json *spec = sent(&f, 0, &body);
    assert_string_equal(cr_json_string_at(body, "apiVersion"), "coordination.k8s.io/v1");
    assert_string_equal(cr_json_string_at(body, "kind"), "Lease");
    assert_string_equal(cr_json_string_at(body, "metadata", "name"), "name");
    assert_null(cr_json_string_at(body, "metadata", "resourceVersion"));
    /* MicroTime, and both of now. */
    assert_int_equal(strlen(cr_json_string_at(spec, "renewTime")), strlen("2026-11-21T09:00:00.123456Z"));
    assert_string_equal(cr_json_string_at(spec, "renewTime"), cr_json_string_at(spec, "acquireTime"));
    close_fixture(&f);
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "GET ", .status = 404, .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"}};
    struct fixture f;
    struct cr_error err = {0};
    struct cr_lease lease = {0};
    open_fixture(&f, script, cr_array_len(script));
    assert_false(cr_lease_get(&f.place, &lease, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_read_with_what_it_does_not_say),
        cmocka_unit_test(what_has_no_resource_version_is_no_lease),
        cmocka_unit_test(a_renewal_is_another_record_and_a_label_is_not),
        cmocka_unit_test(an_update_carries_its_precondition),
        cmocka_unit_test(a_lease_that_is_made_is_whole),
        cmocka_unit_test(what_is_not_there_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
