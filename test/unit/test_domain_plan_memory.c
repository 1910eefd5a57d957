/* What the plan of a trust domain remembers and says, and when a certificate is renewed. */
#include "trust/rules/domain_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/domainletters.h"

static const struct cr_condition *condition(const struct cr_domain_status *status, const char *type)
{
    for (size_t i = 0; i < CR_DOMAIN_CONDITIONS; i++)
        if (cr_streq(cr_domain_condition_types[i], type))
            return &status->conditions[i];
    return NULL;
}

static bool has_event(const struct cr_domain_plan *plan, const char *reason)
{
    for (size_t i = 0; i < plan->events_len; i++)
        if (cr_streq(plan->events[i].reason, reason))
            return true;
    return false;
}

/* Version 8 is there, and 7 on record: killed, or refused, before the write was. */
static void lose_record(struct scene *s)
{
    cr_strset(&s->status.objects[0].written_version, "7");
    s->objects[0].version = "8";
    memset(s->status.objects[0].trust, 'f', CR_SHA256_HEX - 1);
}

static void write_just_done_is_not_judged_by_the_time_of_the_one_before(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose_record(s);
    go_on(s, 5000, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.writes_len, 0);
    assert_int_equal(plan.status.objects[0].written_ms, now_ms + 5000);
    assert_string_equal(plan.status.objects[0].written_version, "8");
    go_on(s, 0, &plan);
    assert_false(plan.record_first);
    assert_int_equal(plan.writes_len, 1);
}

/* What it restarts is none of the rotation's. */
static void what_another_program_wrote_is_not_ours_on_record(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose_record(s);
    s->objects[0].changed_by = "kubectl";
    go_on(s, 5000, &plan);
    assert_string_equal(plan.status.objects[0].written_version, "7");
}

/* A Secret that a domain takes over has it already: policies that have read it need not do so again. */
static void what_is_there_as_it_should_be_was_not_written(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose_record(s);
    cr_strset(&s->status.objects[0].written_version, NULL);
    go_on(s, 5000, &plan);
    assert_true(plan.record_first);
    assert_null(plan.status.objects[0].written_version);
}

static void past_its_deadline_it_is_held_and_goes_on_by_itself(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_TRUSTING);
    assert_true(has_event(&plan, "RotationBegun"));
    assert_true(plan.requeue_after_ms > 0 && plan.requeue_after_ms <= HOUR + 1);
    go_on(s, HOUR + 1, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_HELD);
    assert_int_equal(plan.status.held_stage, CR_STAGE_TRUSTING);
    assert_string_equal(condition(&plan.status, "Held")->reason, "DeadlinePassed");
    assert_non_null(strstr(condition(&plan.status, "Held")->message, "ConfigMap ns/o1"));
    assert_true(has_event(&plan, "Held"));
    go_on(s, 1000, &plan);
    assert_false(has_event(&plan, "Held"));

    cr_strvec_add(&s->evidence[1].trusted, s->cas[0].fingerprint);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    assert_true(has_event(&plan, "WentOn"));
    assert_int_equal(plan.writes_len, 1);
    assert_int_equal(plan.status.trusting_ms, HOUR + 2001);
}

/* As kstatus reads them: "Current", "InProgress", "Failed". */
static const char *health(const struct cr_domain_plan *plan)
{
    bool reconciling = condition(&plan->status, "Reconciling")->status;
    bool stalled = condition(&plan->status, "Stalled")->status;
    assert_false(reconciling && stalled);
    return stalled ? "Failed" : reconciling ? "InProgress" : "Current";
}

static void what_a_tool_that_waits_for_health_sees(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *expected;
        enum cr_hold_health health;
        enum cr_trust_reason refused;
        bool arrived, suspend;
        int64_t after_ms;
    } rows[] = {
        {"everything has arrived", "Current", .arrived = true},
        {"a consumer is on its way", "InProgress", .health = CR_HOLD_PASSES},
        {"a consumer waits for its window", "Current", .health = CR_HOLD_WAITS},
        {"a consumer waits for its window, past the deadline", "Current", .health = CR_HOLD_WAITS,
         .after_ms = HOUR + 1},
        {"a consumer is stuck", "Failed", .health = CR_HOLD_STUCK},
        {"past the deadline", "Failed", .health = CR_HOLD_PASSES, .after_ms = HOUR + 1},
        {"no right to write", "Failed", .arrived = true, .refused = CR_TRUST_FORBIDDEN},
        {"the source is still to come", "InProgress", .arrived = true, .refused = CR_TRUST_SOURCE_NOT_FOUND},
        {"suspended", "Current", .health = CR_HOLD_PASSES, .suspend = true},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "1a"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        s->evidence[0].leaf = rows[i].arrived ? CR_ARRIVAL_VERIFIED : CR_ARRIVAL_NOT_YET;
        s->evidence[0].why = rows[i].arrived ? NULL : cr_strdup("web has not got there");
        s->evidence[0].health = rows[i].health;
        s->objects[0].refused = rows[i].refused;
        s->objects[0].refused_text = rows[i].refused ? "for a reason" : NULL;
        s->domain.suspend = rows[i].suspend;
        go_on(s, 0, &plan);
        go_on(s, rows[i].after_ms, &plan);
        if (!cr_streq(health(&plan), rows[i].expected))
            fail_msg("%s: %s (%s), not %s", rows[i].rule, health(&plan),
                     condition(&plan.status, "Reconciling")->message, rows[i].expected);
    }
}

