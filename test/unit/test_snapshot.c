#include "tlsreload/snapshot.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/secretvolume.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { MAX = 4096, SWAPS = 2000 };

static void files_are_read_as_they_are(void **state)
{
    struct secret_volume *volume = *state;
    secret_volume_write(volume, "a", "first");
    secret_volume_write(volume, "b", "");
    secret_volume_swap(volume, true);
    const char *const paths[] = {secret_volume_path(volume, "a"), NULL, secret_volume_path(volume, "b")};
    struct cr_buf out[] = {{.secret = true}, CR_BUF_INIT(0), CR_BUF_INIT(0)};
    cr_buf_puts(&out[0], "of before");
    cr_buf_puts(&out[1], "of before");
    assert_true(cr_snapshot_read(paths, 3, MAX, out, NULL));
    assert_string_equal(cr_buf_text(&out[0]), "first");
    assert_int_equal(out[1].len, 0);
    assert_int_equal(out[2].len, 0);
    for (size_t i = 0; i < 3; i++)
        cr_buf_dispose(&out[i]);
}

static void what_is_no_file_is_reported_and_nothing_is_read(void **state)
{
    struct secret_volume *volume = *state;
    cr_autofree char *good = cr_asprintf("%s/good", volume->folder);
    cr_autofree char *missing = cr_asprintf("%s/missing", volume->folder);
    cr_autofree char *below = cr_asprintf("%s/good/below", volume->folder);
    cr_autofree char *pipe = cr_asprintf("%s/pipe", volume->folder);
    cr_autofree char *loop = cr_asprintf("%s/loop", volume->folder);
    secret_volume_put(volume, "good", "good", 4);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink("loop", loop), 0);
    const struct {
        const char *path;
        size_t max;
        enum cr_error_kind kind;
        const char *word;
    } cases[] = {
        {missing, MAX, CR_ERR_NOT_FOUND, "No such file"},     {below, MAX, CR_ERR_NOT_FOUND, "Not a directory"},
        {volume->folder, MAX, CR_ERR_INVALID, "is a folder"}, {pipe, MAX, CR_ERR_INVALID, "no regular file"},
        {loop, MAX, CR_ERR_INVALID, "symbolic links"},        {good, 3, CR_ERR_INVALID, "longer than the 3 bytes"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const char *const paths[] = {good, cases[i].path};
        struct cr_buf out[] = {CR_BUF_INIT(0), CR_BUF_INIT(0)};
        struct cr_error err = {0};
        assert_false(cr_snapshot_read(paths, 2, cases[i].max, out, &err));
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.text, cases[i].path));
        assert_non_null(strstr(err.text, cases[i].word));
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(out[k].len, 0);
            cr_buf_dispose(&out[k]);
        }
    }
    unlink(pipe);
    unlink(loop);
}

struct writer {
    struct secret_volume *volume;
    void (*step)(struct secret_volume *volume, int number);
    atomic_bool stop;
    pthread_t thread;
};

static void *write_on(void *arg)
{
    struct writer *writer = arg;
    for (int i = 0; !atomic_load(&writer->stop); i++)
        writer->step(writer->volume, i);
    return NULL;
}

static void new_folder(struct secret_volume *volume, int number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "generation %d", number);
    for (const char *name = "abc"; *name; name++)
        secret_volume_write(volume, (char[]){*name, '\0'}, text);
    secret_volume_swap(volume, number % 2);
    usleep(200);
}

/* Both folders stay, so every inode comes back. */
static void there_and_back(struct secret_volume *volume, int number)
{
    secret_volume_point(volume, number % 2 ? "..one" : "..two");
    usleep(100);
}

static void read_without_mixing(struct secret_volume *volume, int times)
{
    const char *const paths[] = {secret_volume_path(volume, "a"), secret_volume_path(volume, "b"),
                                 secret_volume_path(volume, "c")};
    int read = 0;
    for (int i = 0; i < times; i++) {
        struct cr_buf out[] = {CR_BUF_INIT(0), CR_BUF_INIT(0), CR_BUF_INIT(0)};
        struct cr_error err = {0};
        if (cr_snapshot_read(paths, 3, MAX, out, &err)) {
            read++;
            assert_true(out[0].len > 0);
            assert_string_equal(cr_buf_text(&out[0]), cr_buf_text(&out[1]));
            assert_string_equal(cr_buf_text(&out[0]), cr_buf_text(&out[2]));
        } else {
            assert_true(err.kind == CR_ERR_TRANSIENT || err.kind == CR_ERR_NOT_FOUND);
        }
        for (size_t k = 0; k < 3; k++)
            cr_buf_dispose(&out[k]);
    }
    assert_true(read > times / 2);
}

