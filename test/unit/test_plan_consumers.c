/* What the policy names and is not there, or is not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/scene.h"

static const char *reason_of(const struct scene *s, const char *condition)
{
    return cr_status_condition_get(&s->plan.status, condition)->reason;
}

static bool holds(const struct scene *s, const char *condition)
{
    return cr_status_condition_get(&s->plan.status, condition)->status;
}

/* False and the reason, of both that a script waits for. */
static void assert_unmet(const struct scene *s, const char *reason)
{
    static const char *const waited_for[] = {"Ready", "Converged"};
    for (size_t i = 0; i < cr_array_len(waited_for); i++)
        if (holds(s, waited_for[i]) || !cr_streq(reason_of(s, waited_for[i]), reason))
            fail_msg("%s is %d by %s, not by %s", waited_for[i], holds(s, waited_for[i]), reason_of(s, waited_for[i]),
                     reason);
}

static void assert_met(const struct scene *s)
{
    assert_true(holds(s, "Ready") && holds(s, "Converged") && !holds(s, "Degraded"));
}

/* Once, in the plan that finds it, which is recorded. */
static void assert_said_once(struct scene *s, const char *event, enum cr_plan_event_about about)
{
    assert_true(scene_says(s, event));
    for (size_t i = 0; i < s->plan.events_len; i++)
        if (cr_streq(s->plan.events[i].reason, event))
            assert_int_equal(s->plan.events[i].about, about);
    scene_record(s);
    scene_due(s);
    assert_false(scene_says(s, event));
    s->now_ms += 3600 * SECOND;
    scene_due(s);
    assert_false(scene_says(s, event));
}

static void mount(struct scene *s, size_t consumer, const char *secret)
{
    struct cr_json *spec = cr_json_edit(cr_json_edit(cr_json_edit(s->workloads[consumer], "spec"), "template"), "spec");
    cr_autofree char *text = cr_asprintf("[{name: certs, secret: {secretName: %s}}]", secret);
    cr_json_set(spec, "volumes", test_yaml(text));
}

static void a_consumer_that_uses_none_of_the_secrets_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 2);
    scene_see_all(s, "1");
    mount(s, 1, "wbe");
    scene_plan(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NONE);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_USES_NO_SECRET);
    assert_int_equal(scene_status(s, 1)->state, CR_CONSUMER_IDLE);
    assert_unmet(s, "UsesNoSecret");
    assert_string_equal(reason_of(s, "Degraded"), "UsesNoSecret");
    CR_CLEANUP(cr_json) struct cr_json *encoded = cr_policy_status_encode(&s->plan.status);
    assert_string_equal(cr_json_string_at(encoded, "converged"), "1/2");
    assert_said_once(s, "UsesNoSecret", CR_ABOUT_WORKLOAD);
    /* A change of the Secret is the others'. */
    s->now_ms += 60 * SECOND;
    scene_material(s, "2");
    scene_due(s);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_USES_NO_SECRET);
    mount(s, 1, "web");
    scene_due(s);
    assert_int_equal(scene_status(s, 1)->gate.hold, CR_HOLD_COALESCE); /* it is its change now, too */
}

static void what_is_mounted_again_is_met(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_see_all(s, "1");
    cr_strset(&s->policy->secrets[0].name, "wbe");
    scene_due(s);
    assert_unmet(s, "UsesNoSecret");
    scene_record(s);
    cr_strset(&s->policy->secrets[0].name, "web");
    scene_due(s);
    assert_met(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NONE);
}

static void a_workload_that_is_not_there_is_reported_unless_it_is_optional(void **state)
{
    (void)state;
    for (int optional = 0; optional < 2; optional++) {
        CR_CLEANUP(scene) struct scene *s = scene_new("{}", 2);
        scene_see_all(s, "1");
        s->consumers[1].found = false;
        s->policy->consumers[1].optional = optional;
        scene_plan(s);
        assert_int_equal(scene_status(s, 1)->state, CR_CONSUMER_ABSENT);
        assert_int_equal(scene_status(s, 1)->gate.hold, optional ? CR_HOLD_NONE : CR_HOLD_NOT_FOUND);
        if (optional) {
            assert_false(scene_says(s, "TargetNotFound"));
            assert_met(s);
            continue;
        }
        assert_unmet(s, "NotFound");
        assert_string_equal(reason_of(s, "Degraded"), "TargetNotFound");
        assert_said_once(s, "TargetNotFound", CR_ABOUT_POLICY);
        s->consumers[1].found = true;
        scene_due(s);
        assert_met(s);
    }
}

static void a_secret_that_is_not_there_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_see_all(s, "1");
    s->secret = (struct cr_world_secret){0};
    scene_plan(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NO_SECRET);
    assert_int_equal(scene_status(s, 0)->state, CR_CONSUMER_IDLE);
    assert_unmet(s, "NoSecret");
    assert_said_once(s, "NotFound", CR_ABOUT_POLICY);
    scene_material(s, "1");
    scene_due(s);
    scene_record(s);
    scene_due(s);
    assert_met(s);
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NONE);
}

static void a_policy_without_any_secret_is_not_ready(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_see_all(s, "1");
    size_t len = s->policy->secrets_len;
    s->policy->secrets_len = 0; /* a selector that matches none */
    scene_due(s);
    assert_unmet(s, "NoSecret");
    assert_int_equal(scene_status(s, 0)->gate.hold, CR_HOLD_NONE);
    s->policy->secrets_len = len;
}

static void a_policy_that_can_have_no_consumers_is_not_ready(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene *s = scene_new("{}", 1);
    scene_see_all(s, "1");
    size_t len = s->policy->consumers_len;
    s->policy->consumers_len = 0;
    scene_due(s);
    assert_unmet(s, "NoConsumers");
    s->policy->discover.enabled = true; /* some may come */
    scene_due(s);
    assert_met(s);
    s->policy->consumers_len = len;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_consumer_that_uses_none_of_the_secrets_is_reported),
        cmocka_unit_test(what_is_mounted_again_is_met),
        cmocka_unit_test(a_policy_that_can_have_no_consumers_is_not_ready),
        cmocka_unit_test(a_workload_that_is_not_there_is_reported_unless_it_is_optional),
        cmocka_unit_test(a_secret_that_is_not_there_is_reported),
        cmocka_unit_test(a_policy_without_any_secret_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
