/* The metrics of trust domains (docs/metrics.md). Thread-safe, but only one thread at a time for one domain. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_METRICS_H
#define CR_TRUST_CONTROLLER_DOMAIN_METRICS_H

#include "api/domain.h"
#include "api/domain_status.h"
#include "base/cleanup.h"
#include "metrics/metrics.h"

struct cr_domain_metrics;
/* metrics NULL: nothing is shown. */
struct cr_domain_metrics *cr_domain_metrics_new(struct cr_metrics *metrics);
void cr_domain_metrics_free(struct cr_domain_metrics *m);
CR_DEFINE_CLEANUP(cr_domain_metrics, struct cr_domain_metrics, cr_domain_metrics_free)

/* The domain as it is by now. */
void cr_domain_metrics_show(struct cr_domain_metrics *m, const struct cr_domain *domain,
                            const struct cr_domain_status *status);
/* Counts rotations that have ended with this write of the status. */
void cr_domain_metrics_recorded(struct cr_domain_metrics *m, const struct cr_domain_status *before,
                                const struct cr_domain_status *after);
/* It is gone, and so are its series. ns "": of the cluster kind. */
void cr_domain_metrics_forget(struct cr_domain_metrics *m, const char *ns, const char *name);

#endif
