#include "base/hash.h"

#include <sys/random.h>

uint64_t cr_hash_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed;
    /* NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape): its value alone is used, as a number */
    return seed;
}

/* FNV-1a, seeded and mixed. */
uint64_t cr_hash_text(uint64_t seed, const char *text)
{
    uint64_t h = 14695981039346656037ULL ^ seed;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        h = (h ^ *p) * 1099511628211ULL;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15ULL;
    return h ^ (h >> 29);
}

/* As a fraction of 2^32. */
size_t cr_hash_place(uint64_t hash, size_t slots)
{
    return (size_t)(((hash >> 32) * slots) >> 32);
}

size_t cr_hash_steps(size_t from, size_t to, size_t slots)
{
    return to >= from ? to - from : to + slots - from;
}
