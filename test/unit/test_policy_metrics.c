#include "policy/controller/policy_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

struct fixture {
    struct cr_metrics *metrics;
    struct cr_policy_metrics *shown;
};

static void open_fixture(struct fixture *f)
{
    f->metrics = cr_metrics_new();
    f->shown = cr_policy_metrics_new(f->metrics);
}

static void close_fixture(struct fixture *f)
{
    cr_policy_metrics_free(f->shown);
    cr_metrics_free(f->metrics);
}

static char *page_of(const struct fixture *f)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    return cr_buf_steal(&page);
}

static void expect(const struct fixture *f, const char *line)
{
    cr_autofree char *page = page_of(f);
    cr_autofree char *whole = cr_asprintf("\n%s\n", line);
    if (!strstr(page, whole))
        fail_msg("not told: %s\n%s", line, page);
}

static void expect_none(const struct fixture *f, const char *text)
{
    cr_autofree char *page = page_of(f);
    if (strstr(page, text))
        fail_msg("told: %s\n%s", text, page);
}

#define END(policy, secret)                                                                                            \
    "certroll_secret_not_after_timestamp_seconds{namespace=\"ns\",policy=\"" policy "\",secret=\"" secret "\"}"
#define PROBLEM(policy, secret, reason)                                                                                \
    "certroll_secret_problem{namespace=\"ns\",policy=\"" policy "\",secret=\"" secret "\",reason=\"" reason "\"}"
#define CONDITION(policy, type, reason)                                                                                \
    "certroll_policy_condition{namespace=\"ns\",policy=\"" policy "\",type=\"" type "\",reason=\"" reason "\"}"

static char tls[] = "tls", shared[] = "shared", own[] = "own";

/* A leaf that every consumer has. */
static struct cr_secret_status settled(char *name, int64_t not_after_ms)
{
    return (struct cr_secret_status){
        .name = name, .has_settled = true, .settled = {.has_leaf = true, .not_after_ms = not_after_ms}};
}

/* A policy of namespace ns with these Secrets beside what the status has. */
static void show(const struct fixture *f, const char *name, struct cr_secret_status *secrets, size_t len,
                 const struct cr_policy_status *status)
{
    struct cr_policy_status with = *status;
    with.secrets = secrets;
    with.secrets_len = len;
    cr_policy_metrics_show(f->shown, "ns", name, NULL, &with);
}

static struct cr_policy_status status_of(struct cr_consumer_status *consumers, size_t len)
{
    return (struct cr_policy_status){.consumers = consumers, .consumers_len = len};
}

static void consumers_are_counted_by_state_block_decision_and_evidence(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct cr_consumer_status consumers[] = {
        {.decision = CR_DECISION_HOT_RELOAD, .state = CR_CONSUMER_CONVERGED, .pods = {.total = 3, .verified = 3}},
        {.decision = CR_DECISION_RESTART,
         .state = CR_CONSUMER_PENDING,
         .gate = {CR_HOLD_MAX_CONCURRENT},
         .pods = {.stale = 2}},
        {.decision = CR_DECISION_RESTART,
         .state = CR_CONSUMER_PENDING,
         .gate = {CR_HOLD_COALESCE},
         .pods = {.unknown = 1}},
        {.decision = CR_DECISION_RESTART, .state = CR_CONSUMER_RESTARTING, .gate = {CR_HOLD_DRAIN}},
        {.decision = CR_DECISION_RESTART, .state = CR_CONSUMER_RESTARTING, .gate = {CR_HOLD_EVIDENCE}},
    };
    struct cr_secret_status secrets[] = {settled(tls, 1000 * 1000), settled(own, 2000 * 1000)};
    secrets[0].pending.set = true;
    struct cr_policy_status status = status_of(consumers, cr_array_len(consumers));
    show(&f, "p", secrets, cr_array_len(secrets), &status);
    expect(&f, "certroll_consumers{namespace=\"ns\",policy=\"p\",state=\"Converged\"} 1");
    expect(&f, "certroll_consumers{namespace=\"ns\",policy=\"p\",state=\"Pending\"} 2");
    expect(&f, "certroll_consumers_blocked{namespace=\"ns\",policy=\"p\",reason=\"MaxConcurrent\"} 1");
    expect(&f, "certroll_consumers_blocked{namespace=\"ns\",policy=\"p\",reason=\"Drain\"} 1");
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 4");
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Trigger\"} 0");
    expect(&f, "certroll_pods_by_evidence{namespace=\"ns\",evidence=\"Verified\"} 3");
    expect(&f, "certroll_pods_by_evidence{namespace=\"ns\",evidence=\"Stale\"} 2");
    expect(&f, "certroll_pods_by_evidence{namespace=\"ns\",evidence=\"Unknown\"} 1");
    expect(&f, "certroll_pending_rotations{namespace=\"ns\"} 1");
    expect(&f, "certroll_secret_not_after_timestamp_seconds{namespace=\"ns\",policy=\"p\",secret=\"tls\"} 1000");
    expect_none(&f, "state=\"Idle\"");
    expect_none(&f, "reason=\"Coalesce\"");
    expect_none(&f, "reason=\"\"");

    status.consumers_len = 1;
    show(&f, "p", NULL, 0, &status);
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 0");
    expect(&f, "certroll_pods_by_evidence{namespace=\"ns\",evidence=\"Verified\"} 3");
    expect(&f, "certroll_pending_rotations{namespace=\"ns\"} 0");
    expect_none(&f, "state=\"Pending\"");
    expect_none(&f, "MaxConcurrent");
    close_fixture(&f);
}

