/* The serving shutdown manager: its pages, and the drain that one of them begins.
 *
 *   /healthz         200 while this process works; it says nothing of the proxy, so that it is safe as a livenessProbe:
 *                    a manager that is restarted in the midst of a drain would strand the proxy (contour#4851)
 *   /shutdown        blocks until the drain is over; the first request begins it, others wait with it
 *   /shutdown/ready  blocks until the ready file is there (Envoy Gateway)
 *   /status          JSON: phase, open connections, last error
 *   /metrics         Prometheus */
#ifndef CR_DRAIN_MANAGER_H
#define CR_DRAIN_MANAGER_H

#include "drain/drain.h"
#include "drain/flags.h"
#include "metrics/metrics.h"
#include "sys/loop.h"
#include "wire/http_server.h"

struct cr_drain_manager;

/* flags, loop, metrics: borrowed, outlive it. */
struct cr_drain_manager *cr_drain_manager_new(const struct cr_drain_flags *flags, struct cr_loop *loop,
                                              struct cr_metrics *metrics);
/* After the loop has ended; a drain under way is cancelled and waited for. */
void cr_drain_manager_free(struct cr_drain_manager *manager);
CR_DEFINE_CLEANUP(cr_drain_manager, struct cr_drain_manager, cr_drain_manager_free)
void cr_drain_manager_serve(struct cr_drain_manager *manager, struct cr_http_server *server);
/* SIGTERM came: done(arg) is called in the loop's thread when a drain under way is over and its answers are out, or,
 * when none has begun, after a moment in which one may still begin (both containers of a pod are stopped at the same
 * time). */
void cr_drain_manager_finish(struct cr_drain_manager *manager, void (*done)(void *arg), void *arg);

#endif
