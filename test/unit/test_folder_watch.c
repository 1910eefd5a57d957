#include "tlsreload/folder_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/inchild.h"
#include "support/secretvolume.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { PATIENCE_MS = 30 * 1000, IDLE_MS = 150 };

static struct cr_folder_watch *watch_one(const char *path)
{
    struct cr_folder_watch *watch = cr_folder_watch_new(&path, 1, NULL);
    assert_non_null(watch);
    return watch;
}

/* Whether a change is notified within so many ms. */
static bool notified_within(struct cr_folder_watch *watch, int64_t ms)
{
    int64_t end = cr_clock_monotonic_ms() + ms;
    for (;;) {
        int64_t now = cr_clock_monotonic_ms();
        int wait = cr_folder_watch_due(watch, now);
        if (wait == 0)
            return true;
        if (now >= end)
            return false;
        struct pollfd poll_fd = {.fd = cr_folder_watch_fd(watch), .events = POLLIN};
        int64_t rest = end - now;
        poll(&poll_fd, 1, wait > 0 && wait < rest ? wait : (int)rest);
    }
}

static void assert_notified(struct cr_folder_watch *watch)
{
    assert_true(notified_within(watch, PATIENCE_MS));
}

static void assert_silent(struct cr_folder_watch *watch)
{
    assert_false(notified_within(watch, IDLE_MS));
}

/* What people and kubelets do to files, and that it is seen every time: a watch must not die with what it was set on.
 */
struct shape {
    const char *rule;
    void (*make)(struct secret_volume *volume);
    void (*change)(struct secret_volume *volume, int round);
};

static void make_volume(struct secret_volume *volume)
{
    secret_volume_write(volume, "tls.crt", "0");
    secret_volume_swap(volume, true);
}

static void swap_as(struct secret_volume *volume, int round, bool keep)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d", round);
    secret_volume_write(volume, "tls.crt", text);
    secret_volume_swap(volume, keep);
}

static void swap_and_keep(struct secret_volume *volume, int round)
{
    swap_as(volume, round, true);
}

static void swap_and_remove(struct secret_volume *volume, int round)
{
    swap_as(volume, round, false);
}

static char *in(const struct secret_volume *volume, const char *name)
{
    return cr_asprintf("%s/%s", volume->folder, name);
}

static void make_file(struct secret_volume *volume)
{
    secret_volume_put(volume, "tls.crt", "0", 1);
}

static void write_in_place(struct secret_volume *volume, int round)
{
    secret_volume_put(volume, "tls.crt", round % 2 ? "1" : "2", 1);
}

static void rename_over(struct secret_volume *volume, int round)
{
    cr_autofree char *from = in(volume, "tls.crt.new");
    cr_autofree char *to = in(volume, "tls.crt");
    (void)round;
    secret_volume_put(volume, "tls.crt.new", "1", 1);
    assert_int_equal(rename(from, to), 0);
}

static void remove_and_create(struct secret_volume *volume, int round)
{
    cr_autofree char *path = in(volume, "tls.crt");
    if (round % 2)
        assert_int_equal(unlink(path), 0);
    else
        make_file(volume);
}

static void change_mode(struct secret_volume *volume, int round)
{
    cr_autofree char *path = in(volume, "tls.crt");
    assert_int_equal(chmod(path, round % 2 ? 0400 : 0600), 0);
}

static void make_nested(struct secret_volume *volume)
{
    cr_autofree char *outer = in(volume, "outer");
    cr_autofree char *inner = in(volume, "outer/inner");
    cr_autofree char *link = in(volume, "tls.crt");
    assert_int_equal(mkdir(outer, 0755), 0);
    assert_int_equal(mkdir(inner, 0755), 0);
    secret_volume_put(volume, "outer/inner/tls.crt", "0", 1);
    assert_true(symlink("outer/inner/tls.crt", link) == 0 || errno == EEXIST);
}

static void remove_folders_and_create(struct secret_volume *volume, int round)
{
    cr_autofree char *outer = in(volume, "outer");
    if (round % 2)
        remove_tree(outer);
    else
        make_nested(volume);
}

