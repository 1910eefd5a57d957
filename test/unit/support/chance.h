/* Chance that can be had again: of one seed always the same (xorshift64, Marsaglia 2003). */
#ifndef TEST_SUPPORT_CHANCE_H
#define TEST_SUPPORT_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t seed = 88172645463325252u; /* never 0 */

/* Evenly in [0, below). */
static inline unsigned draw(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 11) % below;
}

static inline bool one_in(unsigned n)
{
    return draw(n) == 0;
}

#endif
