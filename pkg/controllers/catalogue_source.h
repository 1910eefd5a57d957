/* The catalogue in force: the built-in one, or with the overrides of one ConfigMap in the operator's namespace laid
 * over it. Overrides come from there only: whoever may write a workload's namespace may not say what software of other
 * namespaces does. */
#ifndef CR_CONTROLLERS_CATALOGUE_SOURCE_H
#define CR_CONTROLLERS_CATALOGUE_SOURCE_H

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/event.h"
#include "metrics/metrics.h"
#include "rotation/catalogue.h"
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
    void (*on_change)(void *arg); /* another catalogue is in force: plan everything anew. Loop thread */
    void (*on_news)(void *arg);   /* there is an Event to be told. Loop thread */
    void *arg;
};

struct cr_catalogue_source;
/* Its informer belongs to the manager, so that nothing is decided before the overrides are read; the source must be
 * freed after the manager. Errors: the built-in catalogue cannot be read. */
struct cr_catalogue_source *cr_catalogue_source_new(const struct cr_catalogue_source_options *options,
                                                    struct cr_error *err) CR_MUST_USE;
void cr_catalogue_source_free(struct cr_catalogue_source *source);
CR_DEFINE_CLEANUP(cr_catalogue_source, struct cr_catalogue_source, cr_catalogue_source_free)

/* The catalogue in force at this moment; the same for as long as it is held. Any thread. */
struct cr_catalogue_hold {
    const struct cr_catalogue *catalogue;
    struct cr_snapshot *snapshot; /* keeps it alive; NULL: the built-in one */
};
struct cr_catalogue_hold cr_catalogue_source_hold(struct cr_catalogue_source *source);
void cr_catalogue_hold_dispose(struct cr_catalogue_hold *hold);
CR_DEFINE_DISPOSE(cr_catalogue_hold, struct cr_catalogue_hold, cr_catalogue_hold_dispose)

/* Tells the last news as an Event on the ConfigMap: content that is refused, or in use again. A worker's thread. */
void cr_catalogue_source_emit_event(struct cr_catalogue_source *source, struct cr_recorder *recorder);

#endif
