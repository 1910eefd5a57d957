#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controlplane/agent/file_watcher.h"

enum { PATIENCE_MS = 20 * 1000, FREED_WITHIN_MS = 5 * 1000, QUIET_MS = 400 };

struct world {
    char root[64];
    char file[96];
    char folder[96];
    atomic_int changes;
    struct cr_file_watcher *watcher;
};

static void on_change(void *arg)
{
    atomic_fetch_add(&((struct world *)arg)->changes, 1);
}

static void pause_ms(int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* Waits until there were more than before. */
static void await_change(struct world *world, int before, const char *what)
{
    int64_t end_ms = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (atomic_load(&world->changes) <= before) {
        if (cr_clock_monotonic_ms() > end_ms)
            fail_msg("nothing was heard of: %s", what);
        pause_ms(5);
    }
}

/* How many there were when there have been no more for a while. */
static int settled(struct world *world)
{
    int before;
    do {
        before = atomic_load(&world->changes);
        pause_ms(QUIET_MS);
    } while (before != atomic_load(&world->changes));
    return before;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void watch(struct world *world)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec paths = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec folders = {0};
    cr_strvec_add(&paths, world->file);
    cr_strvec_add(&folders, world->folder);
    cr_file_watcher_set(world->watcher, &paths, &folders);
}

static int set_up(void **state)
{
    struct cr_error err = {0};
    struct world *world = cr_new(struct world);
    snprintf(world->root, sizeof world->root, "/tmp/certroll-watcher-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    snprintf(world->file, sizeof world->file, "%s/ca.crt", world->root);
    snprintf(world->folder, sizeof world->folder, "%s/manifests", world->root);
    assert_int_equal(mkdir(world->folder, 0700), 0);
    write_file(world->file, "one");
    world->watcher = cr_file_watcher_start(on_change, world, &err);
    assert_non_null(world->watcher);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    int64_t began_ms = cr_clock_monotonic_ms();
    cr_file_watcher_free(world->watcher);
    /* Its thread is woken, and waits for no timer of its own. */
    assert_true(cr_clock_monotonic_ms() - began_ms < FREED_WITHIN_MS);
    cr_autofree char *command = cr_asprintf("rm -r %s", world->root);
    int gone = system(command);
    free(world);
    return gone;
}

/* Between the look that named the files and the watch of them something may have happened. */
static void test_what_is_watched_newly_is_looked_at_once_more(void **state)
{
    struct world *world = *state;
    watch(world);
    await_change(world, 0, "the first wish");
    int before = settled(world);
    watch(world);
    assert_int_equal(settled(world), before); /* the same wish again is no news */
}

static void test_changes_of_files_and_entries_of_folders_are_noticed(void **state)
{
    struct world *world = *state;
    char manifest[128];
    char other[128];
    snprintf(manifest, sizeof manifest, "%s/etcd.yaml", world->folder);
    snprintf(other, sizeof other, "%s/new", world->root);
    watch(world);
    await_change(world, 0, "the first wish");
    int before = settled(world);
    write_file(world->file, "two");
    await_change(world, before, "a file that was written to");
    before = settled(world);
    write_file(other, "three");
    assert_int_equal(rename(other, world->file), 0);
    await_change(world, before, "a file that was renamed over it");
    before = settled(world);
    write_file(manifest, "{}");
    await_change(world, before, "a new name in the folder");
    before = settled(world);
    assert_int_equal(unlink(manifest), 0);
    await_change(world, before, "a name that is gone");
}

static void test_changes_of_what_lies_beside_are_not_noticed(void **state)
{
    struct world *world = *state;
    char beside[128];
    snprintf(beside, sizeof beside, "%s/beside", world->root);
    watch(world);
    await_change(world, 0, "the first wish");
    int before = settled(world);
    write_file(beside, "x");
    assert_int_equal(settled(world), before);
}

static void test_a_folder_that_was_replaced_is_watched(void **state)
{
    struct world *world = *state;
    char manifest[128];
    snprintf(manifest, sizeof manifest, "%s/etcd.yaml", world->folder);
    watch(world);
    await_change(world, 0, "the first wish");
    int before = settled(world);
    assert_int_equal(rmdir(world->folder), 0);
    assert_int_equal(mkdir(world->folder, 0700), 0);
    await_change(world, before, "the folder itself");
    watch(world); /* as after each look */
    before = settled(world);
    write_file(manifest, "{}");
    await_change(world, before, "a name in the new folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_watched_newly_is_looked_at_once_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_files_and_entries_of_folders_are_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_what_lies_beside_are_not_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_folder_that_was_replaced_is_watched, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
