#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/domain.h"
#include "api/domain_status.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "support/jsontext.h"

#define NOW INT64_C(1795241421000) /* 2026-11-21T06:10:21Z, a whole second */

static void digest(char out[CR_SHA256_HEX], unsigned n)
{
    snprintf(out, CR_SHA256_HEX, "%064x", n);
}

static void add_ca(struct cr_domain_status *status, enum cr_ca_part part, const char *subject)
{
    struct cr_domain_ca_status *ca = &status->cas[status->cas_len++];
    *ca = (struct cr_domain_ca_status){.part = part, .subject = cr_strdup(subject)};
    digest(ca->fingerprint, 0x10 + (unsigned)part);
    ca->not_after_ms = NOW + 9000 - 1000 * (int64_t)part;
}

static struct cr_domain_object_status *add_leaf(struct cr_domain_status *status, const char *name)
{
    struct cr_domain_object_status *object = cr_domain_status_object_add(status, "Secret", "shop", name);
    cr_strset(&object->written_version, "90071992547409931234");
    object->written_ms = NOW + 123;
    digest(object->leaf, 0x100);
    digest(object->trust, 0x200);
    object->leaf_not_after_ms = NOW + 5000;
    return object;
}

static void add_record(struct cr_domain_status *status, unsigned id)
{
    cr_autofree char *what = cr_strdup("CA");
    cr_autofree char *outcome = cr_strdup("Converged");
    struct cr_domain_rotation record = {.what = what,
                                        .outcome = outcome,
                                        .started_ms = NOW + 1,
                                        .finished_ms = NOW + 9002,
                                        .trusting_ms = 2500,
                                        .switching_ms = 4001,
                                        .retiring_ms = 65000,
                                        .restarted = true};
    snprintf(record.id, sizeof record.id, "%04x", id);
    cr_domain_status_history_add(status, &record);
}

/* Something in every field. */
static void fill(struct cr_domain_status *status)
{
    status->observed_generation = 4;
    status->stage = CR_STAGE_HELD;
    status->held_stage = CR_STAGE_TRUSTING;
    status->stage_since_ms = NOW + 42;
    snprintf(status->rotation, sizeof status->rotation, "00c0ffee");
    status->rotation_since_ms = NOW - 58;
    status->trusting_ms = 1500;
    status->switching_ms = 61000;
    status->restarted = true;
    cr_strset(&status->what, "CA");
    cr_strset(&status->last_handled_token, "2026-11-21");
    add_ca(status, CR_CA_NEXT, "CN=mesh, serialNumber=2");
    add_ca(status, CR_CA_CURRENT, "CN=mesh, serialNumber=1");
    add_ca(status, CR_CA_PREVIOUS, "CN=mesh, serialNumber=0");
    struct cr_domain_ca_status *held = &status->cas[status->cas_len - 1];
    cr_strset(&held->needed_by, "Secret shop/server-tls");
    held->needed_at = CR_LEAF_PREVIOUS;
    held->needed_by_leaves = 2;
    struct cr_domain_object_status *arrived = add_leaf(status, "server-tls");
    arrived->trust_evidence = CR_ARRIVAL_VERIFIED;
    arrived->leaf_evidence = CR_ARRIVAL_INFERRED;
    struct cr_domain_object_status *client = add_leaf(status, "client-tls");
    cr_strset(&client->waits_for, "policy front: Deployment client has 1 pod with the old CAs");
    client->overwritten = 2;
    client->overwritten_ms = NOW;
    cr_strset(&client->overwritten_by, "gitops");
    struct cr_domain_object_status *refused = cr_domain_status_object_add(status, "APIService", NULL, "v1.metrics");
    refused->problem = CR_TRUST_NOT_OURS;
    cr_strset(&refused->problem_message, "annotate it certroll.dev/trust-domain: mesh to let this domain write it");
    status->rejected = cr_calloc(1, sizeof *status->rejected);
    status->rejected_len = 1;
    status->rejected[0].leaf = cr_strdup("client-tls");
    digest(status->rejected[0].fingerprint, 0x300);
    status->distrusted_len = 2;
    digest(status->distrusted[0].fingerprint, 0x12);
    status->distrusted[0].subject = cr_strdup("CN=mesh, serialNumber=0");
    status->distrusted[0].since_ms = NOW - 60000;
    digest(status->distrusted[1].fingerprint, 0x400);
    status->distrusted[1].since_ms = NOW - 90000;
    status->distrusted[1].stray_ms = NOW - 40001;
    status->distrusted[1].gone_ms = NOW - 30001;
    status->forecast = (struct cr_domain_forecast){2, 6, 11500, 1 * 65 * 60 * 1000};
    cr_domain_status_condition(status, "Ready", true, "Watching", "all is watched", 4, NOW);
    cr_domain_status_condition(status, "Held", true, "Deadline", "trust has not arrived", 4, NOW);
    add_record(status, 0xabc);
}

