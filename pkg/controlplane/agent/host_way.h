/* Where a path of the host leads when the host's root is seen below a folder: links are followed by hand, an absolute
 * one below that folder again, and ".." never above it. Private to pkg/controlplane/agent. */
#ifndef CR_CONTROLPLANE_AGENT_HOST_WAY_H
#define CR_CONTROLPLANE_AGENT_HOST_WAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"

struct cr_host_way {
    char *path;               /* as this process sees it, without links; of what is missing, where it was looked for */
    struct cr_strvec links;   /* each link on the way, as this process sees it */
    struct cr_strvec targets; /* what each said */
    struct stat end;          /* of what is there */
    int64_t ctime_ms;         /* wall; of the last link on the way, or of the end: whichever changed later */
};
void cr_host_way_dispose(struct cr_host_way *way);
CR_DEFINE_DISPOSE(cr_host_way, struct cr_host_way, cr_host_way_dispose)

/* root: "" is the host's own; host: absolute. Errors, with the host's path: NotFound, Forbidden, Invalid (more than 40
 * links, as the kernel counts), Transient. out->path and out->links are set then, too. Any thread. */
bool cr_host_way_go(const char *root, const char *host, struct cr_host_way *out, struct cr_error *err) CR_MUST_USE;
/* Whether both lead to the same file, unchanged. */
bool cr_host_way_same(const struct cr_host_way *a, const struct cr_host_way *b);
/* Whether every link that is on both ways said the same: else it was swapped between the two. */
bool cr_host_way_agree(const struct cr_host_way *a, const struct cr_host_way *b);

#endif
