/* A ControlPlanePolicy as it was read. Writing its status writes only what differs, under the resourceVersion that was
 * read. Events, log and metrics follow what was written. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_RECORD_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "api/control_plane.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "codec/json.h"
#include "kube/client.h"
#include "kube/event.h"
#include "runtime/own_writes.h"

/* The identity as read, even when the spec cannot be read. */
struct cr_control_plane_record {
    char *name, *uid, *resource_version;
    int64_t generation, created_ms;
    struct cr_control_plane_status status; /* as the API server has it */
};
void cr_control_plane_record_dispose(struct cr_control_plane_record *record);
CR_DEFINE_DISPOSE(cr_control_plane_record, struct cr_control_plane_record, cr_control_plane_record_dispose)
/* out need not be initialised. */
void cr_control_plane_record_read(const struct cr_json *policy, struct cr_control_plane_record *out);

/* An owned copy of record->status; out need not be initialised. */
void cr_control_plane_record_status(const struct cr_control_plane_record *record, struct cr_control_plane_status *out);

struct cr_control_plane_status_writer {
    struct cr_client *client;
    struct cr_recorder *recorder;
    struct cr_own_writes *own_writes;
    const char *key; /* of the work queue */
};

/* Once it is written, record->status is a copy of after. *wrote: the status differed. */
bool cr_control_plane_record_write(const struct cr_control_plane_status_writer *writer,
                                   struct cr_control_plane_record *record, const struct cr_control_plane_status *after,
                                   bool *wrote, struct cr_error *err) CR_MUST_USE;

/* The statuses that no plan makes. Each is the recorded one (owned copy, to be disposed of) with what is to be said; it
 * has nothing that a person or program may wait for, since nothing is known. now_ms: wall. */
void cr_control_plane_status_problem(const struct cr_control_plane_record *record, const char *reason,
                                     const char *message, int64_t now_ms, struct cr_control_plane_status *out);
/* Sets Blocked in a status when the plan may not be written, whatever else the status says about it. */
void cr_control_plane_status_refused(const struct cr_control_plane_record *record, const char *message, int64_t now_ms,
                                     struct cr_control_plane_status *status);
/* older: the name of the policy that counts. */
void cr_control_plane_status_conflict(const struct cr_control_plane_record *record, const char *older, int64_t now_ms,
                                      struct cr_control_plane_status *out);

#endif
