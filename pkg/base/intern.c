#include "base/intern.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_SLOTS = 64 };

struct entry {
    uint32_t holders;
    char text[];
};

/* Open addressing with linear probing, as in maps (strmap.c). Without entries it takes no memory. */
static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct entry **slots; /* NULL: free */
    size_t cap;
    size_t len;
    uint64_t seed;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct entry *entry_of(const char *interned)
{
    return (struct entry *)(uintptr_t)(interned - offsetof(struct entry, text));
}

/* --- with the lock held --- */

static size_t home_of(const char *text)
{
    return cr_hash_place(cr_hash_text(table.seed, text), table.cap);
}

static size_t after(size_t slot)
{
    return slot + 1 < table.cap ? slot + 1 : 0;
}

/* Where it is, or would be. */
static struct entry **find(const char *text)
{
    size_t slot = home_of(text);
    while (table.slots[slot] && strcmp(table.slots[slot]->text, text) != 0)
        slot = after(slot);
    return &table.slots[slot];
}

static void resize(size_t cap)
{
    struct entry **old = table.slots;
    size_t old_cap = table.cap;
    table.cap = cap;
    table.slots = cr_calloc(cap, sizeof(struct entry *));
    for (size_t i = 0; i < old_cap; i++)
        if (old[i])
            *find(old[i]->text) = old[i];
    free(old);
}

static void make_room(void)
{
    if (!table.cap) {
        table.seed = cr_hash_seed();
        resize(FIRST_SLOTS);
    } else if ((table.len + 1) * 4 > table.cap * 3) {
        resize(table.cap + table.cap / 2);
    }
}

static struct entry *add(const char *text)
{
    make_room();
    size_t size = strlen(text) + 1;
    struct entry *entry = cr_malloc(sizeof *entry + size);
    entry->holders = 0;
    memcpy(entry->text, text, size);
    *find(text) = entry;
    table.len++;
    return entry;
}

static void close_gap(size_t gap)
{
    for (size_t i = after(gap); table.slots[i]; i = after(i)) {
        /* May move only when its home does not lie cyclically between the gap and itself. */
        if (cr_hash_steps(home_of(table.slots[i]->text), i, table.cap) < cr_hash_steps(gap, i, table.cap))
            continue;
        table.slots[gap] = table.slots[i];
        gap = i;
    }
    table.slots[gap] = NULL;
}

static void remove_entry(struct entry *entry)
{
    close_gap((size_t)(find(entry->text) - table.slots));
    free(entry);
    if (--table.len)
        return;
    free(table.slots);
    table.slots = NULL;
    table.cap = 0;
}

/* --- the interface --- */

const char *cr_intern(const char *text)
{
    pthread_mutex_lock(&table.lock);
    struct entry *entry = table.cap ? *find(text) : NULL;
    if (!entry)
        entry = add(text);
    entry->holders++;
    pthread_mutex_unlock(&table.lock);
    return entry->text;
}

void cr_intern_release(const char *interned)
{
    if (!interned)
        return;
    struct entry *entry = entry_of(interned);
    pthread_mutex_lock(&table.lock);
    if (--entry->holders == 0)
        remove_entry(entry);
    pthread_mutex_unlock(&table.lock);
}

size_t cr_intern_count(void)
{
    pthread_mutex_lock(&table.lock);
    size_t len = table.len;
    pthread_mutex_unlock(&table.lock);
    return len;
}

/* --- lists --- */

void cr_interned_add_unique(struct cr_interned *list, const char *text)
{
    const char *interned = cr_intern(text);
    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i] != interned)
            continue;
        cr_intern_release(interned);
        return;
    }
    list->items = cr_reallocarray(list->items, list->len + 1, sizeof *list->items);
    list->items[list->len++] = interned;
}

bool cr_interned_equal(const struct cr_interned *a, const struct cr_interned *b)
{
    return a->len == b->len && (!a->len || memcmp(a->items, b->items, a->len * sizeof *a->items) == 0);
}

void cr_interned_dispose(struct cr_interned *list)
{
    for (size_t i = 0; i < list->len; i++)
        cr_intern_release(list->items[i]);
    free(list->items);
    *list = (struct cr_interned){0};
}
