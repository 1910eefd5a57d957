#include "drain/ready_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"

bool cr_ready_file_remove(const char *path, struct cr_error *err)
{
    return unlink(path) == 0 || errno == ENOENT || cr_error_set_file(err, path);
}

void cr_ready_file_watch(struct cr_ready_file *file, const char *path)
{
    struct cr_error err = {0};
    *file = (struct cr_ready_file){.path = path};
    if (cr_ready_file_remove(path, &err))
        return;
    file->has_stale = stat(path, &file->stale) == 0;
    cr_log(CR_LOG_WARN, "an old ready file cannot be removed; it is not taken for a new one", {"error", err.text});
}

static bool is_stale(const struct cr_ready_file *file, const struct stat *now)
{
    const struct stat *old = &file->stale;
    return file->has_stale && now->st_dev == old->st_dev && now->st_ino == old->st_ino &&
           now->st_mtim.tv_sec == old->st_mtim.tv_sec && now->st_mtim.tv_nsec == old->st_mtim.tv_nsec;
}

bool cr_ready_file_is_there(const struct cr_ready_file *file, bool *there, struct cr_error *err)
{
    struct stat now;
    *there = false;
    if (stat(file->path, &now) != 0)
        return errno == ENOENT || cr_error_set_file(err, file->path);
    *there = !is_stale(file, &now);
    return true;
}

static bool write_new(const char *path, const char *text, struct cr_error *err)
{
    size_t len = strlen(text);
    cr_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return cr_error_set_file(err, path);
    ssize_t n = write(fd, text, len);
    if (n < 0)
        return cr_error_set_file(err, path);
    return (size_t)n == len || cr_error_set(err, CR_ERR_TRANSIENT, "%s: written in part only", path);
}

bool cr_ready_file_write(const char *path, const char *text, struct cr_error *err)
{
    cr_autofree char *fresh = cr_asprintf("%s.%ld", path, (long)getpid());
    (void)unlink(fresh); /* of an earlier process with this id */
    bool ok = write_new(fresh, text, err) && (rename(fresh, path) == 0 || cr_error_set_file(err, path));
    if (!ok)
        (void)unlink(fresh);
    return ok;
}
