/* Since when the end of a certificate is worth a warning. */
#ifndef CR_PKI_EXPIRY_NOTICE_H
#define CR_PKI_EXPIRY_NOTICE_H

#include <stdint.h>

/* A sixth of its lifetime before its end, and most_ms at most, since renewal at two thirds of the lifetime leaves room
 * before that. A certificate of which only the end is remembered (not_before_ms 0) counts as long-lived. Unix times. */
int64_t cr_expiry_notice_ms(int64_t not_before_ms, int64_t not_after_ms, int64_t most_ms);

#endif
