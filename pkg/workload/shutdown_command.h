/* The command line of a shutdown manager, as far as a pod template shows it: of a hook, or of a container. Pure; see
 * shutdown_hook.h. */
#ifndef CR_WORKLOAD_SHUTDOWN_COMMAND_H
#define CR_WORKLOAD_SHUTDOWN_COMMAND_H

#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "drain/flags.h"

enum cr_shutdown_reading {
    CR_SHUTDOWN_NOT_IT,
    CR_SHUTDOWN_FLAGS_KNOWN,   /* it runs that command with these flags */
    CR_SHUTDOWN_FLAGS_UNKNOWN, /* it runs that command, with flags that are not known */
};

struct cr_shutdown_command {
    enum cr_shutdown_reading reading;
    struct cr_strvec argv;
    struct cr_drain_flags flags; /* of FLAGS_KNOWN; borrows from argv */
};

/* Whether the container's exec preStop runs "shutdown". out need not be initialised. */
void cr_shutdown_command_of_hook(const struct cr_json *container, struct cr_shutdown_command *out);
/* Whether the container itself runs "serve" or "envoy shutdown-manager". out need not be initialised. */
void cr_shutdown_command_of_container(const struct cr_json *container, struct cr_shutdown_command *out);
void cr_shutdown_command_dispose(struct cr_shutdown_command *command);
CR_DEFINE_DISPOSE(cr_shutdown_command, struct cr_shutdown_command, cr_shutdown_command_dispose)

#endif
