/* Limits the rounds of probes that run at the same time. Each round takes a worker, and a namespace with pods that make
 * rounds long must not keep other namespaces from theirs. At most CR_PROBE_SLOTS rounds run at a time, one fewer for
 * one namespace. A namespace that finds no free slot waits, and waiting namespaces are served in the order in which
 * they began to wait. Of n namespaces that wait, each waits for at most n - 1 others, however many policies each of
 * them has. Thread-safe. */
#ifndef CR_POLICY_CONTROLLER_PROBE_SLOTS_H
#define CR_POLICY_CONTROLLER_PROBE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

enum {
    CR_PROBE_SLOTS = 2,           /* workers must be left for restarts */
    CR_PROBE_SLOT_AGAIN_MS = 100, /* when to ask again */
    /* A namespace that waits and does not ask again within this time loses its place, because its change may be
     * settled. */
    CR_PROBE_SLOT_FORGOTTEN_MS = 5000,
};

struct cr_probe_slots;
struct cr_probe_slots *cr_probe_slots_new(void);
void cr_probe_slots_free(struct cr_probe_slots *slots);
CR_DEFINE_CLEANUP(cr_probe_slots, struct cr_probe_slots, cr_probe_slots_free)

/* True: a round may run, until it is given back. False: the namespace waits; ask again in CR_PROBE_SLOT_AGAIN_MS.
 * now_ms: monotonic. */
bool cr_probe_slots_take(struct cr_probe_slots *slots, const char *ns, int64_t now_ms) CR_MUST_USE;
void cr_probe_slots_give_back(struct cr_probe_slots *slots, const char *ns);

#endif
