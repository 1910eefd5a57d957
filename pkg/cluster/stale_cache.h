/* A reconcile waits for its own last writes to show in the cache (runtime/own_writes.h). All controllers count and log
 * that in the same way. */
#ifndef CR_CLUSTER_STALE_CACHE_H
#define CR_CLUSTER_STALE_CACHE_H

#include "metrics/metrics.h"
#include "runtime/own_writes.h"

/* certroll_stale_cache_total{result}; the same for all callers. */
struct cr_metric *cr_stale_cache_counter(struct cr_metrics *metrics);

/* True: the cache shows the state before our own last write; the event of that write brings the key again. what: the
 * kind of the key, for the log ("policy"). look, arg: as cr_own_writes_check. */
bool cr_stale_cache_waits(struct cr_own_writes *own, const char *key, const char *what, struct cr_metric *counter,
                          cr_own_writes_look_fn look, void *arg);

#endif
