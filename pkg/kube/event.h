/* Kubernetes Events (events.k8s.io/v1 as core/v1 shape), best effort: a failed Event never fails the work. Repeats of
 * the same event (object, reason, note) within 10 minutes are dropped. Thread-safe. */
#ifndef CR_KUBE_EVENT_H
#define CR_KUBE_EVENT_H

#include "base/cleanup.h"
#include "kube/client.h"

struct cr_recorder;
struct cr_recorder *cr_recorder_new(struct cr_client *client, const char *component);
void cr_recorder_free(struct cr_recorder *recorder);
CR_DEFINE_CLEANUP(cr_recorder, struct cr_recorder, cr_recorder_free)

struct cr_event {
    const char *api_version; /* of the object it is about */
    const char *kind;
    const char *ns; /* NULL: the object has none */
    const char *name;
    const char *uid;
    bool warning;       /* else Normal */
    const char *reason; /* "Restarted", "InvalidMaterial" */
    const char *message;
};
/* Blocks for one request (never in the loop's thread). */
void cr_recorder_emit(struct cr_recorder *recorder, const struct cr_event *event);

#endif
