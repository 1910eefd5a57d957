#include "tlsreload/tlsreload.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "support/tlsscene.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { IDLE_MS = 300, AGAIN_MS = 2500 /* longer than all tries */, DAY_S = 24 * 3600, ATTEMPTS = 5 };

/* --- time --- */

static void what_is_valid_is_not_given_up_for_what_is_not(void **state)
{
    struct tls_scene *scene = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *expired =
        test_cert_new(&(struct test_cert_spec){.cn = "old", .from_s = -2 * DAY_S, .until_s = -DAY_S});
    CR_CLEANUP(test_cert)
    struct test_cert *early =
        test_cert_new(&(struct test_cert_spec){.cn = "early", .from_s = DAY_S, .until_s = 2 * DAY_S});
    CR_CLEANUP(test_cert)
    struct test_cert *skewed = test_cert_new(&(struct test_cert_spec){.cn = "skewed", .from_s = 200, .until_s = DAY_S});
    tls_scene_publish(scene, expired, NULL);
    CR_CLEANUP(cr_tlsreload)
    struct cr_tlsreload *tls = tls_scene_serve(scene); /* it begins with that: nothing is better */
    tls_scene_assert_serves(tls, expired);
    struct cr_tlsreload_state now;
    cr_tlsreload_state(tls, &now);
    assert_true(now.not_after_ms < cr_clock_wall_ms());
    tls_scene_publish(scene, scene->leaf, NULL);
    tls_scene_wait(&scene->done, 1);
    tls_scene_publish(scene, expired, NULL);
    tls_scene_wait(&scene->refused, 1);
    assert_non_null(strstr(scene->problem, "tls.crt expired at 20"));
    tls_scene_publish(scene, early, NULL);
    tls_scene_wait(&scene->refused, 2);
    assert_non_null(strstr(scene->problem, "tls.crt is not valid before 20"));
    tls_scene_assert_serves(tls, scene->leaf);
    tls_scene_publish(scene, skewed, NULL); /* clocks differ */
    tls_scene_wait(&scene->done, 2);
    tls_scene_assert_serves(tls, skewed);
}

static void what_is_refused_is_reported_once_and_its_end_too(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_put(scene, scene->leaf);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    secret_volume_put(scene->volume, "tls.key", "nothing", 7);
    tls_scene_wait(&scene->refused, 1);
    secret_volume_put(scene->volume, "tls.key", "nothing", 7);
    usleep(AGAIN_MS * 1000);
    assert_int_equal(atomic_load(&scene->refused), 1);
    tls_scene_put(scene, scene->leaf);
    tls_scene_wait(&scene->done, 1);
    struct cr_tlsreload_state now;
    cr_tlsreload_state(tls, &now);
    assert_false(now.failing);
    secret_volume_put(scene->volume, "tls.key", "nothing", 7);
    tls_scene_wait(&scene->refused, 2);
}

static void a_pair_that_is_written_in_two_steps_is_no_failure(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_put(scene, scene->leaf);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct test_cert *cert = attempt % 2 ? scene->leaf : scene->next;
        int refused = atomic_load(&scene->refused);
        int64_t began_ms = cr_clock_monotonic_ms();
        secret_volume_put(scene->volume, "tls.crt", cert->cert_pem, strlen(cert->cert_pem));
        usleep(IDLE_MS * 1000); /* longer than the quiet */
        secret_volume_put(scene->volume, "tls.key", cert->key_pem, strlen(cert->key_pem));
        bool in_time = cr_clock_monotonic_ms() - began_ms < 2 * IDLE_MS;
        tls_scene_wait(&scene->done, attempt + 1);
        tls_scene_assert_serves(tls, cert);
        if (in_time) {
            assert_int_equal(atomic_load(&scene->refused), refused);
            return;
        }
    }
    fail_msg("this machine pauses so long between two writes that they are two changes");
}

/* --- hostile files: what was served stays served --- */

static void half_a_certificate(struct tls_scene *scene)
{
    secret_volume_put(scene->volume, "tls.crt", scene->next->cert_pem, strlen(scene->next->cert_pem) / 2);
}

static void half_a_key(struct tls_scene *scene)
{
    secret_volume_put(scene->volume, "tls.crt", scene->next->cert_pem, strlen(scene->next->cert_pem));
    secret_volume_put(scene->volume, "tls.key", scene->next->key_pem, strlen(scene->next->key_pem) / 2);
}

