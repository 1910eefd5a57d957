/* What policies say of what a domain has published. CAs and leaves are letters. */
#include "trust/rules/domain_evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/evidence.h"

enum { SECOND = 1000, LONG_AGO = 600 * SECOND, POLICIES = 2 };
static const int64_t now_ms = 1800000000000;

#define FIRST    CR_SETTLED_FIRST_SIGHT
#define INFERRED CR_SETTLED_INFERRED
#define VERIFIED CR_SETTLED_VERIFIED

/* What one policy has on record: "l" a leaf, then the CAs. */
struct policy_row {
    const char *settled; /* NULL: it has not looked yet */
    enum cr_settled_by trust_by, leaf_by;
    const char *read;       /* resourceVersion */
    int64_t settled_ago_ms; /* 0: not known */
    const char *pending;    /* target; NULL: none */
    unsigned changes;
    bool deleting;
    bool blind; /* it has no consumers, and does not look for them */
};

static const struct evidence_case {
    const char *rule;
    const char *published;
    const char *written; /* resourceVersion; NULL: not known */
    int64_t written_ago_ms;
    struct policy_row covering[POLICIES];
    size_t covering_len;
    bool too_many;
    enum cr_uncovered uncovered;
    enum cr_arrival trust, leaf;
    const char *trusted;
    bool first_sight;
    const char *why; /* a part of it; NULL: all has arrived */
} cases[] = {
    {.rule = "settled as it is published, at the version of our write",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, INFERRED, "7"}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_VERIFIED,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "ab"},
    {.rule = "versions are numbers",
     .published = "lab",
     .written = "99",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "100"}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_VERIFIED,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "ab"},
    {.rule = "what was read before our write says nothing of it",
     .published = "lab",
     .written = "100",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "99"}},
     .covering_len = 1,
     .trusted = "",
     .why = "has not read yet"},
    {.rule = "unless so long ago that a kubelet has",
     .published = "lab",
     .written = "100",
     .written_ago_ms = LONG_AGO,
     .covering = {{"lab", VERIFIED, VERIFIED, "99"}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_INFERRED,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "ab"},
    {.rule = "a bundle that grows: all have what was there before",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"la", VERIFIED, VERIFIED, "7", .pending = "lab", .changes = CR_CHANGE_TRUST_ADDED}},
     .covering_len = 1,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "a",
     .why = "putting the change on record"},
    {.rule = "a bundle that shrinks: all have what stays",
     .published = "lb",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "7", .pending = "lb", .changes = CR_CHANGE_TRUST_REMOVED}},
     .covering_len = 1,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "b",
     .why = "putting"},
    {.rule = "one without overlap was there in between: nothing is known",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"la", VERIFIED, VERIFIED, "7", .pending = "lab", .changes = CR_CHANGE_TRUST_REPLACED}},
     .covering_len = 1,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "",
     .why = "putting"},
    {.rule = "a bundle that came back: some may have what was there in between",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "7", .pending = "lab", .changes = CR_CHANGE_TRUST_ADDED}},
     .covering_len = 1,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "",
     .why = "putting"},
    {.rule = "a leaf on its way: trust has arrived",
     .published = "mab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", INFERRED, VERIFIED, "7", .pending = "mab", .changes = CR_CHANGE_LEAF_RENEWED}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_INFERRED,
     .trusted = "ab",
     .why = "putting"},
    {.rule = "a leaf that came back is another change",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "7", .pending = "lab", .changes = CR_CHANGE_LEAF_RENEWED}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_VERIFIED,
     .trusted = "ab",
     .why = "putting"},
    {.rule = "of two policies the weaker counts, and what both know",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "7"},
                  {"lb", VERIFIED, INFERRED, "7", .pending = "lab", .changes = CR_CHANGE_TRUST_ADDED}},
     .covering_len = 2,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "b",
     .why = "policy-1"},
    {.rule = "one that is being deleted is not asked",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", VERIFIED, VERIFIED, "7"}, {.settled = NULL, .deleting = true}},
     .covering_len = 2,
     .trust = CR_ARRIVAL_VERIFIED,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "ab"},
    {.rule = "one that has not looked yet is waited for",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .covering = {{.settled = NULL}},
     .covering_len = 1,
     .trusted = "",
     .why = "has not looked"},
    {.rule = "a first sight soon after our write: others may have what was before",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"lab", FIRST, FIRST, "7", SECOND}},
     .covering_len = 1,
     .trusted = "",
     .why = "for the first time"},
    {.rule = "a first sight long after it is as good as it gets",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .covering = {{"lab", FIRST, FIRST, "7", SECOND}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_INFERRED,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "ab",
     .first_sight = true},
    {.rule = "a first sight before a change: by when it was",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .covering = {{"la", FIRST, FIRST, "7", LONG_AGO, "lab", CR_CHANGE_TRUST_ADDED}},
     .covering_len = 1,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "a",
     .why = "putting"},
    {.rule = "what is not published has arrived",
     .published = "lab",
     .covering = {{"lab", VERIFIED, VERIFIED, "7"}},
     .covering_len = 1,
     .trust = CR_ARRIVAL_VERIFIED,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "ab"},
    {.rule = "nobody covers it: it is waited for",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .trusted = "",
     .why = "no CertRotationPolicy covers it"},
    {.rule = "who has no consumers knows nothing of them",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .covering = {{"lab", VERIFIED, VERIFIED, "7", LONG_AGO, .blind = true}},
     .covering_len = 1,
     .trusted = "",
     .why = "CertRotationPolicy policy-0 covers it, and has no consumers"},
    {.rule = "and does not count beside who has",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .covering = {{.blind = true}, {"lab", VERIFIED, VERIFIED, "7", LONG_AGO}},
     .covering_len = 2,
     .trust = CR_ARRIVAL_VERIFIED,
     .leaf = CR_ARRIVAL_VERIFIED,
     .trusted = "ab"},
    {.rule = "more than are looked at",
     .published = "lab",
     .written = "7",
     .written_ago_ms = LONG_AGO,
     .covering = {{"lab", VERIFIED, VERIFIED, "7", LONG_AGO}},
     .covering_len = 1,
     .too_many = true,
     .trusted = "",
     .why = "more than 1 CertRotationPolicies cover it"},
    {.rule = "nobody covers it, Delay: not yet",
     .published = "lab",
     .written = "7",
     .written_ago_ms = SECOND,
     .uncovered = CR_UNCOVERED_DELAY,
     .trusted = "",
     .why = "95 s after"},
    {.rule = "nobody covers it, Delay: every kubelet has been there",
     .published = "lab",
     .written = "7",
     .written_ago_ms = CR_KUBELET_REFRESH_MS,
     .uncovered = CR_UNCOVERED_DELAY,
     .trust = CR_ARRIVAL_INFERRED,
     .leaf = CR_ARRIVAL_INFERRED,
     .trusted = "ab"},
    {.rule = "nobody covers it, Delay, and when it was written is not known",
     .published = "lab",
     .uncovered = CR_UNCOVERED_DELAY,
     .trusted = "",
     .why = "95 s after"},
};

