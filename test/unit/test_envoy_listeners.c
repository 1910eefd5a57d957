#include "drain/envoy_listeners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void names_in_the_statistics_follow_from_the_page(void **state)
{
    static const struct {
        const char *rule;
        const char *page;
        const char *ignored; /* one; NULL: none */
        const char *left_out;
    } cases[] = {
        {"a listener for clients counts", "http::0.0.0.0:8080\nhttps::[::]:8443\n", NULL, ""},
        {"also on a port of those others", "http::0.0.0.0:8002\nx::0.0.0.0:19001\ny::127.0.0.1:9001\n", NULL, ""},
        {"Contour's", "ingress_http::0.0.0.0:8080\nstats-health::0.0.0.0:8002\nenvoy-admin::127.0.0.1:9001\n", NULL,
         "0.0.0.0_8002,127.0.0.1_9001"},
        {"Contour's with TLS", "stats::0.0.0.0:8003\nhealth::0.0.0.0:8002\n", NULL, "0.0.0.0_8003,0.0.0.0_8002"},
        {"names that begin or end so", "stats2::1.1.1.1:1\nmy-stats::1.1.1.1:2\nhealthy::1.1.1.1:3\n", NULL, ""},
        {"Envoy Gateway's",
         "envoy-gateway-proxy-stats-0.0.0.0-19001::0.0.0.0:19001\ndefault/eg/http::0.0.0.0:10080\n"
         "envoy-gateway-proxy-ready-0.0.0.0-19003::0.0.0.0:19003\n",
         NULL, "0.0.0.0_19001,0.0.0.0_19003"},
        {"with IPv6 in the name", "envoy-gateway-proxy-ready-::-19003::[::]:19003\n", NULL, "[__]_19003"},
        {"Envoy's own connections", "inner::envoy://inner/\na:b::envoy://a:b/\n", NULL,
         "envoy_internal_inner,envoy_internal_a_b"},
        {"several addresses", "stats::127.0.0.1:1\nstats::[::1]:1\nstats::127.0.0.1:1\n", NULL, "127.0.0.1_1,[__1]_1"},
        {"a Unix socket", "stats::/run/s.sock\nhealth::@abstract\n", NULL, "/run/s.sock,@abstract"},
        {"what a user names", "mine::0.0.0.0:1\nother::0.0.0.0:2\n", "mine", "mine,0.0.0.0_1"},
        {"by address", "mine::0.0.0.0:1\n", "0.0.0.0:1", "0.0.0.0_1"},
        {"by IPv6 address", "", "[::1]:8080", "[__1]_8080"},
        {"by statistic", "", "my.prefix", "my.prefix"},
        {"a name with colons", "a::b::0.0.0.0:1\n", "a::b", "a__b,0.0.0.0_1"},
        {"as Istio names them", "::_8080::[::]:8080\n", "::_8080", "___8080,[__]_8080"},
        {"other lines", "stats\nstats::\nstats::here\nstats::[::1\nstats::1.1.1.1\nstats:1.1.1.1:1\n::\n\n\r\nOK\n",
         NULL, ""},
        {"no page", "", NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec ignored = {0};
        CR_CLEANUP(cr_strvec) struct cr_strvec out = {0};
        if (cases[i].ignored)
            cr_strvec_add(&ignored, cases[i].ignored);
        cr_envoy_listeners_left_out(cases[i].page, &ignored, &out);
        cr_autofree char *list = cr_strvec_join(&out, ",");
        if (!cr_streq(list, cases[i].left_out))
            fail_msg("%s: '%s'", cases[i].rule, list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_the_statistics_follow_from_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
