/* The delivery workers of a configuration, and the pages that show them: /status, /metrics and /healthz. */
#ifndef CR_SIDECAR_PAGES_H
#define CR_SIDECAR_PAGES_H

#include "metrics/metrics.h"
#include "wire/http_server.h"
#include "sidecar/config.h"
#include "sidecar/delivery_worker.h"

struct cr_pages;

/* Starts a worker for each material. config, metrics and state_folder (NULL: none) are borrowed and outlive it.
 * Errors: those of cr_delivery_worker_start. Owned. */
struct cr_pages *cr_pages_start(const struct cr_sidecar_config *config, struct cr_metrics *metrics,
                                const char *state_folder, struct cr_error *err) CR_MUST_USE;
/* Ends the workers; call it after the server has ended. */
void cr_pages_free(struct cr_pages *pages);
CR_DEFINE_CLEANUP(cr_pages, struct cr_pages, cr_pages_free)

/* /status and /metrics. */
void cr_pages_serve(struct cr_pages *pages, struct cr_http_server *server);
/* /healthz says 503 until all outputs were made once, for a startup probe: the program begins when its files are there.
 * From then on it is 200 for as long as this process answers; that a program does not reload is no reason to restart
 * us. */
void cr_pages_serve_health(struct cr_pages *pages, struct cr_http_server *server);

#endif
