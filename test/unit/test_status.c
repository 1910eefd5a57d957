#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/control_plane.h"
#include "api/domain_status.h"
#include "api/status.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/leaf_names.h"
#include "support/jsontext.h"

#define NOW INT64_C(1795241421000) /* 2026-11-21T06:10:21Z, a whole second: most times lose their milliseconds */

/* 64 hex digits that end in n. */
static void digest(char out[CR_SHA256_HEX], unsigned n)
{
    snprintf(out, CR_SHA256_HEX, "%064x", n);
}

static struct cr_material material(unsigned leaf, unsigned ca)
{
    struct cr_material m = {.has_leaf = leaf != 0, .trust_len = ca ? 1 : 0};
    if (leaf) {
        char anchor[CR_SHA256_HEX];
        digest(m.leaf, leaf);
        digest(m.chain, leaf + 1);
        digest(m.key, leaf + 2);
        digest(m.issuer, leaf + 3);
        digest(anchor, leaf + 3);
        cr_strvec_add(&m.anchors, anchor);
        snprintf(m.key_type, sizeof m.key_type, "ECDSA-P256");
        snprintf(m.serial, sizeof m.serial, "a%031x", leaf);
        m.not_after_ms = NOW + leaf * 1000;
    }
    if (ca) {
        m.trust = cr_calloc(1, sizeof *m.trust);
        digest(m.trust[0].fingerprint, ca);
        digest(m.trust[0].identity, ca + 1);
        snprintf(m.trust[0].subject, CR_SHA256_HEX, "%016x%048x", ca + 2, 0);
        snprintf(m.trust[0].serial, sizeof m.trust[0].serial, "b%031x", ca);
        m.trust[0].not_after_ms = NOW + ca * 1000;
    }
    return m;
}

static void add_secret(struct cr_policy_status *status, const char *name, unsigned leaf, unsigned ca)
{
    struct cr_secret_status *secret = cr_status_secret_add(status, name);
    cr_strset(&secret->observed_resource_version, "90071992547409931234");
    secret->has_settled = true;
    secret->settled = material(leaf, ca);
}

static void add_pending(struct cr_secret_status *secret, unsigned leaf)
{
    char old[CR_SHA256_HEX];
    digest(old, 0x111);
    snprintf(secret->pending.id, sizeof secret->pending.id, "00c0ffee");
    secret->pending.set = true;
    secret->pending.since_ms = NOW + 123;
    secret->pending.first_ms = NOW + 23;
    secret->pending.changes = CR_CHANGE_LEAF_RENEWED | CR_CHANGE_TRUST_REPLACED;
    secret->pending.target = material(leaf, 0x900);
    cr_strvec_add(&secret->pending.old_leaves, old);
}

static struct cr_consumer_status *add_consumer(struct cr_policy_status *status, const char *name,
                                               enum cr_consumer_state state)
{
    struct cr_consumer_status *consumer = cr_status_consumer_add(status, name);
    cr_strset(&consumer->kind, "Deployment");
    cr_strset(&consumer->target, name);
    consumer->state = state;
    return consumer;
}

static void add_record(struct cr_policy_status *status, unsigned id, const char *secret)
{
    cr_autofree char *name = cr_strdup(secret);
    cr_autofree char *outcome = cr_strdup("Converged");
    struct cr_rotation_record record = {.secret = name,
                                        .changes = CR_CHANGE_KEY_CHANGED,
                                        .started_ms = NOW,
                                        .finished_ms = NOW + 9000,
                                        .outcome = outcome};
    snprintf(record.id, sizeof record.id, "%04x", id);
    cr_status_history_add(status, &record);
}

/* Something in every field. */
static void fill(struct cr_policy_status *status)
{
    status->observed_generation = 4;
    status->stage = CR_STAGE_SWITCHING;
    add_secret(status, "envoy-rate-limit", 0x100, 0x200);
    add_pending(cr_status_secret(status, "envoy-rate-limit"), 0x300);
    add_secret(status, "trust-only", 0, 0x400);
    cr_status_secret(status, "trust-only")->selected = true;
    cr_status_secret(status, "trust-only")->trust_by = CR_SETTLED_INFERRED;
    cr_status_secret(status, "trust-only")->unknown_readers = CR_READERS_TOO_MANY;
    struct cr_secret_status *keys = cr_status_secret(status, "envoy-rate-limit");
    keys->trust_by = CR_SETTLED_FIRST_SIGHT;
    keys->leaf_by = CR_SETTLED_VERIFIED;
    keys->settled_ms = NOW - 60 * 1000;
    keys->changed_ms = NOW - 70 * 1000;
    keys->immutable = keys->pending.was_immutable = true;
    keys->pending.changes |= CR_CHANGE_OPAQUE;
    snprintf(keys->settled.opaque, sizeof keys->settled.opaque, "01234567:%064x", 0xaau);
    snprintf(keys->pending.target.opaque, sizeof keys->pending.target.opaque, "01234567:%064x", 0xbbu);
    cr_strvec_add(&keys->settled.names, "web.example.org");
    cr_strvec_add(&keys->settled.names, "10.0.0.1");
    cr_strvec_add(&keys->pending.target.names, "*.example.org");
    cr_strvec_add(&keys->settled.opaque_keys, "hmac-secret=00000000000000aa");
    cr_strvec_add(&keys->pending.target.opaque_keys, "hmac-secret=00000000000000bb");
    cr_strvec_add(&keys->pending.opaque_keys, "hmac-secret");
    struct cr_secret_status *many = cr_status_secret_add(status, "many-cas");
    many->has_settled = true;
    many->settled.trust_summary = (struct cr_trust_summary){.count = 900, .not_after_ms = NOW};
    snprintf(many->settled.trust_summary.digest, CR_SHA256_HEX, "%064x", 0xccu);
    struct cr_secret_status *broken = cr_status_secret_add(status, "broken");
    cr_strset(&broken->problem_reason, "KeyMismatch");
    cr_strset(&broken->problem_message, "tls.key does not belong to the certificate in tls.crt");
    broken->problem_not_after_ms = NOW + 3600 * 1000;
    struct cr_consumer_status *consumer = add_consumer(status, "rate-limit", CR_CONSUMER_RESTARTING);
    consumer->found = true;
    cr_strset(&consumer->component, "envoyproxy/ratelimit");
    cr_strset(&consumer->reason, "its CA is read once at start");
    cr_gate_set(&consumer->gate, cr_gate_make(CR_HOLD_MAX_CONCURRENT, "maxConcurrent: 1 consumer is being restarted"));
    consumer->warnings = CR_WARNING_SHUTDOWN_MISFIT | CR_WARNING_NAME_MISSING;
    consumer->decision = CR_DECISION_RESTART;
    consumer->pods = (struct cr_pod_counts){.total = 7, .verified = 1, .inferred = 2, .stale = 3, .unknown = 1};
    consumer->last_restart_ms = NOW;
    consumer->since_ms = NOW + 456;
    cr_strset(&consumer->restarted_for, "00c0ffee");
    consumer->restarted_generation = 7;
    consumer->evicted_until_ms = NOW - 1000;
    cr_strset(&consumer->evicting, "uid-of-a-pod");
    consumer->restarts =
        (struct cr_restart_times){.at_ms = {NOW + 789, NOW}, .steps = {[1] = {"0a1b2c3d4e5f", 2}}, .len = 2};
    cr_strvec_add(&consumer->examples, "rate-limit-1: serves the old leaf");
    consumer->verification = (struct cr_verification){.of = "00c0ffee00c0ffee", .at_ms = NOW, .until_ms = NOW - 1000};
    cr_status_condition(status, "Ready", true, "Watching", "all is watched", 4, NOW);
    cr_status_condition_unknown(status, "Converged", "NotVerified", "who knows", 4, NOW);
    cr_status_condition(status, "Rotating", false, "Idle", "", 3, NOW);
    cr_status_condition(status, "Degraded", true, "KeyMismatch", "Secret broken: see there", 4, NOW);
    add_record(status, 0xabc, "envoy");
}

