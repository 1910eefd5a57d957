#include "controllers/policy_metrics.h"

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

/* A policy of namespace ns with these Secrets, each with a leaf until 1000 s after the epoch; NULL ends them. */
static void show(const struct fixture *f, const char *name, const char *const *secrets,
                 const struct cr_policy_status *status)
{
    struct cr_policy_secret named[4] = {0};
    struct cr_material material = {.has_leaf = true, .not_after_ms = 1000 * 1000};
    struct cr_world_secret seen[4] = {0};
    size_t len = 0;
    for (; secrets[len]; len++) {
        named[len].name = cr_strdup(secrets[len]);
        seen[len].material = &material;
    }
    struct cr_policy policy = {.ns = cr_strdup("ns"), .name = cr_strdup(name), .secrets = named, .secrets_len = len};
    struct cr_world world = {.policy = &policy, .secrets = seen};
    cr_policy_metrics_show(f->shown, &world, status);
    for (size_t i = 0; i < len; i++)
        free(named[i].name);
    free(policy.ns);
    free(policy.name);
}

#define SECRETS(...) ((const char *const[]){__VA_ARGS__, NULL})

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
    struct cr_secret_status secrets[] = {{.pending = {.set = true}}, {.pending = {.set = false}}};
    struct cr_policy_status status = status_of(consumers, cr_array_len(consumers));
    status.secrets = secrets;
    status.secrets_len = cr_array_len(secrets);
    show(&f, "p", SECRETS("tls"), &status);
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
    expect(&f, "certroll_secret_not_after_timestamp_seconds{namespace=\"ns\",secret=\"tls\"} 1000");
    expect_none(&f, "state=\"Idle\"");
    expect_none(&f, "reason=\"Coalesce\"");
    expect_none(&f, "reason=\"\"");

    status.secrets_len = 0;
    status.consumers_len = 1;
    show(&f, "p", SECRETS("tls"), &status);
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
    show(&f, "a", SECRETS(NULL), &status);
    show(&f, "b", SECRETS(NULL), &status);
    show(&f, "b", SECRETS(NULL), &status); /* the same again adds nothing */
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 2");
    cr_policy_metrics_forget(f.shown, "ns", "a");
    expect(&f, "certroll_consumers_by_decision{namespace=\"ns\",decision=\"Restart\"} 1");
    expect_none(&f, "policy=\"a\"");
    cr_policy_metrics_forget(f.shown, "ns", "b");
    cr_policy_metrics_forget(f.shown, "ns", "never-seen");
    expect_none(&f, "namespace=");
    close_fixture(&f);
}

static void an_end_is_told_while_any_policy_has_the_secret(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct cr_policy_status none = {0};
    show(&f, "a", SECRETS("shared", "own"), &none);
    show(&f, "b", SECRETS("shared"), &none);
    show(&f, "a", SECRETS("shared"), &none);
    expect_none(&f, "secret=\"own\"");
    cr_policy_metrics_forget(f.shown, "ns", "a");
    expect(&f, "certroll_secret_not_after_timestamp_seconds{namespace=\"ns\",secret=\"shared\"} 1000");
    show(&f, "b", SECRETS(NULL), &none);
    expect_none(&f, "secret=\"shared\"");
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
    cr_policy_metrics_show(NULL, NULL, &none);
    cr_policy_metrics_forget(NULL, "ns", "p");
    cr_policy_metrics_restarted(NULL, NULL, &none, NULL, NULL);
    cr_policy_metrics_recorded(NULL, &none, &none);
    CR_CLEANUP(cr_policy_metrics) struct cr_policy_metrics *without_registry = cr_policy_metrics_new(NULL);
    struct fixture f = {.shown = without_registry};
    show(&f, "p", SECRETS("tls"), &none);
    cr_policy_metrics_forget(without_registry, "ns", "p");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumers_are_counted_by_state_block_decision_and_evidence),
        cmocka_unit_test(a_namespace_is_the_sum_of_its_policies_and_goes_with_the_last),
        cmocka_unit_test(an_end_is_told_while_any_policy_has_the_secret),
        cmocka_unit_test(restarts_are_counted_by_what_became_of_them),
        cmocka_unit_test(a_restart_is_measured_from_the_earliest_change_that_it_is_for),
        cmocka_unit_test(a_rotation_is_measured_once_when_its_end_is_on_record),
        cmocka_unit_test(without_metrics_nothing_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