static void a_namespace_is_the_sum_of_its_policies_and_goes_with_the_last(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct cr_consumer_status restart = {.decision = CR_DECISION_RESTART, .state = CR_CONSUMER_IDLE};
    struct cr_policy_status status = status_of(&restart, 1);
    show(&f, "a", NULL, 0, &status);
    show(&f, "b", NULL, 0, &status);
    show(&f, "b", NULL, 0, &status); /* the same again adds nothing */
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 2");
    cr_policy_metrics_forget(f.shown, "ns", "a");
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 1");
    expect_none(&f, "policy=\"a\"");
    cr_policy_metrics_forget(f.shown, "ns", "b");
    cr_policy_metrics_forget(f.shown, "ns", "never-seen");
    expect_none(&f, "namespace=");
    close_fixture(&f);
}

static void an_end_is_exported_as_long_as_the_policy_has_the_secret(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const struct cr_policy_status none = {0};
    struct cr_secret_status both[] = {settled(shared, 1000 * 1000), settled(own, 1000 * 1000)};
    show(&f, "a", both, 2, &none);
    show(&f, "b", both, 1, &none);
    show(&f, "a", both, 1, &none);
    expect_none(&f, "secret=\"own\"");
    cr_policy_metrics_forget(f.shown, "ns", "a");
    expect(&f, END("b", "shared") " 1000");
    show(&f, "b", NULL, 0, &none);
    expect_none(&f, "secret=\"shared\"");
    close_fixture(&f);
}

/* An alert on the expiry of what pods serve must not end because the Secret got something worse. */
static void of_several_leaves_the_first_end_is_reported(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const struct cr_policy_status none = {0};
    char reason[] = "KeyMismatch";
    struct cr_secret_status secret = settled(tls, 1000 * 1000);
    secret.pending.set = true;
    secret.pending.target = (struct cr_material){.has_leaf = true, .not_after_ms = 3000 * 1000};
    struct cr_consumer_status consumer = {.state = CR_CONSUMER_RESTARTING};
    const struct cr_policy_status moving = status_of(&consumer, 1);
    show(&f, "p", &secret, 1, &moving);
    expect(&f, END("p", "tls") " 1000");
    consumer.state = CR_CONSUMER_CONVERGED; /* in mode Plan the change stays pending all the same */
    show(&f, "p", &secret, 1, &moving);
    expect(&f, END("p", "tls") " 3000");

    secret = settled(tls, 1000 * 1000);
    secret.problem_reason = reason;
    show(&f, "p", &secret, 1, &none);
    expect(&f, END("p", "tls") " 1000");
    expect(&f, PROBLEM("p", "tls", "KeyMismatch") " 1");
    secret.problem_not_after_ms = 500 * 1000;
    show(&f, "p", &secret, 1, &none);
    expect(&f, END("p", "tls") " 500");

    struct cr_secret_status unseen = {.name = tls, .problem_reason = reason, .problem_not_after_ms = 700 * 1000};
    show(&f, "p", &unseen, 1, &none);
    expect(&f, END("p", "tls") " 700");

    secret = settled(tls, 3000 * 1000);
    show(&f, "p", &secret, 1, &none);
    expect(&f, END("p", "tls") " 3000");
    expect_none(&f, "certroll_secret_problem{");
    close_fixture(&f);
}

