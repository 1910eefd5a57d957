/* A signal to the process that was found, and to no other that has its number by now. */
#ifndef CR_SYS_PROC_SIGNAL_H
#define CR_SYS_PROC_SIGNAL_H

#include "sys/proc.h"

/* Only when it catches or blocks this signal (cr_proc_takes). Errors: Forbidden, with the right that is missing;
 * Transient: it has ended, or does not take it yet. */
bool cr_proc_signal(const struct cr_proc *process, int signal, struct cr_error *err) CR_MUST_USE;

#endif
