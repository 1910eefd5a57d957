/* The effective catalogue: the built-in one, with the overrides of one ConfigMap in the operator's namespace applied,
 * if it exists. Overrides come from that namespace only, because an account that may write a workload's namespace must
 * not decide what software of other namespaces does. */
#ifndef CR_CLUSTER_CATALOGUE_SOURCE_H
#define CR_CLUSTER_CATALOGUE_SOURCE_H

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/event.h"
#include "metrics/metrics.h"
#include "catalogue/catalogue.h"
#include "runtime/manager.h"
#include "runtime/store.h"

#define CR_CATALOGUE_CONFIGMAP "certroll-catalogue"

struct cr_catalogue_source_options {
    struct cr_manager *manager;
    struct cr_client *client;
    struct cr_loop *loop;
    struct cr_metrics *metrics;
    const char *ns;   /* of the operator; NULL: built-in entries only, nothing is watched */
    const char *name; /* of the ConfigMap; NULL: CR_CATALOGUE_CONFIGMAP; "": none. Every key is a document "*.yaml" */
    void (*on_change)(void *arg); /* another catalogue is effective: plan everything again. Loop thread */
    void (*on_news)(void *arg);   /* there is an Event to emit. Loop thread */
    void *arg;
};

struct cr_catalogue_source;
/* Its informer belongs to the manager, so that nothing is decided before the overrides are read; the source must be
 * freed after the manager. Errors: the built-in catalogue cannot be read. */
struct cr_catalogue_source *cr_catalogue_source_new(const struct cr_catalogue_source_options *options,
                                                    struct cr_error *err) CR_MUST_USE;
void cr_catalogue_source_free(struct cr_catalogue_source *source);
CR_DEFINE_CLEANUP(cr_catalogue_source, struct cr_catalogue_source, cr_catalogue_source_free)

/* The catalogue that is effective at this moment; it does not change for as long as it is held. Any thread. */
struct cr_catalogue_hold {
    const struct cr_catalogue *catalogue;
    struct cr_snapshot *snapshot; /* keeps it alive; NULL: the built-in one */
};
struct cr_catalogue_hold cr_catalogue_source_hold(struct cr_catalogue_source *source);
void cr_catalogue_hold_dispose(struct cr_catalogue_hold *hold);
CR_DEFINE_DISPOSE(cr_catalogue_hold, struct cr_catalogue_hold, cr_catalogue_hold_dispose)

/* Emits the latest news as an Event on the ConfigMap: its content is refused, or in use again. Worker thread. */
void cr_catalogue_source_emit_event(struct cr_catalogue_source *source, struct cr_recorder *recorder);

#endif
