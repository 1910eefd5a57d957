#include "base/strmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"

static unsigned freed;

static void count_and_free(void *value)
{
    freed++;
    free(value);
}

static int set_up(void **state)
{
    freed = 0;
    *state = cr_strmap_new(count_and_free);
    return 0;
}

static int tear_down(void **state)
{
    cr_strmap_free(*state);
    return 0;
}

static void a_value_is_owned_until_it_is_taken(void **state)
{
    struct cr_strmap *map = *state;
    char key[] = "ns/name";
    cr_strmap_set(map, key, cr_strdup("one"));
    key[0] = 'x'; /* keys are copied */
    assert_string_equal(cr_strmap_get(map, "ns/name"), "one");
    assert_null(cr_strmap_get(map, "xs/name"));
    cr_strmap_set(map, "ns/name", cr_strdup("two"));
    assert_int_equal(freed, 1);
    assert_int_equal(cr_strmap_len(map), 1);
    cr_strmap_set(map, "ns/name", cr_strmap_get(map, "ns/name")); /* the same again */
    assert_int_equal(freed, 1);
    cr_autofree char *taken = cr_strmap_take(map, "ns/name");
    assert_string_equal(taken, "two");
    assert_int_equal(freed, 1);
    assert_int_equal(cr_strmap_len(map), 0);
    assert_null(cr_strmap_take(map, "ns/name"));
    assert_false(cr_strmap_remove(map, "ns/name"));
    cr_strmap_set(map, "", cr_strdup("empty key"));
    assert_true(cr_strmap_remove(map, ""));
    assert_int_equal(freed, 2);
}

static void clearing_frees_all_and_the_map_goes_on(void **state)
{
    struct cr_strmap *map = *state;
    for (int i = 0; i < 100; i++) {
        cr_autofree char *key = cr_asprintf("%d", i);
        cr_strmap_set(map, key, cr_strdup(key));
    }
    cr_strmap_clear(map);
    assert_int_equal(freed, 100);
    assert_int_equal(cr_strmap_len(map), 0);
    cr_strmap_set(map, "5", cr_strdup("again"));
    assert_string_equal(cr_strmap_get(map, "5"), "again");
}

static void a_map_may_hold_what_is_not_its_own(void **state)
{
    (void)state;
    CR_CLEANUP(cr_strmap) struct cr_strmap *map = cr_strmap_new(NULL);
    int borrowed = 5;
    cr_strmap_set(map, "x", &borrowed);
    cr_strmap_set(map, "null", NULL);
    assert_ptr_equal(cr_strmap_get(map, "x"), &borrowed);
    assert_int_equal(cr_strmap_len(map), 2);
    assert_true(cr_strmap_remove(map, "null"));
    cr_strmap_free(NULL);
}

enum { KEYS = 300, STEPS = 60000 };

/* The plainest thing that can be right. */
struct model {
    bool there[KEYS];
    int value[KEYS];
    size_t len;
};

static void compare(const struct cr_strmap *map, const struct model *model)
{
    assert_int_equal(cr_strmap_len(map), model->len);
    bool seen[KEYS] = {false};
    size_t count = 0;
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it); count++) {
        int key = atoi(it.key + 1);
        assert_true(model->there[key]);
        assert_false(seen[key]);
        seen[key] = true;
        assert_int_equal(*(int *)it.value, model->value[key]);
    }
    assert_int_equal(count, model->len);
}

static void step(struct cr_strmap *map, struct model *model, int key, bool set, int value)
{
    char name[16];
    snprintf(name, sizeof name, "k%d", key);
    const int *found = cr_strmap_get(map, name);
    assert_true((found != NULL) == model->there[key]);
    if (found)
        assert_int_equal(*found, model->value[key]);
    if (set) {
        int *box = cr_malloc(sizeof *box);
        *box = value;
        cr_strmap_set(map, name, box);
        model->len += !model->there[key];
        model->value[key] = value;
    } else {
        assert_true(cr_strmap_remove(map, name) == model->there[key]);
        model->len -= model->there[key];
    }
    model->there[key] = set;
}

/* Removal shifts runs back: the one place where such a map goes wrong. Sets and removals swing, so that it is nearly
 * full, nearly empty, and grows in between. */
static void it_behaves_like_a_plain_table(void **state)
{
    static struct model model;
    unsigned random = 12345;
    for (int i = 0; i < STEPS; i++) {
        random = random * 1103515245u + 12345u;
        int key = (int)(random >> 16) % KEYS;
        random = random * 1103515245u + 12345u;
        bool set = (random >> 16) % 100 < ((i / 2000) % 2 ? 30u : 70u);
        step(*state, &model, key, set, i);
        if (i % 997 == 0)
            compare(*state, &model);
    }
    compare(*state, &model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_value_is_owned_until_it_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clearing_frees_all_and_the_map_goes_on, set_up, tear_down),
        cmocka_unit_test(a_map_may_hold_what_is_not_its_own),
        cmocka_unit_test_setup_teardown(it_behaves_like_a_plain_table, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
