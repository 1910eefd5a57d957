#include "evidence/sidecar_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"

enum { NOW = 1000 * 1000 * 1000, STARTED = NOW - 5000 };

static void keep(struct cr_sidecar_memory **memory, int64_t started_ms, int64_t at_ms, const char *name)
{
    struct cr_sidecar_sighting seen = {
        .at_ms = at_ms, .read = true, .entries = cr_new(struct cr_sidecar_entry), .len = 1};
    strcpy(seen.entries[0].name, name);
    cr_sidecar_memory_keep(memory, started_ms, &seen);
    assert_null(seen.entries); /* taken */
}

static void test_the_last_look_counts_for_as_long_as_it_is_fresh(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t started_ms, now_ms;
        bool awaited;
        bool known;
    } cases[] = {
        {"at once", STARTED, NOW, false, true},
        {"as long as it is kept", STARTED, NOW + CR_SIDECAR_KEPT_MS, false, true},
        {"no longer", STARTED, NOW + CR_SIDECAR_KEPT_MS + 1, false, false},
        {"for as long as somebody waits, who does not ask again", STARTED, NOW + 20LL * CR_SIDECAR_KEPT_MS, true, true},
        {"a clock that was set back", STARTED, NOW - 1, false, false},
        {"a clock that was set back, whoever waits", STARTED, NOW - 1, true, false},
        {"another start", STARTED + 1, NOW, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CR_CLEANUP(cr_sidecar_memory) struct cr_sidecar_memory *memory = NULL;
        keep(&memory, STARTED, NOW - 10, "first");
        keep(&memory, STARTED, NOW, "last");
        CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen;
        cr_sidecar_memory_recall(&memory, cases[i].started_ms, cases[i].now_ms, cases[i].awaited, &seen);
        if ((seen.at_ms != 0) != cases[i].known)
            fail_msg("%s", cases[i].rule);
        if (cases[i].known)
            assert_string_equal(seen.entries[0].name, "last");
    }
}

static void test_what_is_old_takes_no_room(void **state)
{
    (void)state;
    struct cr_sidecar_memory *memory = NULL;
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen;
    cr_sidecar_memory_recall(&memory, STARTED, NOW, false, &seen);
    assert_int_equal(seen.at_ms, 0);
    keep(&memory, STARTED, NOW, "web");
    cr_sidecar_memory_recall(&memory, STARTED, NOW + CR_SIDECAR_KEPT_MS + 1, false, &seen);
    assert_null(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_look_counts_for_as_long_as_it_is_fresh),
        cmocka_unit_test(test_what_is_old_takes_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
