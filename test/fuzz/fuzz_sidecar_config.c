/* The sidecar's configuration from anybody who writes its ConfigMap: read, or refused with words. */
#include "fuzz.h"

#include "sidecar/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config;
    if (!cr_sidecar_config_parse((const char *)data, size, &config, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !config.materials_len);
        return 0;
    }
    require(config.materials_len > 0 && config.materials_len <= CR_SIDECAR_MATERIALS_MAX);
    for (size_t i = 0; i < config.materials_len; i++)
        require(config.materials[i].certificate || config.materials[i].trust);
    return 0;
}
