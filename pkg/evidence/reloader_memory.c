#include "evidence/reloader_memory.h"

#include <stdlib.h>

#include "base/alloc.h"

struct cr_reloader_memory {
    int64_t started_ms;
    struct cr_reloader_sighting sighting;
};

void cr_reloader_memory_free(struct cr_reloader_memory *memory)
{
    if (!memory)
        return;
    cr_reloader_sighting_dispose(&memory->sighting);
    free(memory);
}

void cr_reloader_memory_keep(struct cr_reloader_memory **memory, int64_t started_ms,
                             struct cr_reloader_sighting *sighting)
{
    if (!*memory)
        *memory = cr_new(struct cr_reloader_memory);
    cr_reloader_sighting_dispose(&(*memory)->sighting);
    (*memory)->started_ms = started_ms;
    (*memory)->sighting = *sighting;
    *sighting = (struct cr_reloader_sighting){0};
}

static bool is_kept(const struct cr_reloader_memory *memory, int64_t now_ms, bool awaited)
{
    int64_t age_ms = now_ms - memory->sighting.at_ms;
    return age_ms >= 0 && (awaited || age_ms <= CR_RELOADER_KEPT_MS);
}

void cr_reloader_memory_recall(struct cr_reloader_memory **memory, int64_t started_ms, int64_t now_ms, bool awaited,
                               struct cr_reloader_sighting *out)
{
    *out = (struct cr_reloader_sighting){0};
    if (*memory && !is_kept(*memory, now_ms, awaited)) {
        cr_reloader_memory_free(*memory);
        *memory = NULL;
    }
    if (*memory && (*memory)->started_ms == started_ms)
        cr_reloader_sighting_copy(out, &(*memory)->sighting);
}
