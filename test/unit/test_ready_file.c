#include "drain/ready_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sys/file.h"

struct fixture {
    char folder[64];
    char *path;
};

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    strcpy(f->folder, "/tmp/certroll-ready-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->path = cr_asprintf("%s/ok", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    rmdir(f->path);
    assert_int_equal(rmdir(f->folder), 0); /* nothing else is left behind */
    free(f->path);
    free(f);
    return 0;
}

static bool is_there(const struct cr_ready_file *file)
{
    bool there = false;
    struct cr_error err = {0};
    if (!cr_ready_file_is_there(file, &there, &err))
        fail_msg("%s", err.text);
    return there;
}

static void write_it(const struct fixture *f, const char *text)
{
    struct cr_error err = {0};
    if (!cr_ready_file_write(f->path, text, &err))
        fail_msg("%s", err.text);
}

static void it_is_there_once_it_was_written(void **state)
{
    const struct fixture *f = *state;
    struct cr_ready_file file;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_ready_file_watch(&file, f->path);
    assert_false(is_there(&file));
    write_it(f, "TimedOut");
    write_it(f, "Drained"); /* the second takes the place of the first */
    assert_true(is_there(&file));
    assert_true(cr_file_read(f->path, 64, &text, NULL));
    assert_string_equal(cr_buf_text(&text), "Drained");
}

static void what_was_there_before_is_taken_away(void **state)
{
    const struct fixture *f = *state;
    struct cr_ready_file file;
    write_it(f, "Drained");
    cr_ready_file_watch(&file, f->path);
    assert_int_not_equal(access(f->path, F_OK), 0);
    assert_false(is_there(&file));
    write_it(f, "Drained");
    assert_true(is_there(&file));
}

/* A folder, which unlink does not remove, in the place of a file that lies in a folder without write permission. */
static void what_cannot_be_taken_away_does_not_count(void **state)
{
    const struct fixture *f = *state;
    struct cr_ready_file file;
    struct cr_error err = {0};
    assert_int_equal(mkdir(f->path, 0755), 0);
    assert_false(cr_ready_file_remove(f->path, &err));
    cr_ready_file_watch(&file, f->path);
    assert_false(is_there(&file));
    assert_int_equal(rmdir(f->path), 0);
    assert_false(is_there(&file));
    write_it(f, "Drained");
    assert_true(is_there(&file));
}

static void removing_what_is_not_there_is_no_error(void **state)
{
    const struct fixture *f = *state;
    assert_true(cr_ready_file_remove(f->path, NULL));
    write_it(f, "Drained");
    assert_true(cr_ready_file_remove(f->path, NULL));
    assert_int_not_equal(access(f->path, F_OK), 0);
}

static void what_cannot_be_written_is_reported_and_leaves_nothing(void **state)
{
    const struct fixture *f = *state;
    struct cr_error err = {0};
    cr_autofree char *below = cr_asprintf("%s/missing/ok", f->folder);
    assert_false(cr_ready_file_write(below, "Drained", &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, below));
    assert_int_equal(mkdir(f->path, 0755), 0); /* no file takes the place of a folder */
    assert_false(cr_ready_file_write(f->path, "Drained", &err));
}

/* The temporary file of a process with the same id, killed in the middle of writing. */
static void the_rest_of_another_writer_is_no_obstacle(void **state)
{
    const struct fixture *f = *state;
    cr_autofree char *rest = cr_asprintf("%s.%ld", f->path, (long)getpid());
    cr_autofd int fd = open(rest, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    assert_true(fd >= 0);
    write_it(f, "Drained");
    assert_int_not_equal(access(rest, F_OK), 0);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(it_is_there_once_it_was_written),
        in_folder(what_was_there_before_is_taken_away),
        in_folder(what_cannot_be_taken_away_does_not_count),
        in_folder(removing_what_is_not_there_is_no_error),
        in_folder(what_cannot_be_written_is_reported_and_leaves_nothing),
        in_folder(the_rest_of_another_writer_is_no_obstacle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