static void a_failed_consumer_holds_at_once_but_not_what_would_end(void **state)
{
    (void)state;
    static const struct {
        const char *leaf;
        size_t writes;
    } leaves[] = {{"2a", 0}, {"2a~", 1}};
    for (size_t i = 0; i < cr_array_len(leaves); i++) {
        const struct plan_case c = {
            .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1b", "*-#"}, {"ba", leaves[i].leaf, "*"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        go_on(s, 0, &plan);
        assert_int_equal(plan.writes_len, leaves[i].writes);
        assert_int_equal(plan.status.stage, CR_STAGE_HELD);
        assert_int_equal(plan.status.held_stage, CR_STAGE_SWITCHING);
        assert_string_equal(condition(&plan.status, "Held")->reason, "ConsumerFailed");
    }
}

static void history_has_how_long_each_stage_took(void **state)
{
    (void)state;
    static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "2a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    assert_string_equal(plan.status.what, "Leaves");
    fingerprint('2', s->objects[0].published.fingerprint);
    s->evidence[0].leaf = CR_ARRIVAL_NOT_YET;
    go_on(s, 1000, &plan); /* what was written goes on record */
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    s->evidence[0].leaf = CR_ARRIVAL_VERIFIED;
    s->evidence[0].restarted_ms = now_ms;
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_IDLE);
    assert_string_equal(plan.status.rotation, "");
    assert_int_equal(plan.status.history_len, 1);
    assert_string_equal(plan.status.history[0].outcome, "Converged");
    assert_int_equal(plan.status.history[0].switching_ms, 3000);
    assert_true(plan.status.history[0].restarted);
    assert_true(has_event(&plan, "RotationConverged"));
    assert_string_equal(condition(&plan.status, "Converged")->reason, "Inferred");
}

static void history_has_whether_a_consumer_was_restarted_for_it(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t written_ms, restarted_ms; /* since it is on record; what was written is when it was seen there */
        bool restarted;
    } rows[] = {
        {"what was written is seen late", 10 * 1000, 0, true},
        {"the rotation is on record late", 500, -2 * 1000, true},
        {"for what was before", 500, -5 * 1000, false},
        {"for what was before, and what was written is seen late", 10 * 1000, -1000, false},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "2a"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        go_on(s, 0, &plan);
        fingerprint('2', s->objects[0].published.fingerprint);
        s->evidence[0].leaf = CR_ARRIVAL_NOT_YET;
        go_on(s, rows[i].written_ms, &plan);
        s->evidence[0].leaf = CR_ARRIVAL_VERIFIED;
        s->evidence[0].restarted_ms = now_ms + rows[i].restarted_ms;
        go_on(s, 20 * 1000, &plan);
        assert_int_equal(plan.status.history_len, 1);
        if (plan.status.history[0].restarted != rows[i].restarted)
            fail_msg("%s", rows[i].rule);
    }
}

static void a_rotation_that_leaves_an_object_as_it_is_is_not_called_converged(void **state)
{
    (void)state;
    static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "2a"}, {"a", "3a", "*", "4a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].refused = CR_TRUST_FORBIDDEN;
    s->objects[1].refused_text = "no right";
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    fingerprint('2', s->objects[0].published.fingerprint);
    go_on(s, 1000, &plan); /* what was written goes on record */
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_IDLE);
    assert_string_equal(plan.status.history[0].outcome, "Incomplete");
    assert_true(has_event(&plan, "RotationEnded"));
    assert_false(has_event(&plan, "RotationConverged"));
    assert_string_equal(condition(&plan.status, "Converged")->reason, "Forbidden");
}

static void what_is_put_back_stays_until_its_source_or_a_person_changes(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "token:PreviousLeaves staging", .cas = "ab", .objects = {{"ba", "2b", "*-", "2b", "1a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.status.rejected_len, 1);
    go_on(s, 0, &plan);
    assert_false(plan.record_first);
    assert_int_equal(plan.writes_len, 1);
    assert_int_equal(plan.writes[0].leaf, CR_LEAF_ACT_PUT_BACK);
    set_leaf(s, "1a", s->verifies[0], &s->objects[0].published);
    s->verifies[0][0] = false; /* b */
    s->evidence[0].leaf = CR_ARRIVAL_VERIFIED;
    go_on(s, 0, &plan);
    assert_string_equal(plan.status.last_handled_token, "t");
    for (int i = 0; i < 2; i++) {
        go_on(s, 1000, &plan);
        assert_int_equal(plan.writes_len, 0);
        assert_false(plan.delete_staging);
        assert_int_equal(plan.status.stage, CR_STAGE_HELD);
        assert_string_equal(condition(&plan.status, "Held")->reason, "PutBack");
    }
    fingerprint('3', s->objects[0].source.fingerprint);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.rejected_len, 0);
    assert_int_equal(plan.writes[0].leaf, CR_LEAF_ACT_MIRROR);
}

/* --- a CA that no reader may trust --- */

/* It is True when no object has the CA any more, and not before. */
static void distrusted_is_true_only_when_no_consumer_trusts_it(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue distrust-a new", .cas = "aB", .objects = {{"ba", "1b", "*"}, {"ba", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_true(plan.record_first);
    assert_true(has_event(&plan, "Distrusting"));
    go_on(s, 1000, &plan);
    assert_int_equal(plan.writes_len, 2);
    const struct cr_condition *distrusted = condition(&plan.status, "Distrusted");
    assert_false(distrusted->status);
    assert_string_equal(distrusted->reason, "InProgress");
    assert_non_null(strstr(distrusted->message, "2 of 2 objects"));
    /* Written, and one consumer has not got it. */
    for (size_t i = 0; i < 2; i++)
        s->bundles[i][1] = false; /* a */
    s->evidence[1].trust = CR_ARRIVAL_NOT_YET;
    s->evidence[1].why = cr_strdup("web is Restarting");
    cr_strvec_add(&s->evidence[1].lack_trust, "policy/web");
    go_on(s, 1000, &plan); /* what was written goes on record */
    assert_false(condition(&plan.status, "Distrusted")->status);
    go_on(s, 1000, &plan);
    distrusted = condition(&plan.status, "Distrusted");
    assert_false(distrusted->status);
    assert_non_null(strstr(distrusted->message, "1 of 2 objects, 1 consumers are left."));
    assert_non_null(strstr(distrusted->message, "web is Restarting"));
    assert_int_equal(plan.status.distrusted[0].gone_ms, 0);
    s->evidence[0].trust = CR_ARRIVAL_VERIFIED;
    s->evidence[1].trust = CR_ARRIVAL_INFERRED;
    go_on(s, 1000, &plan);
    assert_true(has_event(&plan, "Distrusted"));
    distrusted = condition(&plan.status, "Distrusted");
    assert_true(distrusted->status);
    assert_string_equal(distrusted->reason, "Inferred");
    assert_non_null(strstr(distrusted->message, "For 1 of 2 objects this is inferred from pod starts"));
    s->evidence[1].trust = CR_ARRIVAL_VERIFIED;
    go_on(s, 1000, &plan);
    assert_string_equal(condition(&plan.status, "Distrusted")->reason, "Gone");
    /* A person puts it back: that is put on record, and it goes at once, whatever has arrived. */
    s->bundles[0][1] = true;
    s->evidence[0].trust = CR_ARRIVAL_NOT_YET;
    go_on(s, 1000, &plan);
    assert_true(plan.record_first);
    assert_false(condition(&plan.status, "Distrusted")->status);
    go_on(s, 1000, &plan);
    assert_false(plan.record_first);
    assert_int_equal(plan.writes_len, 1);
    assert_false(plan.writes[0].bundle[1]);
    s->bundles[0][1] = false;
    go_on(s, 1000, &plan);
    assert_false(condition(&plan.status, "Distrusted")->status);
    s->evidence[0].trust = CR_ARRIVAL_VERIFIED;
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_true(condition(&plan.status, "Distrusted")->status);
    /* It is not called gone either while nothing may be done about it. */
    s->bundles[0][1] = s->domain.suspend = true;
    go_on(s, 1000, &plan);
    assert_false(condition(&plan.status, "Distrusted")->status);
    s->bundles[0][1] = s->domain.suspend = false;
    go_on(s, 1000, &plan);
    /* Taken off the list. */
    cr_strvec_dispose(&s->domain.distrust);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.distrusted_len, 0);
    assert_null(condition(&plan.status, "Distrusted")->reason);
}

