/* Texts that people and log readers are shown, made of what others have written: names in certificates, words of a
 * server. */
#ifndef CR_BASE_TEXT_H
#define CR_BASE_TEXT_H

#include <stddef.h>

#include "base/buffer.h"

/* Owned: at most max bytes of text (at least 4), cut between characters with "..." at the end; control characters, and
 * bytes that are no UTF-8 (a text that was cut elsewhere), become '?'. */
char *cr_text_clip(const char *text, size_t max);

/* Appends the text as a string of JSON (RFC 8259, section 7). out has no cap. */
void cr_text_quote(const char *text, struct cr_buf *out);

#endif
