/* GET /status: how each material stands, for the operator and for people (evidence/sidecar_page.h reads it). Pure. */
#ifndef CR_SIDECAR_PAGE_H
#define CR_SIDECAR_PAGE_H

#include "base/buffer.h"
#include "sidecar/delivery.h"

#define CR_SIDECAR_PAGE_VERSION "sidecar.certroll.dev/v1"

/* Borrowed. */
struct cr_sidecar_view {
    const char *name; /* of the material */
    struct cr_delivery delivery;
};

/* Appends the page to out, which has no cap. started_ms: wall clock. Digests, times and words only. */
void cr_sidecar_page_write(const struct cr_sidecar_view *views, size_t len, int64_t started_ms, struct cr_buf *out);

#endif