static char *encode_text(const struct cr_policy_status *status)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(status);
    return cr_json_print(json);
}

static void test_encode_of_decode_is_the_same_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *first = cr_policy_status_encode(&full);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
    cr_policy_status_decode(first, &again);
    cr_autofree char *a = cr_json_print(first);
    cr_autofree char *b = encode_text(&again);
    assert_string_equal(a, b);
}

static void test_remembered_material_survives(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&full);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
    cr_policy_status_decode(json, &again);
    const struct cr_secret_status *was = cr_status_secret(&full, "envoy-rate-limit");
    const struct cr_secret_status *is = cr_status_secret(&again, "envoy-rate-limit");
    assert_string_equal(is->observed_resource_version, "90071992547409931234"); /* no number: beyond 2^53 */
    assert_true(is->has_settled);
    assert_true(is->settled.has_leaf);
    assert_string_equal(is->settled.leaf, was->settled.leaf);
    assert_string_equal(is->settled.chain, was->settled.chain);
    assert_string_equal(is->settled.key, was->settled.key);
    assert_string_equal(is->settled.key_type, was->settled.key_type);
    assert_string_equal(is->settled.issuer, was->settled.issuer);
    assert_int_equal(is->settled.not_after_ms, was->settled.not_after_ms);
    assert_true(cr_strvec_equal(&is->settled.anchors, &was->settled.anchors));
    assert_int_equal(is->settled.trust_len, 1);
    assert_string_equal(is->settled.trust[0].fingerprint, was->settled.trust[0].fingerprint);
    assert_string_equal(is->settled.trust[0].identity, was->settled.trust[0].identity);
    assert_int_equal(is->settled.trust[0].not_after_ms, was->settled.trust[0].not_after_ms);
    assert_string_equal(is->settled.serial, was->settled.serial);
    assert_int_equal(strlen(is->settled.trust[0].subject), CR_SUBJECT_REMEMBERED);
    assert_true(cr_starts_with(was->settled.trust[0].subject, is->settled.trust[0].subject));
    assert_string_equal(is->settled.trust[0].serial, "");
    assert_true(cr_strvec_equal(&is->settled.names, &was->settled.names));
    assert_true(cr_strvec_equal(&is->pending.target.names, &was->pending.target.names));
    assert_int_equal(is->trust_by, CR_SETTLED_FIRST_SIGHT);
    assert_int_equal(is->leaf_by, CR_SETTLED_VERIFIED);
    assert_int_equal(is->settled_ms, NOW - 60 * 1000);
    assert_int_equal(is->changed_ms, NOW - 70 * 1000);
    assert_int_equal(cr_status_secret(&again, "trust-only")->trust_by, CR_SETTLED_INFERRED);
    assert_int_equal(cr_status_secret(&again, "trust-only")->unknown_readers, CR_READERS_TOO_MANY);
    assert_true(is->pending.set);
    assert_string_equal(is->pending.id, "00c0ffee");
    assert_int_equal(is->pending.first_ms, NOW + 23);
    assert_int_equal(is->pending.since_ms, NOW + 123); /* compared with pod start times: keeps its milliseconds */
    assert_int_equal(is->pending.changes, CR_CHANGE_LEAF_RENEWED | CR_CHANGE_TRUST_REPLACED | CR_CHANGE_OPAQUE);
    assert_string_equal(is->pending.target.leaf, was->pending.target.leaf);
    assert_true(cr_strvec_equal(&is->pending.old_leaves, &was->pending.old_leaves));
    assert_string_equal(cr_status_secret(&again, "broken")->problem_reason, "KeyMismatch");
    assert_int_equal(cr_status_secret(&again, "broken")->problem_not_after_ms, NOW + 3600 * 1000);
    assert_false(cr_status_secret(&again, "broken")->has_settled);
    assert_int_equal(cr_status_consumer(&again, "rate-limit")->since_ms, NOW + 456);
    assert_int_equal(cr_status_consumer(&again, "rate-limit")->last_restart_ms, NOW);
    assert_int_equal(cr_status_consumer(&again, "rate-limit")->evicted_until_ms, NOW - 1000);
    assert_string_equal(cr_status_consumer(&again, "rate-limit")->evicting, "uid-of-a-pod");
    const struct cr_verification *verification = &cr_status_consumer(&again, "rate-limit")->verification;
    assert_string_equal(verification->of, "00c0ffee00c0ffee");
    assert_int_equal(verification->at_ms, NOW);
    assert_int_equal(verification->until_ms, NOW - 1000);
    const struct cr_condition *converged = cr_status_condition_get(&again, "Converged");
    assert_true(converged->unknown && !converged->status && cr_condition_is_trouble(converged));
    assert_int_equal(again.history[0].changes, CR_CHANGE_KEY_CHANGED);
}

