/* The event loop (libevent): one thread owns it, and with it all sockets, watches and timers. Other threads may only
 * call cr_loop_post, cr_loop_stop and cr_loop_in_thread. */
#ifndef CR_SYS_LOOP_H
#define CR_SYS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_loop;
struct cr_timer;
struct event_base;

/* Also ignores SIGPIPE for the process: a peer that hangs up is an error of one connection, not the end of us. */
struct cr_loop *cr_loop_new(void);
/* After the loop's thread has ended, and after everything that lives on the loop; pending posts are run. */
void cr_loop_free(struct cr_loop *loop);
CR_DEFINE_CLEANUP(cr_loop, struct cr_loop, cr_loop_free)

/* Runs in the calling thread, which becomes the loop's, until cr_loop_stop; what was posted before the stop is run. */
void cr_loop_run(struct cr_loop *loop);
/* Any thread. Also before cr_loop_run, which then returns as soon as the posts are run. */
void cr_loop_stop(struct cr_loop *loop);
/* Any thread: runs fn(arg) in the loop's thread, in the order of posting; never before this returns when called in the
 * loop's thread. What is posted after the loop has ended is run by cr_loop_free. */
void cr_loop_post(struct cr_loop *loop, void (*fn)(void *arg), void *arg);
/* True while the calling thread is in cr_loop_run (or runs the last posts in cr_loop_free). */
bool cr_loop_in_thread(const struct cr_loop *loop);

/* One-shot timer; loop thread only, or before the loop runs. Armed again by cr_timer_arm, also from its own callback,
 * which may also free it. Fires never early by cr_clock_monotonic_ms. */
struct cr_timer *cr_timer_new(struct cr_loop *loop, void (*fn)(void *arg), void *arg);
/* Replaces an earlier delay; a negative one counts as 0. */
void cr_timer_arm(struct cr_timer *timer, int64_t delay_ms);
void cr_timer_disarm(struct cr_timer *timer);
void cr_timer_free(struct cr_timer *timer);
CR_DEFINE_CLEANUP(cr_timer, struct cr_timer, cr_timer_free)

/* Calls fn(arg) in the loop's thread on each of SIGTERM and SIGINT. Once per process, before the loop runs. */
void cr_loop_on_terminate(struct cr_loop *loop, void (*fn)(void *arg), void *arg);

/* For pkg/net, which plugs curl and the HTTP server in. Borrowed. */
struct event_base *cr_loop_base(struct cr_loop *loop);

#endif