static void fingerprint(char letter, char out[CR_SHA256_HEX])
{
    memset(out, letter, CR_SHA256_HEX - 1);
    out[CR_SHA256_HEX - 1] = '\0';
}

static void material_of(const char *text, struct cr_material *out)
{
    *out = (struct cr_material){.has_leaf = true};
    fingerprint(text[0], out->leaf);
    fingerprint(text[0], out->chain);
    out->trust = cr_calloc(strlen(text), sizeof *out->trust);
    for (const char *ca = text + 1; *ca; ca++)
        fingerprint(*ca, out->trust[out->trust_len++].fingerprint);
}

static void status_of(const struct policy_row *row, struct cr_policy_status *out)
{
    struct cr_secret_status *secret = cr_status_secret_add(out, "tls");
    if (!row->settled)
        return;
    material_of(row->settled, &secret->settled);
    secret->has_settled = true;
    secret->trust_by = row->trust_by;
    secret->leaf_by = row->leaf_by;
    secret->settled_ms = row->settled_ago_ms ? now_ms - row->settled_ago_ms : 0;
    secret->observed_resource_version = cr_strdup_or_null(row->read);
    if (!row->pending)
        return;
    material_of(row->pending, &secret->pending.target);
    secret->pending.set = true;
    secret->pending.changes = row->changes;
}