/* A type that has no row in the table of status_fields.c would never be trouble. */
static void require_meanings(const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cr_condition condition = {.type = types[i], .reason = (char[]){"Why"}};
        bool when_false = cr_condition_is_trouble(&condition);
        condition.status = true;
        bool never = cr_streq(types[i], "Rotating") || cr_streq(types[i], "RetirementPending") ||
                     cr_streq(types[i], "Reconciling") || cr_streq(types[i], "Stalled");
        if ((when_false != cr_condition_is_trouble(&condition)) == never)
            fail_msg("it is not known when %s is trouble", types[i]);
        condition.reason = NULL;
        assert_false(cr_condition_is_trouble(&condition));
    }
}

static void test_of_each_type_it_is_known_when_it_is_trouble(void **state)
{
    (void)state;
    require_meanings(cr_condition_types, CR_CONDITIONS);
    require_meanings(cr_domain_condition_types, CR_DOMAIN_CONDITIONS);
    require_meanings(cr_control_plane_condition_types, CR_CONTROL_PLANE_CONDITIONS);
}

/* What the demo, the end-to-end test and people's scripts read. test/integration/test_crd.py puts the same file through
 * the CRD's schema. */
static void test_the_json_contract(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status full = {0};
    fill(&full);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&full);
    test_json_is_as_in_file(json, "status-full.json");
}

/* A merge patch that leaves a member out would leave the old value standing. */
static void test_an_empty_status_has_every_member(void **state)
{
    (void)state;
    struct cr_policy_status empty = {0};
    cr_autofree char *text = encode_text(&empty);
    assert_string_equal(
        text, "{\"observedGeneration\":0,\"stage\":\"Idle\",\"secrets\":[],\"consumers\":[],\"totals\":{"
              "\"secrets\":0,\"consumers\":0,\"converged\":0,\"pods\":0,\"verified\":0,\"inferred\":0,"
              "\"stale\":0,\"unknown\":0},\"converged\":\"0/0\",\"expires\":null,\"problem\":null,\"conditions\":[],"
              "\"history\":[]}");
}

#define HEX64   "00000000000000000000000000000000000000000000000000000000000000aa"
#define SETTLED "\"settled\":{\"leaf\":\"" HEX64 "\"}"

static void test_broken_settled_material_reads_as_first_sight(void **state)
{
    (void)state;
    static const struct {
        const char *settled;
        bool has;
    } cases[] = {
        {"{\"leaf\":\"" HEX64 "\"}", true},
        {"{}", true}, /* a Secret that is empty of what we know */
        {"null", false},
        {"[]", false},
        {"\"x\"", false},
        {"{\"leaf\":\"abc\"}", false},
        {"{\"leaf\":7}", false},
        {"{\"leaf\":\"" HEX64 "00\"}", false},
        {"{\"leaf\":\"" HEX64 "\",\"key\":\"g\"}", false},
        {"{\"leaf\":\"" HEX64 "\",\"keyType\":\"a key type that is far too long\"}", false},
        {"{\"leaf\":\"" HEX64 "\",\"notAfter\":\"tomorrow\"}", false},
        {"{\"leaf\":\"" HEX64 "\",\"anchors\":[\"x\"]}", false},
        {"{\"trust\":[{\"fingerprint\":\"" HEX64 "\"}]}", true},
        /* One CA that cannot be read would look like a CA removed. */
        {"{\"trust\":[{\"fingerprint\":\"" HEX64 "\"},{\"identity\":\"" HEX64 "\"}]}", false},
        {"{\"trust\":[{\"fingerprint\":\"" HEX64 "\"},7]}", false},
        {"{\"trust\":{}}", false},
        {"{\"opaque\":\"XYZ\"}", false},
        {"{\"opaque\":\"" HEX64 "\"}", false}, /* of an unknown key */
        {"{\"opaque\":\"01234567:" HEX64 "\"}", true},
        {"{\"opaque\":\"unread\"}", true},
        {"{\"opaque\":\"01234567:" HEX64 "\",\"opaqueKeys\":7}", true},
        {"{\"trustSummary\":{\"count\":300,\"digest\":\"" HEX64 "\"}}", true},
        {"{\"trustSummary\":{\"count\":0,\"digest\":\"" HEX64 "\"}}", false},
        {"{\"trustSummary\":{\"count\":300}}", false},
        {"{\"trustSummary\":{\"count\":300,\"digest\":\"" HEX64 "\"},\"trust\":[{\"fingerprint\":\"" HEX64 "\"}]}",
         false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_asprintf("{\"secrets\":[{\"name\":\"s\",\"settled\":%s}]}", cases[i].settled);
        CR_CLEANUP(cr_json) struct cr_json *json = test_json(text);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        cr_policy_status_decode(json, &status);
        assert_int_equal(status.secrets_len, 1);
        if (status.secrets[0].has_settled != cases[i].has)
            fail_msg("%s", cases[i].settled);
        assert_true(cases[i].has || (!*status.secrets[0].settled.leaf && !status.secrets[0].settled.trust));
    }
}

static void test_a_broken_pending_change_is_forgotten(void **state)
{
    (void)state;
    static const char since[] = "2026-11-21T06:10:21.5Z";
    static const struct {
        const char *id, *since, *changes, *target;
        bool set;
    } cases[] = {
        {"\"ab\"", since, "[\"LeafRenewed\"]", "{}", true},
        {"\"\"", since, "[\"LeafRenewed\"]", "{}", false},
        {"7", since, "[\"LeafRenewed\"]", "{}", false},
        {"\"not hex\"", since, "[\"LeafRenewed\"]", "{}", false},
        {"\"abcdefabcdefabcdefabcdefabcdef\"", since, "[\"LeafRenewed\"]", "{}", false},
        {"\"ab\"", "now", "[\"LeafRenewed\"]", "{}", false},
        {"\"ab\"", "1970-01-01T00:00:00Z", "[\"LeafRenewed\"]", "{}", false}, /* reads as no time */
        {"\"ab\"", since, "[\"Renamed\"]", "{}", false},                      /* of a later version */
        {"\"ab\"", since, "\"LeafRenewed\"", "{}", false},
        {"\"ab\"", since, "[\"LeafRenewed\"]", "null", false},
        {"\"ab\"", since, "[\"LeafRenewed\"]", "{\"leaf\":\"x\"}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text =
            cr_asprintf("{\"secrets\":[{\"name\":\"s\"," SETTLED
                        ",\"pending\":{\"id\":%s,\"since\":\"%s\",\"changes\":%s,\"target\":%s}}]}",
                        cases[i].id, cases[i].since, cases[i].changes, cases[i].target);
        CR_CLEANUP(cr_json) struct cr_json *json = test_json(text);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        cr_policy_status_decode(json, &status);
        assert_true(status.secrets[0].has_settled);
        if (status.secrets[0].pending.set != cases[i].set)
            fail_msg("case %zu: %s", i, text);
        assert_true(cases[i].set || !*status.secrets[0].pending.id);
    }
}

static void test_of_a_secret_that_comes_twice_the_first_counts(void **state)
{
    (void)state;
    cr_autofree char *text = cr_asprintf("{\"secrets\":[{\"name\":\"s\"," SETTLED "},{\"name\":\"s\",\"settled\":"
                                         "{\"leaf\":\"%064x\"}}]}",
                                         0xbb);
    CR_CLEANUP(cr_json) struct cr_json *json = test_json(text);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_policy_status_decode(json, &status);
    assert_int_equal(status.secrets_len, 1);
    assert_string_equal(status.secrets[0].settled.leaf, HEX64);
}

static void test_pending_without_settled_is_first_sight(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *json = test_json("{\"secrets\":[{\"name\":\"s\",\"pending\":{\"id\":\"ab\",\"since\":"
                                     "\"2026-11-21T06:10:21Z\",\"changes\":[],\"target\":{}}}]}");
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_policy_status_decode(json, &status);
    assert_false(status.secrets[0].pending.set);
}

static void test_garbage_reads_as_absent(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "null",
        "7",
        "[]",
        "\"\"",
        "{\"secrets\":7,\"consumers\":{},\"conditions\":\"\",\"history\":true,\"stage\":9,\"observedGeneration\":"
        "\"x\"}",
        "{\"secrets\":[7,null,{},{\"name\":7},{\"name\":\"\"}],\"consumers\":[[],{\"name\":null}],"
        "\"conditions\":[0,{},{\"type\":\"Ready\"},{\"type\":\"Odd\",\"status\":\"True\",\"reason\":\"R\"},"
        "{\"type\":\"Ready\",\"status\":\"Perhaps\",\"reason\":\"R\"},"
        "{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"R\",\"lastTransitionTime\":\"x\"}],"
        "\"history\":[{},{\"id\":\"zz\",\"secret\":\"s\",\"changes\":[]},{\"id\":\"ab\",\"changes\":[]}]}",
    };
    struct cr_policy_status empty = {0};
    cr_autofree char *expected = encode_text(&empty);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *json = test_json(cases[i]);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        cr_policy_status_decode(json, &status);
        cr_autofree char *text = encode_text(&status);
        assert_string_equal(text, expected);
    }
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_policy_status_decode(NULL, &status);
    assert_int_equal(status.secrets_len, 0);
}

