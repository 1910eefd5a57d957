/* Which of Envoy's listeners serve no clients. Pure. */
#ifndef CR_DRAIN_ENVOY_LISTENERS_H
#define CR_DRAIN_ENVOY_LISTENERS_H

#include "base/strvec.h"

/* page: text as Envoy's /listeners has it, "<name>::<address>" a line; what is not of that form is passed over, since
 * then more is counted and not less. ignored: names, addresses ("0.0.0.0:8002") or the names of statistics
 * ("0.0.0.0_8002", a stat_prefix) that a user has given. Adds to out under which names in the statistics there is
 * nothing to wait for:
 * - those of ignored;
 * - the listeners of Contour ("stats", "health", "stats-health", "envoy-admin": internal/envoy/v3/stats.go) and Envoy
 *   Gateway ("envoy-gateway-proxy-ready-…", "envoy-gateway-proxy-stats-…": internal/xds/bootstrap) for metrics and
 *   readiness: a collector of metrics keeps its connection open. By name and not by port, which others use for other
 *   things;
 * - internal listeners: they have connections of Envoy itself, which it keeps for later. */
void cr_envoy_listeners_left_out(const char *page, const struct cr_strvec *ignored, struct cr_strvec *out);

#endif
