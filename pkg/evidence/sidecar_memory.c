#include "evidence/sidecar_memory.h"

#include <stdlib.h>

#include "base/alloc.h"

struct cr_sidecar_memory {
    int64_t started_ms;
    struct cr_sidecar_sighting sighting;
};

void cr_sidecar_memory_free(struct cr_sidecar_memory *memory)
{
    if (!memory)
        return;
    cr_sidecar_sighting_dispose(&memory->sighting);
    free(memory);
}

void cr_sidecar_memory_keep(struct cr_sidecar_memory **memory, int64_t started_ms, struct cr_sidecar_sighting *sighting)
{
    if (!*memory)
        *memory = cr_new(struct cr_sidecar_memory);
    cr_sidecar_sighting_dispose(&(*memory)->sighting);
    (*memory)->started_ms = started_ms;
    (*memory)->sighting = *sighting;
    *sighting = (struct cr_sidecar_sighting){0};
}

static bool is_kept(const struct cr_sidecar_memory *memory, int64_t now_ms, bool awaited)
{
    int64_t age_ms = now_ms - memory->sighting.at_ms;
    return age_ms >= 0 && (awaited || age_ms <= CR_SIDECAR_KEPT_MS);
}

void cr_sidecar_memory_recall(struct cr_sidecar_memory **memory, int64_t started_ms, int64_t now_ms, bool awaited,
                              struct cr_sidecar_sighting *out)
{
    *out = (struct cr_sidecar_sighting){0};
    if (*memory && !is_kept(*memory, now_ms, awaited)) {
        cr_sidecar_memory_free(*memory);
        *memory = NULL;
    }
    if (*memory && (*memory)->started_ms == started_ms)
        cr_sidecar_sighting_copy(out, &(*memory)->sighting);
}