static char *encode_text(const struct cr_domain_status *status)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(status);
    return cr_json_print(json);
}

/* The same file is written to a real API server: test/integration/test_crd_domains.py. */
static void test_every_field_is_written_as_the_file_says(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&full);
    test_json_is_as_in_file(json, "domain-status-full.json");
}

static void test_encode_of_decode_is_the_same_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status full = {0};
    CR_CLEANUP(cr_domain_status) struct cr_domain_status again = {0};
    CR_CLEANUP(cr_domain_status) struct cr_domain_status copy = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&full);
    cr_domain_status_decode(json, &again);
    cr_domain_status_copy(&copy, &again);
    cr_autofree char *first = cr_json_print(json);
    cr_autofree char *second = encode_text(&again);
    cr_autofree char *third = encode_text(&copy);
    assert_string_equal(first, second);
    assert_string_equal(first, third);
    assert_int_equal(again.held_stage, CR_STAGE_TRUSTING);
    assert_int_equal(again.stage_since_ms, NOW + 42);
    assert_int_equal(again.switching_ms, 61000);
    assert_int_equal(again.objects[0].written_ms, NOW + 123);
    assert_null(again.objects[2].ns);
}

/* A merge patch that leaves a member out would leave the old value standing, in an object, too. */
static void test_an_empty_status_has_every_member(void **state)
{
    (void)state;
    struct cr_domain_status empty = {0};
    cr_autofree char *text = encode_text(&empty);
    assert_string_equal(
        text, "{\"heldStage\":null,\"stageSince\":null,\"lastHandledToken\":null,\"expires\":null,\"problem\":null,"
              "\"observedGeneration\":0,\"stage\":\"Idle\",\"rotation\":null,\"converged\":\"0/0\","
              "\"cas\":[],\"objects\":[],\"rejected\":[],\"distrusted\":[],"
              "\"forecast\":{\"workloads\":0,\"restarts\":0,\"expected\":null,\"atMost\":null},"
              "\"conditions\":[],\"history\":[]}");
    struct cr_domain_status begun = {.rotation = "aa"};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&begun);
    cr_autofree char *rotation = cr_json_print(cr_json_get(json, "rotation"));
    assert_string_equal(rotation, "{\"id\":\"aa\",\"what\":null,\"since\":null,\"trusting\":null,\"switching\":null,"
                                  "\"restarted\":false}");
}

#define HEX64 "00000000000000000000000000000000000000000000000000000000000000aa"

static void test_what_is_broken_reads_as_absent(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "{\"stage\":7,\"rotation\":{\"id\":\"not hex\",\"what\":\"CA\"},\"stageSince\":\"noon\"}",
        "{\"rotation\":[],\"cas\":{},\"objects\":7,\"rejected\":\"a\",\"history\":{},\"conditions\":{}}",
        "{\"cas\":[7,{\"fingerprint\":\"ab\",\"part\":\"Next\"},{\"fingerprint\":\"" HEX64 "\",\"part\":\"Old\"}]}",
        "{\"objects\":[{\"kind\":\"Secret\"},{\"name\":\"a\"},{\"kind\":\"\",\"name\":\"a\"},7]}",
        "{\"rejected\":[{\"leaf\":\"a\"},{\"fingerprint\":\"" HEX64 "\"},{\"leaf\":\"a\",\"fingerprint\":7}]}",
        "{\"history\":[{\"what\":\"CA\"},{\"id\":\"xyz\"}],\"conditions\":[{\"type\":\"Ready\"}]}",
        "{\"heldStage\":\"Trusting\"}", /* of what is not held */
    };
    struct cr_domain_status empty = {0};
    cr_autofree char *nothing = encode_text(&empty);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(cases[i], strlen(cases[i]), &err);
        CR_CLEANUP(cr_domain_status) struct cr_domain_status decoded = {0};
        assert_non_null(json);
        cr_domain_status_decode(json, &decoded);
        cr_autofree char *text = encode_text(&decoded);
        assert_string_equal(text, nothing);
    }
    CR_CLEANUP(cr_domain_status) struct cr_domain_status none = {0};
    cr_domain_status_decode(NULL, &none);
    assert_int_equal(none.stage, CR_STAGE_IDLE);
}

