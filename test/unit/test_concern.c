/* Which policies an event is told to, where a scene of the cache (test_cache.c) would show it only by its absence. */
#include "controllers/concern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/project.h"
#include "support/yamltext.h"

/* A policy on the Secrets, at a generation, that remembers Secrets and may say Conflict. */
static struct cr_snapshot *policy(const char *secrets, int generation, const char *status)
{
    cr_autofree char *text = cr_asprintf("{metadata: {name: p, namespace: ns, generation: %d}, spec: {secrets: [%s]}, "
                                         "status: {%s}}",
                                         generation, secrets, status);
    struct cr_snapshot *snapshot = cr_snapshot_new(test_yaml(text));
    cr_project_policy(snapshot->json, snapshot);
    return snapshot;
}

#define CONFLICT(status) "conditions: [{type: Ready, status: 'False'}, {type: Conflict, status: '" status "'}]"

static void a_neighbour_is_told_what_may_concern_it_and_no_more(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *secrets, *status; /* of the neighbour */
        const char *before;           /* Secrets of the policy that moved; NULL: it was not there */
        const char *after;
        bool only_status;
        bool told;
    } cases[] = {
        {"a policy comes", "{name: s}", "", NULL, "{name: s}", false, true},
        {"with nothing in common", "{name: s}", "", NULL, "{name: t}", false, false},
        {"a policy goes", "{name: s}", "", "{name: s}", NULL, false, true},
        {"it lets go of a Secret", "{name: s}", "", "{name: s}", "{name: t}", false, true},
        {"a Secret that the neighbour only remembers", "{name: u}", "secrets: [{name: s}]", "{name: s}", "{name: s}",
         false, true},
        {"its status moves", "{name: s}", CONFLICT("False"), "{name: s}", "{name: s}", true, false},
        {"and who never said Conflict waits for nothing", "{name: s}", "", "{name: s}", "{name: s}", true, false},
        {"but who says it waits for that", "{name: s}", CONFLICT("True"), "{name: s}", "{name: s}", true, true},
        {"for what they have in common", "{name: s}", CONFLICT("True"), "{name: t}", "{name: t}", true, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *neighbour = policy(cases[i].secrets, 1, cases[i].status);
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *before = cases[i].before ? policy(cases[i].before, 1, "") : NULL;
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *after =
            cases[i].after ? policy(cases[i].after, cases[i].only_status ? 1 : 2, "stage: Idle") : NULL;
        if (cr_concerns_neighbour(neighbour, before, after) != cases[i].told)
            fail_msg("%s", cases[i].rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_neighbour_is_told_what_may_concern_it_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