static void judge(const struct evidence_case *c, const struct cr_policy *policies,
                  const struct cr_policy_status *statuses, struct cr_domain_evidence *out)
{
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    struct cr_covering_policy covering[POLICIES];
    for (size_t i = 0; i < c->covering_len; i++)
        covering[i] = (struct cr_covering_policy){&policies[i], &statuses[i]};
    material_of(c->published, &material);
    cr_domain_evidence_judge(
        &(struct cr_domain_evidence_input){.secret = "tls",
                                           .material = &material,
                                           .written_version = c->written,
                                           .written_ms = c->written_ago_ms ? now_ms - c->written_ago_ms : 0,
                                           .covering = covering,
                                           .covering_len = c->covering_len,
                                           .too_many_cover_it = c->too_many,
                                           .uncovered = c->uncovered,
                                           .now_ms = now_ms},
        out);
}

static void expect_trusted(const struct evidence_case *c, const struct cr_domain_evidence *evidence)
{
    char ca[CR_SHA256_HEX];
    if (evidence->trusted.len != strlen(c->trusted))
        fail_msg("%s: %zu CAs are trusted", c->rule, evidence->trusted.len);
    for (const char *letter = c->trusted; *letter; letter++) {
        fingerprint(*letter, ca);
        if (!cr_strvec_has(&evidence->trusted, ca))
            fail_msg("%s: %c is not trusted", c->rule, *letter);
    }
}

static void what_policies_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct evidence_case *c = &cases[i];
        static char names[POLICIES][16] = {"policy-0", "policy-1"};
        struct cr_policy policies[POLICIES] = {0};
        struct cr_policy_status statuses[POLICIES] = {0};
        CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
        for (size_t k = 0; k < c->covering_len; k++) {
            policies[k].name = names[k];
            policies[k].deleting = c->covering[k].deleting;
            policies[k].discover.enabled = !c->covering[k].blind;
            status_of(&c->covering[k], &statuses[k]);
        }
        judge(c, policies, statuses, &evidence);
        if (evidence.trust != c->trust || evidence.leaf != c->leaf)
            fail_msg("%s: trust %d, leaf %d", c->rule, (int)evidence.trust, (int)evidence.leaf);
        if (evidence.trust_first_sight != c->first_sight)
            fail_msg("%s: first sight %d", c->rule, evidence.trust_first_sight);
        if (c->why ? !strstr(cr_or_empty(evidence.why), c->why) : evidence.why != NULL)
            fail_msg("%s: '%s'", c->rule, cr_or_empty(evidence.why));
        expect_trusted(c, &evidence);
        for (size_t k = 0; k < POLICIES; k++)
            cr_policy_status_dispose(&statuses[k]);
    }
}

/* --- words --- */

static void it_says_who_is_waited_for(void **state)
{
    (void)state;
    static const struct evidence_case c = {
        .published = "lab",
        .written = "7",
        .written_ago_ms = SECOND,
        .covering = {{"la", VERIFIED, VERIFIED, "7", .pending = "lab", .changes = CR_CHANGE_TRUST_ADDED}},
        .covering_len = 1};
    static char none_may_go[] = "budget: none may go";
    static const struct {
        const char *rule;
        bool suspend;
        enum cr_mode mode;
        const char *problem;
        enum cr_consumer_state state;
        struct cr_gate gate;
        const char *why;
        bool failed;
    } rows[] = {
        {"suspended", .suspend = true, .why = "is suspended"},
        {"in mode Plan", .mode = CR_MODE_PLAN, .why = "mode Plan"},
        {"a Secret that it cannot use", .problem = "KeyMismatch", .why = "KeyMismatch"},
        {"a consumer with its pods", .state = CR_CONSUMER_VERIFYING, .why = "web is Verifying with 1 of 3 pods"},
        {"what blocks it", .state = CR_CONSUMER_BLOCKED, .gate = {CR_HOLD_BUDGET, none_may_go},
         .why = "web is Blocked with 1 of 3 pods: budget: none may go"},
        {"one that failed", .state = CR_CONSUMER_FAILED, .why = "web is Failed", .failed = true},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        char name[] = "edge";
        struct cr_policy policy = {
            .name = name, .discover.enabled = true, .suspend = rows[i].suspend, .mode = rows[i].mode};
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
        status_of(&c.covering[0], &status);
        cr_strset(&status.secrets[0].problem_reason, rows[i].problem);
        struct cr_consumer_status *web = cr_status_consumer_add(&status, "web");
        web->state = rows[i].state;
        web->pods = (struct cr_pod_counts){.total = 3, .verified = 1};
        cr_gate_set(&web->gate, cr_gate_copy(&rows[i].gate));
        judge(&c, &policy, &status, &evidence);
        if (!strstr(cr_or_empty(evidence.why), rows[i].why) || evidence.failed != rows[i].failed)
            fail_msg("%s: '%s', failed %d", rows[i].rule, cr_or_empty(evidence.why), evidence.failed);
    }
}

