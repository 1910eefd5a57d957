/* Which process of this container, or of the pod when it shares one namespace, is meant. */
#ifndef CR_SYS_PROC_FIND_H
#define CR_SYS_PROC_FIND_H

#include <stddef.h>

#include "base/cleanup.h"
#include "sys/proc.h"

/* The one process of that name: the kernel's, or that of its executable's file. If there are several, it is the one
 * with a parent of another name: the master of its workers. Never this process. Errors: NotFound, with what may be
 * missing; Conflict: several, and none is the parent of the others. */
bool cr_proc_find(const char *name, struct cr_proc *out, struct cr_error *err) CR_MUST_USE;
/* The process with the pid that stands on the first line of a file. booted_ms: cr_proc_booted_wall_ms of a moment
 * before: when the clock has been set forward since, the file may be older than its process only by that. Errors:
 * NotFound (no file, no pid in it, no such process, or one that is younger than the file, by the wall clock: then out
 * is that one), Invalid (this process), those of cr_file_read_regular. */
bool cr_proc_find_by_file(const char *path, int64_t booted_ms, struct cr_proc *out, struct cr_error *err) CR_MUST_USE;

struct cr_procs {
    struct cr_proc *items; /* owned */
    size_t len;
};

void cr_procs_dispose(struct cr_procs *procs);
CR_DEFINE_DISPOSE(cr_procs, struct cr_procs, cr_procs_dispose)
/* Those that have this parent. out: empty. Errors: Transient (/proc cannot be read): an empty list is never a guess. */
bool cr_proc_children(pid_t parent, struct cr_procs *out, struct cr_error *err) CR_MUST_USE;
/* All of that name in a /proc, which may be another than ours. out: empty. Errors: likewise. */
bool cr_procs_named(const char *proc, const char *name, struct cr_procs *out, struct cr_error *err) CR_MUST_USE;

#endif
