/* An input that is several texts, each ended by a NUL byte. */
#ifndef FUZZ_SPLIT_H
#define FUZZ_SPLIT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pki/material.h"

struct split {
    const char *at, *end;
};

static inline struct split split_of(const uint8_t *data, size_t size)
{
    return (struct split){(const char *)data, (const char *)data + size};
}

/* Behind the last: absent. */
static inline struct cr_pem_input split_next(struct split *split)
{
    if (split->at == split->end)
        return (struct cr_pem_input){0};
    const char *stop = memchr(split->at, '\0', (size_t)(split->end - split->at));
    struct cr_pem_input in = {split->at, (size_t)((stop ? stop : split->end) - split->at)};
    split->at = stop ? stop + 1 : split->end;
    return in;
}

#endif