static void replace_folder_above(struct secret_volume *volume, int round)
{
    cr_autofree char *outer = in(volume, "outer");
    cr_autofree char *away = cr_asprintf("%s/away-%d", volume->folder, round);
    assert_int_equal(rename(outer, away), 0);
    make_nested(volume);
}

/* tls.crt -> current/tls.crt, current -> ./../<folder>/releases/a/, an absolute link inside. */
static void make_chain(struct secret_volume *volume)
{
    cr_autofree char *releases = in(volume, "releases");
    cr_autofree char *link = in(volume, "tls.crt");
    cr_autofree char *current = in(volume, "current");
    assert_int_equal(mkdir(releases, 0755), 0);
    for (const char *name = "ab"; *name; name++) {
        cr_autofree char *folder = cr_asprintf("%s/%c", releases, *name);
        cr_autofree char *file = cr_asprintf("releases/%c/real.crt", *name);
        cr_autofree char *absolute = cr_asprintf("%s/%s", volume->folder, file);
        cr_autofree char *inner = cr_asprintf("%s/tls.crt", folder);
        assert_int_equal(mkdir(folder, 0755), 0);
        secret_volume_put(volume, file, "0", 1);
        assert_int_equal(symlink(absolute, inner), 0);
    }
    assert_int_equal(symlink("current/tls.crt", link), 0);
    cr_autofree char *first = cr_asprintf("./../%s/releases/a/", strrchr(volume->folder, '/') + 1);
    assert_int_equal(symlink(first, current), 0);
}

static void switch_the_middle_link(struct secret_volume *volume, int round)
{
    cr_autofree char *current = in(volume, "current");
    cr_autofree char *fresh = in(volume, "fresh");
    assert_int_equal(symlink(round % 2 ? "releases/b" : "releases/a", fresh), 0);
    assert_int_equal(rename(fresh, current), 0);
}

static void write_the_end_of_the_chain(struct secret_volume *volume, int round)
{
    (void)round;
    secret_volume_put(volume, "releases/a/real.crt", "1", 1);
}

static void make_hard_link(struct secret_volume *volume)
{
    cr_autofree char *elsewhere = in(volume, "elsewhere");
    cr_autofree char *source = in(volume, "elsewhere/source");
    cr_autofree char *path = in(volume, "tls.crt");
    assert_int_equal(mkdir(elsewhere, 0755), 0);
    secret_volume_put(volume, "elsewhere/source", "0", 1);
    assert_int_equal(link(source, path), 0);
}

static void write_by_the_other_name(struct secret_volume *volume, int round)
{
    (void)round;
    secret_volume_put(volume, "elsewhere/source", "1", 1);
}

static const struct shape shapes[] = {
    {"..data is swapped, the old folder goes", make_volume, swap_and_remove},
    {"..data is swapped, the old folder stays", make_volume, swap_and_keep},
    {"a file is written in place", make_file, write_in_place},
    {"a file is renamed over the old one", make_file, rename_over},
    {"a file goes and comes", make_file, remove_and_create},
    {"a file's mode changes", make_file, change_mode},
    {"folders go and come", make_nested, remove_folders_and_create},
    {"a folder above is replaced", make_nested, replace_folder_above},
    {"a link in the middle of a chain is turned", make_chain, switch_the_middle_link},
    {"the end of a chain of links is written", make_chain, write_the_end_of_the_chain},
    {"a hard link is written by its other name", make_hard_link, write_by_the_other_name},
};

static void see_rounds(struct secret_volume *volume, const struct shape *shape, const char *path)
{
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = watch_one(path);
    assert_silent(watch);
    for (int round = 1; round <= 4; round++) {
        shape->change(volume, round);
        assert_notified(watch);
    }
    assert_silent(watch);
}

static void every_change_is_notified(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(shapes); i++) {
        void *volume = NULL;
        print_message("  %s\n", shapes[i].rule);
        secret_volume_set_up(&volume);
        shapes[i].make(volume);
        see_rounds(volume, &shapes[i], secret_volume_path(volume, "tls.crt"));
        secret_volume_tear_down(&volume);
    }
}

