#include "sys/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static int set_up(void **state)
{
    char *folder = cr_strdup("/tmp/certroll-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(rmdir(*state), 0);
    free(*state);
    return 0;
}

static char *write_file(const char *folder, const void *data, size_t len)
{
    char *path = cr_asprintf("%s/file", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void a_file_is_read_whole_up_to_its_cap(void **state)
{
    static const size_t sizes[] = {0, 1, 255, 256, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 100000};
    for (size_t i = 0; i < cr_array_len(sizes); i++) {
        char *data = cr_malloc(sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = (char)(k * 31); /* NULs among it */
        cr_autofree char *path = write_file(*state, data, sizes[i]);
        CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
        struct cr_error err = {0};
        assert_true(cr_file_read(path, sizes[i], &out, &err));
        assert_int_equal(out.len, sizes[i]);
        assert_true(sizes[i] == 0 || memcmp(out.data, data, sizes[i]) == 0);
        if (sizes[i]) {
            assert_false(cr_file_read(path, sizes[i] - 1, &out, &err));
            assert_int_equal(err.kind, CR_ERR_INVALID);
            assert_non_null(strstr(err.text, path));
            assert_int_equal(out.len, sizes[i]); /* as before */
        }
        unlink(path);
        free(data);
    }
}

static void what_was_in_the_buffer_stays(void **state)
{
    cr_autofree char *path = write_file(*state, "tail", 4);
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    cr_buf_puts(&out, "head ");
    assert_true(cr_file_read(path, 100, &out, NULL));
    assert_string_equal(out.data, "head tail");
    assert_false(cr_file_read(path, 3, &out, NULL));
    assert_string_equal(out.data, "head tail");
    unlink(path);
}

static void the_cap_of_the_buffer_holds_too(void **state)
{
    cr_autofree char *path = write_file(*state, "12345", 5);
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(4);
    struct cr_error err = {0};
    assert_false(cr_file_read(path, 100, &out, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    unlink(path);
}

static void errors_have_the_kind_of_their_cause(void **state)
{
    cr_autofree char *absent = cr_asprintf("%s/absent", (char *)*state);
    cr_autofree char *below = cr_asprintf("%s/absent/x", (char *)*state);
    const struct {
        const char *path;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {absent, CR_ERR_NOT_FOUND, "No such file"},
        {below, CR_ERR_NOT_FOUND, "No such file"},
        {*state, CR_ERR_INVALID, "directory"},
        {"", CR_ERR_NOT_FOUND, "No such file"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
        struct cr_error err = {0};
        assert_false(cr_file_read(cases[i].path, 100, &out, &err));
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.text, cases[i].words));
        assert_true(cr_starts_with(err.text, cases[i].path));
    }
}

static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "apiVersion: v1\n", 15), 15);
    close(ends[1]);
    cr_autofree char *path = cr_asprintf("/dev/fd/%d", ends[0]);
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    assert_true(cr_file_read(path, 100, &out, NULL));
    assert_string_equal(out.data, "apiVersion: v1\n");
    close(ends[0]);
}

/* Nobody writes into it: who opens it as a file waits for ever. */
static void only_a_regular_file_is_read_where_another_program_may_put_it(void **state)
{
    cr_autofree char *file = write_file(*state, "42\n", 3);
    cr_autofree char *pipe = cr_asprintf("%s/pipe", (char *)*state);
    const char *const others[] = {pipe, *state, "/dev/null"};
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    alarm(10);
    assert_true(cr_file_read_regular(file, 100, &out, NULL));
    assert_string_equal(out.data, "42\n");
    for (size_t i = 0; i < cr_array_len(others); i++) {
        struct cr_error err = {0};
        assert_false(cr_file_read_regular(others[i], 100, &out, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_non_null(strstr(err.text, i == 1 ? "is a folder" : "is no regular file"));
    }
    alarm(0);
    unlink(pipe);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_up_to_its_cap),
        cmocka_unit_test(what_was_in_the_buffer_stays),
        cmocka_unit_test(the_cap_of_the_buffer_holds_too),
        cmocka_unit_test(errors_have_the_kind_of_their_cause),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(only_a_regular_file_is_read_where_another_program_may_put_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
