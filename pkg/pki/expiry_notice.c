#include "pki/expiry_notice.h"

int64_t cr_expiry_notice_ms(int64_t not_before_ms, int64_t not_after_ms, int64_t most_ms)
{
    int64_t sixth = (not_after_ms - not_before_ms) / 6;
    return not_after_ms - (sixth < most_ms ? sixth : most_ms);
}
