/* A growable list of owned strings. */
#ifndef CR_BASE_STRVEC_H
#define CR_BASE_STRVEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct cr_strvec {
    char **items; /* owned, each owned */
    size_t len;
    size_t cap;
};

void cr_strvec_dispose(struct cr_strvec *v);
CR_DEFINE_DISPOSE(cr_strvec, struct cr_strvec, cr_strvec_dispose)

void cr_strvec_add(struct cr_strvec *v, const char *s);
bool cr_strvec_has(const struct cr_strvec *v, const char *s);
/* Adds it unless it is there; true when added. */
bool cr_strvec_add_unique(struct cr_strvec *v, const char *s);
void cr_strvec_copy(struct cr_strvec *to, const struct cr_strvec *from);
void cr_strvec_sort(struct cr_strvec *v);
/* Same strings in the same order. */
bool cr_strvec_equal(const struct cr_strvec *a, const struct cr_strvec *b);
/* Owned: "a, b, c". */
char *cr_strvec_join(const struct cr_strvec *v, const char *separator);

#endif
