#include "kube/client_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/cause.h"

static const struct cr_resource deployments = {"apps", "v1", "deployments", "Deployment"};

static bool says(struct cr_metrics *metrics, const char *line)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(metrics, &page);
    return strstr(cr_buf_text(&page), line) != NULL;
}

static void requests_are_counted_with_the_labels_of_client_go(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_client_metrics)
    struct cr_client_metrics *m = cr_client_metrics_new(metrics, "https://10.96.0.1:443/prefix");
    cr_client_metrics_answered(m, "GET", 200);
    cr_client_metrics_answered(m, "PATCH", 0);
    cr_client_metrics_retried(m, "PATCH", 401);
    const struct cr_exchange_size size = {.took_ns = 30 * 1000 * 1000, .sent = 300, .received = 5000};
    cr_client_metrics_exchanged(m, "PATCH", &size);
    static const char *const lines[] = {
        "\nrest_client_requests_total{code=\"200\",method=\"GET\",host=\"10.96.0.1:443\"} 1\n",
        "\nrest_client_requests_total{code=\"<error>\",method=\"PATCH\",host=\"10.96.0.1:443\"} 1\n",
        "\nrest_client_request_retries_total{code=\"401\",verb=\"PATCH\",host=\"10.96.0.1:443\"} 1\n",
        "\nrest_client_request_duration_seconds_sum{verb=\"PATCH\",host=\"10.96.0.1:443\"} 0.03\n",
        "\nrest_client_request_size_bytes_sum{verb=\"PATCH\",host=\"10.96.0.1:443\"} 300\n",
        "\nrest_client_response_size_bytes_sum{verb=\"PATCH\",host=\"10.96.0.1:443\"} 5000\n",
    };
    for (size_t i = 0; i < cr_array_len(lines); i++)
        if (!says(metrics, lines[i]))
            fail_msg("not told: %s", lines[i]);
}

static void watches_are_counted_by_their_resource(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_client_metrics) struct cr_client_metrics *m = cr_client_metrics_new(metrics, "https://a:1");
    cr_client_metrics_received(m, &cr_res_pods, 70);
    cr_client_metrics_received(m, &cr_res_pods, 30);
    cr_client_metrics_event(m, &cr_res_pods, "ADDED");
    cr_client_metrics_listed(m, &cr_res_secrets);
    cr_client_metrics_restarted(m, &cr_res_pods, CR_ERR_NONE);
    cr_client_metrics_restarted(m, &cr_res_pods, CR_ERR_GONE);
    static const char *const lines[] = {
        "\ncertroll_watch_received_bytes_total{resource=\"pods\"} 100\n",
        "\ncertroll_watch_events_total{resource=\"pods\",type=\"ADDED\"} 1\n",
        "\ncertroll_watch_lists_total{resource=\"secrets\"} 1\n",
        "\ncertroll_watch_restarts_total{resource=\"pods\",reason=\"TimedOut\"} 1\n",
        "\ncertroll_watch_restarts_total{resource=\"pods\",reason=\"Gone\"} 1\n",
    };
    for (size_t i = 0; i < cr_array_len(lines); i++)
        if (!says(metrics, lines[i]))
            fail_msg("not told: %s", lines[i]);
}

static void only_the_first_write_is_measured_from_the_event(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_client_metrics) struct cr_client_metrics *m = cr_client_metrics_new(metrics, "https://a:1");
    cr_client_metrics_write(m, &deployments); /* for nothing that came from a watch */
    assert_false(says(metrics, "\ncertroll_watch_to_write_seconds_count"));
    cr_cause_set(cr_clock_monotonic_ns() - 3 * 1000 * 1000);
    cr_client_metrics_write(m, &deployments);
    cr_client_metrics_write(m, &cr_res_policies);
    assert_true(says(metrics, "\ncertroll_watch_to_write_seconds_count{resource=\"deployments\"} 1\n"));
    assert_true(says(metrics, "\ncertroll_watch_to_write_seconds_bucket{resource=\"deployments\",le=\"0.0025\"} 0\n"));
    assert_false(says(metrics, "{resource=\"certrotationpolicies\"}"));
    assert_int_equal(cr_cause_get(), 0);
}

static void without_a_registry_nothing_is_counted(void **state)
{
    (void)state;
    assert_null(cr_client_metrics_new(NULL, "https://a:1"));
    cr_cause_set(1);
    cr_client_metrics_write(NULL, &deployments);
    cr_client_metrics_answered(NULL, "GET", 200);
    cr_client_metrics_exchanged(NULL, "GET", &(struct cr_exchange_size){0});
    cr_client_metrics_retried(NULL, "GET", 401);
    cr_client_metrics_received(NULL, &cr_res_pods, 1);
    cr_client_metrics_event(NULL, &cr_res_pods, "ADDED");
    cr_client_metrics_listed(NULL, &cr_res_pods);
    cr_client_metrics_restarted(NULL, &cr_res_pods, CR_ERR_GONE);
    cr_client_metrics_free(NULL);
    cr_cause_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_counted_with_the_labels_of_client_go),
        cmocka_unit_test(watches_are_counted_by_their_resource),
        cmocka_unit_test(only_the_first_write_is_measured_from_the_event),
        cmocka_unit_test(without_a_registry_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