/* A key that does not match stops the policy; waiting for it would stop the domain, too, which alone can mend it. */
static void what_was_trusted_before_a_secret_was_broken_is_trusted(void **state)
{
    (void)state;
    static const struct evidence_case c = {.rule = "broken",
                                           .published = "lab",
                                           .written = "7",
                                           .written_ago_ms = 10 * SECOND,
                                           .covering = {{"lab", VERIFIED, VERIFIED, "7"}},
                                           .covering_len = 1,
                                           .trusted = "ab"};
    char name[] = "edge";
    struct cr_policy policy = {.name = name, .discover.enabled = true};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
    status_of(&c.covering[0], &status);
    cr_strset(&status.secrets[0].problem_reason, "KeyMismatch");
    judge(&c, &policy, &status, &evidence);
    assert_int_equal(evidence.trust, CR_ARRIVAL_NOT_YET);
    assert_int_equal(evidence.leaf, CR_ARRIVAL_NOT_YET);
    assert_non_null(strstr(evidence.why, "KeyMismatch"));
    expect_trusted(&c, &evidence);
}

static void the_last_restart_is_reported(void **state)
{
    (void)state;
    static const struct evidence_case c = {.published = "lab",
                                           .written = "7",
                                           .written_ago_ms = 10 * SECOND,
                                           .covering = {{"lab", VERIFIED, VERIFIED, "7"}},
                                           .covering_len = 1};
    char name[] = "edge";
    struct cr_policy policy = {.name = name, .discover.enabled = true};
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
    status_of(&c.covering[0], &status);
    judge(&c, &policy, &status, &evidence);
    assert_int_equal(evidence.restarted_ms, 0);
    cr_domain_evidence_dispose(&evidence);
    cr_status_consumer_add(&status, "db")->last_restart_ms = now_ms - 5 * SECOND;
    cr_status_consumer_add(&status, "web")->last_restart_ms = now_ms - 12 * SECOND;
    (void)cr_status_consumer_add(&status, "cache");
    judge(&c, &policy, &status, &evidence);
    assert_int_equal(evidence.restarted_ms, now_ms - 5 * SECOND);
}

/* A leaf that no consumer may have: the CA of what is served instead must not go. */
static void a_pod_that_serves_another_certificate_has_no_new_leaf(void **state)
{
    (void)state;
    static const struct evidence_case c = {.published = "lab",
                                           .written = "7",
                                           .written_ago_ms = LONG_AGO,
                                           .covering = {{"lab", FIRST, FIRST, "7", LONG_AGO}},
                                           .covering_len = 1};
    static char words[] = "pods serve another certificate";
    static const enum cr_hold holds[] = {CR_HOLD_NONE, CR_HOLD_NOT_VERIFIED, CR_HOLD_OTHER_CERTIFICATE};
    for (size_t i = 0; i < cr_array_len(holds); i++) {
        char name[] = "edge";
        struct cr_policy policy = {.name = name, .discover.enabled = true};
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
        status_of(&c.covering[0], &status);
        struct cr_consumer_status *web = cr_status_consumer_add(&status, "web");
        web->state = CR_CONSUMER_VERIFYING;
        cr_gate_set(&web->gate, cr_gate_copy(&(struct cr_gate){holds[i], holds[i] ? words : NULL}));
        judge(&c, &policy, &status, &evidence);
        bool another = holds[i] == CR_HOLD_OTHER_CERTIFICATE;
        assert_int_equal(evidence.leaf, another ? CR_ARRIVAL_NOT_YET : CR_ARRIVAL_INFERRED);
        assert_int_equal(evidence.trust, CR_ARRIVAL_INFERRED);
        if (another)
            assert_non_null(strstr(cr_or_empty(evidence.why), words));
    }
}

