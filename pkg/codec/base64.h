/* Base64 (RFC 4648, section 4), as Secret data has it. */
#ifndef CR_CODEC_BASE64_H
#define CR_CODEC_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the decoded bytes to out (mark out secret for keys). White space is skipped; anything else that is not
 * base64 is Invalid, and out is as it was. */
bool cr_base64_decode(const char *text, size_t len, struct cr_buf *out, struct cr_error *err) CR_MUST_USE;
/* Owned, NUL-terminated. */
char *cr_base64_encode(const void *data, size_t len);

#endif