/* --- what a rotation is called --- */

static void a_bundle_that_is_put_right_is_no_rotation_of_the_ca(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "Ab", .objects = {{"a", "1a", "*"}, {"a", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_IDLE);
    /* Another program puts b there in place of a. */
    mark(s, "b", s->bundles[1]);
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.writes_len, 1);
    assert_string_equal(plan.status.what, "Bundles");
    assert_true(*plan.status.rotation != '\0');
}

static void the_first_publication_is_one_of_the_ca(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{NULL, ""}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_status_forget_cas(&s->status);
    go_on(s, 1000, &plan);
    assert_string_equal(plan.status.what, "First");
    assert_true(has_event(&plan, "RotationBegun"));
}

/* --- another writer of a bundle --- */

static void a_bundle_that_another_program_writes_as_well_is_named_and_has_converged(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}, {"a", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].contested_text = "'tool' overwrites it";
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    const struct cr_condition *degraded = condition(&plan.status, "Degraded");
    assert_true(degraded->status);
    assert_string_equal(degraded->reason, "OtherWriter");
    assert_non_null(strstr(degraded->message, "'tool' overwrites it"));
    assert_true(condition(&plan.status, "Converged")->status);
    assert_int_equal(plan.status.objects[1].problem, CR_TRUST_OTHER_WRITER);
    s->objects[1].contested_text = NULL;
    go_on(s, 1000, &plan);
    assert_false(condition(&plan.status, "Degraded")->status);
}

static void a_leaf_that_waits_to_be_replaced_does_not_need_the_distrusted_ca(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", "2a", "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    for (size_t ca = 0; ca < s->world.cas_len; ca++)
        if (s->letters[ca] == 'a')
            cr_strvec_add(&s->domain.distrust, s->cas[ca].fingerprint);
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_false(condition(&plan.status, "Distrusted")->status);
    assert_string_equal(condition(&plan.status, "Distrusted")->reason, "InProgress");
    assert_non_null(strstr(condition(&plan.status, "Distrusted")->message, "not everybody has it"));
}

/* --- a CA of before --- */