static void test_an_object_has_converged_when_all_that_it_has_has_arrived(void **state)
{
    (void)state;
    static const struct {
        bool leaf, trust;
        enum cr_arrival leaf_evidence, trust_evidence;
        enum cr_trust_reason problem;
        const char *converged;
    } cases[] = {
        {true, true, CR_ARRIVAL_VERIFIED, CR_ARRIVAL_INFERRED, CR_TRUST_FINE, "1/1"},
        {false, true, CR_ARRIVAL_NOT_YET, CR_ARRIVAL_INFERRED, CR_TRUST_FINE, "1/1"},
        {true, true, CR_ARRIVAL_NOT_YET, CR_ARRIVAL_VERIFIED, CR_TRUST_FINE, "0/1"},
        {true, true, CR_ARRIVAL_VERIFIED, CR_ARRIVAL_NOT_YET, CR_TRUST_FINE, "0/1"},
        {false, false, CR_ARRIVAL_NOT_YET, CR_ARRIVAL_NOT_YET, CR_TRUST_FINE, "0/1"}, /* nothing is published */
        {false, true, CR_ARRIVAL_NOT_YET, CR_ARRIVAL_VERIFIED, CR_TRUST_NOT_OURS, "0/1"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
        struct cr_domain_object_status *object = cr_domain_status_object_add(&status, "Secret", "n", "s");
        if (cases[i].leaf)
            digest(object->leaf, 1);
        if (cases[i].trust)
            digest(object->trust, 2);
        object->leaf_evidence = cases[i].leaf_evidence;
        object->trust_evidence = cases[i].trust_evidence;
        object->problem = cases[i].problem;
        CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&status);
        assert_string_equal(cr_json_string(cr_json_get(json, "converged")), cases[i].converged);
    }
}

/* Who looks at a domain sees what needs a person, and nothing that is remembered is lost. */
/* Only the version that the domain itself has written is a step of its rotation. */
static void test_a_step_is_what_the_domain_has_written(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *name, *version, *rotation;
        enum cr_stage stage, held;
        const char *step;
        bool awaits;
    } cases[] = {
        {"in a stage", "a", "7", "0a1b", CR_STAGE_SWITCHING, CR_STAGE_IDLE, "0a1b", false},
        {"held in it", "a", "7", "0a1b", CR_STAGE_HELD, CR_STAGE_TRUSTING, "0a1b", false},
        {"another version is another's, or is written down soon", "a", "8", "0a1b", CR_STAGE_SWITCHING, CR_STAGE_IDLE,
         "", true},
        {"no rotation", "a", "7", "", CR_STAGE_IDLE, CR_STAGE_IDLE, "", false},
        {"another object", "b", "7", "0a1b", CR_STAGE_SWITCHING, CR_STAGE_IDLE, "", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
        cr_strset(&cr_domain_status_object_add(&status, "Secret", "shop", "a")->written_version, "7");
        snprintf(status.rotation, sizeof status.rotation, "%s", cases[i].rotation);
        status.stage = cases[i].stage;
        status.held_stage = cases[i].held;
        status.distrusted_len = 1;
        status.distrusted[0].since_ms = NOW;
        status.distrusted[0].gone_ms = i % 2 ? NOW : 0;
        struct cr_domain_step step = cr_domain_status_step(&status, "Secret", "shop", cases[i].name, cases[i].version);
        if (!cr_streq(step.restart.rotation, cases[i].step) || step.restart.restarts != (*cases[i].step != '\0') ||
            step.awaits_record != cases[i].awaits || step.distrusts != (*step.restart.rotation && i % 2 == 0))
            fail_msg("%s", cases[i].rule);
    }
}

