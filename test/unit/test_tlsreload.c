#include "tlsreload/tlsreload.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "support/tlsscene.h"
#include "base/clock.h"
#include "base/strings.h"

enum { IDLE_MS = 300 };

/* --- the seven of every server that reloads --- */

static void config_build(void **state)
{
    struct tls_scene *scene = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "server", .issuer = scene->ca});
    cr_autofree char *chain = test_concat("some text\n", leaf->cert_pem, "more\n", scene->ca->cert_pem, NULL);
    secret_volume_write(scene->volume, "tls.crt", chain);
    secret_volume_write(scene->volume, "tls.key", leaf->key_pem);
    secret_volume_swap(scene->volume, false);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        CR_CLEANUP(tls_caller) struct tls_caller caller = {.version = versions[i]};
        struct tls_outcome outcome = tls_scene_call(tls, &caller);
        assert_true(outcome.ok);
        assert_int_equal(outcome.version, versions[i]);
        assert_int_equal(outcome.chain_len, 2);
    }
    CR_CLEANUP(tls_caller) struct tls_caller old = {.version = TLS1_1_VERSION};
    assert_false(tls_scene_call(tls, &old).ok);
    assert_int_equal(atomic_load(&scene->configured), 1);
    tls_scene_assert_serves(tls, leaf);
}

static void reload_success(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    tls_scene_assert_serves(tls, scene->leaf);
    tls_scene_publish(scene, scene->next, NULL);
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
    struct cr_tlsreload_state now;
    cr_tlsreload_state(tls, &now);
    assert_int_equal(now.reloads, 1);
    assert_int_equal(now.failures, 0);
    assert_false(now.failing);
    assert_string_equal(now.problem, "");
    assert_true(now.not_after_ms > cr_clock_wall_ms());
    assert_in_range(now.reloaded_ms, cr_clock_wall_ms() - TLS_SCENE_PATIENCE_MS, cr_clock_wall_ms());
    char before[65];
    test_cert_digest(scene->leaf, before);
    assert_string_equal(scene->leaf_before, before);
    assert_false(scene->trust_changed);
    assert_int_equal(atomic_load(&scene->configured), 2);
}

static void reload_failure_preserves_old_config(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    secret_volume_write(scene->volume, "tls.crt", scene->next->cert_pem);
    secret_volume_write(scene->volume, "tls.key", scene->leaf->key_pem);
    secret_volume_swap(scene->volume, false);
    tls_scene_wait(&scene->refused, 1);
    assert_non_null(strstr(scene->problem, "tls.key does not belong to the certificate in"));
    tls_scene_assert_serves(tls, scene->leaf);
    struct cr_tlsreload_state now;
    cr_tlsreload_state(tls, &now);
    assert_true(now.failing);
    assert_int_equal(now.failures, 1);
    assert_int_equal(now.reloads, 0);
    assert_string_equal(now.problem, scene->problem);
    tls_scene_publish(scene, scene->next, NULL);
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
    cr_tlsreload_state(tls, &now);
    assert_false(now.failing);
    assert_string_equal(now.problem, "");
}

struct crowd {
    struct tls_scene *scene;
    struct cr_tlsreload *tls;
    atomic_bool stop;
    atomic_int good, bad, first, second;
};

static void *shake_hands(void *arg)
{
    struct crowd *crowd = arg;
    char first[65];
    char second[65];
    test_cert_digest(crowd->scene->leaf, first);
    test_cert_digest(crowd->scene->next, second);
    while (!atomic_load(&crowd->stop)) {
        struct tls_outcome outcome = tls_scene_call(crowd->tls, NULL);
        atomic_fetch_add(outcome.ok ? &crowd->good : &crowd->bad, 1);
        atomic_fetch_add(&crowd->first, strcmp(outcome.leaf, first) == 0);
        atomic_fetch_add(&crowd->second, strcmp(outcome.leaf, second) == 0);
    }
    return NULL;
}

