/* Generations of a server's material, each with a CA of its own, and a folder that they are written to as a kubelet
 * writes a Secret's volume. For hack/bench and the storm. Ends the program on failure. */
#ifndef BENCH_GENERATIONS_H
#define BENCH_GENERATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Owned texts in PEM. The CA is the end of the chain and the one that clients are asked for: whoever connects sees of
 * one handshake whether leaf, key, chain and trust are of one generation. */
struct generation {
    char *chain, *key, *ca;
};

/* Owned, with generations_free. */
struct generation *generations_new(size_t count);
void generations_free(struct generation *generations, size_t count);

struct volume {
    const char *folder; /* borrowed; exists */
    int number;
    char before[64]; /* the folder that is to go */
};
/* tls.crt, tls.key, ca.crt. The folder of before goes at once, or, if it is kept, with the next swap. */
void volume_swap(struct volume *volume, const struct generation *generation, bool keep);

#endif
