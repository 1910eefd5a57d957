#include "drain/haproxy_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* As 2.6.12 has it, without the columns behind. */
#define INFO "Name: HAProxy\nVersion: 2.6.12\nPid: 11532\nPidX: 0\nnode: vm\n\n"
#define HEAD                                                                                                           \
    INFO                                                                                                               \
        "# "                                                                                                           \
        "pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,weight\n"
#define ROW(name, open, status) name ",FRONTEND,,," open ",9,9984,9,76,104,0,0,0,,,,," status ",\n"

static bool read_with(const char *text, const struct cr_strvec *ignored, struct cr_haproxy_stats *out,
                      struct cr_error *err)
{
    *out = (struct cr_haproxy_stats){0};
    return cr_haproxy_stats_read(text, ignored, out, err);
}

static void the_frontends_of_clients_are_summed_up(void **state)
{
    static const struct {
        const char *text, *frontends, *running;
        uint64_t open;
    } cases[] = {
        {HEAD "\n", "", "", 0},
        {HEAD ROW("web", "4", "OPEN") "\n", "web", "web", 4},
        {HEAD ROW("web", "4", "STOP") ROW("tcp", "3", "PAUSED") "\n", "web, tcp", "tcp", 7},
        {HEAD ROW("web", "4", "STOP") "\n\n", "web", "", 4}, /* a connection's last answer has one line more */
        {HEAD ROW("stats", "1", "OPEN") ROW("healthz", "1", "OPEN") ROW("metrics", "1", "OPEN")
             ROW("prometheus", "1", "OPEN") ROW("admin-only", "1", "OPEN") ROW("stats2", "2", "STOP") "\n",
         "stats2", "", 2},
        {INFO "# scur,pxname,status,svname\n5,web,STOP,FRONTEND\n\n", "web", "", 5}, /* by name, not by place */
    };
    CR_CLEANUP(cr_strvec) struct cr_strvec ignored = {0};
    (void)state;
    cr_strvec_add(&ignored, "admin-only");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats stats = {0};
        struct cr_error err = {0};
        if (!read_with(cases[i].text, &ignored, &stats, &err))
            fail_msg("%zu: %s", i, err.text);
        cr_autofree char *frontends = cr_strvec_join(&stats.frontends, ", ");
        cr_autofree char *running = cr_strvec_join(&stats.running, ", ");
        assert_string_equal(frontends, cases[i].frontends);
        assert_string_equal(running, cases[i].running);
        assert_int_equal(stats.open, cases[i].open);
        assert_int_equal(stats.pid, 11532);
    }
}

static void what_is_not_understood_is_no_number(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "(nothing)"},
        {"\n", "(nothing)"},
        {"Permission denied\n\n", "Permission denied"},
        {"<html><body>503</body></html>\n\n", "<html>"},
        {INFO "pxname,svname,scur,status\nweb,FRONTEND,0,STOP\n\n", "pxname,svname"},
        {INFO "# pxname,svname,status\nweb,FRONTEND,STOP\n\n", "# pxname,svname,status"}, /* no scur */
        {INFO "# pxname,pxname,svname,scur,status\n\n", "# pxname,pxname"},
        {"Name: HAProxy\n\n# pxname,svname,scur,status\n\n", "no pid"},
        {"Name: HAProxy\nPid: 0\n\n# pxname,svname,scur,status\n\n", "no pid"},
        {"Name: HAProxy\nPid: 7x\n\n# pxname,svname,scur,status\n\n", "Pid: 7x"},
        {"Name: HAProxy\nPid: 4294967297\n\n# pxname,svname,scur,status\n\n", "Pid: 4294967297"},
        {"# pxname,svname,scur,status\n\n", "# pxname"}, /* no info */
        {INFO, "(nothing)"},
        {HEAD, "breaks off"},
        {HEAD ROW("web", "0", "STOP"), "breaks off"},
        {HEAD ROW("web", "0", "STOP") "tcp,FRONTEND,,,0,", "breaks off"},
        {HEAD "web,FRONTEND,,,\n\n", "web,FRONTEND"},
        {HEAD ROW("web", "", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", "-1", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", " 1", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", "0x10", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", "99999999999999999999", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", "0", "") "\n", "web,FRONTEND"},
        {HEAD ROW("", "0", "STOP") "\n", ",FRONTEND"},
        {HEAD ROW("web;shutdown frontend x", "0", "STOP") "\n", "web;shutdown"},
        {HEAD ROW("\"web\"", "0", "STOP") "\n", "\"web\""},
        {HEAD "web,BACKEND,,,0,9,9984,9,76,104,0,0,0,,,,,STOP,\n\n", "web,BACKEND"},
        {HEAD ROW("web", "9007199254740993", "STOP") "\n", "web,FRONTEND"},
        {HEAD ROW("web", "9007199254740992", "STOP") ROW("tcp", "1", "STOP") "\n", "tcp,FRONTEND"},
    };
    const struct cr_strvec none = {0};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats stats = {0};
        struct cr_error err = {0};
        if (read_with(cases[i].text, &none, &stats, &err))
            fail_msg("%zu was understood: %s", i, cases[i].text);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].words))
            fail_msg("%zu: expected '%s' in: %s", i, cases[i].words, err.text);
    }
}

/* However early it breaks off: an error, never a smaller number. */
static void a_part_is_never_taken_for_the_whole(void **state)
{
    static const char whole[] = HEAD ROW("web", "4", "STOP") ROW("tcp", "12", "STOP") "\n";
    const struct cr_strvec none = {0};
    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats stats = {0};
        struct cr_error err = {0};
        cr_autofree char *part = cr_strndup(whole, len);
        if (read_with(part, &none, &stats, &err))
            fail_msg("the first %zu bytes were taken for the whole", len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_frontends_of_clients_are_summed_up),
        cmocka_unit_test(what_is_not_understood_is_no_number),
        cmocka_unit_test(a_part_is_never_taken_for_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
