#include "controlplane/controller/control_plane_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/strings.h"

static void expect(struct cr_metrics *metrics, const char *line, bool there)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page);
    if ((strstr(page.data, line) != NULL) != there)
        fail_msg("%s%s:\n%s", there ? "missing " : "there is ", line, page.data);
}

static void decode(const char *text, struct cr_control_plane_status *out)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("the test's own JSON: %s in %s", err.text, text);
    cr_control_plane_status_decode(json, out);
}

#define RESTARTING(component, token, second)                                                                           \
    "\"restarting\":{\"node\":\"node-1\",\"component\":\"" component "\",\"token\":\"" token                           \
    "\",\"since\":\"1970-01-01T00:00:0" second "Z\"}"

static void a_status_is_shown_and_leaves_nothing_behind(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_control_plane_metrics)
    struct cr_control_plane_metrics *m = cr_control_plane_metrics_new(metrics);
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status later;
    decode("{\"cluster\":{\"notAfter\":\"1970-01-01T00:00:05Z\"},\"nodes\":{\"total\":5,\"converged\":4},"
           "\"consumers\":[{\"component\":\"etcd\",\"nodes\":3,\"loaded\":2,\"restartNeeded\":1},"
           "{\"component\":\"kubelet\",\"soon\":4}]," RESTARTING(
               "etcd", "t",
               "1") ",\"conditions\":[{\"type\":\"Ready\","
                    "\"status\":\"True\",\"reason\":\"Watching\",\"lastTransitionTime\":\"1970-01-01T00:00:05Z\"}]}",
           &status);
    decode("{\"consumers\":[{\"component\":\"etcd\",\"loaded\":2}]}", &later);
    cr_control_plane_metrics_show(m, &status);
    expect(metrics, "certroll_control_plane_objects{kind=\"nodes\",state=\"total\"} 5\n", true);
    expect(metrics, "certroll_control_plane_objects{kind=\"nodes\",state=\"converged\"} 4\n", true);
    expect(metrics, "certroll_control_plane_component_nodes{component=\"etcd\",state=\"restart_needed\"} 1\n", true);
    expect(metrics, "certroll_control_plane_component_nodes{component=\"kubelet\",state=\"soon\"} 4\n", true);
    expect(metrics, "certroll_control_plane_condition{type=\"Ready\"} 1\n", true);
    expect(metrics, "certroll_control_plane_condition{type=\"Blocked\"}", false);
    expect(metrics, "certroll_control_plane_ca_not_after_timestamp_seconds{pki=\"cluster\"} 5\n", true);
    expect(metrics, "certroll_control_plane_ca_not_after_timestamp_seconds{pki=\"etcd\"}", false);
    expect(metrics, "certroll_control_plane_restarting{node=\"node-1\",component=\"etcd\"} 1\n", true);

    cr_control_plane_metrics_show(m, &later);
    expect(metrics, "component=\"kubelet\"", false);
    expect(metrics, "certroll_control_plane_restarting{", false);
    expect(metrics, "component=\"etcd\",state=\"loaded\"} 2\n", true);

    cr_control_plane_metrics_forget(m);
    expect(metrics, "_objects{", false);
    expect(metrics, "_component_nodes{", false);
    expect(metrics, "_condition{", false);
    expect(metrics, "_not_after_timestamp_seconds{", false);
}

static void restarts_are_counted_when_they_end(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_control_plane_metrics)
    struct cr_control_plane_metrics *m = cr_control_plane_metrics_new(metrics);
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status none;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status first;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status second;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status failed;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status revoked;
    decode("{" RESTARTING("etcd", "a", "1") "}", &revoked);
    revoked.restarting_revoked = true;
    decode("{}", &none);
    decode("{" RESTARTING("etcd", "a", "1") "}", &first);
    decode("{" RESTARTING("kubelet", "b", "9") "}", &second);
    decode("{\"failedToken\":\"b\"}", &failed);
    cr_control_plane_metrics_recorded(m, &none, &first, 1000);
    cr_control_plane_metrics_recorded(m, &first, &first, 3000);
    cr_control_plane_metrics_recorded(m, &revoked, &none, 4000);
    expect(metrics, "certroll_control_plane_restarts_total{", false);
    cr_control_plane_metrics_recorded(m, &first, &second, 14000);
    cr_control_plane_metrics_recorded(m, &second, &failed, 20000);
    expect(metrics, "certroll_control_plane_restarts_total{component=\"etcd\",outcome=\"done\"} 1\n", true);
    expect(metrics, "certroll_control_plane_restarts_total{component=\"kubelet\",outcome=\"failed\"} 1\n", true);
    expect(metrics, "certroll_control_plane_restart_duration_seconds_sum{component=\"etcd\"} 13\n", true);
    expect(metrics, "certroll_control_plane_restart_duration_seconds_sum{component=\"kubelet\"}", false);
    cr_control_plane_metrics_renewed(m, 0);
    cr_control_plane_metrics_renewed(m, 3);
    expect(metrics, "certroll_control_plane_token_secrets_renewed_total 3\n", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_shown_and_leaves_nothing_behind),
        cmocka_unit_test(restarts_are_counted_when_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
