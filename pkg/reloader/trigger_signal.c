#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "reloader/proc.h"
#include "reloader/trigger_internal.h"
#include "sys/file.h"

enum {
    PID_FILE_MAX = 4096, /* PostgreSQL's has some lines more */
    /* A pid file is written by a process that is there already: ticks and the clocks' reading are as coarse as this. */
    STALE_MS = 2000,
};

/* --- which process --- */

static bool parse_pid(const char *path, const char *text, pid_t *pid, struct cr_error *err)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number <= 0 || number > INT32_MAX)
        return cr_error_set(err, CR_ERR_NOT_FOUND, "%s holds no pid on its first line", path);
    if (number == 1)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s says pid 1, which is no program of the pod here: it was written in a process namespace "
                            "of its own. Set shareProcessNamespace: true in the pod's spec",
                            path);
    *pid = (pid_t)number;
    return true;
}

static bool read_pid_file(const char *path, pid_t *pid, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!cr_file_read(path, PID_FILE_MAX, &text, err))
        return false;
    cr_buf_puts(&text, ""); /* an empty file has a text, too */
    const char *content = cr_buf_text(&text) + strspn(cr_buf_text(&text), " \t");
    char line[32];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(content, " \t\r\n"), content);
    return parse_pid(path, line, pid, err);
}

/* A pid file that its program left behind may name another process by now. */
static bool is_stale(const char *path, const struct cr_proc *process)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return true;
    int64_t written_ms = info.st_mtim.tv_sec * 1000LL + info.st_mtim.tv_nsec / 1000000;
    return cr_proc_started_wall_ms(process) > written_ms + STALE_MS;
}

static bool find_by_file(const char *path, struct cr_proc *out, struct cr_error *err)
{
    pid_t pid = 0;
    if (!read_pid_file(path, &pid, err))
        return false;
    if (pid == getpid())
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s says pid %d, which is this very process: set shareProcessNamespace: true in the pod's "
                            "spec, so that both mean the same by a number",
                            path, (int)pid);
    if (!cr_proc_read(pid, out))
        return cr_error_set(err, CR_ERR_NOT_FOUND,
                            "there is no process %d, which %s names: is the program running, and does the pod have "
                            "shareProcessNamespace: true?",
                            (int)pid, path);
    if (is_stale(path, out))
        return cr_error_set(err, CR_ERR_NOT_FOUND,
                            "process %d (%s) has started after %s was written: the file is of a program that has ended",
                            (int)pid, out->name, path);
    return true;
}

static bool find(const struct cr_trigger_spec *spec, struct cr_proc *out, struct cr_error *err)
{
    return spec->signal.process ? cr_proc_find(spec->signal.process, out, err)
                                : find_by_file(spec->signal.pid_file, out, err);
}

/* --- the signal --- */

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
                            "%s (process %d) belongs to user %u, and this is user %u: run the sidecar as that user "
                            "(securityContext.runAsUser), or give it the capability KILL",
                            process->name, (int)process->pid, (unsigned)user, (unsigned)geteuid());
    if (error == ENOSYS)
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "signals need pidfd_open(2): Linux 5.3 or later, and a seccomp "
                            "profile that allows it");
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s (process %d) cannot be signalled: %s", process->name,
                        (int)process->pid, strerror(error));
}

/* From the moment that its descriptor is open, the number cannot become another's; that it had not become so before is
 * seen by its start. */
static bool is_same(const struct cr_proc *process)
{
    struct cr_proc now;
    return cr_proc_read(process->pid, &now) && now.started == process->started;
}

bool cr_trigger_signal(const struct cr_trigger_job *job, struct cr_error *err)
{
    struct cr_proc process;
    if (!find(job->spec, &process, err))
        return false;
    cr_autofd int fd = pidfd_open(process.pid, 0);
    if (fd < 0)
        return refused(errno == EPERM ? ENOSYS : errno, &process, err); /* it asks no permission: that was seccomp */
    if (!is_same(&process))
        return gone(&process, err);
    if (!cr_proc_takes(process.pid, job->spec->signal.number))
        return cr_error_set(
            err, CR_ERR_TRANSIENT,
            "%s (process %d) does not catch this signal, so that it would end or go unheard: is it still starting?",
            process.name, (int)process.pid);
    return pidfd_send_signal(fd, job->spec->signal.number, NULL, 0) == 0 || refused(errno, &process, err);
}
