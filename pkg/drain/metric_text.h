/* A number out of Prometheus' text format (version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats). Pure.
 */
#ifndef CR_DRAIN_METRIC_TEXT_H
#define CR_DRAIN_METRIC_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* metric: a name, or a name with labels that its samples must have or must not have: open{kind="client",port!="9090"};
 * a label that is not there is an empty one, as in PromQL. Errors: Invalid: what is allowed. */
bool cr_metric_check(const char *metric, struct cr_error *err) CR_MUST_USE;
/* The sum of those samples, rounded up. Errors: Invalid: no sample, a number that is negative or none, a line of the
 * text that is not of this format, whichever metric it is of. */
bool cr_metric_sum(const char *text, size_t len, const char *metric, uint64_t *sum, struct cr_error *err) CR_MUST_USE;

#endif