static void concurrent_handshake_and_reload(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    struct crowd crowd = {.scene = scene, .tls = tls};
    pthread_t threads[3];
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shake_hands, &crowd), 0);
    for (int i = 1; i <= 6; i++) {
        tls_scene_publish(scene, i % 2 ? scene->next : scene->leaf, NULL);
        tls_scene_wait(&scene->done, i);
        int so_far = atomic_load(&crowd.good);
        tls_scene_wait(&crowd.good, so_far + 4);
    }
    atomic_store(&crowd.stop, true);
    for (size_t i = 0; i < cr_array_len(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd.bad), 0);
    assert_int_equal(atomic_load(&crowd.first) + atomic_load(&crowd.second), atomic_load(&crowd.good));
    assert_true(atomic_load(&crowd.first) > 0 && atomic_load(&crowd.second) > 0);
}

static void cert_rotation_detection(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    for (int i = 1; i <= 4; i++) {
        const struct test_cert *leaf = i % 2 ? scene->next : scene->leaf;
        secret_volume_write(scene->volume, "tls.crt", leaf->cert_pem);
        secret_volume_write(scene->volume, "tls.key", leaf->key_pem);
        secret_volume_swap(scene->volume, i > 2); /* the old folder goes, or stays */
        tls_scene_wait(&scene->done, i);
        tls_scene_assert_serves(tls, leaf);
    }
    assert_int_equal(atomic_load(&scene->refused), 0);
}

static void file_watcher_change_detection(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_put(scene, scene->leaf);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    tls_scene_put(scene, scene->next);
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
    tls_scene_put(scene, scene->next); /* again the same */
    secret_volume_put(scene->volume, "else", "", 0);
    usleep(IDLE_MS * 1000);
    assert_int_equal(atomic_load(&scene->done), 1);
    assert_int_equal(atomic_load(&scene->refused), 0);
    for (int i = 0; i < 20; i++) /* one watcher, however often */
        assert_true(cr_tlsreload_start(tls, NULL));
    tls_scene_put(scene, scene->leaf);
    tls_scene_wait(&scene->done, 2);
    usleep(IDLE_MS * 1000);
    assert_int_equal(atomic_load(&scene->done), 2);
}

static void mtls_ca_rotation(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_ask(scene, CR_TLSRELOAD_CLIENTS_REQUIRE);
    cr_autofree char *both = test_concat(scene->other_ca->cert_pem, scene->ca->cert_pem, NULL);
    const struct {
        const char *trust;
        bool first, second; /* who is let in */
        int names;
    } steps[] = {
        {scene->ca->cert_pem, true, false, 1}, {both, true, true, 2}, {scene->other_ca->cert_pem, false, true, 1}};
    tls_scene_publish(scene, scene->leaf, steps[0].trust);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < cr_array_len(steps); i++) {
        if (i) {
            tls_scene_publish(scene, scene->leaf, steps[i].trust);
            tls_scene_wait(&scene->done, (int)i);
            assert_true(scene->trust_changed);
        }
        for (size_t k = 0; k < 2; k++) {
            CR_CLEANUP(tls_caller) struct tls_caller one = {.version = versions[k], .cert = scene->client};
            CR_CLEANUP(tls_caller) struct tls_caller two = {.version = versions[k], .cert = scene->other_client};
            CR_CLEANUP(tls_caller) struct tls_caller none = {.version = versions[k]};
            struct tls_outcome outcome = tls_scene_call(tls, &one);
            assert_int_equal(outcome.ok, steps[i].first);
            assert_int_equal(outcome.ca_names, steps[i].names);
            assert_int_equal(tls_scene_call(tls, &two).ok, steps[i].second);
            assert_false(tls_scene_call(tls, &none).ok);
        }
    }
}

