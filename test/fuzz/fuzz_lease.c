/* A Lease that somebody else holds, or has written by hand: no Lease, with words, or one whose texts are there and
 * whose times can hold. */
#include "fuzz.h"

#include <string.h>

#include "codec/yaml.h"
#include "kube/lease.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    if (!object)
        return 0;
    if (!cr_lease_read(object, &lease, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !lease.holder);
        return 0;
    }
    require(lease.holder && lease.record && *lease.resource_version);
    require(lease.duration_ms >= 0 && lease.duration_ms <= (int64_t)INT32_MAX * 1000);
    CR_CLEANUP(cr_lease) struct cr_lease again = {0};
    require(cr_lease_read(object, &again, &err) && strcmp(lease.record, again.record) == 0);
    return 0;
}