static void the_first_end_of_the_valid_cas_is_reported_and_how_many_are_expired(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const struct cr_policy_status none = {0};
    int64_t day_ms = 24LL * 3600 * 1000;
    int64_t now_ms = cr_clock_wall_ms() / 10000 * 10000 + 7000; /* seconds that are printed without an exponent */
    struct cr_ca cas[] = {
        {.not_after_ms = now_ms - day_ms}, {.not_after_ms = now_ms + 3 * day_ms}, {.not_after_ms = now_ms + day_ms}};
    struct cr_secret_status secret = {.name = tls, .has_settled = true, .settled = {.trust = cas, .trust_len = 3}};
    show(&f, "p", &secret, 1, &none);
    cr_autofree char *line =
        cr_asprintf("certroll_secret_ca_not_after_timestamp_seconds{namespace=\"ns\",policy=\"p\",secret=\"tls\"} %lld",
                    (long long)(now_ms + day_ms) / 1000);
    expect(&f, line);
    expect(&f, "certroll_secret_expired_cas{namespace=\"ns\",policy=\"p\",secret=\"tls\"} 1");
    expect_none(&f, "certroll_secret_not_after_timestamp_seconds{");
    secret.settled.trust_len = 0;
    show(&f, "p", &secret, 1, &none);
    expect_none(&f, "secret=\"tls\"");
    close_fixture(&f);
}

static void a_condition_is_exported_while_it_is_not_as_it_should_be(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    cr_status_condition(&status, "Ready", false, "Invalid", "", 1, 0);
    cr_status_condition(&status, "Converged", true, "Converged", "", 1, 0);
    cr_status_condition(&status, "Rotating", true, "ChangePending", "", 1, 0);
    cr_status_condition(&status, "Degraded", true, "Expired", "", 1, 0);
    show(&f, "p", NULL, 0, &status);
    expect(&f, CONDITION("p", "Ready", "Invalid") " 0");
    expect(&f, CONDITION("p", "Degraded", "Expired") " 1");
    expect_none(&f, "type=\"Converged\"");
    expect_none(&f, "type=\"Rotating\"");

    cr_status_condition(&status, "Ready", true, "Accepted", "", 1, 0);
    cr_status_condition(&status, "Degraded", true, "KeyMismatch", "", 1, 0);
    show(&f, "p", NULL, 0, &status);
    expect(&f, CONDITION("p", "Degraded", "KeyMismatch") " 1");
    expect_none(&f, "type=\"Ready\"");
    expect_none(&f, "reason=\"Expired\"");
    cr_policy_metrics_forget(f.shown, "ns", "p");
    expect_none(&f, "certroll_policy_condition{");
    close_fixture(&f);
}

static void restarts_are_counted_by_what_became_of_them(void **state)
{
    (void)state;
    static const struct {
        enum cr_error_kind kind;
        const char *result;
    } cases[] = {
        {CR_ERR_CONFLICT, "conflict"}, {CR_ERR_FORBIDDEN, "refused"}, {CR_ERR_INVALID, "refused"},
        {CR_ERR_THROTTLED, "refused"}, {CR_ERR_NOT_FOUND, "refused"}, {CR_ERR_UNAUTHORIZED, "refused"},
        {CR_ERR_TRANSIENT, "error"},   {CR_ERR_CANCELLED, "error"},   {CR_ERR_INTERNAL, "error"},
    };
    char kind[] = "Deployment";
    char ns[] = "ns";
    struct cr_policy_consumer consumer = {.kind = kind};
    const struct cr_policy policy = {.ns = ns, .consumers = &consumer, .consumers_len = 1};
    const struct cr_plan_restart restart = {.consumer = 0};
    const struct cr_policy_status status = {0};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        open_fixture(&f);
        const struct cr_error failed = {.kind = cases[i].kind};
        cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, &failed);
        cr_autofree char *line = cr_asprintf(
            "certroll_restarts_total{namespace=\"ns\",kind=\"Deployment\",result=\"%s\"} 1", cases[i].result);
        expect(&f, line);
        close_fixture(&f);
    }
}

static void restarts_are_counted_for_each_workload_as_long_as_there_are_not_too_many(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    char kind[] = "Deployment";
    char ns[] = "ns";
    struct cr_policy_consumer consumer = {.kind = kind};
    const struct cr_policy policy = {.ns = ns, .consumers = &consumer, .consumers_len = 1};
    const struct cr_plan_restart restart = {.consumer = 0};
    const struct cr_policy_status status = {0};
    const struct cr_error failed = {.kind = CR_ERR_CONFLICT};
    cr_policy_metrics_show(f.shown, "ns", "p", NULL, &status);
    for (int i = 0; i < CR_RESTARTED_NAMES_MAX + 2; i++) {
        cr_autofree char *name = cr_asprintf("web-%d", i);
        consumer.target = name;
        cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, &failed); /* not a restart */
        cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, NULL);
    }
    char first[] = "web-0";
    consumer.target = first;
    cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, NULL);
    expect(&f, "certroll_workload_restarts_total{namespace=\"ns\",kind=\"Deployment\",workload=\"web-0\"} 2");
    expect(&f, "certroll_workload_restarts_total{namespace=\"ns\",kind=\"Deployment\",workload=\"web-99\"} 1");
    expect(&f, "certroll_workload_restarts_total{namespace=\"ns\",kind=\"\",workload=\"\"} 2");
    expect_none(&f, "workload=\"web-100\"");
    cr_policy_metrics_forget(f.shown, "ns", "p");
    expect_none(&f, "certroll_workload_restarts_total{");
    close_fixture(&f);
}