static void beside(struct secret_volume *volume, void (*step)(struct secret_volume *, int), int times)
{
    struct writer writer = {.volume = volume, .step = step};
    assert_int_equal(pthread_create(&writer.thread, NULL, write_on, &writer), 0);
    read_without_mixing(volume, times);
    atomic_store(&writer.stop, true);
    assert_int_equal(pthread_join(writer.thread, NULL), 0);
}

static void generations_are_never_mixed_under_swaps(void **state)
{
    new_folder(*state, 0);
    beside(*state, new_folder, 100);
}

static void generations_are_never_mixed_when_folders_come_back(void **state)
{
    struct secret_volume *volume = *state;
    static const char *const folders[] = {"..one", "..two"};
    for (size_t i = 0; i < 2; i++)
        for (const char *name = "abc"; *name; name++)
            secret_volume_write_in(volume, folders[i], (char[]){*name, '\0'}, folders[i]);
    secret_volume_point(volume, "..one");
    beside(volume, there_and_back, SWAPS);
}

/* Between its writes the scheduler may have left it for longer than a reader can wait for. */
static atomic_int slow;
static atomic_int writes;

/* A reader has all the time to read the one half of before and the other of now. */
static void half_and_half(struct secret_volume *volume, int number)
{
    static const char *const halves[] = {"aaaaaaaa", "bbbbbbbb"};
    cr_autofree char *path = cr_asprintf("%s/in-place", volume->folder);
    cr_autofd int fd = open(path, O_WRONLY | O_CREAT, 0600);
    int64_t start = cr_clock_monotonic_ms();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pwrite(fd, halves[number % 2], 8, 8 * i), 8);
        usleep(3000);
    }
    if (cr_clock_monotonic_ms() - start > 12)
        atomic_fetch_add(&slow, 1);
    atomic_fetch_add(&writes, 1);
    usleep(50 * 1000);
}

static bool is_of_one_piece(const char *text)
{
    return strcmp(text, "aaaaaaaaaaaaaaaa") == 0 || strcmp(text, "bbbbbbbbbbbbbbbb") == 0;
}

/* Whether the write that a reader came into took as long as it should. */
static bool was_swift(int slow_before)
{
    int now = atomic_load(&writes);
    while (atomic_load(&writes) == now)
        usleep(1000);
    return atomic_load(&slow) == slow_before;
}

static void a_file_that_is_written_in_place_is_read_before_or_after(void **state)
{
    struct secret_volume *volume = *state;
    const char *const paths[] = {secret_volume_path(volume, "in-place")};
    half_and_half(volume, 0);
    struct writer writer = {.volume = volume, .step = half_and_half};
    assert_int_equal(pthread_create(&writer.thread, NULL, write_on, &writer), 0);
    int read = 0;
    int torn = 0;
    for (int64_t end = cr_clock_monotonic_ms() + 2000; cr_clock_monotonic_ms() < end;) {
        CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
        int slow_before = atomic_load(&slow);
        if (!cr_snapshot_read(paths, 1, MAX, &out, NULL))
            continue;
        read++;
        torn += !is_of_one_piece(cr_buf_text(&out)) && was_swift(slow_before);
    }
    atomic_store(&writer.stop, true);
    assert_int_equal(pthread_join(writer.thread, NULL), 0);
    assert_true(read > 10);
    assert_int_equal(torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_read_as_they_are, secret_volume_set_up, secret_volume_tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_reported_and_nothing_is_read, secret_volume_set_up,
                                        secret_volume_tear_down),
        cmocka_unit_test_setup_teardown(generations_are_never_mixed_under_swaps, secret_volume_set_up,
                                        secret_volume_tear_down),
        cmocka_unit_test_setup_teardown(generations_are_never_mixed_when_folders_come_back, secret_volume_set_up,
                                        secret_volume_tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_written_in_place_is_read_before_or_after, secret_volume_set_up,
                                        secret_volume_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
