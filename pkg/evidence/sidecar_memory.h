/* What the page of one pod's certroll-sidecar was last seen to say. Only pods with a sidecar that has something to
 * report have any. Not thread-safe. */
#ifndef CR_EVIDENCE_SIDECAR_MEMORY_H
#define CR_EVIDENCE_SIDECAR_MEMORY_H

#include "base/cleanup.h"
#include "evidence/sidecar_page.h"

struct cr_sidecar_memory;
void cr_sidecar_memory_free(struct cr_sidecar_memory *memory);
CR_DEFINE_CLEANUP(cr_sidecar_memory, struct cr_sidecar_memory, cr_sidecar_memory_free)

/* *memory: NULL as long as nothing was seen. started_ms: the pod's start; after another start it says something else.
 * Takes the sighting, whose at_ms is set. */
void cr_sidecar_memory_keep(struct cr_sidecar_memory **memory, int64_t started_ms,
                            struct cr_sidecar_sighting *sighting);
/* A copy, owned; all zero when nothing was seen since that start. What was seen later than now_ms was seen by another
 * clock. awaited: a change waits for it. Then it is kept for however long, because a sidecar that has shown everything
 * is not asked again. Otherwise what is older than CR_SIDECAR_KEPT_MS is forgotten. */
enum { CR_SIDECAR_KEPT_MS = 15 * 60 * 1000 };
void cr_sidecar_memory_recall(struct cr_sidecar_memory **memory, int64_t started_ms, int64_t now_ms, bool awaited,
                              struct cr_sidecar_sighting *out);

#endif