static void half_a_bundle(struct tls_scene *scene)
{
    cr_autofree char *both = test_concat(scene->ca->cert_pem, scene->other_ca->cert_pem, NULL);
    secret_volume_put(scene->volume, "ca.crt", both, strlen(both) - 100);
}

static void an_empty_bundle(struct tls_scene *scene)
{
    secret_volume_put(scene->volume, "ca.crt", "", 0);
}

static void empty_files(struct tls_scene *scene)
{
    secret_volume_put(scene->volume, "tls.crt", "", 0);
    secret_volume_put(scene->volume, "tls.key", "", 0);
}

static void a_key_of_another(struct tls_scene *scene)
{
    secret_volume_put(scene->volume, "tls.key", scene->next->key_pem, strlen(scene->next->key_pem));
}

static void a_weak_key(struct tls_scene *scene)
{
    CR_CLEANUP(test_cert)
    struct test_cert *weak = test_cert_new(&(struct test_cert_spec){.cn = "weak", .key_type = "RSA-1024"});
    tls_scene_put(scene, weak);
}

static void too_long(struct tls_scene *scene)
{
    size_t len = (size_t)2 * 1024 * 1024;
    cr_autofree char *text = cr_malloc(len);
    memset(text, '\n', len);
    secret_volume_put(scene->volume, "tls.crt", text, len);
}

static void no_file(struct tls_scene *scene)
{
    assert_int_equal(unlink(scene->options.private_key), 0);
}

static void a_folder_in_its_place(struct tls_scene *scene)
{
    no_file(scene);
    assert_int_equal(mkdir(scene->options.private_key, 0755), 0);
}

static void no_folder(struct tls_scene *scene)
{
    remove_tree(scene->volume->folder);
}

static const struct hostile {
    const char *rule;
    void (*hurt)(struct tls_scene *scene);
    const char *word;
} hostiles[] = {
    {"half a certificate", half_a_certificate, "tls.crt: "},
    {"half a key", half_a_key, "tls.key: has no private key that can be read"},
    {"half a bundle", half_a_bundle, "ca.crt: "},
    {"an empty bundle", an_empty_bundle, "ca.crt: is empty"},
    {"empty files", empty_files, "is empty"},
    {"a key of another certificate", a_key_of_another, "does not belong to the certificate"},
    {"a weak key", a_weak_key, "1024 bits"},
    {"too much of it", too_long, "longer than"},
    {"no file", no_file, "No such file"},
    {"a folder in the place of a file", a_folder_in_its_place, "is a folder"},
    {"no folder", no_folder, "No such file"},
};

static void heal(struct tls_scene *scene)
{
    (void)mkdir(scene->volume->folder, 0755);
    (void)rmdir(scene->options.private_key);
    tls_scene_put(scene, scene->next);
    secret_volume_put(scene->volume, "ca.crt", scene->ca->cert_pem, strlen(scene->ca->cert_pem));
}

static void assert_lets_in(struct cr_tlsreload *tls, struct tls_scene *scene, const struct test_cert *leaf)
{
    char expected[65];
    test_cert_digest(leaf, expected);
    CR_CLEANUP(tls_caller) struct tls_caller known = {.cert = scene->client};
    CR_CLEANUP(tls_caller) struct tls_caller strange = {.cert = scene->other_client};
    struct tls_outcome outcome = tls_scene_call(tls, &known);
    assert_true(outcome.ok);
    assert_string_equal(outcome.leaf, expected);
    assert_false(tls_scene_call(tls, &strange).ok);
}

static void begin(struct tls_scene *scene, struct cr_tlsreload **tls)
{
    tls_scene_ask(scene, CR_TLSRELOAD_CLIENTS_REQUIRE);
    tls_scene_put(scene, scene->leaf);
    secret_volume_put(scene->volume, "ca.crt", scene->ca->cert_pem, strlen(scene->ca->cert_pem));
    *tls = tls_scene_serve(scene);
}

static void bear(struct cr_tlsreload *tls, struct tls_scene *scene, const struct hostile *hostile)
{
    for (int64_t end = cr_clock_monotonic_ms() + TLS_SCENE_PATIENCE_MS; !atomic_load(&scene->refused);) {
        assert_lets_in(tls, scene, scene->leaf);
        assert_true(cr_clock_monotonic_ms() < end);
    }
    print_message("  %s: %s\n", hostile->rule, scene->problem);
    assert_non_null(strstr(scene->problem, hostile->word));
    assert_lets_in(tls, scene, scene->leaf);
    assert_int_equal(atomic_load(&scene->done), 0);
}