static void a_ca_of_before_is_pending_while_it_is_trusted(void **state)
{
    (void)state;
    static const struct {
        struct plan_case c;
        bool pending;
        const char *reason, *words;
    } cases[] = {
        {{"the present one alone", "issue", "A", {{"a", "1a", "*"}}}, false, "NothingToRetire", "No bundle"},
        {{"it waits for the next CA", "issue", "aB", {{"ba", "1b", "*"}}},
         true,
         "NextRotation",
         "CA (aaaaaaaaaaaaaaaa"},
        {{"it stays", "issue never", "aB", {{"ba", "1b", "*"}}}, true, "Never", "CA (aaaaaaaaaaaaaaaa"},
        {{"the one in use is not of before", "issue staging", "AB", {{"ba", "1a", "*"}}},
         false,
         "NothingToRetire",
         "No bundle"},
        {{"it ends by itself", "issue expired-a", "aB", {{"ba", "1b", "*"}}}, false, "NothingToRetire", "No bundle"},
        {{"its consumers do not have it", "issue", "A", {{"a", "1a", ""}}}, true, "Arriving", "may still trust one"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new(&cases[i].c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        go_on(s, 0, &plan);
        const struct cr_condition *pending = condition(&plan.status, "RetirementPending");
        if (pending->status != cases[i].pending || !cr_streq(pending->reason, cases[i].reason) ||
            !strstr(pending->message, cases[i].words))
            fail_msg("%s: %d %s: %s", cases[i].c.rule, pending->status, pending->reason, pending->message);
        assert_false(cr_condition_is_trouble(pending));
    }
}

static void a_ca_is_pending_until_every_consumer_has_the_bundle_without_it(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue converged", .cas = "aB", .objects = {{"ba", "1b", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 1);
    assert_string_equal(condition(&plan.status, "RetirementPending")->reason, "RotationInProgress");
    s->bundles[0][1] = false; /* a */
    s->evidence[0].trust = CR_ARRIVAL_NOT_YET;
    cr_strvec_add(&s->evidence[0].lack_trust, "policy/web");
    for (int look = 0; look < 3; look++) { /* the first one records what was written */
        go_on(s, 1000, &plan);
        const struct cr_condition *pending = condition(&plan.status, "RetirementPending");
        assert_true(pending->status);
        assert_string_equal(pending->reason, "Arriving");
        assert_non_null(strstr(pending->message, "1 consumers"));
        assert_int_equal(plan.status.history_len, 0);
    }
    s->evidence[0].trust = CR_ARRIVAL_VERIFIED;
    cr_strvec_dispose(&s->evidence[0].lack_trust);
    go_on(s, 1000, &plan);
    assert_false(condition(&plan.status, "RetirementPending")->status);
    assert_string_equal(condition(&plan.status, "RetirementPending")->reason, "NothingToRetire");
    assert_int_equal(plan.status.history_len, 1);
}

static void a_ca_that_was_never_there_is_not_called_gone(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    char unknown[CR_SHA256_HEX];
    fingerprint('7', unknown);
    cr_strvec_add(&s->domain.distrust, unknown);
    go_on(s, 0, &plan);
    assert_false(condition(&plan.status, "Distrusted")->status);
    assert_string_equal(condition(&plan.status, "Distrusted")->reason, "UnknownCA");
}

static void a_leaf_that_is_lost_is_named_before_and_after(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "distrust-a", .cas = "ab", .objects = {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_string_equal(condition(&plan.status, "Distrusted")->reason, "LeafNeedsCA");
    assert_non_null(strstr(condition(&plan.status, "Distrusted")->message, "the leaf of Secret ns/o1"));
    assert_string_equal(condition(&plan.status, "Degraded")->reason, "DistrustedCA");
    go_on(s, HOUR, &plan);
    assert_int_equal(plan.writes_len, 2);
    for (size_t i = 0; i < 2; i++)
        s->bundles[i][1] = false; /* a */
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_true(condition(&plan.status, "Distrusted")->status);
    assert_string_equal(condition(&plan.status, "Distrusted")->reason, "LeavesLost");
    assert_non_null(strstr(condition(&plan.status, "Distrusted")->message, "Secret ns/o1"));
}

static void another_writer_is_counted_by_the_day_until_the_spec_is_edited(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    go_on(s, 1000, &plan);
    struct cr_domain_object *object = &s->objects[0];
    for (int times = 1; times <= 2; times++) {
        fingerprint((char)('1' + times), object->published.fingerprint);
        object->changed_by = "gitops";
        go_on(s, 1000, &plan);
        assert_true(plan.record_first);
        assert_true(has_event(&plan, "Overwritten"));
        assert_int_equal(s->status.objects[0].overwritten, times);
        assert_string_equal(s->status.objects[0].overwritten_by, "gitops");
        object->changed_by = NULL; /* it is on record now */
        go_on(s, 1000, &plan);
        assert_int_equal(s->status.objects[0].overwritten, times);
        int64_t until_ms = cr_domain_other_writer_until_ms(&s->world, &s->status.objects[0]);
        assert_true(times == 1 ? until_ms == 0 : until_ms == s->status.objects[0].overwritten_ms + HOUR);
    }
    s->status.objects[0].overwritten = 3;
    assert_true(cr_domain_other_writer_until_ms(&s->world, &s->status.objects[0]) ==
                s->status.objects[0].overwritten_ms + 2LL * HOUR);
    s->domain.generation++;
    assert_true(cr_domain_other_writer_until_ms(&s->world, &s->status.objects[0]) == 0);
    go_on(s, 1000, &plan);
    assert_int_equal(s->status.objects[0].overwritten, 0);
    assert_null(s->status.objects[0].overwritten_by);

    s->status.objects[0].overwritten = 2;
    s->status.objects[0].overwritten_ms = s->world.now_ms;
    go_on(s, 25LL * HOUR, &plan);
    assert_int_equal(s->status.objects[0].overwritten, 0);
}

static void what_is_refused_is_reported_once_and_names_the_object(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}, {.evidence = "", .refused = CR_TRUST_NO_CONSENT}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->status.objects[1].problem = CR_TRUST_FINE;
    go_on(s, 0, &plan);
    assert_true(has_event(&plan, "NoConsent"));
    assert_string_equal(condition(&plan.status, "Degraded")->reason, "NoConsent");
    assert_non_null(strstr(condition(&plan.status, "Degraded")->message, "ConfigMap ns/o1"));
    go_on(s, 1000, &plan);
    assert_false(has_event(&plan, "NoConsent"));
}

/* Each is green without it: everything else is published and has arrived. */
static void what_is_not_written_as_it_should_be_has_not_converged(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct object_row object;
        enum cr_trust_reason reason;
    } rows[] = {
        {"no right, and it has what it shall have",
         {"a", NULL, "*", .refused = CR_TRUST_FORBIDDEN},
         CR_TRUST_FORBIDDEN},
        {"another writer", {"a", NULL, "*", .refused = CR_TRUST_OTHER_WRITER}, CR_TRUST_OTHER_WRITER},
        {"immutable", {"a", NULL, "*", .refused = CR_TRUST_IMMUTABLE}, CR_TRUST_IMMUTABLE},
        {"another domain's", {"", NULL, NULL, .refused = CR_TRUST_OTHER_DOMAIN}, CR_TRUST_OTHER_DOMAIN},
        {"never ours", {"", NULL, NULL, .refused = CR_TRUST_NOT_OURS}, CR_TRUST_NOT_OURS},
        {"no consent, so not there", {.evidence = "", .refused = CR_TRUST_NO_CONSENT}, CR_TRUST_NO_CONSENT},
        {"a key that a consumer does not take",
         {"a", "1a", "*", .refused = CR_TRUST_KEY_NOT_ACCEPTED},
         CR_TRUST_KEY_NOT_ACCEPTED},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}}};
        c.objects[1] = rows[i].object;
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        go_on(s, 1000, &plan);
        go_on(s, 1000, &plan);
        const struct cr_condition *found = condition(&plan.status, "Converged");
        if (found->status || !cr_streq(found->reason, cr_trust_reason_name(rows[i].reason)) ||
            !strstr(found->message, "ns/o1") || !strstr(found->message, "it is refused"))
            fail_msg("%s: %d, %s, %s", rows[i].rule, found->status, found->reason, found->message);
        assert_int_equal(plan.status.objects[1].problem, rows[i].reason);
    }
}

