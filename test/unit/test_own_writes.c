#include "runtime/own_writes.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

/* A cache of one object, which may lag. */
struct cache {
    const char *uid; /* NULL: it does not have it */
    const char *version;
    int looks;
};

static struct cr_json *object(const char *uid, const char *version)
{
    struct cr_json *object = test_yaml("{metadata: {namespace: ns, name: web}}");
    cr_json_set_string(cr_json_edit(object, "metadata"), "uid", uid);
    cr_json_set_string(cr_json_edit(object, "metadata"), "resourceVersion", version);
    return object;
}

static struct cr_packed *look(void *arg, const char *kind, const char *ns, const char *name)
{
    struct cache *cache = arg;
    cache->looks++;
    assert_string_equal(kind, "Deployment");
    assert_string_equal(ns, "ns");
    assert_string_equal(name, "web");
    if (!cache->uid)
        return NULL;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(object(cache->uid, cache->version));
    CR_CLEANUP(cr_store) struct cr_store *store = cr_store_new();
    return cr_store_pack(store, snapshot);
}

static void add(struct cr_own_writes *own, const char *key, const char *uid, const char *version, int64_t now_ms)
{
    CR_CLEANUP(cr_json) struct cr_json *written = object(uid, version);
    cr_own_writes_add(own, key, "Deployment", written, now_ms);
}

static void a_key_waits_while_the_cache_shows_what_was_before_its_write(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *uid, *version; /* in the cache, where u at version 100 was written */
        enum cr_own_writes_state state;
    } cases[] = {
        {"older", "u", "99", CR_OWN_WRITES_WAIT},
        {"older, with fewer digits", "u", "9", CR_OWN_WRITES_WAIT},
        {"the write itself", "u", "100", CR_OWN_WRITES_SEEN},
        {"newer", "u", "101", CR_OWN_WRITES_SEEN},
        {"newer, with more digits", "u", "1000", CR_OWN_WRITES_SEEN},
        {"gone", NULL, NULL, CR_OWN_WRITES_SEEN},
        {"another of the same name", "v", "99", CR_OWN_WRITES_SEEN},
        {"a version that is no number", "u", "x9", CR_OWN_WRITES_SEEN},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
        struct cache cache = {.uid = cases[i].uid, .version = cases[i].version};
        add(own, "ns/p", "u", "100", 1000);
        if (cr_own_writes_check(own, "ns/p", 2000, look, &cache) != cases[i].state)
            fail_msg("%s", cases[i].rule);
        /* Another key has nothing to wait for, and what was seen is not asked for again. */
        int looks = cache.looks;
        assert_int_equal(cr_own_writes_check(own, "ns/q", 2000, look, &cache), CR_OWN_WRITES_SEEN);
        assert_int_equal(cr_own_writes_check(own, "ns/p", 2000, look, &cache), cases[i].state);
        assert_int_equal(cache.looks, looks + (cases[i].state == CR_OWN_WRITES_WAIT));
    }
}

static void only_the_last_write_of_an_object_is_waited_for(void **state)
{
    (void)state;
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    struct cache cache = {.uid = "u", .version = "100"};
    add(own, "ns/p", "u", "100", 0);
    add(own, "ns/p", "u", "105", 0);
    assert_int_equal(cr_own_writes_check(own, "ns/p", 1, look, &cache), CR_OWN_WRITES_WAIT);
    assert_int_equal(cache.looks, 1);
    cache.version = "105";
    assert_int_equal(cr_own_writes_check(own, "ns/p", 2, look, &cache), CR_OWN_WRITES_SEEN);
}

static void nothing_is_waited_for_for_ever(void **state)
{
    (void)state;
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    struct cache cache = {.uid = "u", .version = "5"}; /* of an etcd that was restored */
    add(own, "ns/p", "u", "100", 1000);
    int64_t end_ms = 1000 + CR_OWN_WRITES_MAX_MS;
    assert_int_equal(cr_own_writes_check(own, "ns/p", end_ms - 1, look, &cache), CR_OWN_WRITES_WAIT);
    assert_int_equal(cr_own_writes_check(own, "ns/p", end_ms, look, &cache), CR_OWN_WRITES_GIVEN_UP);
    assert_int_equal(cr_own_writes_check(own, "ns/p", end_ms, look, &cache), CR_OWN_WRITES_SEEN);
}

static void a_key_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    struct cache cache = {.uid = "u", .version = "5"};
    add(own, "ns/p", "u", "100", 0);
    cr_own_writes_forget(own, "ns/p");
    assert_int_equal(cr_own_writes_check(own, "ns/p", 1, look, &cache), CR_OWN_WRITES_SEEN);
    assert_int_equal(cache.looks, 0);
}

/* --- many threads, each with a key of its own --- */

enum { THREADS = 4, ROUNDS = 2000 };

static void *work(void *arg)
{
    static atomic_int next;
    struct cr_own_writes *own = arg;
    char key[16];
    snprintf(key, sizeof key, "ns/%d", next++);
    struct cache cache = {.uid = "u", .version = "99"};
    for (int i = 0; i < ROUNDS; i++) {
        add(own, key, "u", "100", 0);
        cache.version = i % 2 ? "99" : "100";
        enum cr_own_writes_state expected = i % 2 ? CR_OWN_WRITES_WAIT : CR_OWN_WRITES_SEEN;
        if (cr_own_writes_check(own, key, 1, look, &cache) != expected)
            return own;
    }
    return NULL;
}

static void keys_of_different_threads_do_not_meet(void **state)
{
    (void)state;
    CR_CLEANUP(cr_own_writes) struct cr_own_writes *own = cr_own_writes_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, own), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_waits_while_the_cache_shows_what_was_before_its_write),
        cmocka_unit_test(only_the_last_write_of_an_object_is_waited_for),
        cmocka_unit_test(nothing_is_waited_for_for_ever),
        cmocka_unit_test(a_key_that_is_gone_is_forgotten),
        cmocka_unit_test(keys_of_different_threads_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