static void a_relative_path_means_the_same_when_the_process_goes_elsewhere(void **state)
{
    struct secret_volume *volume = *state;
    cr_autofree char *before = getcwd(NULL, 0);
    make_volume(volume);
    assert_int_equal(chdir(volume->folder), 0);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = watch_one("./tls.crt");
    assert_int_equal(chdir(before), 0);
    swap_and_keep(volume, 1);
    assert_notified(watch);
}

static void neighbours_do_not_matter(void **state)
{
    struct secret_volume *volume = *state;
    make_file(volume);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = watch_one(secret_volume_path(volume, "tls.crt"));
    secret_volume_put(volume, "tls.crt.new", "1", 1);
    secret_volume_put(volume, "other", "1", 1);
    assert_silent(watch);
}

static void a_file_that_comes_late_is_notified(void **state)
{
    struct secret_volume *volume = *state;
    CR_CLEANUP(cr_folder_watch)
    struct cr_folder_watch *watch = watch_one(secret_volume_path(volume, "outer/inner/tls.crt"));
    assert_silent(watch);
    make_nested(volume);
    assert_notified(watch);
}

static void links_in_a_circle_end_nowhere(void **state)
{
    struct secret_volume *volume = *state;
    const char *path = secret_volume_path(volume, "tls.crt");
    assert_int_equal(symlink("tls.crt", path), 0);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = watch_one(path);
    assert_int_equal(unlink(path), 0);
    assert_notified(watch);
    make_file(volume);
    assert_notified(watch);
}

/* Given times, so that none of the machine's count. */
static void a_change_waits_for_quiet_but_not_for_ever(void **state)
{
    struct secret_volume *volume = *state;
    make_file(volume);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = watch_one(secret_volume_path(volume, "tls.crt"));
    assert_int_equal(cr_folder_watch_due(watch, 1000), -1);
    write_in_place(volume, 1);
    assert_int_equal(cr_folder_watch_due(watch, 5000), CR_FOLDER_WATCH_QUIET_MS);
    assert_int_equal(cr_folder_watch_due(watch, 5040), 60);
    assert_true(cr_folder_watch_is_pending(watch));
    write_in_place(volume, 2);
    assert_int_equal(cr_folder_watch_due(watch, 5050), CR_FOLDER_WATCH_QUIET_MS);
    assert_int_equal(cr_folder_watch_due(watch, 5150), 0);
    assert_false(cr_folder_watch_is_pending(watch));
    assert_int_equal(cr_folder_watch_due(watch, 5150), -1); /* taken */
    int64_t start = 10 * 1000;
    int64_t now = start;
    do {
        write_in_place(volume, 1);
        now += 90;
    } while (cr_folder_watch_due(watch, now) > 0);
    assert_in_range(now - start - 90, CR_FOLDER_WATCH_MOST_MS, CR_FOLDER_WATCH_MOST_MS + 90);
}

static void overflow(struct secret_volume *volume)
{
    cr_autofree char *a = in(volume, "tls.crt");
    cr_autofree char *b = in(volume, "neighbour");
    long most = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    assert_true(file && fscanf(file, "%ld", &most) == 1);
    fclose(file);
    for (long i = 0; i < most / 2 + 100; i++)
        assert_int_equal(i % 2 ? rename(b, a) : rename(a, b), 0);
}

/* The folder that counts after the overflow is one without an event for its creation. */
static void lost_events_count_as_a_change_of_everything(void **state)
{
    struct secret_volume *volume = *state;
    make_nested(volume);
    secret_volume_put(volume, "other", "0", 1);
    const char *const paths[] = {secret_volume_path(volume, "tls.crt"), secret_volume_path(volume, "flood/tls.crt")};
    cr_autofree char *flood = in(volume, "flood");
    assert_int_equal(mkdir(flood, 0755), 0);
    secret_volume_put(volume, "flood/tls.crt", "0", 1);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = cr_folder_watch_new(paths, 2, NULL);
    struct secret_volume flooded = {.folder = flood};
    overflow(&flooded);
    replace_folder_above(volume, 1);
    assert_notified(watch);
    secret_volume_put(volume, "outer/inner/tls.crt", "1", 1);
    assert_notified(watch);
}

