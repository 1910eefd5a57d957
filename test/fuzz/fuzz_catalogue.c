/* An override of the catalogue: loaded, or refused with words. */
#include "fuzz.h"

#include "catalogue/catalogue.h"

/* Whatever was accepted can be asked. */
static void ask(const struct cr_component *component)
{
    struct cr_program program = {.component = component, .version = "1.2.3"};
    for (int role = 0; component && role < CR_ROLE_COUNT; role++) {
        struct cr_capability capability;
        cr_catalogue_capability(&program, NULL, (enum cr_role)role, &capability);
        require(capability.why[0]);
        cr_catalogue_accepts(&program, "ECDSA-P256", (enum cr_role)role);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_load((const char *)data, size, &err);
    require(catalogue || (err.kind == CR_ERR_INVALID && err.text[0]));
    if (!catalogue)
        return 0;
    ask(cr_catalogue_by_image(catalogue, "registry.example/team/envoy:v1.2.3@sha256:0"));
    ask(cr_catalogue_by_name(catalogue, "nginx@1.27.4"));
    return 0;
}
