#include "controlplane/controller/control_plane_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strings.h"

static void a_leader_is_the_node_that_its_name_begins_with(void **state)
{
    (void)state;
    static char names[][16] = {"node", "node-1", "node-10"};
    struct cr_packed_item items[] = {{.name = names[0]}, {.name = names[1]}, {.name = names[2]}};
    const struct cr_packed_list nodes = {.items = items, .len = cr_array_len(items)};
    static const struct {
        const char *holder, *node;
    } cases[] = {
        {"node-1_0a1b2c3d-0000-4000-8000-000000000000", "node-1"},
        {"node-10_0a1b", "node-10"},
        {"node_0a1b", "node"},
        {"node-1", NULL},
        {"node-2_0a1b", NULL},
        {"", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        assert_true(cr_streq(cr_control_plane_leader(cases[i].holder, &nodes), cases[i].node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_is_the_node_that_its_name_begins_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