static void test_a_broken_consumer_keeps_what_can_be_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json)
    struct cr_json *json =
        test_json("{\"consumers\":[{\"name\":\"c\",\"targetRef\":7,\"decision\":\"Explode\",\"state\":[],"
                  "\"pods\":{\"total\":-1,\"stale\":1e300,\"verified\":2},\"since\":\"soon\","
                  "\"examples\":[7,\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]},{\"name\":\"c\"}]}");
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_policy_status_decode(json, &status);
    assert_int_equal(status.consumers_len, 1); /* the name again: the first counts */
    const struct cr_consumer_status *c = &status.consumers[0];
    assert_null(c->kind);
    assert_int_equal(c->decision, CR_DECISION_NONE);
    assert_int_equal(c->state, CR_CONSUMER_IDLE);
    assert_int_equal(c->pods.total, 0);
    assert_int_equal(c->pods.stale, 0);
    assert_int_equal(c->pods.verified, 2);
    assert_int_equal(c->since_ms, 0);
    assert_int_equal(c->examples.len, 5);
}

static void add_many(struct cr_policy_status *status, int count, enum cr_consumer_state state, const char *prefix)
{
    for (int i = 0; i < count; i++) {
        cr_autofree char *name = cr_asprintf("%s-%03d", prefix, i);
        add_consumer(status, name, state);
    }
}

static void test_of_more_than_100_consumers_those_with_trouble_come_first(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    add_many(&status, 90, CR_CONSUMER_CONVERGED, "done");
    add_many(&status, 20, CR_CONSUMER_VERIFYING, "late");
    add_many(&status, 5, CR_CONSUMER_BLOCKED, "held");
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    const struct cr_json *consumers = cr_json_get(json, "consumers");
    const struct cr_json *c = cr_json_first(consumers);
    for (int i = 0; i < 5; i++, c = cr_json_next(c))
        assert_true(cr_starts_with(cr_json_string_at(c, "name"), "held-"));
    for (int i = 0; i < 20; i++, c = cr_json_next(c))
        assert_true(cr_starts_with(cr_json_string_at(c, "name"), "late-"));
    assert_string_equal(cr_json_string_at(c, "name"), "done-000");
    assert_int_equal(cr_json_int_at(json, -1, "totals", "consumers"), 115); /* totals count all */
    assert_int_equal(cr_json_int_at(json, -1, "totals", "converged"), 90);
    assert_string_equal(cr_json_string_at(json, "converged"), "90/115");
}

