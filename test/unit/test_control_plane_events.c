#include "controlplane/controller/control_plane_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

#define CONDITION(type, value, reason, message)                                                                        \
    "\"conditions\":[{\"type\":\"" type "\",\"status\":\"" value "\",\"reason\":\"" reason "\",\"message\":\"" message \
    "\",\"lastTransitionTime\":\"2026-11-21T06:10:21Z\"}]"
#define RESTARTING(node) "\"restarting\":{\"node\":\"" node "\",\"component\":\"etcd\",\"token\":\"t-" node "\"}"

static void decode(const char *members, struct cr_control_plane_status *out)
{
    cr_autofree char *text = cr_asprintf("{%s}", members);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("the test's own JSON: %s in %s", err.text, text);
    cr_control_plane_status_decode(json, out);
}

/* Members of a status before and after, and what is said: "!" is a warning. */
static void expect(const char *before, const char *after, const char *expected)
{
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status was;
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status is;
    CR_CLEANUP(cr_control_plane_events) struct cr_control_plane_events events;
    CR_CLEANUP(cr_buf) struct cr_buf said = CR_BUF_INIT(0);
    decode(before, &was);
    decode(after, &is);
    cr_control_plane_events_of(&was, &is, &events);
    for (size_t i = 0; i < events.len; i++)
        cr_buf_printf(&said, "%s%s%s %s", i ? "; " : "", events.items[i].warning ? "!" : "", events.items[i].reason,
                      events.items[i].message);
    assert_string_equal(cr_buf_text(&said), expected);
}

static void what_stays_as_it_is_is_not_said(void **state)
{
    (void)state;
#define SAME RESTARTING("node-1") "," CONDITION("Blocked", "True", "Trap", "m") ",\"cluster\":{\"trusted\":\"a,b\"}"
    expect(SAME, SAME, "");
    expect("", "", "");
}

static void a_restart_is_said_when_it_begins_and_ends(void **state)
{
    (void)state;
    expect("", RESTARTING("node-1"), "Restarting etcd on node-1 is restarted");
    expect(RESTARTING("node-1"), RESTARTING("node-2"),
           "Restarted etcd on node-1 has what its files have; Restarting etcd on node-2 is restarted");
    expect(RESTARTING("node-1"), "", "Restarted etcd on node-1 has what its files have");
    expect("\"restarting\":{\"node\":\"node-1\",\"component\":\"etcd\",\"token\":\"t\",\"revoked\":true}", "",
           "TakenBack the restart of etcd on node-1 was taken back before it began");
    expect(RESTARTING("node-1"), "\"failedToken\":\"t-node-1\"," CONDITION("Degraded", "True", "Step", "no answer"),
           "!RestartFailed etcd on node-1 did not come back: no answer; !Degraded Step: no answer");
}

static void what_is_bad_is_said_again_for_another_reason(void **state)
{
    (void)state;
#define TRAP    CONDITION("Blocked", "True", "Trap", "m")
#define QUORUM  CONDITION("Blocked", "True", "Quorum", "m")
#define OVER    CONDITION("Blocked", "False", "None", "m")
#define READY   CONDITION("Ready", "True", "Watching", "m")
#define UNREADY CONDITION("Ready", "False", "Forbidden", "m")
#define DONE    CONDITION("Converged", "True", "All", "m")
    expect("", TRAP, "!Blocked Trap: m");
    expect(TRAP, QUORUM, "!Blocked Quorum: m");
    expect(QUORUM, OVER, "");
    expect(READY, UNREADY, "!NotReady Forbidden: m");
    expect(UNREADY, UNREADY, "");
    expect(UNREADY, READY, "");
    expect(CONDITION("Converged", "False", "Waits", "m"), DONE, "Converged All: m");
    expect(DONE, CONDITION("Converged", "True", "Again", "m"), "");
    expect("", CONDITION("Conflict", "True", "NotTheOldest", "m"), "!Conflict NotTheOldest: m");
}

static void what_is_safe_now_is_said_but_not_at_first_sight(void **state)
{
    (void)state;
#define OLD                                                                                                            \
    "\"cluster\":{\"trusted\":\"a\",\"removable\":\"\"},\"serviceAccounts\":{\"verifying\":\"k\",\"signing\":\"k\"}"
#define BOTH                                                                                                           \
    "\"cluster\":{\"trusted\":\"a,b\",\"removable\":\"a\"},"                                                           \
    "\"serviceAccounts\":{\"verifying\":\"k,l\",\"signing\":\"l\"}"
    expect("", OLD, "");
    expect(OLD, BOTH,
           "Trusted cluster: everybody has loaded a,b; Removable cluster: no leaf in use needs a; "
           "Trusted service accounts: every API server verifies by k,l; "
           "Signing service accounts: tokens are signed with l");
    expect(BOTH, "\"cluster\":{\"trusted\":\"\",\"removable\":\"\"}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stays_as_it_is_is_not_said),
        cmocka_unit_test(a_restart_is_said_when_it_begins_and_ends),
        cmocka_unit_test(what_is_bad_is_said_again_for_another_reason),
        cmocka_unit_test(what_is_safe_now_is_said_but_not_at_first_sight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
