/* The reconciler of TrustDomain and ClusterTrustDomain: gather, plan, record, act, report. A second controller on the
 * policies' manager, with a queue and workers of its own; it shares their caches and holds no rule itself. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_CONTROLLER_H
#define CR_TRUST_CONTROLLER_DOMAIN_CONTROLLER_H

#include "base/cleanup.h"
#include "cluster/cache.h"
#include "evidence/canaries.h"
#include "cluster/catalogue_source.h"
#include "kube/client.h"
#include "metrics/metrics.h"
#include "runtime/manager.h"

struct cr_domain_controller;

struct cr_domain_controller_options {
    struct cr_client *client;
    struct cr_manager *manager;
    struct cr_metrics *metrics;
    struct cr_cache *cache; /* of the policies */
    struct cr_catalogue_source *catalogues;
    struct cr_canaries *canaries;   /* NULL: none are made */
    const char *operator_namespace; /* of the cluster kind's CA Secrets; NULL: not known (outside of a cluster) */
    int workers;                    /* 0: 2 */
};

/* Adds itself to the manager, and its kinds to the cache. Everything given outlives it, and it must be freed after the
 * manager. */
struct cr_domain_controller *cr_domain_controller_new(const struct cr_domain_controller_options *options);
void cr_domain_controller_free(struct cr_domain_controller *controller);
CR_DEFINE_CLEANUP(cr_domain_controller, struct cr_domain_controller, cr_domain_controller_free)

#endif