/* Nothing that keeps a restart from being done twice is lost for want of room. */
static void test_beyond_100_consumers_what_is_remembered_stays(void **state)
{
    (void)state;
    enum { MANY = 512 };
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    add_many(&status, MANY, CR_CONSUMER_BLOCKED, "c");
    for (size_t i = 0; i < MANY; i++) {
        struct cr_consumer_status *consumer = &status.consumers[i];
        cr_strset(&consumer->kind, "Deployment");
        cr_strset(&consumer->target, consumer->name);
        cr_gate_set(&consumer->gate, cr_gate_make(CR_HOLD_RESTART_UNDONE, "the restart was undone"));
        cr_strset(&consumer->reason, "long");
        cr_strset(&consumer->restarted_for, "0123456789ab");
        consumer->restarted_generation = (int64_t)i;
        consumer->restarts = (struct cr_restart_times){.at_ms = {2000 * 1000 + (int64_t)i, 1001}, .len = 2};
        consumer->since_ms = 1000 * 1000 + (int64_t)i;
        consumer->last_restart_ms = NOW;
        if (i % 2)
            cr_strset(&consumer->evicting, "pod-uid");
        if (i >= 400) {
            consumer->state = CR_CONSUMER_CONVERGED;
            if (i >= 450)
                cr_strset(&consumer->restarted_for, NULL);
            if (i >= 460)
                consumer->restarts.len = 0; /* nothing to remember */
        }
    }
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    assert_int_equal(cr_json_len(cr_json_get(json, "consumers")), 460);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status back = {0};
    cr_policy_status_decode(json, &back);
    for (size_t i = 0; i < 460; i++) {
        const struct cr_consumer_status *consumer = cr_status_consumer(&back, status.consumers[i].name);
        assert_non_null(consumer);
        assert_int_equal(consumer->state, status.consumers[i].state);
        assert_string_equal(consumer->target, status.consumers[i].target);
        assert_int_equal(consumer->gate.hold, CR_HOLD_RESTART_UNDONE);
        assert_int_equal(consumer->restarts.len, 2);
        assert_int_equal(consumer->restarts.at_ms[0], 2000 * 1000 + i);
        assert_int_equal(consumer->restarts.at_ms[1], 1001);
        if (i < 450) {
            assert_string_equal(consumer->restarted_for, "0123456789ab");
            assert_int_equal(consumer->restarted_generation, i);
        }
        assert_int_equal(consumer->since_ms, 1000 * 1000 + i);
        assert_true((consumer->reason != NULL) == (i < 100));
        /* The time that its next pod is given is counted from there. */
        assert_int_equal(consumer->last_restart_ms, i < 100 || (i % 2 && i < 400) ? NOW : 0);
    }
}

/* --- what etcd takes --- */

/* A text of that many bytes, in a buffer of its own. */
static char *long_text(size_t len)
{
    char *text = cr_malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    return text;
}

static struct cr_material big_material(unsigned seed, size_t cas)
{
    struct cr_material m = material(seed, seed + 7);
    free(m.trust);
    m.trust = cr_calloc(cas, sizeof *m.trust);
    m.trust_len = cas;
    cr_strvec_dispose(&m.anchors);
    for (size_t i = 0; i < cas; i++) {
        snprintf(m.trust[i].fingerprint, CR_SHA256_HEX, "%064zx", seed * 10000 + i);
        snprintf(m.trust[i].identity, CR_SHA256_HEX, "%064zx", seed * 10000 + i + 5000);
        snprintf(m.trust[i].subject, CR_SHA256_HEX, "%016zx", i);
        m.trust[i].not_after_ms = NOW;
        cr_strvec_add(&m.anchors, m.trust[i].identity);
    }
    for (size_t i = 0; i < CR_LEAF_NAMES_MAX; i++) {
        cr_autofree char *name = long_text(CR_LEAF_NAME_MAX);
        cr_strvec_add(&m.names, name);
    }
    snprintf(m.opaque, sizeof m.opaque, "01234567:" HEX64);
    for (size_t i = 0; i < CR_OPAQUE_KEYS_MAX; i++) {
        cr_autofree char *key = long_text(253);
        snprintf(key, 253, "%zu", i);
        cr_autofree char *element = cr_asprintf("%s=0123456789abcdef", key);
        cr_strvec_add(&m.opaque_keys, element);
    }
    return m;
}

static void add_big_secret(struct cr_policy_status *status, unsigned number, size_t cas)
{
    cr_autofree char *name = long_text(253);
    cr_autofree char *message = long_text(2000);
    snprintf(name, 253, "%0252u", number);
    struct cr_secret_status *secret = cr_status_secret_add(status, name);
    secret->has_settled = true;
    secret->settled = big_material(number, cas);
    secret->trust_by = secret->leaf_by = CR_SETTLED_FIRST_SIGHT;
    secret->settled_ms = NOW;
    secret->pending = (struct cr_pending_change){.set = true, .since_ms = NOW, .first_ms = NOW - 1, .changes = 0xff};
    snprintf(secret->pending.id, sizeof secret->pending.id, "%012x", number);
    secret->pending.target = big_material(number + 100, cas);
    for (unsigned i = 0; i < CR_OLD_LEAVES_MAX; i++) {
        char leaf[CR_SHA256_HEX];
        snprintf(leaf, sizeof leaf, "%064x", number * 100 + i);
        cr_strvec_add(&secret->pending.old_leaves, leaf);
    }
    cr_strvec_copy(&secret->pending.opaque_keys, &secret->settled.opaque_keys);
    cr_strset(&secret->observed_resource_version, "90071992547409931234");
    cr_strset(&secret->problem_reason, "UnparsableMaterial");
    cr_strset(&secret->problem_message, message);
}

static void add_big_consumer(struct cr_policy_status *status, unsigned number, unsigned rotations_at_once)
{
    char name[64];
    snprintf(name, sizeof name, "%063u", number);
    cr_autofree char *target = long_text(253);
    /* A reason is cut by who makes it, what an API server says by the error that carries it. */
    cr_autofree char *reason = long_text(400);
    cr_autofree char *blocked = long_text(511);
    cr_autofree char *rotations = long_text(rotations_at_once * 13);
    struct cr_consumer_status *consumer = add_consumer(status, name, CR_CONSUMER_BLOCKED);
    cr_strset(&consumer->target, target);
    cr_strset(&consumer->component, "envoyproxy/ratelimit");
    cr_strset(&consumer->reason, reason);
    cr_gate_set(&consumer->gate, cr_gate_make(CR_HOLD_KEY_TYPE_NOT_ACCEPTED, "%s", blocked));
    cr_strset(&consumer->restarted_for, rotations);
    consumer->last_restart_ms = consumer->since_ms = NOW;
    if (number >= 412) { /* restart.maxConcurrent is 100 at most */
        consumer->evicted_until_ms = NOW;
        cr_strset(&consumer->evicting, "01234567-89ab-cdef-0123-456789abcdef");
    }
    for (; consumer->restarts.len < CR_RESTART_TIMES_MAX; consumer->restarts.len++) {
        consumer->restarts.at_ms[consumer->restarts.len] = NOW;
        consumer->restarts.steps[consumer->restarts.len] = (struct cr_restart_step){"0a1b2c3d4e5f", 3};
    }
    consumer->verification =
        (struct cr_verification){.of = "0123456789abcdef", .since_ms = NOW, .at_ms = NOW, .until_ms = NOW};
    for (int i = 0; i < CR_EXAMPLES_MAX; i++)
        cr_strvec_add(&consumer->examples, target);
}

