/* A drain beside the loop, in a thread of its own: drains follow each other, and never two at a time. */
#ifndef CR_DRAIN_DRAIN_THREAD_H
#define CR_DRAIN_DRAIN_THREAD_H

#include "base/cleanup.h"
#include "drain/drain.h"
#include "drain/drain_metrics.h"
#include "sys/loop.h"

struct cr_drain_thread;

/* on_over is called in the loop's thread after each drain. loop, metrics: borrowed. */
struct cr_drain_thread *cr_drain_thread_new(struct cr_loop *loop, struct cr_drain_metrics *metrics,
                                            void (*on_over)(void *arg), void *arg);
/* Cancels a drain under way and waits for it; after the loop has ended, before it is freed. */
void cr_drain_thread_free(struct cr_drain_thread *thread);
CR_DEFINE_CLEANUP(cr_drain_thread, struct cr_drain_thread, cr_drain_thread_free)

/* Begins one unless one runs. options: its own cancel_fd, on_progress and arg are not used; what it points to outlives
 * the drain. In the loop's thread, or before the loop runs. Errors: Transient: there is no thread to be had. */
bool cr_drain_thread_begin(struct cr_drain_thread *thread, const struct cr_drain_options *options,
                           struct cr_error *err) CR_MUST_USE;
/* As the loop's thread sees it: until on_over is called. */
bool cr_drain_thread_runs(const struct cr_drain_thread *thread);
/* False: none has begun yet. Any thread. */
bool cr_drain_thread_progress(struct cr_drain_thread *thread, struct cr_drain_progress *out);

#endif
