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

/* Any text of at most max bytes, with NULs among them too, and a NUL behind it as the last byte that may be read. */
static inline char *any_text(size_t max, size_t *len)
{
    *len = any_size(max);
    char *text = malloc(*len + 1);
    text[*len] = '\0';
    return text;
}

/* Any string of at most max bytes. */
static inline char *any_string(size_t max)
{
    size_t len;
    return any_text(max, &len);
}

#ifdef BEGINNING
enum { BEGINNING_LEN = sizeof BEGINNING - 1, WHOLE_LEN = BEGINNING_LEN + MAX };

/* WHOLE_LEN bytes: the beginning, and any behind it. There is no room around them, nor a NUL behind them. */
static inline char *any_bytes_behind(void)
{
    char *text = malloc(WHOLE_LEN);
    for (size_t i = 0; i < BEGINNING_LEN; i++)
        text[i] = BEGINNING[i];
    return text;
}
#endif

#endif
