/* GET /status: how each material stands, for the operator and for people (evidence/reloader_page.h reads it). Pure. */
#ifndef CR_RELOADER_PAGE_H
#define CR_RELOADER_PAGE_H

#include "base/buffer.h"
#include "reloader/delivery.h"

#define CR_RELOADER_PAGE_VERSION "reloader.certroll.dev/v1"

/* Borrowed. */
struct cr_reloader_view {
    const char *name; /* of the material */
    struct cr_delivery delivery;
};

/* Appends the page to out, which has no cap. started_ms: wall clock. Digests, times and words only. */
void cr_reloader_page_write(const struct cr_reloader_view *views, size_t len, int64_t started_ms, struct cr_buf *out);

#endif