/* All at a time: each takes its tries. */
static void hostile_files_leave_what_is_served(void **state)
{
    enum { COUNT = cr_array_len(hostiles) };
    void *scenes[COUNT] = {NULL};
    struct cr_tlsreload *servers[COUNT] = {NULL};
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        tls_scene_set_up(&scenes[i]);
        begin(scenes[i], &servers[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        hostiles[i].hurt(scenes[i]);
    for (size_t i = 0; i < COUNT; i++)
        bear(servers[i], scenes[i], &hostiles[i]);
    for (size_t i = 0; i < COUNT; i++)
        heal(scenes[i]);
    for (size_t i = 0; i < COUNT; i++) {
        struct tls_scene *scene = scenes[i];
        tls_scene_wait(&scene->done, 1);
        assert_lets_in(servers[i], scene, scene->next);
        cr_tlsreload_free(servers[i]);
        tls_scene_tear_down(&scenes[i]);
    }
}

/* Good and bad alternate, so that whatever is served is a good pair: bad ones would fail the handshake. */
static void swaps_a_hundred_times_a_second_leave_what_fits_together(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, NULL);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    int64_t end = cr_clock_monotonic_ms() + 3000;
    for (int i = 0; cr_clock_monotonic_ms() < end; i++) {
        const struct test_cert *leaf = i % 2 ? scene->leaf : scene->next;
        const struct test_cert *key = i % 3 ? leaf : scene->ca;
        secret_volume_write(scene->volume, "tls.crt", leaf->cert_pem);
        secret_volume_write(scene->volume, "tls.key", key->key_pem);
        secret_volume_swap(scene->volume, false);
        assert_true(tls_scene_call(tls, NULL).ok);
        usleep(8000);
    }
    tls_scene_publish(scene, scene->next, NULL);
    char expected[65];
    char served[65] = "";
    test_cert_digest(scene->next, expected);
    for (end = cr_clock_monotonic_ms() + TLS_SCENE_PATIENCE_MS; strcmp(served, expected) != 0; usleep(2000)) {
        struct tls_outcome outcome = tls_scene_call(tls, NULL);
        assert_true(outcome.ok && cr_clock_monotonic_ms() < end);
        strcpy(served, outcome.leaf);
    }
}

/* In a process of its own: mounts stay there. 77: they are not to be had. */
static void write_on_a_full_disk(struct tls_scene *scene)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("full", scene->volume->folder, "tmpfs", 0, "size=64k") != 0)
        _exit(77);
    tls_scene_put(scene, scene->leaf);
    struct cr_tlsreload *tls = tls_scene_serve(scene);
    cr_autofree char *filler = cr_asprintf("%s/filler", scene->volume->folder);
    cr_autofd int fd = open(filler, O_WRONLY | O_CREAT, 0600);
    char block[4096] = {0};
    while (write(fd, block, sizeof block) > 0)
        continue;
    cr_autofd int crt = open(scene->options.certificate, O_WRONLY | O_TRUNC);
    while (write(fd, block, sizeof block) > 0) /* what was there makes room, and is taken */
        continue;
    assert_int_equal(write(crt, scene->next->cert_pem, strlen(scene->next->cert_pem)), -1);
    tls_scene_wait(&scene->refused, 1);
    tls_scene_assert_serves(tls, scene->leaf);
    assert_int_equal(ftruncate(fd, 0), 0);
    tls_scene_put(scene, scene->next);
    tls_scene_wait(&scene->done, 1);
    tls_scene_assert_serves(tls, scene->next);
    cr_tlsreload_free(tls);
    _exit(0);
}

static void a_full_disk_leaves_what_is_served(void **state)
{
    pid_t pid = fork();
    if (pid == 0)
        write_on_a_full_disk(*state);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_valid_is_not_given_up_for_what_is_not, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_is_reported_once_and_its_end_too, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(a_pair_that_is_written_in_two_steps_is_no_failure, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(hostile_files_leave_what_is_served, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(swaps_a_hundred_times_a_second_leave_what_fits_together, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_what_is_served, tls_scene_set_up, tls_scene_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
