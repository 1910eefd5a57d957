#include "sidecar/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sys/file.h"

void cr_output_staged_dispose(struct cr_output_staged *staged)
{
    if (staged->is_beside)
        unlinkat(staged->fd, staged->beside, 0);
    if (staged->fd >= 0)
        close(staged->fd);
    free(staged->beside);
    *staged = CR_OUTPUT_STAGED_INIT;
}

/* doing: "write it". */
static bool fail(const char *doing, int error, struct cr_error *err)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return cr_error_set(err, CR_ERR_NOT_FOUND, "its folder is not there");
    case EACCES:
    case EPERM:
        return cr_error_set(err, CR_ERR_FORBIDDEN, "cannot %s: %s", doing, strerror(error));
    case EROFS:
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "cannot %s: its volume is read-only; outputs go into one of their own, such as an emptyDir "
                            "in memory",
                            doing);
    case EISDIR:
        return cr_error_set(err, CR_ERR_INVALID, "it is a folder");
    default:
        return cr_error_set(err, CR_ERR_TRANSIENT, "cannot %s: %s", doing, strerror(error));
    }
}

static bool open_folder(const char *path, struct cr_output_staged *out, struct cr_error *err)
{
    const char *slash = strrchr(path, '/');
    cr_autofree char *folder = slash == path ? cr_strdup("/") : cr_strndup(path, (size_t)(slash - path));
    out->name = slash + 1;
    out->beside = cr_asprintf(".%s.certroll", out->name);
    out->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return out->fd >= 0 || fail("open its folder", errno, err);
}

/* --- what is there --- */

static bool has_rights(const struct cr_output_spec *spec, const struct stat *is)
{
    return (is->st_mode & 07777) == spec->mode && (spec->owner < 0 || is->st_uid == (uid_t)spec->owner) &&
           (spec->group < 0 || is->st_gid == (gid_t)spec->group);
}

/* A file that cannot be looked at is written. */
static bool is_there(const struct cr_output_spec *spec, const struct cr_buf *content)
{
    struct stat is;
    CR_CLEANUP(cr_buf) struct cr_buf old = {.secret = true};
    return lstat(spec->path, &is) == 0 && S_ISREG(is.st_mode) && (size_t)is.st_size == content->len &&
           has_rights(spec, &is) && cr_file_read_regular(spec->path, content->len, &old, NULL) &&
           old.len == content->len && memcmp(cr_buf_text(&old), cr_buf_text(content), content->len) == 0;
}

/* --- what is put there --- */

static bool write_all(int fd, const struct cr_buf *content)
{
    for (size_t done = 0; done < content->len;) {
        ssize_t n = write(fd, content->data + done, content->len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* What cannot be read would be written, and counted as changed, at each reading. */
static bool can_be_read(const struct cr_output_staged *staged, struct cr_error *err)
{
    cr_autofd int fd = openat(staged->fd, staged->beside, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ||
           fail("read it again (of another owner, that needs the capability DAC_READ_SEARCH beside CHOWN)", errno, err);
}

/* The mode first: the mode of another's file is not ours to change. A change of the owner takes no bits of one that
 * config.c allows. */
static bool fill(int fd, const struct cr_output_spec *spec, const struct cr_buf *content, struct cr_error *err)
{
    bool own = spec->owner >= 0 || spec->group >= 0;
    if (!write_all(fd, content))
        return fail("write it", errno, err);
    if (fchmod(fd, spec->mode) != 0)
        return fail("give it its mode", errno, err);
    if (own && fchown(fd, spec->owner < 0 ? (uid_t)-1 : (uid_t)spec->owner,
                      spec->group < 0 ? (gid_t)-1 : (gid_t)spec->group) != 0)
        return fail("give it its owner (that needs the capability CHOWN, or the same user)", errno, err);
    return fsync(fd) == 0 || fail("write it to the disk", errno, err);
}

static bool make_beside(struct cr_output_staged *staged, const struct cr_output_spec *spec,
                        const struct cr_buf *content, struct cr_error *err)
{
    if (unlinkat(staged->fd, staged->beside, 0) != 0 && errno != ENOENT)
        return fail("remove what is left of the last time", errno, err);
    cr_autofd int fd =
        openat(staged->fd, staged->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    staged->is_beside = fd >= 0;
    if (fd < 0)
        return fail("write beside it", errno, err);
    return fill(fd, spec, content, err) && can_be_read(staged, err);
}

bool cr_output_file_stage(const struct cr_output_spec *spec, const struct cr_buf *content, struct cr_output_staged *out,
                          struct cr_error *err)
{
    *out = CR_OUTPUT_STAGED_INIT;
    if (!open_folder(spec->path, out, err))
        return false;
    if (!is_there(spec, content))
        return make_beside(out, spec, content, err);
    unlinkat(out->fd, out->beside, 0); /* of a process that ended between two steps */
    return true;
}

bool cr_output_file_put(struct cr_output_staged *staged, bool *changed, struct cr_error *err)
{
    if (!staged->is_beside)
        return true;
    bool was_there = faccessat(staged->fd, staged->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (renameat(staged->fd, staged->beside, staged->fd, staged->name) != 0)
        return fail("put it into its place", errno, err);
    staged->is_beside = false;
    *changed = *changed || was_there;
    fsync(staged->fd); /* some file systems have no fsync for folders; the rename has happened all the same */
    return true;
}
