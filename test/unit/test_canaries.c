#include "evidence/canaries.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/testcerts.h"

static struct cr_probe_client *new_client(void)
{
    struct cr_error err = {0};
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "canary"});
    struct cr_probe_client *client =
        cr_probe_client_new(cert->cert_pem, strlen(cert->cert_pem), cert->key_pem, strlen(cert->key_pem), &err);
    assert_non_null(client);
    return client;
}

static void one_is_there_until_it_expires(void **state)
{
    (void)state;
    CR_CLEANUP(cr_canaries) struct cr_canaries *canaries = cr_canaries_new();
    struct cr_probe_client *client = new_client();
    cr_canaries_put(canaries, "ca", client, 1000);
    assert_true(cr_canaries_has(canaries, "ca", 0, 999));
    assert_false(cr_canaries_has(canaries, "ca", 0, 1000));
    assert_false(cr_canaries_has(canaries, "another", 0, 0));
    assert_null(cr_canaries_hold(canaries, "another", 0));
    const struct cr_probe_client *held = cr_canaries_hold(canaries, "ca", 999);
    assert_ptr_equal(held, client);
    cr_canaries_release(canaries, held);
    assert_null(cr_canaries_hold(canaries, "ca", 1000));
    assert_false(cr_canaries_has(canaries, "ca", 0, 0)); /* it is forgotten */
    cr_canaries_release(canaries, NULL);
}

static void what_is_held_outlives_what_replaces_it(void **state)
{
    (void)state;
    CR_CLEANUP(cr_canaries) struct cr_canaries *canaries = cr_canaries_new();
    cr_canaries_put(canaries, "ca", new_client(), 1000);
    const struct cr_probe_client *first = cr_canaries_hold(canaries, "ca", 0);
    const struct cr_probe_client *again = cr_canaries_hold(canaries, "ca", 0);
    assert_ptr_equal(first, again);
    struct cr_probe_client *newer = new_client();
    cr_canaries_put(canaries, "ca", newer, 2000);
    const struct cr_probe_client *second = cr_canaries_hold(canaries, "ca", 1500);
    assert_ptr_equal(second, newer);
    cr_canaries_release(canaries, first);
    cr_canaries_release(canaries, second);
    /* Still held once; a use after free would be seen. */
    assert_ptr_equal(cr_canaries_hold(canaries, "ca", 1500), newer);
    cr_canaries_release(canaries, again);
    cr_canaries_release(canaries, newer);
}

/* Where rotations come and go and no policy ever probes, no caller holds one. */
static void what_has_expired_is_forgotten_at_the_next_request(void **state)
{
    (void)state;
    CR_CLEANUP(cr_canaries) struct cr_canaries *canaries = cr_canaries_new();
    cr_canaries_put(canaries, "old", new_client(), 1000);
    cr_canaries_put(canaries, "new", new_client(), 2000);
    assert_true(cr_canaries_has(canaries, "new", 999, 1500));
    assert_true(cr_canaries_has(canaries, "old", 0, 0));
    assert_true(cr_canaries_has(canaries, "new", 1000, 1500));
    assert_false(cr_canaries_has(canaries, "old", 0, 0));
    assert_true(cr_canaries_has(canaries, "new", 0, 0));
}

enum { THREADS = 4, ROUNDS = 200 };

static void *work(void *arg)
{
    struct cr_canaries *canaries = arg;
    for (int i = 0; i < ROUNDS; i++) {
        const struct cr_probe_client *held = cr_canaries_hold(canaries, "ca", i);
        if (i % 50 == 0)
            cr_canaries_put(canaries, "ca", new_client(), ROUNDS / 2 + i);
        (void)cr_canaries_has(canaries, "ca", 0, i);
        cr_canaries_release(canaries, held);
    }
    return NULL;
}

static void workers_share_them(void **state)
{
    (void)state;
    CR_CLEANUP(cr_canaries) struct cr_canaries *canaries = cr_canaries_new();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, canaries), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(cr_canaries_has(canaries, "ca", 0, 0));
    cr_canaries_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_there_until_it_expires),
        cmocka_unit_test(what_is_held_outlives_what_replaces_it),
        cmocka_unit_test(what_has_expired_is_forgotten_at_the_next_request),
        cmocka_unit_test(workers_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
