/* The status is what the operator remembers: whatever was decoded, written and read again it is the same. */
#include "written_again.h"

#include "api/status.h"

static struct cr_json *once_more(const struct cr_json *status)
{
    CR_CLEANUP(cr_policy_status) struct cr_policy_status decoded = {0};
    cr_policy_status_decode(status, &decoded);
    return cr_policy_status_encode(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    require_the_same_again(data, size, once_more);
    return 0;
}