static void a_restart_is_measured_from_the_earliest_change_that_it_is_for(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    int64_t now_ms = cr_clock_wall_ms();
    char kind[] = "Deployment";
    char ns[] = "ns";
    char rotations[] = "aaaa,bbbb";
    struct cr_policy_consumer consumer = {.kind = kind};
    const struct cr_policy policy = {.ns = ns, .consumers = &consumer, .consumers_len = 1};
    struct cr_secret_status secrets[] = {
        {.pending = {.set = true, .id = "aaaa", .since_ms = now_ms - 20 * 1000}},
        {.pending = {.set = true, .id = "bbbb", .since_ms = now_ms - 40 * 1000}},
        {.pending = {.set = true, .id = "cccc", .since_ms = now_ms - 3600 * 1000}},
    };
    const struct cr_policy_status status = {.secrets = secrets, .secrets_len = cr_array_len(secrets)};
    const struct cr_plan_restart restart = {.rotations = rotations};
    const struct cr_error failed = {.kind = CR_ERR_CONFLICT};
    cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, &failed); /* not a restart */
    cr_policy_metrics_restarted(f.shown, &policy, &status, &restart, NULL);
    expect(&f, "certroll_change_to_restart_seconds_count 1");
    expect(&f, "certroll_change_to_restart_seconds_bucket{le=\"30\"} 0");
    expect(&f, "certroll_change_to_restart_seconds_bucket{le=\"60\"} 1");
    close_fixture(&f);
}

static void a_rotation_is_measured_once_when_its_end_is_on_record(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    char converged[] = "Converged";
    char superseded[] = "Superseded";
    struct cr_policy_status before = {.history_len = 1};
    struct cr_policy_status after = {.history_len = 2};
    before.history[0] = (struct cr_rotation_record){.id = "old", .finished_ms = 7000, .outcome = superseded};
    after.history[0] = (struct cr_rotation_record){
        .id = "new", .started_ms = 10 * 1000, .finished_ms = 17 * 1000, .outcome = converged};
    after.history[1] = (struct cr_rotation_record){.id = "old", .finished_ms = 7250, .outcome = superseded};
    cr_policy_metrics_recorded(f.shown, &before, &after);
    cr_policy_metrics_recorded(f.shown, &after, &after);
    expect(&f, "certroll_rotation_duration_seconds_sum{outcome=\"Converged\"} 7");
    expect(&f, "certroll_rotation_duration_seconds_count{outcome=\"Converged\"} 1");
    expect_none(&f, "outcome=\"Superseded\"");
    close_fixture(&f);
}

static void without_metrics_nothing_is_shown(void **state)
{
    (void)state;
    const struct cr_policy_status none = {0};
    cr_policy_metrics_show(NULL, "ns", "p", NULL, &none);
    cr_policy_metrics_forget(NULL, "ns", "p");
    cr_policy_metrics_restarted(NULL, NULL, &none, NULL, NULL);
    cr_policy_metrics_recorded(NULL, &none, &none);
    CR_CLEANUP(cr_policy_metrics) struct cr_policy_metrics *without_registry = cr_policy_metrics_new(NULL);
    struct fixture f = {.shown = without_registry};
    struct cr_secret_status secret = settled(tls, 1000 * 1000);
    show(&f, "p", &secret, 1, &none);
    cr_policy_metrics_forget(without_registry, "ns", "p");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumers_are_counted_by_state_block_decision_and_evidence),
        cmocka_unit_test(a_namespace_is_the_sum_of_its_policies_and_goes_with_the_last),
        cmocka_unit_test(an_end_is_exported_as_long_as_the_policy_has_the_secret),
        cmocka_unit_test(of_several_leaves_the_first_end_is_reported),
        cmocka_unit_test(the_first_end_of_the_valid_cas_is_reported_and_how_many_are_expired),
        cmocka_unit_test(a_condition_is_exported_while_it_is_not_as_it_should_be),
        cmocka_unit_test(restarts_are_counted_by_what_became_of_them),
        cmocka_unit_test(restarts_are_counted_for_each_workload_as_long_as_there_are_not_too_many),
        cmocka_unit_test(a_restart_is_measured_from_the_earliest_change_that_it_is_for),
        cmocka_unit_test(a_rotation_is_measured_once_when_its_end_is_on_record),
        cmocka_unit_test(without_metrics_nothing_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
