/* The PodSpec of anybody's pod: what holds its end back takes no longer than its grace period, and what does not fit is
 * said in one line. */
#include "fuzz.h"

#include <string.h>

#include "codec/yaml.h"
#include "workload/shutdown_hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *spec = cr_yaml_parse((const char *)data, size, &err);
    if (!spec)
        return 0;
    CR_CLEANUP(cr_shutdown_hooks) struct cr_shutdown_hooks hooks;
    cr_shutdown_hooks_find(spec, &hooks);
    for (size_t i = 0; i < hooks.len; i++) {
        require(hooks.items[i].container);
        require(hooks.items[i].most_ms >= CR_SHUTDOWN_UNKNOWN_MS);
        require(!hooks.items[i].misfit || *hooks.items[i].misfit);
    }
    int64_t most_ms = cr_shutdown_hooks_most_ms(&hooks);
    require(hooks.len || most_ms == 0);
    require(most_ms == CR_SHUTDOWN_UNKNOWN_MS || (most_ms >= 0 && most_ms <= hooks.grace_ms));
    cr_autofree char *misfit = cr_shutdown_hooks_misfit(&hooks);
    require(!misfit || (*misfit && !strpbrk(misfit, "\r\n")));
    return 0;
}