static void test_of_many_objects_the_urgent_ones_are_whole(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
    for (int i = 0; i < 150; i++) {
        cr_autofree char *name = cr_asprintf("s%d", i);
        struct cr_domain_object_status *object = add_leaf(&status, name);
        object->trust_evidence = i == 120 ? CR_ARRIVAL_NOT_YET : CR_ARRIVAL_VERIFIED;
        object->leaf_evidence = CR_ARRIVAL_VERIFIED;
        object->problem = i == 149 ? CR_TRUST_NOT_OURS : CR_TRUST_FINE;
    }
    CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&status);
    const struct cr_json *objects = cr_json_get(json, "objects");
    assert_int_equal(cr_json_len(objects), 150);
    const struct cr_json *each = cr_json_first(objects);
    assert_string_equal(cr_json_string_at(each, "name"), "s149");
    each = cr_json_next(each);
    assert_string_equal(cr_json_string_at(each, "name"), "s120");
    size_t whole = 0;
    for (each = cr_json_first(objects); each; each = cr_json_next(each)) {
        whole += cr_json_get(each, "leafNotAfter") != NULL;
        assert_non_null(cr_json_get(each, "writtenVersion"));
    }
    assert_int_equal(whole, CR_DOMAIN_STATUS_OBJECTS_MAX);
    /* Written and read again it is the same: no other objects take the places. */
    CR_CLEANUP(cr_domain_status) struct cr_domain_status again = {0};
    cr_domain_status_decode(json, &again);
    CR_CLEANUP(cr_json) struct cr_json *second = cr_domain_status_encode(&again);
    assert_true(cr_json_equal(objects, cr_json_get(second, "objects")));
}

static void test_it_expires_with_the_first_leaf_or_the_current_ca(void **state)
{
    (void)state;
    static const struct {
        int64_t leaf, current, previous;
        const char *expires;
    } cases[] = {
        {NOW + 5000, NOW + 9000, NOW, "2026-11-21T06:10:26Z"},
        {NOW + 9000, NOW + 5000, NOW, "2026-11-21T06:10:26Z"},
        {0, NOW + 1000, NOW, "2026-11-21T06:10:22Z"},
        {0, 0, NOW, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
        cr_domain_status_object_add(&status, "Secret", "n", "s")->leaf_not_after_ms = cases[i].leaf;
        add_ca(&status, CR_CA_CURRENT, "CN=a");
        add_ca(&status, CR_CA_PREVIOUS, "CN=b");
        status.cas[0].not_after_ms = cases[i].current;
        status.cas[1].not_after_ms = cases[i].previous;
        CR_CLEANUP(cr_json) struct cr_json *json = cr_domain_status_encode(&status);
        assert_true(cr_streq(cr_json_string(cr_json_get(json, "expires")), cases[i].expires));
    }
}

static void test_a_condition_keeps_its_time_until_it_flips(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
    cr_domain_status_condition(&status, "Held", false, "Moving", NULL, 1, NOW);
    cr_domain_status_condition(&status, "Held", false, "Idle", "", 2, NOW + 1000);
    assert_int_equal(status.conditions[3].transition_ms, NOW);
    assert_int_equal(status.conditions[3].observed_generation, 2);
    assert_string_equal(status.conditions[3].type, "Held");
    cr_domain_status_condition(&status, "Held", true, "Deadline", "", 2, NOW + 2000);
    assert_int_equal(status.conditions[3].transition_ms, NOW + 2000);
    cr_domain_status_condition(&status, "Blocked", true, "NoSuchType", "", 2, NOW);
}

static void test_the_history_keeps_the_newest(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status status = {0};
    for (unsigned i = 0; i < CR_HISTORY_MAX + 2; i++)
        add_record(&status, i);
    assert_int_equal(status.history_len, CR_HISTORY_MAX);
    assert_string_equal(status.history[0].id, "000b");
    assert_string_equal(status.history[CR_HISTORY_MAX - 1].id, "0002");
    cr_domain_status_dispose(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_is_written_as_the_file_says),
        cmocka_unit_test(test_encode_of_decode_is_the_same_text),
        cmocka_unit_test(test_an_empty_status_has_every_member),
        cmocka_unit_test(test_what_is_broken_reads_as_absent),
        cmocka_unit_test(test_an_object_has_converged_when_all_that_it_has_has_arrived),
        cmocka_unit_test(test_a_step_is_what_the_domain_has_written),
        cmocka_unit_test(test_of_many_objects_the_urgent_ones_are_whole),
        cmocka_unit_test(test_it_expires_with_the_first_leaf_or_the_current_ca),
        cmocka_unit_test(test_a_condition_keeps_its_time_until_it_flips),
        cmocka_unit_test(test_the_history_keeps_the_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
