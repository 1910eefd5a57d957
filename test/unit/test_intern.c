#include "base/intern.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void equal_texts_are_one(void **state)
{
    (void)state;
    char text[] = "ns/web";
    const char *one = cr_intern(text);
    const char *other = cr_intern("ns/web2");
    assert_ptr_not_equal(one, text);
    assert_string_equal(one, "ns/web");
    assert_ptr_not_equal(one, other);
    text[0] = 'x'; /* it is a copy */
    assert_ptr_equal(cr_intern("ns/web"), one);
    assert_int_equal(cr_intern_count(), 2);
    cr_intern_release(one);
    assert_int_equal(cr_intern_count(), 2); /* held once more */
    assert_string_equal(one, "ns/web");
    cr_intern_release(one);
    assert_int_equal(cr_intern_count(), 1);
    cr_intern_release(other);
    cr_intern_release(NULL);
    assert_int_equal(cr_intern_count(), 0);
    const char *empty = cr_intern("");
    assert_string_equal(empty, "");
    cr_intern_release(empty);
}

static void a_list_has_each_once(void **state)
{
    (void)state;
    CR_CLEANUP(cr_interned) struct cr_interned one = {0};
    CR_CLEANUP(cr_interned) struct cr_interned other = {0};
    assert_true(cr_interned_equal(&one, &other));
    cr_interned_add_unique(&one, "ns/Secret/a");
    cr_interned_add_unique(&one, "ns/Secret/b");
    cr_interned_add_unique(&one, "ns/Secret/a");
    assert_int_equal(one.len, 2);
    assert_string_equal(one.items[1], "ns/Secret/b");
    assert_false(cr_interned_equal(&one, &other));
    cr_interned_add_unique(&other, "ns/Secret/b");
    cr_interned_add_unique(&other, "ns/Secret/a");
    assert_false(cr_interned_equal(&one, &other)); /* another order */
    cr_interned_dispose(&other);
    cr_interned_add_unique(&other, "ns/Secret/a");
    cr_interned_add_unique(&other, "ns/Secret/b");
    assert_true(cr_interned_equal(&one, &other));
    cr_interned_dispose(&one);
    cr_interned_dispose(&other);
    assert_int_equal(cr_intern_count(), 0);
}

enum { NAMES = 3000 };

/* Two of three go, so that runs are closed from their middles. */
static void all_are_found_while_others_come_and_go(void **state)
{
    (void)state;
    static const char *held[NAMES];
    char name[32];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "ns/%d", i);
        held[i] = cr_intern(name);
    }
    for (int i = 0; i < NAMES; i++) {
        if (i * 7 % 3 == 0)
            continue;
        cr_intern_release(held[i]);
        held[i] = NULL;
    }
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "ns/%d", i);
        const char *found = cr_intern(name);
        if (held[i] && found != held[i])
            fail_msg("%s is there twice", name);
        cr_intern_release(found);
    }
    assert_int_equal(cr_intern_count(), NAMES / 3);
    for (int i = 0; i < NAMES; i++)
        cr_intern_release(held[i]);
    assert_int_equal(cr_intern_count(), 0);
}

static void *come_and_go(void *arg)
{
    char name[32];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "ns/%d", i % 50);
        const char *one = cr_intern(name);
        if (strcmp(one, name) != 0)
            return arg;
        cr_intern_release(one);
    }
    return NULL;
}

static void threads_share_them(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, threads), 0);
    for (size_t i = 0; i < 3; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(cr_intern_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_are_one),
        cmocka_unit_test(a_list_has_each_once),
        cmocka_unit_test(all_are_found_while_others_come_and_go),
        cmocka_unit_test(threads_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
