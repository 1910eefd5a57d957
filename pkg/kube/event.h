/* Kubernetes Events (events.k8s.io/v1 as core/v1 shape), best effort: a failed Event never fails the work. Repeats of
 * the same event (object, reason, note as sent) within 10 minutes are dropped. In that time at most 100 Events of one
 * reason about one object are sent, as far as the last 2048 go, so that a client that edits an object again and again
 * does not fill the API server with them. Thread-safe. */
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
/* Blocks for one request (never in the loop's thread), unless Events are deferred. */
void cr_recorder_emit(struct cr_recorder *recorder, const struct cr_event *event);

/* From now on emitted Events are queued, so that they do not delay the work that they report: on_waiting is called in
 * the emitting thread, and cr_recorder_send sends. Beyond 2048 the oldest are dropped. Call it before other threads
 * have the recorder. */
void cr_recorder_defer(struct cr_recorder *recorder, void (*on_waiting)(void *arg), void *arg);
/* Sends one, if one waits; blocks for its request. True: more wait. */
bool cr_recorder_send(struct cr_recorder *recorder);

#endif
