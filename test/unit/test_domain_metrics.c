#include "trust/controller/domain_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

struct fixture {
    struct cr_metrics *metrics;
    struct cr_domain_metrics *m;
    struct cr_domain domain;
    struct cr_domain_status status;
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.domain = {.ns = cr_strdup("shop"), .name = cr_strdup("mesh")}};
    f->metrics = cr_metrics_new();
    f->m = cr_domain_metrics_new(f->metrics);
}

static void close_fixture(struct fixture *f)
{
    cr_domain_metrics_free(f->m);
    cr_metrics_free(f->metrics);
    cr_domain_status_dispose(&f->status);
    free(f->domain.ns);
    free(f->domain.name);
}

static void expect(struct fixture *f, const char *line, bool there)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    if ((strstr(page.data, line) != NULL) != there)
        fail_msg("%s%s:\n%s", there ? "missing " : "there is ", line, page.data);
}

static void show(struct fixture *f)
{
    cr_domain_metrics_show(f->m, &f->domain, &f->status);
}

static void a_domain_shows_its_stage_its_authorities_and_its_leaves(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct cr_domain_object_status *leaf = cr_domain_status_object_add(&f.status, "Secret", "shop", "server");
    leaf->leaf_not_after_ms = 5000;
    f.status.cas[0] = (struct cr_domain_ca_status){.part = CR_CA_CURRENT, .not_after_ms = 9000};
    f.status.cas[1] = (struct cr_domain_ca_status){.part = CR_CA_PREVIOUS, .not_after_ms = 8000};
    f.status.cas[2] = (struct cr_domain_ca_status){.part = CR_CA_PREVIOUS, .not_after_ms = 7000};
    f.status.cas_len = 3;
    f.status.stage = CR_STAGE_TRUSTING;
    show(&f);
    expect(&f, "certroll_domain_stage{namespace=\"shop\",domain=\"mesh\",stage=\"Trusting\"} 1", true);
    expect(&f,
           "certroll_domain_ca_not_after_timestamp_seconds{namespace=\"shop\",domain=\"mesh\",part=\"Current\"} 9\n",
           true);
    expect(&f, "part=\"Previous\"} 7\n", true);
    expect(&f, "part=\"Next\"", false);
    expect(&f, "certroll_domain_leaf_not_after_timestamp_seconds{namespace=\"shop\",secret=\"server\"} 5\n", true);
    expect(&f, "certroll_domain_objects_refused{", false);

    f.status.cas_len = 1;
    f.status.stage = CR_STAGE_HELD;
    leaf->leaf_not_after_ms = 0;
    leaf->problem = CR_TRUST_NOT_OURS;
    show(&f);
    expect(&f, "stage=\"Trusting\"", false);
    expect(&f, "stage=\"Held\"} 1", true);
    expect(&f, "part=\"Previous\"", false);
    expect(&f, "secret=\"server\"", false);
    expect(&f, "certroll_domain_objects_refused{namespace=\"shop\",domain=\"mesh\",reason=\"NotOurs\"} 1", true);

    leaf->leaf_not_after_ms = 5000;
    show(&f);
    cr_domain_metrics_forget(f.m, "shop", "mesh");
    cr_domain_metrics_forget(f.m, "shop", "mesh");
    expect(&f, "namespace=\"shop\"", false);
    close_fixture(&f);
}

static void a_condition_is_exported_while_it_is_not_as_it_should_be(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    char reason[] = "Forbidden";
    f.status.conditions[0] = (struct cr_condition){.type = "Ready", .status = true, .reason = reason};
    f.status.conditions[1] = (struct cr_condition){.type = "Converged", .status = false, .reason = reason};
    f.status.conditions[2] = (struct cr_condition){.type = "Degraded", .status = true, .reason = reason};
    f.status.conditions[3] = (struct cr_condition){.type = "Rotating", .status = true, .reason = reason};
    show(&f);
    expect(&f,
           "certroll_domain_condition{namespace=\"shop\",domain=\"mesh\",type=\"Converged\",reason=\"Forbidden\"} 0",
           true);
    expect(&f, "certroll_domain_condition{namespace=\"shop\",domain=\"mesh\",type=\"Degraded\",reason=\"Forbidden\"} 1",
           true);
    expect(&f, "type=\"Ready\"", false);
    expect(&f, "type=\"Rotating\"", false);
    f.status.conditions[2].status = false;
    show(&f);
    expect(&f, "type=\"Degraded\"", false);
    cr_domain_metrics_forget(f.m, "shop", "mesh");
    expect(&f, "certroll_domain_condition{", false);
    memset(f.status.conditions, 0, sizeof f.status.conditions);
    close_fixture(&f);
}

static void stages_and_rotations_are_counted_once(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    CR_CLEANUP(cr_domain_status) struct cr_domain_status after = {0};
    char what[] = "CA", outcome[] = "Converged";
    const struct cr_domain_rotation record = {.id = "1",
                                              .what = what,
                                              .started_ms = 1000,
                                              .finished_ms = 9000,
                                              .trusting_ms = 3000,
                                              .switching_ms = 4000,
                                              .outcome = outcome};
    cr_domain_status_history_add(&after, &record);
    cr_domain_metrics_recorded(f.m, &f.status, &after);
    cr_domain_metrics_recorded(f.m, &after, &after);
    expect(&f, "certroll_domain_stage_duration_seconds_sum{stage=\"Trusting\",restarted=\"false\"} 3\n", true);
    expect(&f, "certroll_domain_stage_duration_seconds_count{stage=\"Switching\",restarted=\"false\"} 1\n", true);
    expect(&f, "stage=\"Retiring\"", false); /* there was none */
    expect(&f, "certroll_domain_rotation_duration_seconds_sum{what=\"CA\",outcome=\"Converged\"} 8\n", true);
    expect(&f, "certroll_domain_rotation_duration_seconds_count{what=\"CA\",outcome=\"Converged\"} 1\n", true);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_domain_shows_its_stage_its_authorities_and_its_leaves),
        cmocka_unit_test(a_condition_is_exported_while_it_is_not_as_it_should_be),
        cmocka_unit_test(stages_and_rotations_are_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
