/* A text that those that come after it resemble, held by all that were deflated by it (codec/deflate.h). Thread-safe.
 */
#ifndef CR_CODEC_MODEL_H
#define CR_CODEC_MODEL_H

#include <stddef.h>

#include "base/cleanup.h"

struct cr_model;
/* One reference. Copies the text, but only so much of its end as counts. */
struct cr_model *cr_model_new(const char *text, size_t len);
struct cr_model *cr_model_ref(struct cr_model *model);
void cr_model_unref(struct cr_model *model);
CR_DEFINE_CLEANUP(cr_model, struct cr_model, cr_model_unref)

/* As cr_deflate and cr_inflate; model NULL: by none. */
void *cr_model_deflate(const struct cr_model *model, const char *text, size_t len, size_t *size);
char *cr_model_inflate(const struct cr_model *model, const void *data, size_t size, size_t len);

#endif
