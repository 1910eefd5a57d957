/* The status of a trust domain: whatever was decoded, written and read again it is the same. */
#include "written_again.h"

#include "api/domain_status.h"

static struct cr_json *once_more(const struct cr_json *status)
{
    CR_CLEANUP(cr_domain_status) struct cr_domain_status decoded = {0};
    cr_domain_status_decode(status, &decoded);
    return cr_domain_status_encode(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    require_the_same_again(data, size, once_more);
    return 0;
}
