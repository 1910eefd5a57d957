#include "install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { MODE = 0755 };

static bool copy_all(int from, int to, off_t size, const char *path, struct cr_error *err)
{
    for (off_t at = 0; at < size;) {
        ssize_t n = sendfile(to, from, &at, (size_t)(size - at));
        if (n < 0 && errno != EINTR)
            return cr_error_set_file(err, path);
        if (n == 0)
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: the program was cut off while it was copied", path);
    }
    return true;
}

/* On disk before it has its name: a node that loses power must not come back with half a program. */
static bool write_copy(int from, const char *path, struct cr_error *err)
{
    struct stat program;
    cr_autofd int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
    if (to < 0 || fstat(from, &program) != 0)
        return cr_error_set_file(err, path);
    if (!copy_all(from, to, program.st_size, path, err))
        return false;
    return (fchmod(to, MODE) == 0 && fsync(to) == 0) || cr_error_set_file(err, path);
}

bool install_program(const char *folder, char **path, struct cr_error *err)
{
    cr_autofree char *target = cr_asprintf("%s/certroll-shutdown-manager", folder);
    cr_autofree char *fresh = cr_asprintf("%s.%ld", target, (long)getpid());
    cr_autofd int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return cr_error_set_file(err, "/proc/self/exe");
    (void)unlink(fresh); /* of an earlier process with this id */
    bool ok = write_copy(from, fresh, err) && (rename(fresh, target) == 0 || cr_error_set_file(err, target));
    if (!ok)
        (void)unlink(fresh);
    else
        *path = cr_steal(&target);
    return ok;
}
