/* Words of the API for the values of an enumeration, by a table of them. Private to pkg/api. */
#ifndef CR_API_NAMES_H
#define CR_API_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* "" for a value that is none of the enumeration's. */
const char *cr_word_of(const char *const *names, size_t count, size_t value);
/* False: it is no such word (or NULL); value is left alone. */
bool cr_word_find(const char *const *names, size_t count, const char *text, unsigned *value);

#endif
