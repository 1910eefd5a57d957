#include "codec/tz_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"

static int64_t at(const char *text)
{
    int64_t ms = 0;
    assert_true(cr_time_parse(text, &ms, NULL));
    return ms / 1000;
}

static struct cr_tz_rule rule_of(const char *text)
{
    struct cr_tz_rule rule;
    struct cr_error err = {0};
    if (!cr_tz_rule_parse(text, &rule, &err))
        fail_msg("%s", err.text);
    return rule;
}

enum { H = 3600, M = 60 };

/* A second before a change and at it. */
static void offsets_follow_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *time;
        int32_t offset;
    } cases[] = {
        {"UTC0", "2026-07-01T00:00:00Z", 0},
        {"EST5", "2026-07-01T00:00:00Z", -5 * H},
        {"IST-5:30", "2026-07-01T00:00:00Z", 5 * H + 30 * M},
        {"<-0330>3:30:15", "2026-07-01T00:00:00Z", -(3 * H + 30 * M + 15)},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2100-03-28T00:59:59Z", 1 * H},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2100-03-28T01:00:00Z", 2 * H},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2100-10-31T00:59:59Z", 2 * H},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2100-10-31T01:00:00Z", 1 * H},
        /* South of the equator summer goes over the new year. */
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-12-31T23:00:00Z", 11 * H},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-04-04T15:00:00Z", 10 * H + 30 * M},
        /* Dublin's standard time is that of the summer. */
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-01-01T00:00:00Z", 0},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T00:00:00Z", 1 * H},
        /* RFC 9636, section 3.3.1: times before the day, and daylight time all the year. */
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -2 * H},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -1 * H},
        {"EST5EDT,0/0,J365/25", "2026-01-01T04:59:59Z", -4 * H},
        {"EST5EDT,0/0,J365/25", "2026-01-01T05:00:00Z", -4 * H},
        {"EST5EDT,0/0,J365/25", "2028-12-31T23:00:00Z", -4 * H},
        {"XXX3EDT4,0/0,J365/23", "2026-01-01T03:00:00Z", -4 * H},
        /* J60 is always the 1st of March, 59 the 29th of February in a leap year. */
        {"AAA0BBB,J60/0,J300", "2028-02-29T23:59:59Z", 0},
        {"AAA0BBB,J60/0,J300", "2028-03-01T00:00:00Z", 1 * H},
        {"AAA0BBB,59/0,J300", "2028-02-29T00:00:00Z", 1 * H},
        {"AAA0BBB,59/0,J300", "2027-03-01T00:00:00Z", 1 * H},
        {"AAA0BBB,59/0,J300", "2027-02-28T23:59:59Z", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_tz_rule rule = rule_of(cases[i].rule);
        if (cr_tz_rule_offset(&rule, at(cases[i].time)) != cases[i].offset)
            fail_msg("%s at %s", cases[i].rule, cases[i].time);
    }
}

static void changes_come_one_after_the_other(void **state)
{
    (void)state;
    struct cr_tz_rule rule = rule_of("CET-1CEST,M3.5.0,M10.5.0/3");
    int64_t first = cr_tz_rule_next(&rule, at("2026-11-21T00:00:00Z"));
    assert_int_equal(first, at("2027-03-28T01:00:00Z"));
    assert_int_equal(cr_tz_rule_next(&rule, first - 1), first);
    assert_int_equal(cr_tz_rule_next(&rule, first), at("2027-10-31T01:00:00Z"));
    struct cr_tz_rule none = rule_of("UTC0");
    assert_true(cr_tz_rule_next(&none, first) == INT64_MAX);
}

static void what_is_no_rule_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "CET",
        "CE-1",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-25",
        "CET-1:60",
        "<CET-1",
        "<>0",
        "CET-1 ",
        "A-0B,J60,J300",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J366",
        "CET-1CEST,366,1",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/3x",
        "CET-00001",
        ":Europe/Paris",
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_tz_rule rule;
        struct cr_error err = {0};
        if (cr_tz_rule_parse(cases[i], &rule, &err))
            fail_msg("'%s' was taken", cases[i]);
        assert_int_equal(err.kind, CR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_the_rule),
        cmocka_unit_test(changes_come_one_after_the_other),
        cmocka_unit_test(what_is_no_rule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
