/* The status of a trust domain: whatever was decoded, written and read again it is the same. */
#include "fuzz.h"

#include <string.h>

#include "api/domain_status.h"
#include "codec/yaml.h"

static struct cr_json *once_more(const struct cr_json *status)
{
    CR_CLEANUP(cr_domain_status) struct cr_domain_status decoded = {0};
    cr_domain_status_decode(status, &decoded);
    return cr_domain_status_encode(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *status = cr_yaml_parse((const char *)data, size, &err);
    if (!status)
        return 0;
    CR_CLEANUP(cr_json) struct cr_json *first = once_more(status);
    CR_CLEANUP(cr_json) struct cr_json *second = once_more(first);
    require(cr_json_equal(first, second));
    return 0;
}
