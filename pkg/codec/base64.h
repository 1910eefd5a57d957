/* Base64 (RFC 4648, section 4), as Secret data has it. */
#ifndef CR_CODEC_BASE64_H
#define CR_CODEC_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the decoded bytes to out (mark out secret for keys). White space is skipped; padding must be there and right
 * and the bits behind the last byte must be zero, so that one value has one text. Anything else, and more than out's
 * cap holds, is Invalid, and out is as it was. Errors name the byte and never the text. */
bool cr_base64_decode(const char *text, size_t len, struct cr_buf *out, struct cr_error *err) CR_MUST_USE;
/* The same without a buffer for all: the bytes go to on_piece, which may keep none of them (they are wiped). It is not
 * called when the text is Invalid. */
bool cr_base64_decode_pieces(const char *text, size_t len, void (*on_piece)(void *arg, const void *bytes, size_t len),
                             void *arg, struct cr_error *err) CR_MUST_USE;
/* Owned, NUL-terminated, padded, one line. */
char *cr_base64_encode(const void *data, size_t len);

#endif
