/* A hash map from strings to pointers. Not thread-safe. Keys are copied; values are given to free_value (may be
 * NULL) when they are replaced, removed or the map goes. */
#ifndef CR_BASE_STRMAP_H
#define CR_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct cr_strmap;

struct cr_strmap *cr_strmap_new(void (*free_value)(void *));
void cr_strmap_free(struct cr_strmap *map);
CR_DEFINE_CLEANUP(cr_strmap, struct cr_strmap, cr_strmap_free)

/* Takes value; replaces what was there. */
void cr_strmap_set(struct cr_strmap *map, const char *key, void *value);
/* Borrowed; NULL when absent. */
void *cr_strmap_get(const struct cr_strmap *map, const char *key);
/* True when there was one. */
bool cr_strmap_remove(struct cr_strmap *map, const char *key);
/* Removes and hands the value on (owned by the caller); NULL when absent. */
void *cr_strmap_take(struct cr_strmap *map, const char *key);
size_t cr_strmap_len(const struct cr_strmap *map);
void cr_strmap_clear(struct cr_strmap *map);

/* for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it);) use it.key, it.value.  In no order; the map must
 * not be changed meanwhile. */
struct cr_strmap_iter {
    size_t slot;
    const char *key;
    void *value;
};
bool cr_strmap_next(const struct cr_strmap *map, struct cr_strmap_iter *it);

#endif