static const struct cr_domain_ca_status *ca_of(const struct cr_domain_status *status, char letter)
{
    for (size_t i = 0; i < status->cas_len; i++)
        if (status->cas[i].fingerprint[0] == letter)
            return &status->cas[i];
    return NULL;
}

static void a_ca_that_stays_for_a_leaf_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct object_row objects[OBJECTS];
        const char *object; /* NULL: nothing needs a */
        enum cr_domain_leaf_at at;
        size_t leaves;
    } rows[] = {
        {"a published leaf", {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}}, "Secret ns/o1", CR_LEAF_PUBLISHED, 2},
        {"one of a source", {{"ba", "1b", "*", "1b"}, {"ba", "2b", "a", "3a"}}, "Secret ns/o1", CR_LEAF_IN_SOURCE, 1},
        {"one that can be put back",
         {{"ba", "1b", "*", "1b", "3a"}, {"ba", "2b", "*", "2b"}},
         "Secret ns/o0",
         CR_LEAF_PREVIOUS,
         1},
        {"no leaf", {{"ba", "1b", "*", "1b"}, {"ba", NULL, "*"}}, NULL, CR_LEAF_PUBLISHED, 0},
        {"of somebody who has withdrawn the consent",
         {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", .refused = CR_TRUST_NO_CONSENT}},
         NULL,
         CR_LEAF_PUBLISHED,
         0},
        {"another domain's",
         {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", .refused = CR_TRUST_OTHER_DOMAIN}},
         NULL,
         CR_LEAF_PUBLISHED,
         0},
        {"one that may not be written just now",
         {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", .refused = CR_TRUST_FORBIDDEN}},
         "Secret ns/o1",
         CR_LEAF_PUBLISHED,
         1},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct plan_case c = {.spec = "", .cas = "ab"};
        memcpy(c.objects, rows[i].objects, sizeof c.objects);
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        for (size_t ca = 0; ca < s->world.cas_len; ca++) /* what a leaf comes from is not current by that */
            s->cas[ca].in_source = s->letters[ca] == 'b';
        go_on(s, 0, &plan);
        const struct cr_domain_ca_status *ca = ca_of(&plan.status, 'a');
        if (!ca || ca->part != CR_CA_PREVIOUS || !cr_streq(ca->needed_by, rows[i].object) ||
            ca->needed_at != rows[i].at || ca->needed_by_leaves != rows[i].leaves)
            fail_msg("%s: %s, %zu", rows[i].rule, ca ? cr_or_empty(ca->needed_by) : "not listed",
                     ca ? ca->needed_by_leaves : 0);
        const struct cr_domain_ca_status *current = ca_of(&plan.status, 'b');
        assert_true(current && !current->needed_by); /* it stays, whatever leaves there are */
    }
}

/* OpenSSL demands a root. */
static void a_leaf_whose_root_is_not_at_hand_replaces_none_that_has_its_root(void **state)
{
    (void)state;
    static const bool none_issued[4] = {false};
    static const struct {
        const char *rule;
        bool old_is_root, new_is_root, refused;
    } rows[] = {
        {"a root follows a root", true, true, false},
        {"no root follows a root", true, false, true},
        {"no root follows none", false, false, false},
        {"a root follows none", false, true, false},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        static const struct plan_case c = {.cas = "ab", .objects = {{"ba", "1a", "*", "2b"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        s->world.issued = none_issued;
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            s->cas[ca].root = s->letters[ca] == 'a' ? rows[i].old_is_root : rows[i].new_is_root;
        cr_domain_status_forget_cas(&s->status); /* as before the source changed */
        go_on(s, 0, &plan);
        if ((plan.status.objects[0].problem == CR_TRUST_NEEDS_ISSUER) != rows[i].refused ||
            (plan.writes_len == 0) != rows[i].refused)
            fail_msg("%s: %s, %zu writes", rows[i].rule, cr_trust_reason_name(plan.status.objects[0].problem),
                     plan.writes_len);
        assert_int_equal(has_event(&plan, "NewCANeedsItsIssuer"), !rows[i].new_is_root);
        go_on(s, 1000, &plan);
        assert_false(has_event(&plan, "NewCANeedsItsIssuer"));
    }
}

static void a_ca_with_its_issuer_at_hand_causes_no_warning(void **state)
{
    (void)state;
    static const bool by_the_second[4] = {false, true, false, false};
    static const struct plan_case c = {.cas = "ab", .objects = {{"ba", "1a", "*", "2ba"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->world.issued = by_the_second; /* b, the newest and so the first, by a */
    s->cas[0].root = false;
    cr_domain_status_forget_cas(&s->status);
    go_on(s, 0, &plan);
    assert_false(has_event(&plan, "NewCANeedsItsIssuer"));
}

/* Each wants to give o1 another bundle; what was found when that was tried stands in the way. */
static void a_bundle_that_would_cut_off_a_reader_stays_and_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct plan_case c;
        enum cr_trust_reason kept;
        const char *plan;
    } rows[] = {
        {"a CA could go",
         {.spec = "issue converged", .cas = "aB", .objects = {{"ba", "1b", "*"}, {"ba", NULL, "*"}}},
         CR_TRUST_WOULD_CUT_OFF,
         "0:b"},
        {"a CA could go, and nobody can say",
         {.spec = "issue converged", .cas = "aB", .objects = {{"ba", "1b", "*"}, {"ba", NULL, "*"}}},
         CR_TRUST_BUNDLE_TOO_COSTLY,
         "0:b"},
        {"a CA comes",
         {.spec = "issue staging", .cas = "AB", .objects = {{"a", "1a", "*"}, {"a", NULL, "*"}}},
         CR_TRUST_WOULD_CUT_OFF,
         "0:ba"},
        {"a CA comes, and nobody can say: it grows",
         {.spec = "issue staging", .cas = "AB", .objects = {{"a", "1a", "*"}, {"a", NULL, "*"}}},
         CR_TRUST_BUNDLE_TOO_COSTLY,
         "0:ba 1:ba"},
        {"what cannot be read is not put right either",
         {.spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}, {"a?", NULL, "*"}}},
         CR_TRUST_WOULD_CUT_OFF,
         ""},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new(&rows[i].c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        s->objects[1].kept = rows[i].kept;
        s->objects[1].kept_text = "OpenSSL would not verify the leaf of Secret ns/o0 any more";
        go_on(s, 0, &plan);
        cr_autofree char *got = describe(s, &plan);
        if (!cr_streq(got, rows[i].plan))
            fail_msg("%s: %s", rows[i].rule, got);
        assert_int_equal(plan.status.objects[1].problem, rows[i].kept);
        assert_false(condition(&plan.status, "Converged")->status);
        assert_string_equal(condition(&plan.status, "Degraded")->reason, cr_trust_reason_name(rows[i].kept));
        assert_non_null(strstr(condition(&plan.status, "Degraded")->message, "the leaf of Secret ns/o0"));
    }
}

static void what_was_taken_from_us_has_readers(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].refused = CR_TRUST_NOT_OURS;
    s->objects[1].evidence = NULL;
    memset(s->bundles[1], 0, sizeof s->bundles[1]);
    for (int i = 0; i < 2; i++) {
        go_on(s, 1000, &plan);
        assert_int_equal(plan.writes_len, 0);
        assert_non_null(strstr(plan.status.objects[0].waits_for, "ConfigMap ns/o1"));
    }
}

/* Deleted, or not to be read. */
static void lose(struct scene *s, size_t at, enum cr_trust_reason refused)
{
    s->objects[at].found = false;
    s->objects[at].evidence = NULL;
    s->objects[at].refused = refused;
    memset(s->bundles[at], 0, sizeof s->bundles[at]);
}

static void what_was_deleted_has_readers_and_is_recreated_first(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose(s, 1, CR_TRUST_FINE);
    go_on(s, 1000, &plan);
    assert_true(plan.record_first);
    go_on(s, 1000, &plan);
    cr_autofree char *got = describe(s, &plan);
    assert_string_equal(got, "1:ba");
    assert_non_null(strstr(plan.status.objects[0].waits_for, "ConfigMap ns/o1, which has been deleted"));
    /* Killed before that was on record: that it is the same as before does not make it as old. */
    s->objects[1].found = true;
    s->objects[1].evidence = &s->evidence[1];
    mark(s, "ab", s->bundles[1]);
    s->evidence[1].trust = CR_ARRIVAL_INFERRED;
    cr_strvec_add(&s->evidence[1].trusted, s->cas[0].fingerprint);
    go_on(s, 1000, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.writes_len, 0);
    assert_int_equal(plan.status.objects[1].written_ms, s->world.now_ms);
}

/* A target needs no leaf to be made; until it is, its readers have the old bundle. */
static void a_new_leaf_waits_for_a_deleted_target_that_may_not_be_written(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "", .cas = "ab", .objects = {{NULL, "", NULL, .source = "2b"}, {"a", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose(s, 1, CR_TRUST_FORBIDDEN);
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    cr_autofree char *got = describe(s, &plan);
    assert_string_equal(got, "");
    assert_non_null(strstr(plan.status.objects[0].waits_for, "ConfigMap ns/o1, which has been deleted"));
    assert_true(condition(&plan.status, "RetirementPending")->status);
    s->objects[1].refused = CR_TRUST_FINE;
    go_on(s, 1000, &plan);
    cr_autofree char *allowed = describe(s, &plan);
    assert_string_equal(allowed, "1:b");
}

static void no_wait_for_what_was_deleted_without_consent(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    lose(s, 1, CR_TRUST_NO_CONSENT);
    go_on(s, 1000, &plan);
    cr_autofree char *got = describe(s, &plan);
    assert_string_equal(got, "0:ba=I:bs");
}

/* Nobody waits for a namespace without consent; but what was published there before, and cannot be read now, may still
 * have the CA. */
static void a_distrusted_ca_is_not_gone_from_what_cannot_be_read(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue distrust-a new", .cas = "aB", .objects = {{"b", "1b", "*"}, {"ba", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    lose(s, 1, CR_TRUST_NO_CONSENT);
    s->objects[1].unknown = true;
    for (size_t i = 0; i < 2; i++) {
        go_on(s, 1000, &plan);
        assert_false(condition(&plan.status, "Distrusted")->status);
        assert_true(*plan.status.objects[1].trust);
        assert_int_equal(plan.writes_len, 0);
    }
    s->objects[1].unknown = false; /* it was deleted */
    go_on(s, 1000, &plan);
    assert_true(condition(&plan.status, "Distrusted")->status);
}

/* What one namespace can do to all others by an object with more values than are read. */
static void what_cannot_be_read_has_the_readers_that_it_had(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *expected, *waits;
        bool was_ours, is_ca_bundle;
    } rows[] = {
        {"it was ours", "", "ConfigMap ns/o1, which cannot be read now", .was_ours = true},
        {"it was a caBundle", "", "ConfigMap ns/o1, which cannot be read now", .was_ours = true, .is_ca_bundle = true},
        {"it never was", "0:ba=I:bs", NULL},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        static const struct plan_case c = {
            .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "*"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        lose(s, 1, CR_TRUST_CANNOT_READ);
        if (rows[i].is_ca_bundle)
            s->targets[1].kind = CR_TARGET_VALIDATING_WEBHOOK;
        if (!rows[i].was_ours)
            *s->status.objects[1].trust = '\0';
        go_on(s, 1000, &plan);
        go_on(s, 1000, &plan);
        cr_autofree char *got = describe(s, &plan);
        if (!cr_streq(got, rows[i].expected))
            fail_msg("%s: %s", rows[i].rule, got);
        if (rows[i].waits)
            assert_non_null(strstr(cr_or_empty(plan.status.objects[0].waits_for), rows[i].waits));
        assert_true(condition(&plan.status, "Ready")->status);
        assert_string_equal(condition(&plan.status, "Degraded")->reason, "CannotRead");
        assert_int_equal(condition(&plan.status, "RetirementPending")->status, rows[i].was_ours);
    }
}

static void what_cannot_be_read_keeps_the_cas_of_before_and_holds_no_renewal(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *spec, *leaf, *expected;
    } rows[] = {
        {"no CA is retired", "issue converged", "1b", ""},
        {"a leaf is renewed", "issue converged", "1b~", "0:ba=I:bs"},
        {"a distrusted CA stays", "issue distrust-a", "1b", ""},
        {"until the deadline", "issue distrust-a overdue", "1b", "0:b"},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        const struct plan_case c = {
            .spec = rows[i].spec, .cas = "aB", .objects = {{"ba", rows[i].leaf, "*"}, {"ba", NULL, "*"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        lose(s, 1, CR_TRUST_CANNOT_READ);
        go_on(s, 1000, &plan);
        go_on(s, 1000, &plan);
        cr_autofree char *got = describe(s, &plan);
        if (!cr_streq(got, rows[i].expected))
            fail_msg("%s: %s", rows[i].rule, got);
    }
}

static void what_is_in_force_goes_on_beside_too_many_objects(void **state)
{
    (void)state;
    static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "2a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->world.beyond = (struct cr_domain_beyond){3, "ConfigMap b/trust"};
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 1);
    const struct cr_condition *ready = condition(&plan.status, "Ready");
    assert_false(ready->status);
    assert_string_equal(ready->reason, "TooManyObjects");
    assert_non_null(strstr(ready->message, "4 objects belong to this domain and 1 are in force"));
    assert_non_null(strstr(ready->message, "ConfigMap b/trust and 2 more get nothing"));
    fingerprint('2', s->objects[0].published.fingerprint);
    go_on(s, 1000, &plan);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_string_equal(condition(&plan.status, "Converged")->reason, "TooManyObjects");
    assert_string_equal(condition(&plan.status, "Stalled")->reason, "TooManyObjects");
    assert_string_equal(health(&plan), "Failed");
    s->world.beyond.objects = 0;
    go_on(s, 1000, &plan);
    assert_string_equal(condition(&plan.status, "Ready")->reason, "Accepted");
    assert_string_equal(health(&plan), "Current");
}

static void what_cannot_be_read_stops_all(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"a", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->world.problem = "cannot read Secret ns/o0";
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_string_equal(condition(&plan.status, "Ready")->reason, "CannotRead");
    assert_false(condition(&plan.status, "Converged")->status);
    s->world.problem_reason = CR_TRUST_FORBIDDEN;
    go_on(s, 0, &plan);
    assert_string_equal(condition(&plan.status, "Ready")->reason, "Forbidden");
    assert_string_equal(condition(&plan.status, "Converged")->reason, "Forbidden");
    assert_true(plan.requeue_after_ms > 0);
    s->world.problem = NULL;
    s->domain.deleting = true;
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    CR_CLEANUP(cr_domain_status) struct cr_domain_status invalid = {0};
    cr_domain_plan_invalid(&s->status, 2, "spec.leaves: too many", now_ms, &invalid);
    assert_string_equal(condition(&invalid, "Ready")->reason, "Invalid");
    assert_int_equal(invalid.objects_len, s->status.objects_len);
}

/* --- renewal --- */

static void when_a_certificate_is_renewed(void **state)
{
    (void)state;
    enum { LIFE = 3000 };
    static const struct {
        const char *rule;
        int64_t renew_before, earliest, latest;
    } rows[] = {
        {"at two thirds, up to a tenth earlier", 0, 1700, 2000},
        {"so long before its end", 500, 2200, 2500},
        {"not at once when a CA has cut it short", 2900, 1700, 2000},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        const struct cr_domain_life life = {.duration_ms = LIFE, .renew_before_ms = rows[i].renew_before};
        int64_t first = cr_domain_renewal_ms(&life, 0, LIFE, "leaf-0");
        bool spread = false;
        for (int k = 0; k < 100; k++) {
            cr_autofree char *key = cr_asprintf("leaf-%d", k);
            int64_t at = cr_domain_renewal_ms(&life, 0, LIFE, key);
            if (at < rows[i].earliest || at > rows[i].latest)
                fail_msg("%s: at %lld", rows[i].rule, (long long)at);
            assert_int_equal(at, cr_domain_renewal_ms(&life, 0, LIFE, key));
            spread = spread || at != first;
        }
        assert_true(spread);
    }
}

static void a_leaf_that_ends_with_its_ca_is_not_issued_again_and_again(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a~", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->cas[0].not_after_ms = s->objects[0].published.not_after_ms;
    s->world.authority.cannot_renew = "it is somebody else's";
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_true(plan.requeue_after_ms == 0 || plan.requeue_after_ms > HOUR);
}

static void a_leaf_that_is_too_costly_to_verify_is_named(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1$", "*"}, {"a", "2a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.objects[0].problem, CR_TRUST_MATERIAL_TOO_COSTLY);
    assert_string_equal(plan.status.objects[0].problem_message, "it is too costly");
    assert_null(plan.status.objects[0].waits_for);
    assert_int_equal(plan.status.objects[1].problem, CR_TRUST_FINE);
}

/* What is not on record may be another program's, and nothing of it is written on. */
static void the_cas_that_leaves_need_are_on_record_however_many_others_there_are(void **state)
{
    (void)state;
#define ALL "abcdefghijklmnopqr"
    static const struct {
        struct plan_case c;
        bool in_source; /* all but the one that is needed */
        size_t mirrored;
    } rows[] = {
        {{.rule = "others that were published", .cas = ALL, .objects = {{ALL, "1a", "*", "2r"}}}, false, 1},
        {{.rule = "others that a source brings", .cas = ALL, .objects = {{ALL, "1a", "*", "2r"}}}, true, 1},
        {{.rule = "others that a source brings, and that its own leaf verifies against",
          .cas = ALL,
          .objects = {{ALL, "3bcdefghijklmnopqr", "*", "3bcdefghijklmnopqr"}, {ALL, "1a", "*", "2r"}}},
         true,
         2},
        {{.rule = "for a leaf that can be put back", .cas = ALL, .objects = {{ALL, "2r", "*", "2r", .previous = "1a"}}},
         true,
         1},
        {{.rule = "those of other leaves, whose Secrets vouch for them, and not for what the domain issues",
          .spec = "issue",
          .cas = "aBcdefghijklmnopqr",
          .objects = {{ALL, "1c", "*", "1c", .previous = "2d"},
                      {ALL, "1e", "*", "1e", .previous = "2f"},
                      {ALL, "1g", "*", "1g", .previous = "2h"},
                      {ALL, "1i", "*", "1i", .previous = "2j"},
                      {ALL, "1k", "*", "1k", .previous = "2l"},
                      {ALL, "1m", "*", "1m", .previous = "2n"},
                      {ALL, "1o", "*", "1o", .previous = "2p"},
                      {ALL, "1q", "*", "1q", .previous = "2r"},
                      {ALL, "3a", "*"}}},
         false,
         8},
    };
#undef ALL
    char needed[CR_SHA256_HEX];
    fingerprint('a', needed);
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(scene) struct scene *s = scene_new(&rows[i].c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            s->cas[ca].in_source = s->cas[ca].in_source || (rows[i].in_source && s->letters[ca] != 'a');
        for (size_t k = 0; k < rows[i].mirrored; k++)
            s->leaves[k].source = CR_LEAF_MIRROR;
        go_on(s, 0, &plan);
        bool found = false;
        for (size_t k = 0; k < plan.status.cas_len; k++)
            found = found || cr_streq(plan.status.cas[k].fingerprint, needed);
        if (!found || plan.status.cas_len != CR_DOMAIN_CAS_MAX)
            fail_msg("%s: %zu are on record, and the one that is needed is%s", rows[i].c.rule, plan.status.cas_len,
                     found ? "" : " not");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_just_done_is_not_judged_by_the_time_of_the_one_before),
        cmocka_unit_test(what_another_program_wrote_is_not_ours_on_record),
        cmocka_unit_test(what_is_there_as_it_should_be_was_not_written),
        cmocka_unit_test(past_its_deadline_it_is_held_and_goes_on_by_itself),
        cmocka_unit_test(what_a_tool_that_waits_for_health_sees),
        cmocka_unit_test(a_failed_consumer_holds_at_once_but_not_what_would_end),
        cmocka_unit_test(history_has_how_long_each_stage_took),
        cmocka_unit_test(history_has_whether_a_consumer_was_restarted_for_it),
        cmocka_unit_test(a_rotation_that_leaves_an_object_as_it_is_is_not_called_converged),
        cmocka_unit_test(what_is_put_back_stays_until_its_source_or_a_person_changes),
        cmocka_unit_test(what_is_refused_is_reported_once_and_names_the_object),
        cmocka_unit_test(distrusted_is_true_only_when_no_consumer_trusts_it),
        cmocka_unit_test(a_bundle_that_is_put_right_is_no_rotation_of_the_ca),
        cmocka_unit_test(the_first_publication_is_one_of_the_ca),
        cmocka_unit_test(a_bundle_that_another_program_writes_as_well_is_named_and_has_converged),
        cmocka_unit_test(a_leaf_that_waits_to_be_replaced_does_not_need_the_distrusted_ca),
        cmocka_unit_test(a_ca_of_before_is_pending_while_it_is_trusted),
        cmocka_unit_test(a_ca_is_pending_until_every_consumer_has_the_bundle_without_it),
        cmocka_unit_test(a_ca_that_was_never_there_is_not_called_gone),
        cmocka_unit_test(a_leaf_that_is_lost_is_named_before_and_after),
        cmocka_unit_test(another_writer_is_counted_by_the_day_until_the_spec_is_edited),
        cmocka_unit_test(what_is_not_written_as_it_should_be_has_not_converged),
        cmocka_unit_test(a_ca_that_stays_for_a_leaf_names_it),
        cmocka_unit_test(a_leaf_whose_root_is_not_at_hand_replaces_none_that_has_its_root),
        cmocka_unit_test(a_ca_with_its_issuer_at_hand_causes_no_warning),
        cmocka_unit_test(a_bundle_that_would_cut_off_a_reader_stays_and_is_said),
        cmocka_unit_test(what_was_taken_from_us_has_readers),
        cmocka_unit_test(what_was_deleted_has_readers_and_is_recreated_first),
        cmocka_unit_test(a_new_leaf_waits_for_a_deleted_target_that_may_not_be_written),
        cmocka_unit_test(no_wait_for_what_was_deleted_without_consent),
        cmocka_unit_test(a_distrusted_ca_is_not_gone_from_what_cannot_be_read),
        cmocka_unit_test(what_cannot_be_read_has_the_readers_that_it_had),
        cmocka_unit_test(what_cannot_be_read_keeps_the_cas_of_before_and_holds_no_renewal),
        cmocka_unit_test(what_is_in_force_goes_on_beside_too_many_objects),
        cmocka_unit_test(what_cannot_be_read_stops_all),
        cmocka_unit_test(when_a_certificate_is_renewed),
        cmocka_unit_test(a_leaf_that_ends_with_its_ca_is_not_issued_again_and_again),
        cmocka_unit_test(a_leaf_that_is_too_costly_to_verify_is_named),
        cmocka_unit_test(the_cas_that_leaves_need_are_on_record_however_many_others_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
