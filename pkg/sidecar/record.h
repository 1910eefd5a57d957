/* What was delivered of a material, on disk: a process that ends between the files' change and the trigger leaves a
 * program with the old material, and the next process would not know. Digests only. Kept in a volume that lives as long
 * as the pod (emptyDir). */
#ifndef CR_SIDECAR_RECORD_H
#define CR_SIDECAR_RECORD_H

#include "sidecar/delivery.h"

/* False: there is none, or it cannot be read; then out is zeroed. */
bool cr_record_read(const char *folder, const char *material, struct cr_delivery_digests *out);
/* Errors: those of cr_outputs_write. */
bool cr_record_write(const char *folder, const char *material, const struct cr_delivery_digests *delivered,
                     struct cr_error *err) CR_MUST_USE;

#endif
