/* Processes as /proc shows them (proc(5)): those of this container, or of the whole pod when it shares one namespace.
 */
#ifndef CR_SYS_PROC_H
#define CR_SYS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { CR_PROC_NAME = 16 };

struct cr_proc {
    pid_t pid;
    pid_t parent;
    uint64_t started;        /* clock ticks since the machine started: with the pid it names one process for ever */
    char name[CR_PROC_NAME]; /* the kernel's: cut to 15 characters */
};

/* False: there is none, or it has ended and waits for its parent. */
bool cr_proc_read(pid_t pid, struct cr_proc *out);
/* The same from another /proc ("/host/proc"), with numbers that may be of another process namespace. */
bool cr_proc_read_in(const char *proc, pid_t pid, struct cr_proc *out);
/* Whether it still runs, it and not another that has its number by now. */
bool cr_proc_is_there(const struct cr_proc *process);
/* The user that it runs as. False: there is no such process. */
bool cr_proc_user(pid_t pid, uid_t *out);
bool cr_proc_user_in(const char *proc, pid_t pid, uid_t *out);
/* Whether it catches or blocks this signal: a program that has just been started does not yet, and SIGHUP would be its
 * end; and of one that ignores it nothing comes. False, too, when there is no such process. */
bool cr_proc_takes(pid_t pid, int signal);

/* When the machine started, by the wall clock: another moment after the clock was set. */
int64_t cr_proc_booted_wall_ms(void);
/* When it started, by the wall clock. */
int64_t cr_proc_started_wall_ms(const struct cr_proc *process);

#endif
