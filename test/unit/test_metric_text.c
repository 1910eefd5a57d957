#include "drain/metric_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static const char page[] = "# HELP open Open \"connections\" {of} clients\n"
                           "# TYPE open gauge\n"
                           "open{entry=\"web\",proto=\"TCP\"} 3\n"
                           "open{entry=\"web\",proto=\"UDP\",} 4 1700000000000\n"
                           "open { entry = \"metrics\" , proto = \"TCP\" } 1\n"
                           "open{entry=\"a\\\"b\\\\c\\nd}\"} 10\n"
                           "\n"
                           "open_total 1e+06\n"
                           "  indented\t5\t\n"
                           "free 0.25\n"
                           "free{x=\"\"} 1.5\n"
                           "lost NaN\n"
                           "endless +Inf\n"
                           "below{a=\"1\"} -1\n"
                           "#\n"
                           "job:open:sum 7\n";

static void samples_are_summed(void **state)
{
    static const struct {
        const char *metric;
        uint64_t sum;
    } cases[] = {
        {"open", 18},
        {"open{}", 18},
        {"open{entry=\"web\"}", 7},
        {"open{entry=\"web\",proto=\"UDP\"}", 4},
        {"open{ entry = \"web\" , proto = \"UDP\", }", 4},
        {"open{entry!=\"metrics\"}", 17},
        {"open{proto=\"\"}", 10},
        {"open{proto!=\"\"}", 8},
        {"open{other=\"\",entry=\"metrics\"}", 1},
        {"open{entry=\"a\\\"b\\\\c\\nd}\"}", 10},
        {"open_total", 1000000},
        {"indented", 5},
        {"free", 2}, /* 1.75: a part of a connection is one */
        {"job:open:sum", 7},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t sum = 99;
        if (!cr_metric_sum(page, strlen(page), cases[i].metric, &sum, &err) || sum != cases[i].sum)
            fail_msg("%s: %llu %s", cases[i].metric, (unsigned long long)sum, err.text);
    }
}

static void what_is_no_number_of_connections_is_reported(void **state)
{
    static const struct {
        const char *metric;
        const char *words;
    } cases[] = {
        {"ope", "no sample of ope"},
        {"open{entry=\"we\"}", "no sample"},
        {"open{entry=\"\"}", "no sample"},
        {"Open", "no sample"},
        {"lost", "no number of connections: 'lost NaN'"},
        {"endless", "no number of connections"},
        {"below", "no number of connections"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t sum = 99;
        if (cr_metric_sum(page, strlen(page), cases[i].metric, &sum, &err) || sum != 99 || err.kind != CR_ERR_INVALID ||
            !strstr(err.text, cases[i].words))
            fail_msg("%s: %llu %s", cases[i].metric, (unsigned long long)sum, err.text);
    }
}

/* In a text that is not of the format, a number that can be read is worth nothing either. */
static void another_text_is_no_number(void **state)
{
    static const char *const cases[] = {
        "open 1\nopen",
        "open 1\nopen\n",
        "open 1\nopen 1 2 3\n",
        "open 1\nopen 1x\n",
        "open 1\nopen 0x10\n",
        "open 1\nopen one\n",
        "open 1\n2open 1\n",
        "open 1\nopen{a=\"1\" 1\n",
        "open 1\nopen{a=\"1\"b=\"2\"} 1\n",
        "open 1\nopen{a=1} 1\n",
        "open 1\nopen{a!=\"1\"} 1\n",
        "open 1\nopen{a=\"1} 1\n",
        "open 1\nopen{a=\"\\t\"} 1\n",
        "open 1\nopen{,} 1\n",
        "open 1\nopen{\"a\"=\"1\"} 1\n",
        "open 1\n<html>\n",
        "open 1\nlistener.a.downstream_cx_active: 0\n",
        "open 1\nopen 9007199254740994\n",
        "open 1\nother 1 # {a=\"1\"} 1\n",
        "open 1",
        "{\"open\":1}\n",
        "",
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        uint64_t sum = 99;
        if (cr_metric_sum(cases[i], strlen(cases[i]), "open", &sum, &err) || sum != 99 || err.kind != CR_ERR_INVALID)
            fail_msg("'%s': %llu", cases[i], (unsigned long long)sum);
    }
}

static void a_metric_is_checked_before_it_is_asked_for(void **state)
{
    static const char *const bad[] = {
        "", "1a", "a b", "a{", "a{b}", "a{b=c}", "a{b=~\"c\"}", "a{b=\"c\"", "a{b=\"c\"}x", "a.b", "sum(a)", "a{=\"\"}",
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(bad); i++) {
        struct cr_error err = {0};
        if (cr_metric_check(bad[i], &err) || err.kind != CR_ERR_INVALID || !strstr(err.text, "name{label=\"value\"}"))
            fail_msg("'%s': %s", bad[i], err.text);
    }
    assert_true(cr_metric_check("a:b_1", NULL));
    assert_true(cr_metric_check("_a{b=\"c\",d!=\"\"}", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_summed),
        cmocka_unit_test(what_is_no_number_of_connections_is_reported),
        cmocka_unit_test(another_text_is_no_number),
        cmocka_unit_test(a_metric_is_checked_before_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
