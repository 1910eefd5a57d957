/* The metrics of the control plane (docs/metrics.md). They belong to the one policy that counts, so only one thread at
 * a time may call this. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_METRICS_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "api/control_plane.h"
#include "base/cleanup.h"
#include "metrics/metrics.h"

struct cr_control_plane_metrics;
/* metrics NULL: nothing is shown. */
struct cr_control_plane_metrics *cr_control_plane_metrics_new(struct cr_metrics *metrics);
void cr_control_plane_metrics_free(struct cr_control_plane_metrics *m);
CR_DEFINE_CLEANUP(cr_control_plane_metrics, struct cr_control_plane_metrics, cr_control_plane_metrics_free)

/* The status as it is by now. */
void cr_control_plane_metrics_show(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *status);
/* Counts what has ended with this write of the status. now_ms: wall clock. */
void cr_control_plane_metrics_recorded(struct cr_control_plane_metrics *m, const struct cr_control_plane_status *before,
                                       const struct cr_control_plane_status *after, int64_t now_ms);
void cr_control_plane_metrics_renewed(struct cr_control_plane_metrics *m, size_t token_secrets);
/* There is no policy any more, and so there are no series. */
void cr_control_plane_metrics_forget(struct cr_control_plane_metrics *m);

#endif
