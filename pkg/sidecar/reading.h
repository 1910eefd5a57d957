/* One consistent, checked reading of a material's files. */
#ifndef CR_SIDECAR_READING_H
#define CR_SIDECAR_READING_H

#include "base/buffer.h"
#include "pki/material.h"
#include "sidecar/config.h"

struct cr_reading {
    struct cr_buf certificate, private_key, trust; /* PEM; the key's is secret */
    struct cr_material material;                   /* their digests, as the operator has them of the Secret */
};
void cr_reading_dispose(struct cr_reading *reading);
CR_DEFINE_DISPOSE(cr_reading, struct cr_reading, cr_reading_dispose)

/* Wipes the PEM texts; what was checked stays. */
void cr_reading_drop_texts(struct cr_reading *reading);
bool cr_reading_has_texts(const struct cr_reading *reading);

/* Reads and checks: key and certificate match, everything parses, nothing is expired. *problem says what is wrong with
 * material that was read (CR_MATERIAL_OK: it could not be read). now_ms: wall clock. Errors: as cr_snapshot_read and
 * cr_material_parse, with paths. out need not be initialised, and holds nothing on failure. Any thread. */
bool cr_reading_take(const struct cr_sidecar_material *material, int64_t now_ms, struct cr_reading *out,
                     enum cr_material_problem *problem, struct cr_error *err) CR_MUST_USE;

#endif
