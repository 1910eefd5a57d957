/* The reconciler of CertRotationPolicy: gather, plan, record, act, report. It wires the runtime to the rotation rules
 * and holds no rule itself. */
#ifndef CR_POLICY_CONTROLLER_POLICY_CONTROLLER_H
#define CR_POLICY_CONTROLLER_POLICY_CONTROLLER_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "cluster/cache.h"
#include "cluster/catalogue_source.h"
#include "evidence/canaries.h"
#include "policy/controller/reservations.h"
#include "cluster/watch_scope.h"
#include "metrics/metrics.h"
#include "runtime/manager.h"

struct cr_policy_controller;

struct cr_policy_controller_options {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_manager *manager;
    struct cr_metrics *metrics;
    const struct cr_strvec *namespaces; /* empty: all */
    enum cr_secret_scope secret_scope;
    bool hosts_in_use; /* see cr_cache_options */
    struct cr_restart_limits limits;
    const char *operator_namespace;  /* of the operator's own objects; NULL: not known (outside of a cluster) */
    struct cr_canaries *canaries;    /* of trust domains; NULL: none */
    const char *catalogue_configmap; /* in that namespace; NULL: CR_CATALOGUE_CONFIGMAP; "": no overrides */
};

/* Registers its informers and its reconcile function with the manager. Everything given outlives it, and it must be
 * freed after the manager. */
struct cr_policy_controller *cr_policy_controller_new(const struct cr_policy_controller_options *options,
                                                      struct cr_error *err) CR_MUST_USE;
void cr_policy_controller_free(struct cr_policy_controller *controller);
CR_DEFINE_CLEANUP(cr_policy_controller, struct cr_policy_controller, cr_policy_controller_free)

/* Borrowed; for the other controllers of the manager. */
struct cr_cache *cr_policy_controller_cache(struct cr_policy_controller *controller);
struct cr_catalogue_source *cr_policy_controller_catalogues(struct cr_policy_controller *controller);

#endif
