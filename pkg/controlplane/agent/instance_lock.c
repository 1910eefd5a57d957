#include "controlplane/agent/instance_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Declared here, since the compiler would take our own sys/file.h in the place of <sys/file.h>. */
extern int flock(int fd, int operation);

static enum cr_error_kind kind_of(int error)
{
    return error == ENOENT || error == ENOTDIR ? CR_ERR_NOT_FOUND
           : error == EACCES || error == EPERM ? CR_ERR_FORBIDDEN
                                               : CR_ERR_TRANSIENT;
}

int cr_node_acquire_instance_lock(const char *folder, struct cr_error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        cr_error_set(err, kind_of(errno), "%s: %s", folder, strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (errno == EWOULDBLOCK)
        cr_error_set(err, CR_ERR_CONFLICT, "another agent runs on this node: it holds the lock of %s", folder);
    else
        cr_error_set(err, kind_of(errno), "%s cannot be locked: %s", folder, strerror(errno));
    close(fd);
    return -1;
}