static void test_the_largest_status_fits_into_etcd(void **state)
{
    (void)state;
    enum { SECRETS = 64, CAS = 1000, LARGEST = 980 * 1000 };
    static const struct {
        unsigned consumers;
        unsigned rotations; /* for which each of them was restarted at once */
    } cases[] = {{100, 64}, {512, 8}};
    for (size_t c = 0; c < cr_array_len(cases); c++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        for (unsigned i = 0; i < SECRETS; i++)
            add_big_secret(&status, i + 1, CAS);
        for (unsigned i = 0; i < cases[c].consumers; i++)
            add_big_consumer(&status, i, cases[c].rotations);
        cr_autofree char *text = encode_text(&status);
        if (strlen(text) > LARGEST)
            fail_msg("%u consumers: %zu bytes", cases[c].consumers, strlen(text));
        /* Memory survives: the same set, and the change is still seen as one. */
        CR_CLEANUP(cr_json) struct cr_json *json = test_json(text);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
        cr_policy_status_decode(json, &again);
        assert_int_equal(again.secrets_len, SECRETS);
        for (size_t i = 0; i < SECRETS; i++) {
            char before[CR_SHA256_HEX], after[CR_SHA256_HEX];
            cr_material_trust_digest(&status.secrets[i].settled, before);
            cr_material_trust_digest(&again.secrets[i].settled, after);
            assert_string_equal(before, after);
            assert_int_equal(again.secrets[i].settled.trust_summary.count, CAS);
            assert_int_equal(again.secrets[i].settled.names.len, 1);
            assert_string_equal(again.secrets[i].settled.opaque, status.secrets[i].settled.opaque);
            assert_true(again.secrets[i].pending.set);
        }
        cr_autofree char *second = encode_text(&again);
        assert_string_equal(text, second);
    }
}

/* The share depends on the number of Secrets alone: what one holds changes nothing of what is remembered of another. */
static void test_lists_have_a_share_each(void **state)
{
    (void)state;
    static const struct {
        unsigned secrets;
        size_t cas;
        bool whole;
    } cases[] = {{1, 300, true}, {1, 1000, false}, {10, 30, true}, {64, 5, true}, {64, 20, false}};
    for (size_t c = 0; c < cr_array_len(cases); c++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        for (unsigned i = 0; i < cases[c].secrets; i++)
            add_big_secret(&status, i + 1, i ? 1 : cases[c].cas);
        CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
        cr_policy_status_decode(json, &again);
        const struct cr_material *m = &again.secrets[0].settled;
        if ((m->trust_len == cases[c].cas) != cases[c].whole || (m->trust_summary.count == 0) != cases[c].whole)
            fail_msg("%u Secrets, %zu CAs: %zu, %zu", cases[c].secrets, cases[c].cas, m->trust_len,
                     m->trust_summary.count);
        assert_true(cases[c].secrets == 1 || again.secrets[1].settled.trust_len == 1);
    }
}

static void test_opaque_memory_survives(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    add_secret(&status, "s", 0x100, 0x200);
    struct cr_secret_status *secret = cr_status_secret(&status, "s");
    snprintf(secret->settled.opaque, sizeof secret->settled.opaque, "01234567:" HEX64);
    cr_strvec_add(&secret->settled.opaque_keys, "hmac=0123456789abcdef");
    secret->immutable = true;
    add_pending(secret, 0x300);
    memcpy(secret->pending.target.opaque, CR_OPAQUE_UNREAD, sizeof CR_OPAQUE_UNREAD);
    cr_strvec_add(&secret->pending.opaque_keys, "hmac");
    secret->pending.was_immutable = true;
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
    cr_policy_status_decode(json, &again);
    const struct cr_secret_status *is = cr_status_secret(&again, "s");
    assert_string_equal(is->settled.opaque, secret->settled.opaque);
    assert_true(cr_strvec_equal(&is->settled.opaque_keys, &secret->settled.opaque_keys));
    assert_string_equal(is->pending.target.opaque, CR_OPAQUE_UNREAD);
    assert_true(cr_strvec_equal(&is->pending.opaque_keys, &secret->pending.opaque_keys));
    assert_true(is->immutable && is->pending.was_immutable);
}

/* A terminal would obey them (CVE-2021-25743), and a line would forge another. */
static void test_control_characters_are_not_shown(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    struct cr_consumer_status *consumer = add_consumer(&status, "c", CR_CONSUMER_BLOCKED);
    cr_gate_set(&consumer->gate, cr_gate_make(CR_HOLD_REFUSED, "a\x1b[2Jb\nc\x7f"
                                                               "d\xc2\x9b"
                                                               "e\xc3\xa9"));
    cr_status_condition(&status, "Ready", true, "R", "x\r\ny\tz", 1, NOW);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    assert_string_equal(cr_json_string_at(cr_json_first(cr_json_get(json, "consumers")), "blockedBy"),
                        "a?[2Jb?c?d?e\xc3\xa9");
    assert_string_equal(cr_json_string_at(cr_json_first(cr_json_get(json, "conditions")), "message"), "x??y?z");
}

static void test_up_to_100_consumers_keep_their_order(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    add_many(&status, 80, CR_CONSUMER_CONVERGED, "done");
    add_many(&status, 20, CR_CONSUMER_FAILED, "late");
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    assert_int_equal(cr_json_len(cr_json_get(json, "consumers")), 100);
    assert_string_equal(cr_json_string_at(cr_json_first(cr_json_get(json, "consumers")), "name"), "done-000");
}

