/* Notifies a program of the pod that its TLS material has changed: by a signal, a request, a socket or a command.
 * Reached only when the material was checked. Blocks the calling thread, at most the trigger's time-out. */
#ifndef CR_SIDECAR_TRIGGER_H
#define CR_SIDECAR_TRIGGER_H

#include "sidecar/config.h"
#include "sidecar/reading.h"

/* booted_ms: cr_proc_booted_wall_ms of a moment before, for pid files. cancel_fd: readable: give up (an eventfd); -1:
 * none. Errors: NotFound (no such process, socket, program), Conflict (several such processes), Forbidden (a signal to
 * another user's process: in words, with what to do), Invalid (what no retry will mend), Transient (refused, time-out,
 * a status or answer that is not the one of success; what the program said, on one line, never with material),
 * Cancelled. After an error the program may have taken it up all the same: a proof shows it. To pull it again does no
 * harm. Any thread. */
bool cr_trigger_pull(const struct cr_trigger_spec *spec, const struct cr_sidecar_material *material,
                     const struct cr_reading *reading, int64_t booted_ms, int cancel_fd,
                     struct cr_error *err) CR_MUST_USE;
/* "SIGHUP to nginx", "POST https://127.0.0.1:2019/load": for logs and the page. Never with material, never with what
 * may be a password: the query of a URL, the arguments of a command. */
void cr_trigger_name(const struct cr_trigger_spec *spec, char *out, size_t size);

#endif