/* A workload of another name, a pod without a workload: what the known ones have is no proof of theirs. */
static void a_policy_that_misses_readers_proves_nothing(void **state)
{
    (void)state;
    static const struct evidence_case c = {.rule = "missed",
                                           .published = "lab",
                                           .written = "7",
                                           .written_ago_ms = LONG_AGO,
                                           .covering = {{"lab", VERIFIED, VERIFIED, "7", LONG_AGO}},
                                           .covering_len = 1,
                                           .trusted = ""};
    static const struct {
        enum cr_hold hold;
        enum cr_unknown_readers readers;
        const char *why;
    } rows[] = {
        {CR_HOLD_NOT_FOUND, CR_READERS_KNOWN, "consumer web: NotFound"},
        {CR_HOLD_USES_NO_SECRET, CR_READERS_KNOWN, "consumer web: UsesNoSecret"},
        {CR_HOLD_NONE, CR_READERS_UNMANAGED_POD,
         "does not know all that use the Secret (UnmanagedPod, see its conditions)"},
        {CR_HOLD_NONE, CR_READERS_TOO_MANY, "(TooManyConsumers, "},
        {CR_HOLD_NONE, CR_READERS_CANNOT_DISCOVER, "(CannotDiscover, "},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        char name[] = "edge";
        struct cr_policy policy = {.name = name, .discover.enabled = true};
        CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
        CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
        status_of(&c.covering[0], &status);
        struct cr_consumer_status *web = cr_status_consumer_add(&status, "web");
        web->state = CR_CONSUMER_ABSENT;
        cr_gate_set(&web->gate, cr_gate_copy(&(struct cr_gate){.hold = rows[i].hold}));
        cr_status_secret(&status, "tls")->unknown_readers = rows[i].readers;
        judge(&c, &policy, &status, &evidence);
        assert_int_equal(evidence.trust, CR_ARRIVAL_NOT_YET);
        assert_int_equal(evidence.leaf, CR_ARRIVAL_NOT_YET);
        if (!strstr(cr_or_empty(evidence.why), rows[i].why))
            fail_msg("%s: %s", rows[i].why, cr_or_empty(evidence.why));
        expect_trusted(&c, &evidence);
    }
}

static void a_ca_bundle_is_taken_up_by_api_servers(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    material_of("lab", &material);
    material.has_leaf = false;
    for (int ago = 1; ago <= 3; ago += 2) {
        CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
        cr_domain_evidence_judge(
            &(struct cr_domain_evidence_input){
                .material = &material, .written_ms = now_ms - ago * SECOND, .is_read_by_api = true, .now_ms = now_ms},
            &evidence);
        assert_int_equal(evidence.trust, ago == 3 ? CR_ARRIVAL_VERIFIED : CR_ARRIVAL_NOT_YET);
        assert_int_equal(evidence.leaf, CR_ARRIVAL_VERIFIED);
        assert_int_equal(evidence.look_again_ms, ago == 3 ? 0 : SECOND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_policies_say),
        cmocka_unit_test(it_says_who_is_waited_for),
        cmocka_unit_test(what_was_trusted_before_a_secret_was_broken_is_trusted),
        cmocka_unit_test(the_last_restart_is_reported),
        cmocka_unit_test(a_pod_that_serves_another_certificate_has_no_new_leaf),
        cmocka_unit_test(a_policy_that_misses_readers_proves_nothing),
        cmocka_unit_test(a_ca_bundle_is_taken_up_by_api_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
