#include "support/secretvolume.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
#include "base/cleanup.h"

int secret_volume_set_up(void **state)
{
    struct secret_volume *volume = cr_new(struct secret_volume);
    volume->folder = cr_strdup("/tmp/certroll-test-XXXXXX");
    assert_non_null(mkdtemp(volume->folder));
    *state = volume;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void remove_tree(const char *path)
{
    assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int secret_volume_tear_down(void **state)
{
    struct secret_volume *volume = *state;
    remove_tree(volume->folder);
    cr_strvec_dispose(&volume->paths);
    free(volume->folder);
    free(volume->next);
    free(volume);
    return 0;
}

const char *secret_volume_path(struct secret_volume *volume, const char *name)
{
    cr_autofree char *path = cr_asprintf("%s/%s", volume->folder, name);
    cr_strvec_add(&volume->paths, path);
    return volume->paths.items[volume->paths.len - 1];
}

static void write_file(const char *path, const void *data, size_t len)
{
    cr_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
}

/* Once per file's name, as the volume is filled first. */
static void link_name(const struct secret_volume *volume, const char *name)
{
    cr_autofree char *link = cr_asprintf("%s/%s", volume->folder, name);
    cr_autofree char *target = cr_asprintf("..data/%s", name);
    assert_true(symlink(target, link) == 0 || errno == EEXIST);
}

void secret_volume_write_in(struct secret_volume *volume, const char *folder, const char *name, const char *text)
{
    cr_autofree char *path = cr_asprintf("%s/%s", volume->folder, folder);
    cr_autofree char *file = cr_asprintf("%s/%s", path, name);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    write_file(file, text, strlen(text));
    link_name(volume, name);
}

void secret_volume_write(struct secret_volume *volume, const char *name, const char *text)
{
    if (!volume->next)
        volume->next = cr_asprintf("..2026_11_22_%08d", volume->generation++);
    secret_volume_write_in(volume, volume->next, name, text);
}

void secret_volume_point(struct secret_volume *volume, const char *folder)
{
    cr_autofree char *link = cr_asprintf("%s/..data", volume->folder);
    cr_autofree char *fresh = cr_asprintf("%s/..data_tmp", volume->folder);
    assert_int_equal(symlink(folder, fresh), 0);
    assert_int_equal(rename(fresh, link), 0);
}

void secret_volume_swap(struct secret_volume *volume, bool keep)
{
    char before[64];
    cr_autofree char *link = cr_asprintf("%s/..data", volume->folder);
    ssize_t n = readlink(link, before, sizeof before - 1);
    cr_autofree char *next = cr_steal(&volume->next);
    secret_volume_point(volume, next);
    if (n <= 0 || keep)
        return;
    before[n] = '\0';
    cr_autofree char *old = cr_asprintf("%s/%s", volume->folder, before);
    remove_tree(old);
}

void secret_volume_put(struct secret_volume *volume, const char *name, const void *data, size_t len)
{
    cr_autofree char *path = cr_asprintf("%s/%s", volume->folder, name);
    write_file(path, data, len);
}
