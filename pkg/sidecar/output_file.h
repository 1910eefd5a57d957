/* One output on disk. Private to pkg/sidecar. */
#ifndef CR_SIDECAR_OUTPUT_FILE_H
#define CR_SIDECAR_OUTPUT_FILE_H

#include "base/buffer.h"
#include "base/cleanup.h"
#include "sidecar/config.h"

/* A file that stands beside the one that it will replace. */
struct cr_output_staged {
    const char *name; /* within the spec's path */
    char *beside;     /* owned: the hidden name, the same each time, so that at most one is ever left behind */
    int fd;           /* of the folder */
    bool is_beside;   /* else the file is as it should be, or has been replaced */
};
#define CR_OUTPUT_STAGED_INIT ((struct cr_output_staged){.fd = -1})

/* Writes content beside the file, unless the file has it, with the spec's mode and owner. out need not be initialised,
 * and is to be disposed of also on failure; it borrows the spec's path. Errors: those of cr_outputs_write, without the
 * path. */
bool cr_output_file_stage(const struct cr_output_spec *spec, const struct cr_buf *content, struct cr_output_staged *out,
                          struct cr_error *err) CR_MUST_USE;
/* Replaces the file by it. *changed is set when there was another one. Errors: likewise. */
bool cr_output_file_put(struct cr_output_staged *staged, bool *changed, struct cr_error *err) CR_MUST_USE;
/* Removes what was not put. */
void cr_output_staged_dispose(struct cr_output_staged *staged);
CR_DEFINE_DISPOSE(cr_output_staged, struct cr_output_staged, cr_output_staged_dispose)

#endif
