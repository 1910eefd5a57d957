/* The Events about a ControlPlanePolicy when its status is written, derived from the difference between the two
 * statuses. Pure. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_EVENTS_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/control_plane.h"
#include "base/cleanup.h"

struct cr_control_plane_event {
    bool warning;
    const char *reason; /* static */
    char *message;      /* owned */
};

enum { CR_CONTROL_PLANE_EVENTS_MAX = 24 };

struct cr_control_plane_events {
    struct cr_control_plane_event items[CR_CONTROL_PLANE_EVENTS_MAX];
    size_t len;
};
void cr_control_plane_events_dispose(struct cr_control_plane_events *events);
CR_DEFINE_DISPOSE(cr_control_plane_events, struct cr_control_plane_events, cr_control_plane_events_dispose)

/* out need not be initialised. */
void cr_control_plane_events_of(const struct cr_control_plane_status *before,
                                const struct cr_control_plane_status *after, struct cr_control_plane_events *out);

/* Of a type of cr_control_plane_condition_types; borrowed, NULL: not set. */
const struct cr_condition *cr_control_plane_condition(const struct cr_control_plane_status *status, const char *type);

#endif
