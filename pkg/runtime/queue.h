/* The work queue: keys, each at most once waiting and never worked on by two at a time (client-go's workqueue
 * semantics): a key added while it is worked on is worked on again afterwards. Delays, per-key exponential backoff, and
 * two priorities, as controller-runtime's priority queue has them. Namespaces ("ns/name") are served round robin, so
 * that the keys of one, however many, delay no other's. Thread-safe. */
#ifndef CR_RUNTIME_QUEUE_H
#define CR_RUNTIME_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"

/* When a key of low priority has waited so long, every other key that is taken is of low priority, however many others
 * there are. */
enum { CR_QUEUE_LOW_WAIT_MS = 5000 };

struct cr_queue;
struct cr_queue *cr_queue_new(int64_t backoff_first_ms, int64_t backoff_max_ms);
void cr_queue_free(struct cr_queue *queue);
CR_DEFINE_CLEANUP(cr_queue, struct cr_queue, cr_queue_free)

/* At most all but one of so many workers (at least one) work for one namespace at a time: one is left for the others,
 * whatever the reconciles of that namespace wait for. Once, before the first key; without it there is no limit. */
void cr_queue_limit_namespaces(struct cr_queue *queue, int workers);
/* Counts in workqueue_* (as client-go has them) under this name, static. Once, before the first key; metrics is not
 * written any more once the queue is freed. */
void cr_queue_count_in(struct cr_queue *queue, struct cr_metrics *metrics, const char *name);

/* What the thread works for (cr_cause_get) is kept with the key until it is taken. */
void cr_queue_add(struct cr_queue *queue, const char *key);
/* Not before delay_ms; an earlier time for the same key wins. */
void cr_queue_add_after(struct cr_queue *queue, const char *key, int64_t delay_ms);
/* The same (0: now), for what may come after other work: such a key is taken when no normal one waits. One that is
 * added normally as well, before it is taken, is a normal one. */
void cr_queue_add_low(struct cr_queue *queue, const char *key, int64_t delay_ms);
/* After the key's own backoff (jittered), which doubles each time; at least min_delay_ms. */
void cr_queue_add_backoff(struct cr_queue *queue, const char *key, int64_t min_delay_ms);
/* The key did well: its backoff starts again from the first delay. */
void cr_queue_forget(struct cr_queue *queue, const char *key);
/* Blocks; owned key, NULL once the queue is shut down. The thread works for what the key was added for. */
char *cr_queue_take(struct cr_queue *queue);
/* The worker is done with a key it took. */
void cr_queue_done(struct cr_queue *queue, const char *key);
void cr_queue_shutdown(struct cr_queue *queue);
/* The keys that are ready now were found at the start: what is on record of them may be of before. Once. */
void cr_queue_mark_found(struct cr_queue *queue);
/* What is on record of the key is of now. */
void cr_queue_recorded(struct cr_queue *queue, const char *key);
/* How many keys of those found are still in the queue and were not recorded. */
size_t cr_queue_found_left(struct cr_queue *queue);
/* How many keys wait; of normal priority only. */
size_t cr_queue_len(struct cr_queue *queue);
size_t cr_queue_urgent(struct cr_queue *queue);

#endif
