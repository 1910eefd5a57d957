#include "codec/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/deflate.h"

struct cr_model {
    int refs; /* atomic */
    size_t len;
    char text[];
};

struct cr_model *cr_model_new(const char *text, size_t len)
{
    size_t kept = len < CR_DEFLATE_MODEL_MAX ? len : CR_DEFLATE_MODEL_MAX;
    struct cr_model *model = cr_malloc(sizeof *model + kept);
    *model = (struct cr_model){.refs = 1, .len = kept};
    memcpy(model->text, text + len - kept, kept);
    return model;
}

struct cr_model *cr_model_ref(struct cr_model *model)
{
    if (model)
        __atomic_add_fetch(&model->refs, 1, __ATOMIC_RELAXED);
    return model;
}

/* Release and acquire: what other threads read of it happened before it is freed. */
void cr_model_unref(struct cr_model *model)
{
    if (model && __atomic_sub_fetch(&model->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(model);
}

void *cr_model_deflate(const struct cr_model *model, const char *text, size_t len, size_t *size)
{
    return cr_deflate(text, len, model ? model->text : NULL, model ? model->len : 0, size);
}

char *cr_model_inflate(const struct cr_model *model, const void *data, size_t size, size_t len)
{
    return cr_inflate(data, size, model ? model->text : NULL, model ? model->len : 0, len);
}
