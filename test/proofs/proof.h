/* What every proof has: CBMC's words for "any", "given that" and "always". */
#ifndef PROOFS_PROOF_H
#define PROOFS_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* To be shown for every input that the proof has. */
#define require(condition) __CPROVER_assert(condition, #condition)
/* Only inputs for which it holds are looked at from here on. */
#define assume(condition) __CPROVER_assume(condition)

/* Any value: CBMC takes it so for functions whose names begin like this. */
size_t nondet_size(void);
char nondet_char(void);
bool nondet_bool(void);
int64_t nondet_int64(void);

static inline size_t any_size(size_t max)
{
    size_t size = nondet_size();
    assume(size <= max);
    return size;
}

/* Any bytes. There is no room around them: to read one more is out of bounds. */
static inline char *any_bytes(size_t len)
{
    return malloc(len);
}

/* Any string of at most len bytes, with its NUL as the last byte that may be read. */
static inline char *any_string(size_t max)
{
    size_t len = any_size(max);
    char *text = malloc(len + 1);
    text[len] = '\0';
    return text;
}

#endif
