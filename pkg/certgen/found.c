#include "certgen/found.h"

#include "base/strings.h"

void cr_certgen_found_dispose(struct cr_certgen_found *found)
{
    free(found->version);
    free(found->rotation);
    free(found->owner);
    for (size_t i = 0; i < cr_array_len(found->data); i++)
        cr_buf_dispose(&found->data[i]);
    *found = (struct cr_certgen_found){0};
}
