/* Hashes of texts for tables in memory. They are seeded, since names come from users: a fixed seed would let them
 * choose collisions. Any thread. */
#ifndef CR_BASE_HASH_H
#define CR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Random, once the kernel has randomness; before, an address. */
uint64_t cr_hash_seed(void);
uint64_t cr_hash_text(uint64_t seed, const char *text);
/* The hash's place in a table of so many slots, which need be no power of two. */
size_t cr_hash_place(uint64_t hash, size_t slots);
/* How many slots on from one to another, around the end. */
size_t cr_hash_steps(size_t from, size_t to, size_t slots);

#endif
