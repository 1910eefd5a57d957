/* How many clients are connected, read out of what a proxy answers. Pure. Whatever is not understood whole is an error:
 * a number that was read out of half an answer would end connections that are still open. */
#ifndef CR_DRAIN_STATS_TEXT_H
#define CR_DRAIN_STATS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strvec.h"

/* Text as Envoy's /stats has it: lines "listener.<name>.downstream_cx_active: <number>", and "downstream_pre_cx_active"
 * of those that the listener's filters wait for a first word of, and no other, at least one, each ended (docs:
 * configuration/listeners/stats, operations/admin). The sum over all names but "admin", which is the interface that was
 * asked, and those of left_out. The parts that Envoy repeats of a listener, ".worker_3" and ".main_thread", are left
 * out where the whole is there. Errors: Invalid: the line that is not understood; a listener of which only the second
 * number is there. */
bool cr_stats_envoy(const char *text, size_t len, const struct cr_strvec *left_out, uint64_t *open,
                    struct cr_error *err) CR_MUST_USE;
/* A body that is one decimal number, with or without white space around it. Errors: Invalid. */
bool cr_stats_number(const char *text, size_t len, uint64_t *open, struct cr_error *err) CR_MUST_USE;

#endif