static void see_mounts(void *arg)
{
    struct secret_volume *volume = arg;
    cr_autofree char *mounted = in(volume, "mounted");
    cr_autofree char *file = in(volume, "file");
    cr_autofree char *source = in(volume, "outer/inner/tls.crt");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        _exit(IN_CHILD_SKIP);
    make_volume(volume);
    make_nested(volume);
    NEED(mkdir(mounted, 0755) == 0);
    NEED(mount(volume->folder, mounted, NULL, MS_BIND, NULL) == 0);
    secret_volume_put(volume, "file", "", 0);
    NEED(mount(source, file, NULL, MS_BIND, NULL) == 0);
    const char *const paths[] = {secret_volume_path(volume, "mounted/tls.crt"), file};
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *folder = cr_folder_watch_new(&paths[0], 1, NULL);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *alone = cr_folder_watch_new(&paths[1], 1, NULL);
    NEED(folder && alone);
    for (int round = 0; round < 3; round++) {
        swap_as(volume, round, round % 2);
        NEED(notified_within(folder, PATIENCE_MS));
        secret_volume_put(volume, "outer/inner/tls.crt", "1", 1);
        NEED(notified_within(alone, PATIENCE_MS));
    }
}

static void what_is_mounted_is_seen_by_its_other_path(void **state)
{
    in_child(see_mounts, *state);
}

static void see_without_rights(void *arg)
{
    struct secret_volume *volume = arg;
    make_nested(volume);
    cr_autofree char *outer = in(volume, "outer");
    NEED(chmod(volume->folder, 0755) == 0);
    NEED(chmod(outer, 0311) == 0);
    const char *path = secret_volume_path(volume, "outer/inner/tls.crt");
    if (getuid() == 0 && setresuid(65532, 65532, 0) != 0)
        _exit(IN_CHILD_SKIP);
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = cr_folder_watch_new(&path, 1, NULL);
    NEED(watch);
    NEED(!notified_within(watch, IDLE_MS));
    if (seteuid(0) != 0)
        _exit(IN_CHILD_SKIP);
    cr_autofree char *inner = in(volume, "outer/inner");
    cr_autofree char *away = in(volume, "outer/away");
    cr_autofree char *fresh = in(volume, "outer/fresh");
    cr_autofree char *file = in(volume, "outer/fresh/tls.crt");
    NEED(mkdir(fresh, 0755) == 0);
    secret_volume_put(volume, "outer/fresh/tls.crt", "1", 1);
    NEED(chmod(file, 0644) == 0);
    NEED(rename(inner, away) == 0 && rename(fresh, inner) == 0);
    NEED(seteuid(65532) == 0);
    NEED(notified_within(watch, PATIENCE_MS));
    NEED(seteuid(0) == 0);
    secret_volume_put(volume, "outer/inner/tls.crt", "2", 1);
    NEED(seteuid(65532) == 0);
    NEED(notified_within(watch, PATIENCE_MS));
}

/* The folder between can be gone through, and not be read, so that nothing notifies of it. */
static void folders_that_cannot_be_watched_are_looked_at(void **state)
{
    in_child(see_without_rights, *state);
}

static void see_no_instance(void *arg)
{
    struct secret_volume *volume = arg;
    const char *path = secret_volume_path(volume, "tls.crt");
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = 3};
    NEED(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    struct cr_error err = {0};
    NEED(!cr_folder_watch_new(&path, 1, &err));
    NEED(err.kind == CR_ERR_TRANSIENT && strstr(err.text, "fs.inotify.max_user_instances"));
}

static void without_an_instance_the_sysctl_is_named(void **state)
{
    in_child(see_no_instance, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, secret_volume_set_up, secret_volume_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_notified),
        TEST(a_relative_path_means_the_same_when_the_process_goes_elsewhere),
        TEST(neighbours_do_not_matter),
        TEST(a_file_that_comes_late_is_notified),
        TEST(links_in_a_circle_end_nowhere),
        TEST(a_change_waits_for_quiet_but_not_for_ever),
        TEST(lost_events_count_as_a_change_of_everything),
        TEST(what_is_mounted_is_seen_by_its_other_path),
        TEST(folders_that_cannot_be_watched_are_looked_at),
        TEST(without_an_instance_the_sysctl_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
