#include "sys/proc_signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool gone(const struct cr_proc *process, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s (process %d) has just ended", process->name, (int)process->pid);
}

static bool refused(int error, const struct cr_proc *process, struct cr_error *err)
{
    uid_t user = 0;
    if (error == ESRCH || (error == EPERM && !cr_proc_user(process->pid, &user)))
        return gone(process, err);
    if (error == EPERM)
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "%s (process %d) belongs to user %u, and this is user %u: run this container as that user "
                            "(securityContext.runAsUser), or give it the capability KILL",
                            process->name, (int)process->pid, (unsigned)user, (unsigned)geteuid());
    if (error == ENOSYS)
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "signals need pidfd_open(2): Linux 5.3 or later, and a seccomp "
                            "profile that allows it");
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s (process %d) cannot be signalled: %s", process->name,
                        (int)process->pid, strerror(error));
}

bool cr_proc_signal(const struct cr_proc *process, int signal, struct cr_error *err)
{
    cr_autofd int fd = pidfd_open(process->pid, 0);
    if (fd < 0)
        return refused(errno == EPERM ? ENOSYS : errno, process, err); /* it asks no permission: that was seccomp */
    /* From now on the number cannot become another's; that it had not become so before is seen by its start. */
    if (!cr_proc_is_there(process))
        return gone(process, err);
    if (!cr_proc_takes(process->pid, signal))
        return cr_error_set(
            err, CR_ERR_TRANSIENT,
            "%s (process %d) does not catch this signal, so that it would end or go unheard: is it still starting?",
            process->name, (int)process->pid);
    return pidfd_send_signal(fd, signal, NULL, 0) == 0 || refused(errno, process, err);
}
