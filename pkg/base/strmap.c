#include "base/strmap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

/* Open addressing with linear probing; removal shifts the run back, so there are no tombstones. There are
 * thousands of objects in some twenty maps: slots are small, hashes are computed again when they are needed, and a map
 * grows by a quarter. */
struct slot {
    char *key; /* owned; NULL: free */
    void *value;
};

struct cr_strmap {
    struct slot *slots;
    size_t cap;
    size_t len;
    uint64_t seed;
    void (*free_value)(void *);
};

enum { FIRST_CAP = 16 };

struct cr_strmap *cr_strmap_new(void (*free_value)(void *))
{
    struct cr_strmap *map = cr_new(struct cr_strmap);
    map->cap = FIRST_CAP;
    map->slots = cr_calloc(map->cap, sizeof *map->slots);
    map->free_value = free_value;
    map->seed = cr_hash_seed();
    return map;
}

static void drop_value(struct cr_strmap *map, void *value)
{
    if (map->free_value && value)
        map->free_value(value);
}

void cr_strmap_clear(struct cr_strmap *map)
{
    for (size_t i = 0; i < map->cap; i++) {
        if (!map->slots[i].key)
            continue;
        free(map->slots[i].key);
        drop_value(map, map->slots[i].value);
        map->slots[i] = (struct slot){0};
    }
    map->len = 0;
}

void cr_strmap_free(struct cr_strmap *map)
{
    if (!map)
        return;
    cr_strmap_clear(map);
    free(map->slots);
    free(map);
}

static size_t home_of(const struct cr_strmap *map, const char *key)
{
    return cr_hash_place(cr_hash_text(map->seed, key), map->cap);
}

static size_t after(const struct cr_strmap *map, size_t i)
{
    return i + 1 < map->cap ? i + 1 : 0;
}

static struct slot *find(const struct cr_strmap *map, const char *key)
{
    size_t i = home_of(map, key);
    while (map->slots[i].key && strcmp(map->slots[i].key, key) != 0)
        i = after(map, i);
    return &map->slots[i];
}

static void grow(struct cr_strmap *map)
{
    struct slot *old = map->slots;
    size_t old_cap = map->cap;
    map->cap += old_cap / 4;
    map->slots = cr_calloc(map->cap, sizeof *map->slots);
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].key)
            *find(map, old[i].key) = old[i];
    free(old);
}

void cr_strmap_set(struct cr_strmap *map, const char *key, void *value)
{
    struct slot *slot = find(map, key);
    if (slot->key) {
        if (slot->value != value)
            drop_value(map, slot->value);
        slot->value = value;
        return;
    }
    if ((map->len + 1) * 4 > map->cap * 3) {
        grow(map);
        slot = find(map, key);
    }
    *slot = (struct slot){.key = cr_strdup(key), .value = value};
    map->len++;
}

void *cr_strmap_get(const struct cr_strmap *map, const char *key)
{
    return find(map, key)->value;
}

static void close_gap(struct cr_strmap *map, size_t gap)
{
    for (size_t i = after(map, gap); map->slots[i].key; i = after(map, i)) {
        /* May move only when its home does not lie cyclically between the gap and itself. */
        if (cr_hash_steps(home_of(map, map->slots[i].key), i, map->cap) < cr_hash_steps(gap, i, map->cap))
            continue;
        map->slots[gap] = map->slots[i];
        gap = i;
    }
    map->slots[gap] = (struct slot){0};
}

static bool take(struct cr_strmap *map, const char *key, void **value)
{
    struct slot *slot = find(map, key);
    if (!slot->key)
        return false;
    *value = slot->value;
    cr_autofree char *own = slot->key;
    close_gap(map, (size_t)(slot - map->slots));
    map->len--;
    return true;
}

void *cr_strmap_take(struct cr_strmap *map, const char *key)
{
    void *value = NULL;
    return take(map, key, &value) ? value : NULL;
}

bool cr_strmap_remove(struct cr_strmap *map, const char *key)
{
    void *value = NULL;
    if (!take(map, key, &value))
        return false;
    drop_value(map, value);
    return true;
}

size_t cr_strmap_len(const struct cr_strmap *map)
{
    return map->len;
}

bool cr_strmap_next(const struct cr_strmap *map, struct cr_strmap_iter *it)
{
    for (; it->slot < map->cap; it->slot++) {
        if (!map->slots[it->slot].key)
            continue;
        it->key = map->slots[it->slot].key;
        it->value = map->slots[it->slot].value;
        it->slot++;
        return true;
    }
    return false;
}
