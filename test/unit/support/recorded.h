/* A status as it is when the controller reads it again. */
#ifndef TEST_SUPPORT_RECORDED_H
#define TEST_SUPPORT_RECORDED_H

#include "api/status.h"

/* Through JSON, as the API server keeps it: what does not survive that is not remembered. to is replaced. */
static inline void test_record_status(const struct cr_policy_status *planned, struct cr_policy_status *to)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_policy_status_encode(planned);
    cr_policy_status_dispose(to);
    cr_policy_status_decode(json, to);
}

#endif
