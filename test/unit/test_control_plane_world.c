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

static void what_is_being_deleted_is_waited_for_by_nobody(void **state)
{
    (void)state;
    static char key[] = "k";
    static const struct {
        struct cr_kept_trust kept;
        bool ns_terminating, terminating, out_of_reach;
    } cases[] = {
        {{.key = key, .has_token = true, .readable = true}, false, false},
        {{.key = key, .has_token = true, .readable = true}, true, true},
        {{.key = key, .has_token = true, .readable = true, .deleting = true}, false, true},
        {{.immutable = true}, false, false, true},
        {{.unreadable = true}, false, false, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct cr_kept_trust *kept = &cases[i].kept;
        const struct cr_control_plane_object object =
            cr_control_plane_object_of("ns", "name", kept, cases[i].ns_terminating);
        assert_int_equal(object.terminating, cases[i].terminating);
        assert_ptr_equal(object.key, kept->key);
        assert_int_equal(object.has_token, kept->has_token);
        assert_int_equal(object.out_of_reach, cases[i].out_of_reach);
        assert_ptr_equal(object.prints, kept->readable ? &kept->prints : NULL);
    }
    assert_null(cr_control_plane_object_of("ns", "name", NULL, false).prints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_is_the_node_that_its_name_begins_with),
        cmocka_unit_test(what_is_being_deleted_is_waited_for_by_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
