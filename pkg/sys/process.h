/* Runs a program to its end and reads what it says, as a credential plugin needs it. */
#ifndef CR_SYS_PROCESS_H
#define CR_SYS_PROCESS_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/strvec.h"

/* The file that a command means, as a shell finds it: one with a slash is a path, any other is looked for in the
 * absolute folders of $PATH (of this process; relative ones would run whatever lies in the current folder). Owned.
 * NotFound when there is no such file that may be executed. */
char *cr_process_find(const char *command, struct cr_error *err) CR_MUST_USE;

/* This process's environment with these "NAME=value" in place of those of the same name. */
void cr_process_environment(const struct cr_strvec *overrides, struct cr_strvec *out);

enum { CR_PROCESS_LINE = 256 };

struct cr_process {
    const char *path;             /* of the file */
    const struct cr_strvec *argv; /* the name that it is called by first */
    const struct cr_strvec *environment;
    int timeout_ms;
    size_t max_output;
    int cancel_fd; /* readable: give up (an eventfd); -1: none */
};

/* How it ended. */
struct cr_process_end {
    int status;                       /* exit status; -1: ended by a signal */
    int signal;                       /* that signal, else 0 */
    char last_words[CR_PROCESS_LINE]; /* the last line on stderr that is not empty, printable; "" when there is none */
};

/* Blocks until it ended; not in the loop's thread. Standard input is empty, standard output is appended to out (secret,
 * when out is), standard error is only kept as its last line. The child has no other file descriptor of ours, default
 * signals, no mask and a process group of its own; what it leaves running is left alone when it ends by itself, and
 * reaped by a later call if it becomes a child of ours. At the time-out, when it says more than max_output, or when
 * cancelled, the whole group is killed. True when it ended by itself, whatever its status. False: NotFound or Forbidden
 * (cannot be executed), Transient (time-out, no resources), Invalid (too much output), Cancelled; end->last_words is
 * set then, too. Any thread. */
bool cr_process_run(const struct cr_process *process, struct cr_buf *out, struct cr_process_end *end,
                    struct cr_error *err) CR_MUST_USE;

/* Keys pass through this process: no core may ever hold them. A warning is logged when that cannot be had. */
void cr_process_forbid_cores(void);

#endif
