/* Texts that people read in a terminal, made of what others have written: names in certificates, words of a server. */
#ifndef CR_BASE_TEXT_H
#define CR_BASE_TEXT_H

#include <stddef.h>

/* Owned: at most max bytes of text (at least 4), cut between characters with "..." at the end; control characters, and
 * bytes that are no UTF-8 (a text that was cut elsewhere), become '?'. */
char *cr_text_clip(const char *text, size_t max);

#endif
