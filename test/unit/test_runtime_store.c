#include "runtime/store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static struct cr_snapshot *snapshot(const char *text)
{
    return cr_snapshot_new(cr_json_new_string(text));
}

static void put(struct cr_store *store, const char *key, const char *text)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *made = snapshot(text);
    cr_store_put(store, key, cr_store_pack(store, made));
}

static const char *text_of(const struct cr_snapshot *s)
{
    return s ? cr_json_string(s->json) : NULL;
}

static void a_reference_outlives_its_replacement_and_the_store(void **state)
{
    (void)state;
    struct cr_store *store = cr_store_new();
    put(store, "ns/a", "1");
    struct cr_snapshot *first = cr_store_get(store, "ns", "a");
    put(store, "ns/a", "2");
    struct cr_snapshot *second = cr_store_get(store, "ns", "a");
    assert_int_equal(cr_store_len(store), 1);
    cr_store_free(store);
    assert_string_equal(text_of(first), "1");
    assert_string_equal(text_of(second), "2");
    cr_snapshot_unref(first);
    cr_snapshot_unref(second);
}

static void what_is_removed_is_handed_over_once(void **state)
{
    (void)state;
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    put(store, "ns/a", "1");
    CR_CLEANUP(cr_packed) struct cr_packed *removed = cr_store_remove(store, "ns/a");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(removed);
    assert_string_equal(text_of(opened), "1");
    assert_null(cr_store_remove(store, "ns/a"));
    assert_null(cr_store_remove(store, "other/a"));
    assert_null(cr_store_get(store, "ns", "a"));
    assert_int_equal(cr_store_len(store), 0);
    put(store, "ns/a", "2");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *again = cr_store_get(store, "ns", "a");
    assert_string_equal(text_of(again), "2");
    assert_int_equal(cr_store_len(store), 1);
}

static void count(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    assert_true(ns && name && packed);
    ++*(int *)arg;
}

static void a_visit_stays_in_its_namespace(void **state)
{
    (void)state;
    static const struct {
        const char *ns;
        int expected;
    } cases[] = {{NULL, 4}, {"a", 2}, {"aa", 1}, {"b", 0}, {"", 1}};
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    put(store, "a/x", "");
    put(store, "a/y", "");
    put(store, "aa/x", "");
    put(store, "/cluster-wide", "");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        int visited = 0;
        cr_store_visit(store, cases[i].ns, count, &visited);
        assert_int_equal(visited, cases[i].expected);
    }
}

static void finds_which_keys_a_full_state_did_not_bring(void **state)
{
    (void)state;
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    CR_CLEANUP(cr_strmap) struct cr_strmap *seen = cr_strmap_new(NULL);
    CR_CLEANUP(cr_strvec) struct cr_strvec gone = {0};
    put(store, "a/x", "");
    put(store, "a/y", "");
    cr_strmap_set(seen, "a/y", seen);
    cr_store_keys_not_in(store, seen, &gone);
    assert_int_equal(gone.len, 1);
    assert_string_equal(gone.items[0], "a/x");
}

static int extras_freed;
static void free_extra(void *extra)
{
    extras_freed++;
    free(extra);
}

static struct cr_snapshot *with_extra(void)
{
    struct cr_snapshot *s = snapshot("key");
    s->secret = true;
    s->extra = cr_strdup("x");
    s->free_extra = free_extra;
    extras_freed = 0;
    return s;
}

static void extras_go_with_their_snapshot(void **state)
{
    (void)state;
    struct cr_snapshot *s = with_extra();
    struct cr_snapshot *other = cr_snapshot_ref(s);
    cr_snapshot_unref(s);
    assert_int_equal(extras_freed, 0);
    cr_snapshot_unref(other);
    assert_int_equal(extras_freed, 1);
    cr_snapshot_unref(NULL);
    assert_null(cr_snapshot_ref(NULL));
}

static void extras_go_with_the_last_of_all_that_share_them(void **state)
{
    (void)state;
    struct cr_store *store = cr_store_new();
    struct cr_snapshot *made = with_extra();
    struct cr_packed *packed = cr_store_pack(store, made);
    cr_store_free(store);
    struct cr_snapshot *opened = cr_packed_open(packed);
    assert_true(opened->secret);
    assert_ptr_equal(opened->extra, made->extra);
    assert_ptr_equal(cr_packed_extra(packed), made->extra);
    cr_packed_unref(packed);
    cr_snapshot_unref(made);
    assert_int_equal(extras_freed, 0);
    assert_string_equal(opened->extra, "x");
    cr_snapshot_unref(opened);
    assert_int_equal(extras_freed, 1);
    cr_packed_unref(NULL);
    assert_null(cr_packed_ref(NULL));
    assert_null(cr_packed_open(NULL));
    assert_null(cr_packed_extra(NULL));
    assert_null(cr_packed_resource_version(NULL));
}

static void what_is_packed_is_opened_as_it_was(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *version;
    } cases[] = {
        {"{\"metadata\":{\"resourceVersion\":\"77\",\"name\":\"a\"},\"n\":[1,-2,9007199254740992,1.5,true,null]}",
         "77"},
        {"{\"metadata\":{},\"text\":\"\\u0000 \\u00e9 \\\" \\\\ \\ud83d\\ude00\"}", ""},
        {"{}", ""},
        {"{\"metadata\":{\"resourceVersion\":\"78\",\"name\":\"a\"},\"n\":[1,-2,9007199254740992,1.5,true,null]}",
         "78"},
    };
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *made = cr_snapshot_new(cr_json_parse(cases[i].json, strlen(cases[i].json), &err));
        assert_non_null(made->json);
        CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_store_pack(store, made);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(packed);
        assert_true(cr_json_equal(opened->json, made->json));
        assert_string_equal(cr_packed_resource_version(packed), cases[i].version);
    }
}

enum { ROUNDS = 2000 };

static void *read_for_a_while(void *arg)
{
    struct cr_store *store = arg;
    for (int i = 0; i < ROUNDS; i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *s = cr_store_get(store, "ns", "a");
        if (s && strlen(text_of(s)) != 8)
            abort();
        int visited = 0;
        cr_store_visit(store, "ns", count, &visited);
    }
    return NULL;
}

static void readers_see_whole_snapshots_while_the_loop_writes(void **state)
{
    (void)state;
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_for_a_while, store), 0);
    for (int i = 0; i < ROUNDS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%08d", i);
        put(store, "ns/a", text);
        if (i % 3 == 0)
            cr_packed_unref(cr_store_remove(store, "ns/a"));
    }
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_outlives_its_replacement_and_the_store),
        cmocka_unit_test(what_is_removed_is_handed_over_once),
        cmocka_unit_test(a_visit_stays_in_its_namespace),
        cmocka_unit_test(finds_which_keys_a_full_state_did_not_bring),
        cmocka_unit_test(extras_go_with_their_snapshot),
        cmocka_unit_test(extras_go_with_the_last_of_all_that_share_them),
        cmocka_unit_test(what_is_packed_is_opened_as_it_was),
        cmocka_unit_test(readers_see_whole_snapshots_while_the_loop_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
