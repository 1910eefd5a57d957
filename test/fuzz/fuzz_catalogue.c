/* An override of the catalogue: loaded, or refused with words. */
#include "fuzz.h"

#include "rotation/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_load((const char *)data, size, &err);
    require(catalogue || (err.kind == CR_ERR_INVALID && err.text[0]));
    if (catalogue)
        cr_catalogue_by_image(catalogue, "registry.example/team/envoy:v1.2.3@sha256:0");
    return 0;
}
