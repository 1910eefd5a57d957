/* Texts of which there is one copy for all who hold them: the name of an object is the key of some twenty maps, and
 * there are thousands of objects. One table for the whole process. Thread-safe, but for lists, which are their owner's.
 */
#ifndef CR_BASE_INTERN_H
#define CR_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/* The text, equal to the given one (not NULL), and the same pointer for all; held until it has been let go as often. */
const char *cr_intern(const char *text);
/* What cr_intern returned; NULL does nothing. */
void cr_intern_release(const char *interned);
/* How many different ones are held now; for tests. */
size_t cr_intern_count(void);

/* A list of them. */
struct cr_interned {
    const char **items; /* owned; each is held */
    size_t len;
};
void cr_interned_add_unique(struct cr_interned *list, const char *text);
/* The same texts in the same order. */
bool cr_interned_equal(const struct cr_interned *a, const struct cr_interned *b);
void cr_interned_dispose(struct cr_interned *list);
CR_DEFINE_DISPOSE(cr_interned, struct cr_interned, cr_interned_dispose)

#endif
