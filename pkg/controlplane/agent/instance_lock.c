#include "controlplane/agent/instance_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "controlplane/agent/survey.h"
#include "sys/proc.h"

/* Declared here, since the compiler would take our own sys/file.h in the place of <sys/file.h>. */
extern int flock(int fd, int operation);

/* kubelet_getters.go, setupDataDirs: 0700, by the feature gate ContainerCheckpoint, which is on since 1.30. */
#define ROOT_ONLY CR_NODE_KUBELET_FOLDER "/checkpoints"

static enum cr_error_kind kind_of(int error)
{
    return error == ENOENT || error == ENOTDIR ? CR_ERR_NOT_FOUND
           : error == EACCES || error == EPERM ? CR_ERR_FORBIDDEN
                                               : CR_ERR_TRANSIENT;
}

static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void close_held(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void cr_node_instance_lock_dispose(struct cr_node_instance_lock *lock)
{
    close_held(&lock->root_only);
    close_held(&lock->shared);
}

/* --- who holds a lock --- */

struct holder {
    pid_t pid;
    uid_t user;
    bool known; /* there is one, and its user can be seen */
};

static bool may_be_agent(const struct holder *holder)
{
    return !holder->known || holder->user == 0 || holder->user == geteuid();
}

/* proc_locks(5). Those that wait for a lock have "->" in the place of their kind. False: of another file. */
static bool read_lock(const char *line, const struct stat *folder, pid_t *pid)
{
    char kind[8];
    unsigned device[2];
    unsigned long long inode;
    return sscanf(line, "%*u: %7s %*s %*s %d %x:%x:%llu", kind, pid, &device[0], &device[1], &inode) == 5 &&
           cr_streq(kind, "FLOCK") && device[0] == major(folder->st_dev) && device[1] == minor(folder->st_dev) &&
           inode == folder->st_ino;
}

/* Of several that share it, one that may be an agent. Not known where the file system has other numbers in /proc/locks
 * (btrfs), and where the holder is not among the processes of proc. */
static struct holder holder_of(const char *proc, int fd)
{
    char line[256];
    struct stat folder;
    struct holder found = {0};
    cr_autofree char *path = cr_asprintf("%s/locks", proc);
    FILE *file = fstat(fd, &folder) == 0 ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        struct holder holder = {0};
        if (!read_lock(line, &folder, &holder.pid))
            continue;
        holder.known = cr_proc_user_in(proc, holder.pid, &holder.user);
        if (!found.pid || may_be_agent(&holder))
            found = holder;
    }
    if (file)
        fclose(file);
    return found;
}

/* "process 7 (certroll-node-a) of user 0". Owned. */
static char *in_words(const char *proc, const struct holder *holder)
{
    struct cr_proc process;
    bool there = holder->known && cr_proc_read_in(proc, holder->pid, &process);
    return there ? cr_asprintf("process %d (%s) of user %u", (int)holder->pid, process.name, (unsigned)holder->user)
                 : cr_strdup("it");
}

/* --- the two locks --- */

static bool refuse(const char *folder, const char *proc, const struct holder *holder, struct cr_error *err)
{
    cr_autofree char *words = in_words(proc, holder);
    if (may_be_agent(holder))
        return cr_error_set(err, CR_ERR_CONFLICT, "another agent runs on this node: %s holds the lock of %s", words,
                            folder);
    return cr_error_set(err, CR_ERR_CONFLICT,
                        "%s holds the lock of %s, by which an agent knows that it is alone on its node", words, folder);
}

static bool is_root_only(int fd)
{
    struct stat folder;
    return fstat(fd, &folder) == 0 && folder.st_uid == geteuid() && !(folder.st_mode & (S_IRWXG | S_IRWXO));
}

/* 0: it is held. Else errno, *fd is closed, and *holder is who holds it, as far as that can be seen. */
static int try_lock(int *fd, const char *proc, struct holder *holder)
{
    int error = flock(*fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (!error)
        return 0;
    *holder = holder_of(proc, *fd);
    close_held(fd);
    return error;
}

/* True, too, where no kubelet has made that folder. */
static bool take_root_only(const char *root, const char *proc, struct cr_node_instance_lock *out, struct cr_error *err)
{
    cr_autofree char *folder = cr_asprintf("%s" ROOT_ONLY, root);
    struct holder holder = {0};
    int fd = open_folder(folder);
    if (fd < 0 || !is_root_only(fd)) {
        close_held(&fd);
        return true;
    }
    int error = try_lock(&fd, proc, &holder);
    out->root_only = fd;
    return error != EWOULDBLOCK || refuse(folder, proc, &holder, err);
}

static bool take_shared(const char *folder, const char *proc, struct cr_node_instance_lock *out, struct cr_error *err)
{
    struct holder holder = {0};
    int fd = open_folder(folder);
    if (fd < 0)
        return cr_error_set(err, kind_of(errno), "%s: %s", folder, strerror(errno));
    int error = try_lock(&fd, proc, &holder);
    out->shared = fd;
    if (!error)
        return true;
    if (error != EWOULDBLOCK)
        return cr_error_set(err, kind_of(error), "%s cannot be locked: %s", folder, strerror(error));
    if (out->root_only < 0 || may_be_agent(&holder))
        return refuse(folder, proc, &holder, err);
    cr_autofree char *words = in_words(proc, &holder);
    cr_log(CR_LOG_WARN, "the lock of a folder is held by a process that is no agent", {"folder", folder},
           {"holder", words});
    return true;
}

/* The folder that manifests are written beside, or that every kubelet has. */
static bool take_either(const char *root, const char *proc, struct cr_node_instance_lock *out, struct cr_error *err)
{
    static const char *const folders[] = {"/etc/kubernetes", CR_NODE_KUBELET_FOLDER};
    for (size_t i = 0; i < cr_array_len(folders); i++) {
        struct cr_error why = {0};
        cr_autofree char *folder = cr_asprintf("%s%s", root, folders[i]);
        if (take_shared(folder, proc, out, &why))
            return true;
        if (why.kind != CR_ERR_NOT_FOUND)
            return cr_error_set(err, why.kind, "%s", why.text);
    }
    return cr_error_set(err, CR_ERR_NOT_FOUND,
                        "%s has neither /etc/kubernetes nor " CR_NODE_KUBELET_FOLDER
                        ": mount the node's folders there, or give --root",
                        *root ? root : "this system");
}

bool cr_node_instance_lock_take(const char *root, const char *proc, struct cr_node_instance_lock *out,
                                struct cr_error *err)
{
    *out = (struct cr_node_instance_lock){.root_only = -1, .shared = -1};
    if (take_root_only(root, proc, out, err) && take_either(root, proc, out, err))
        return true;
    cr_node_instance_lock_dispose(out);
    return false;
}
