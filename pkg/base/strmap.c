#include "base/strmap.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"

/* Open addressing with linear probing; removal shifts the run back, so there are no tombstones. Each policy is in some
 * fifteen maps: slots are small, hashes are computed again when they are needed, and a map grows by half. */
struct slot {
    char *key; /* NULL: free */
    void *value;
};

struct cr_strmap {
    struct slot *slots;
    size_t cap;
    size_t len;
    uint64_t seed; /* names come from users: a fixed seed would let them choose collisions */
    void (*free_value)(void *);
};

enum { FIRST_CAP = 16 };

struct cr_strmap *cr_strmap_new(void (*free_value)(void *))
{
    struct cr_strmap *map = cr_new(struct cr_strmap);
    map->cap = FIRST_CAP;
    map->slots = cr_calloc(map->cap, sizeof *map->slots);
    map->free_value = free_value;
    if (getrandom(&map->seed, sizeof map->seed, GRND_NONBLOCK) != (ssize_t)sizeof map->seed)
        map->seed = (uint64_t)(uintptr_t)map;
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

/* FNV-1a, seeded and mixed. */
static uint64_t hash_key(const struct cr_strmap *map, const char *key)
{
    uint64_t h = 14695981039346656037ULL ^ map->seed;
    for (const unsigned char *p = (const unsigned char *)key; *p; p++)
        h = (h ^ *p) * 1099511628211ULL;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15ULL;
    return h ^ (h >> 29);
}

/* The hash as a fraction of 2^32, of the slots: cap need be no power of two. */
static size_t home_of(const struct cr_strmap *map, const char *key)
{
    return (size_t)(((hash_key(map, key) >> 32) * map->cap) >> 32);
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
    map->cap += old_cap / 2;
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

/* How many slots on from one to another, around the end. */
static size_t steps(const struct cr_strmap *map, size_t from, size_t to)
{
    return to >= from ? to - from : to + map->cap - from;
}

static void close_gap(struct cr_strmap *map, size_t gap)
{
    for (size_t i = after(map, gap); map->slots[i].key; i = after(map, i)) {
        /* May move only when its home does not lie cyclically between the gap and itself. */
        if (steps(map, home_of(map, map->slots[i].key), i) < steps(map, gap, i))
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
    free(slot->key);
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
