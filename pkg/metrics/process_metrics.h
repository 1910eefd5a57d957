/* What each Prometheus client exposes about its process: process_cpu_seconds_total, process_resident_memory_bytes,
 * process_virtual_memory_bytes, process_open_fds, process_max_fds, process_start_time_seconds
 * (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics). */
#ifndef CR_METRICS_PROCESS_METRICS_H
#define CR_METRICS_PROCESS_METRICS_H

#include "base/cleanup.h"
#include "metrics/metrics.h"

struct cr_process_metrics;

/* Read from /proc when the page is written; what cannot be read keeps its last value. metrics is not written any more
 * once the result is freed. */
struct cr_process_metrics *cr_process_metrics_new(struct cr_metrics *metrics);
void cr_process_metrics_free(struct cr_process_metrics *process);
CR_DEFINE_CLEANUP(cr_process_metrics, struct cr_process_metrics, cr_process_metrics_free)

/* certroll_build_info: which program this is. */
void cr_metrics_set_build_info(struct cr_metrics *metrics);

#endif