static void test_converged_counts_idle_and_leaves_out_the_absent(void **state)
{
    (void)state;
    static const struct {
        enum cr_consumer_state state;
        const char *text;
    } cases[] = {
        {CR_CONSUMER_IDLE, "1/1"},      {CR_CONSUMER_CONVERGED, "1/1"}, {CR_CONSUMER_PENDING, "0/1"},
        {CR_CONSUMER_VERIFYING, "0/1"}, {CR_CONSUMER_BLOCKED, "0/1"},   {CR_CONSUMER_RESTARTING, "0/1"},
        {CR_CONSUMER_FAILED, "0/1"},    {CR_CONSUMER_ABSENT, "0/0"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        add_consumer(&status, "c", cases[i].state);
        CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
        assert_string_equal(cr_json_string_at(json, "converged"), cases[i].text);
        assert_int_equal(cr_json_int_at(json, -1, "totals", "consumers"), 1);
    }
}

static void test_at_most_5_examples_and_8_old_leaves(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    struct cr_consumer_status *consumer = add_consumer(&status, "c", CR_CONSUMER_VERIFYING);
    add_secret(&status, "s", 1, 0);
    struct cr_secret_status *secret = cr_status_secret(&status, "s");
    add_pending(secret, 2);
    for (unsigned i = 0; i < 20; i++) {
        char old[CR_SHA256_HEX];
        digest(old, i);
        cr_strvec_add(&secret->pending.old_leaves, old);
        cr_strvec_add(&consumer->examples, old);
    }
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    const struct cr_json *encoded = cr_json_first(cr_json_get(json, "secrets"));
    assert_int_equal(cr_json_len(cr_json_at(encoded, "pending", "oldLeaves")), 8);
    encoded = cr_json_first(cr_json_get(json, "consumers"));
    assert_int_equal(cr_json_len(cr_json_get(encoded, "examples")), 5);
}

/* The API server refuses what is longer than the schema says, and with it the whole status. */
static void test_texts_are_cut_between_characters(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf umlauts = CR_BUF_INIT(0);
    for (int i = 0; i < 3000; i++)
        cr_buf_puts(&umlauts, "\xc3\xa4");
    static const struct {
        const char *text; /* NULL: the long one */
        size_t len;
        const char *end;
    } cases[] = {
        {NULL, 4095, "\xc3\xa4..."}, /* 4096 - 3 is odd: the character that does not fit goes */
        {"short", 5, "short"},       {"cut in the middle \xc3", 19, " ?"},
        {"\xff\xfe", 2, "??"},       {"\xe2\x82\xac \xf0\x9f\x94\x91", 8, "\xf0\x9f\x94\x91"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        const char *text = cases[i].text ? cases[i].text : cr_buf_text(&umlauts);
        cr_status_condition(&status, "Ready", true, "R", text, 1, NOW);
        CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
        const char *message = cr_json_string_at(cr_json_first(cr_json_get(json, "conditions")), "message");
        assert_int_equal(strlen(message), cases[i].len);
        assert_true(cr_ends_with(message, cases[i].end));
        cr_autofree char *printed = cr_json_print(json);
        CR_CLEANUP(cr_json) struct cr_json *reread = test_json(printed);
        assert_non_null(reread);
    }
}

static void test_expires_is_the_first_end_of_what_may_be_in_use(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    char text[CR_TIME_TEXT];
    add_secret(&status, "later", 500, 1); /* beside a leaf, an old CA of the bundle does not count */
    add_secret(&status, "trust", 0, 400); /* trust alone does */
    add_secret(&status, "renewed", 350, 0);
    add_pending(cr_status_secret(&status, "renewed"),
                900); /* pods serve the leaf of before until all have the new one */
    cr_time_format(NOW + 350 * 1000, text);
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    assert_string_equal(cr_json_string_at(json, "expires"), text);

    struct cr_secret_status *broken = cr_status_secret_add(&status, "broken");
    cr_strset(&broken->problem_reason, "Expired");
    broken->problem_not_after_ms = NOW - 7 * 1000; /* a leaf that cannot be used is there all the same */
    cr_time_format(broken->problem_not_after_ms, text);
    CR_CLEANUP(cr_json) struct cr_json *with_broken = cr_policy_status_encode(&status);
    assert_string_equal(cr_json_string_at(with_broken, "expires"), text);
}

/* Such certificates exist; the API server takes years of four digits only. */
static void test_times_that_cannot_be_written_are_cut(void **state)
{
    (void)state;
    static const struct {
        int64_t not_after_ms;
        const char *text; /* NULL: left out */
    } cases[] = {
        {0, NULL},
        {1, "1970-01-01T00:00:00Z"},
        {-1000, "1969-12-31T23:59:59Z"},
        {INT64_MIN, "0000-01-01T00:00:00Z"},
        {INT64_C(-62135596800000), "0001-01-01T00:00:00Z"}, /* year 1 */
        {INT64_C(253402300799000), "9999-12-31T23:59:59Z"}, /* "no well-defined expiration date", RFC 5280, 4.1.2.5 */
        {INT64_MAX, "9999-12-31T23:59:59Z"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        add_secret(&status, "s", 1, 0);
        status.secrets[0].settled.not_after_ms = cases[i].not_after_ms;
        CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
        const struct cr_json *secret = cr_json_first(cr_json_get(json, "secrets"));
        const char *text = cr_json_string_at(secret, "settled", "notAfter");
        assert_int_equal(text != NULL, cases[i].text != NULL);
        if (text)
            assert_string_equal(text, cases[i].text);
        CR_CLEANUP(cr_policy_status) struct cr_policy_status again = {0};
        cr_policy_status_decode(json, &again);
        assert_true(again.secrets[0].has_settled);
    }
}

/* Found by the fuzzer: a year that was written with three digits, which no reader takes again. */
static void test_a_transition_time_long_ago_has_a_year_of_four_digits(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_status_condition(&status, "Ready", true, "R", "", 1, -INT64_C(54500000000000)); /* in the year 242 */
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(&status);
    assert_string_equal(cr_json_string_at(cr_json_first(cr_json_get(json, "conditions")), "lastTransitionTime"),
                        "0242-12-18T23:06:40Z");
}

static void test_transition_time_moves_only_when_the_status_flips(void **state)
{
    (void)state;
    static const struct {
        bool value;
        const char *reason;
        int64_t now;
        int64_t transition;
    } steps[] = {
        {true, "Watching", NOW, NOW},       {true, "Watching", NOW + 1, NOW},      {true, "Other", NOW + 2, NOW},
        {false, "Other", NOW + 3, NOW + 3}, {false, "Watching", NOW + 4, NOW + 3}, {true, "Watching", NOW + 5, NOW + 5},
    };
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    assert_null(cr_status_condition_get(&status, "Ready"));
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        cr_status_condition(&status, "Ready", steps[i].value, steps[i].reason, "m", (int64_t)i, steps[i].now);
        const struct cr_condition *ready = cr_status_condition_get(&status, "Ready");
        assert_non_null(ready);
        assert_int_equal(ready->status, steps[i].value);
        assert_string_equal(ready->reason, steps[i].reason);
        assert_int_equal(ready->transition_ms, steps[i].transition);
        assert_int_equal(ready->observed_generation, i);
    }
    cr_status_condition_unknown(&status, "Ready", "Other", "m", 7, NOW + 6);
    const struct cr_condition *unknown = cr_status_condition_get(&status, "Ready");
    assert_true(unknown->unknown && !unknown->status);
    assert_int_equal(unknown->transition_ms, NOW + 6);
    cr_status_condition(&status, "Ready", false, "Other", "m", 8, NOW + 7);
    assert_false(unknown->unknown);
    assert_int_equal(unknown->transition_ms, NOW + 7);
    cr_status_condition(&status, "NoSuchType", true, "R", "m", 1, NOW);
    assert_null(cr_status_condition_get(&status, "NoSuchType"));
    assert_null(cr_status_condition_get(&status, NULL));
}

static void test_history_keeps_the_newest_10(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    for (unsigned i = 0; i < 13; i++)
        add_record(&status, i, "s");
    assert_int_equal(status.history_len, CR_HISTORY_MAX);
    assert_string_equal(status.history[0].id, "000c");
    assert_string_equal(status.history[9].id, "0003");
    cr_status_history_add(&status, &status.history[9]); /* one of its own: the one that goes */
    assert_string_equal(status.history[0].id, "0003");
    assert_string_equal(status.history[0].secret, "s");
}

static void test_keep_drops_what_the_policy_no_longer_names(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec keep = {0};
    add_secret(&status, "a", 1, 2);
    add_secret(&status, "b", 3, 4);
    add_secret(&status, "c", 5, 6);
    add_many(&status, 3, CR_CONSUMER_IDLE, "w");
    cr_strvec_add(&keep, "c");
    cr_strvec_add(&keep, "w-001");
    cr_strvec_add(&keep, "a");
    cr_status_keep_secrets(&status, &keep);
    cr_status_keep_consumers(&status, &keep);
    assert_int_equal(status.secrets_len, 2);
    assert_string_equal(status.secrets[0].name, "a");
    assert_string_equal(status.secrets[1].name, "c");
    assert_int_equal(status.consumers_len, 1);
    assert_string_equal(status.consumers[0].name, "w-001");
    assert_null(cr_status_secret(&status, "b"));
    assert_ptr_equal(cr_status_secret_add(&status, "c"), &status.secrets[1]);
    assert_int_equal(status.secrets_len, 2);
}

static void test_a_copy_is_its_own(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status copy = {0};
    cr_autofree char *expected = NULL;
    fill(&copy); /* replaced, not leaked */
    {
        CR_CLEANUP(cr_policy_status) struct cr_policy_status full = {0};
        fill(&full);
        add_consumer(&full, "more", CR_CONSUMER_ABSENT);
        expected = encode_text(&full);
        cr_policy_status_copy(&copy, &full);
    }
    cr_autofree char *text = encode_text(&copy);
    assert_string_equal(text, expected);
}

static void test_names_round_trip(void **state)
{
    (void)state;
    for (unsigned i = CR_STAGE_IDLE; i <= CR_STAGE_HELD; i++) {
        enum cr_stage stage;
        assert_true(cr_stage_parse(cr_stage_name((enum cr_stage)i), &stage));
        assert_int_equal(stage, i);
    }
    for (unsigned i = CR_DECISION_NONE; i <= CR_DECISION_RESTART; i++) {
        enum cr_decision_kind kind;
        assert_true(cr_decision_parse(cr_decision_name((enum cr_decision_kind)i), &kind));
        assert_int_equal(kind, i);
    }
    for (unsigned i = CR_CONSUMER_IDLE; i <= CR_CONSUMER_ABSENT; i++) {
        enum cr_consumer_state consumer_state;
        assert_true(cr_consumer_state_parse(cr_consumer_state_name((enum cr_consumer_state)i), &consumer_state));
        assert_int_equal(consumer_state, i);
    }
    for (unsigned i = 0; i < CR_CHANGE_BITS; i++) {
        enum cr_change_bit bit;
        assert_true(cr_change_parse(cr_change_name((enum cr_change_bit)(1u << i)), &bit));
        assert_int_equal(bit, 1u << i);
    }
    assert_string_equal(cr_change_name((enum cr_change_bit)3), "");
}

static void test_dispose_takes_null(void **state)
{
    (void)state;
    cr_policy_status_dispose(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode_of_decode_is_the_same_text),
        cmocka_unit_test(test_remembered_material_survives),
        cmocka_unit_test(test_of_each_type_it_is_known_when_it_is_trouble),
        cmocka_unit_test(test_the_json_contract),
        cmocka_unit_test(test_an_empty_status_has_every_member),
        cmocka_unit_test(test_broken_settled_material_reads_as_first_sight),
        cmocka_unit_test(test_a_broken_pending_change_is_forgotten),
        cmocka_unit_test(test_of_a_secret_that_comes_twice_the_first_counts),
        cmocka_unit_test(test_pending_without_settled_is_first_sight),
        cmocka_unit_test(test_garbage_reads_as_absent),
        cmocka_unit_test(test_a_broken_consumer_keeps_what_can_be_read),
        cmocka_unit_test(test_of_more_than_100_consumers_those_with_trouble_come_first),
        cmocka_unit_test(test_beyond_100_consumers_what_is_remembered_stays),
        cmocka_unit_test(test_the_largest_status_fits_into_etcd),
        cmocka_unit_test(test_lists_have_a_share_each),
        cmocka_unit_test(test_opaque_memory_survives),
        cmocka_unit_test(test_control_characters_are_not_shown),
        cmocka_unit_test(test_up_to_100_consumers_keep_their_order),
        cmocka_unit_test(test_converged_counts_idle_and_leaves_out_the_absent),
        cmocka_unit_test(test_at_most_5_examples_and_8_old_leaves),
        cmocka_unit_test(test_texts_are_cut_between_characters),
        cmocka_unit_test(test_expires_is_the_first_end_of_what_may_be_in_use),
        cmocka_unit_test(test_times_that_cannot_be_written_are_cut),
        cmocka_unit_test(test_a_transition_time_long_ago_has_a_year_of_four_digits),
        cmocka_unit_test(test_transition_time_moves_only_when_the_status_flips),
        cmocka_unit_test(test_history_keeps_the_newest_10),
        cmocka_unit_test(test_keep_drops_what_the_policy_no_longer_names),
        cmocka_unit_test(test_a_copy_is_its_own),
        cmocka_unit_test(test_names_round_trip),
        cmocka_unit_test(test_dispose_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
