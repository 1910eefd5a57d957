/* What holds the end of a pod's containers back until the connections of a proxy have gone: preStop hooks that run a
 * shutdown manager, or ask one. Pure: reads a PodSpec as JSON.
 *
 * A hook is one of these, in a container that keeps running:
 *   - exec of certroll-shutdown-manager, contour or envoy-gateway with the command shutdown; through a shell or another
 *     program it counts as well, but nothing is known of its times;
 *   - httpGet of /shutdown or /shutdown/ready at the port of a container that runs the same programs' serve, or envoy
 *     shutdown-manager.
 * Any other preStop, such as a sleep, lets no connection go: only the grace period says how long it takes.
 * (kubernetes.io/docs/concepts/containers/container-lifecycle-hooks; the flags are drain/flags.h's.) */
#ifndef CR_WORKLOAD_SHUTDOWN_HOOK_H
#define CR_WORKLOAD_SHUTDOWN_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "codec/json.h"

enum { CR_SHUTDOWN_UNKNOWN_MS = -1 };

struct cr_shutdown_hook {
    const char *container; /* the container of this preStop hook; borrowed from the pod spec */
    bool waits;            /* for another hook of the pod, which writes a file when it ends */
    int64_t most_ms;       /* after so long it ends by itself; UNKNOWN: never, or its flags are not known here */
    char *misfit;          /* owned: why its times cannot hold in this pod, and what to do; NULL: nothing is wrong */
};

struct cr_shutdown_hooks {
    struct cr_shutdown_hook *items;
    size_t len;
    int64_t grace_ms; /* terminationGracePeriodSeconds; 30 s where the pod gives none */
};

/* Reads all hooks of the pod. If flags have a variable that the template does not show, the times are unknown and
 * nothing is a misfit. out need not be initialised. */
void cr_shutdown_hooks_find(const struct cr_json *pod_spec, struct cr_shutdown_hooks *out);
void cr_shutdown_hooks_dispose(struct cr_shutdown_hooks *hooks);
CR_DEFINE_DISPOSE(cr_shutdown_hooks, struct cr_shutdown_hooks, cr_shutdown_hooks_dispose)

/* How long the longest of them may take, as far as they end by themselves; 0: there is none. UNKNOWN: only the grace
 * period ends them. Never more than that. */
int64_t cr_shutdown_hooks_most_ms(const struct cr_shutdown_hooks *hooks);
/* All misfits, in one line. Owned; NULL: there is none. */
char *cr_shutdown_hooks_misfit(const struct cr_shutdown_hooks *hooks);

#endif