static void fixed_material_is_checked_as_files_are(void **state)
{
    struct tls_scene *scene = *state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_tlsreload)
    struct cr_tlsreload *tls = cr_tlsreload_new_fixed("built in", scene->leaf->cert_pem, scene->leaf->key_pem, &err);
    assert_non_null(tls);
    assert_true(cr_tlsreload_start(tls, &err));
    tls_scene_assert_serves(tls, scene->leaf);
    assert_null(cr_tlsreload_new_fixed("built in", scene->leaf->cert_pem, scene->next->key_pem, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_string_equal(err.text, "the key of built in does not belong to the certificate in built in");
    assert_null(cr_tlsreload_new_fixed("built in", "", scene->next->key_pem, &err));
}

static void a_handshake_goes_on_with_the_context_that_it_began_with(void **state)
{
    struct tls_scene *scene = *state;
    char first[65];
    test_cert_digest(scene->leaf, first);
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    SSL *begun = cr_tlsreload_accept(tls);
    SSL_CTX *held = cr_tlsreload_context(tls);
    tls_scene_publish(scene, scene->next, NULL);
    tls_scene_wait(&scene->done, 1);
    CR_CLEANUP(tls_caller) struct tls_caller caller = {0};
    struct tls_outcome outcome = tls_call(begun, &caller);
    assert_true(outcome.ok);
    assert_string_equal(outcome.leaf, first);
    tls_scene_assert_serves(tls, scene->next);
    cr_tlsreload_free(cr_steal(&tls));
    CR_CLEANUP(tls_caller) struct tls_caller late = {0};
    SSL *ssl = SSL_new(held);
    SSL_set_accept_state(ssl);
    outcome = tls_call(ssl, &late);
    assert_true(outcome.ok);
    assert_string_equal(outcome.leaf, first);
    SSL_CTX_free(held);
}

/* --- and more --- */

static void *start_once(void *arg)
{
    return cr_tlsreload_start(arg, NULL) ? arg : NULL;
}

static int threads_of_this_process(void)
{
    char line[128];
    int threads = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Threads: %d", &threads) == 1)
            break;
    fclose(file);
    return threads;
}

static void there_is_one_watcher_however_many_start_it(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = cr_tlsreload_new(&scene->options, NULL);
    int before = threads_of_this_process();
    pthread_t threads[8];
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_once, tls), 0);
    for (size_t i = 0; i < cr_array_len(threads); i++) {
        void *ok = NULL;
        pthread_join(threads[i], &ok);
        assert_non_null(ok);
    }
    /* A joined thread may still be on the list for a moment. */
    for (int64_t end = cr_clock_monotonic_ms() + TLS_SCENE_PATIENCE_MS; threads_of_this_process() != before + 1;
         usleep(1000))
        assert_true(cr_clock_monotonic_ms() < end);
}

static void relative_paths_mean_the_same_when_the_process_goes_elsewhere(void **state)
{
    struct tls_scene *scene = *state;
    cr_autofree char *before = getcwd(NULL, 0);
    tls_scene_publish(scene, scene->leaf, NULL);
    assert_int_equal(chdir(scene->volume->folder), 0);
    scene->options.certificate = "tls.crt";
    scene->options.private_key = "./tls.key";
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    assert_int_equal(chdir(before), 0);
    tls_scene_publish(scene, scene->next, NULL);
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
}

static void what_changes_before_the_watch_is_taken_up_with_its_start(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = cr_tlsreload_new(&scene->options, NULL);
    tls_scene_publish(scene, scene->next, NULL);
    tls_scene_assert_serves(tls, scene->leaf);
    assert_true(cr_tlsreload_start(tls, NULL));
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(config_build, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(reload_success, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(reload_failure_preserves_old_config, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(concurrent_handshake_and_reload, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(cert_rotation_detection, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(file_watcher_change_detection, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(mtls_ca_rotation, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(fixed_material_is_checked_as_files_are, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(a_handshake_goes_on_with_the_context_that_it_began_with, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(there_is_one_watcher_however_many_start_it, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(relative_paths_mean_the_same_when_the_process_goes_elsewhere, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(what_changes_before_the_watch_is_taken_up_with_its_start, tls_scene_set_up,
                                        tls_scene_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
