/* The serving shutdown manager: its pages, and the drain that one of them begins.
 *
 *   /healthz         200 while this process works; it says nothing of the proxy, so that it is safe as a livenessProbe:
 *                    a manager that is restarted in the midst of a drain would strand the proxy (contour#4851)
 *   /shutdown        blocks until the drain is over, however long the one who asks stays: the first request begins it,
 *                    others wait with it; one that comes when it is over begins another, since a proxy that was
 *                    restarted meanwhile has new clients. Always 200, with the result: a preStop hook that fails does
 *                    not keep the proxy any longer. As Contour and Envoy Gateway have it, it waits for the ready file
 *   /shutdown/ready  blocks until the ready file is there (Envoy Gateway); only where flags name one
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

/* flags, loop, metrics: borrowed, outlive it. A ready file of an earlier life is taken away here. */
struct cr_drain_manager *cr_drain_manager_new(const struct cr_drain_flags *flags, struct cr_loop *loop,
                                              struct cr_metrics *metrics);
/* After the loop has ended; a drain under way is cancelled and waited for. Before its server is freed. */
void cr_drain_manager_free(struct cr_drain_manager *manager);
CR_DEFINE_CLEANUP(cr_drain_manager, struct cr_drain_manager, cr_drain_manager_free)
/* server: borrowed, one only. */
void cr_drain_manager_serve(struct cr_drain_manager *manager, struct cr_http_server *server);
/* As if /shutdown had been asked for; over(arg, …) is called in the loop's thread when that drain is over and the
 * answers to the clients that wait for it are out, but no longer than a second later; with NONE at once when there is
 * no thread for it. Once, before the loop runs or in its thread. */
void cr_drain_manager_begin(struct cr_drain_manager *manager, void (*over)(void *arg, enum cr_drain_result result),
                            void *arg);
/* SIGTERM came: done(arg) is called in the loop's thread when a drain under way is over and its answers are out, or,
 * when none has begun, after a moment in which one may still begin (both containers of a pod are stopped at the same
 * time). */
void cr_drain_manager_finish(struct cr_drain_manager *manager, void (*done)(void *arg), void *arg);

#endif
