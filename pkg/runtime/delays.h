/* A heap of things that are due at some time. The owner of a struct cr_delay frees it. Private to pkg/runtime. */
#ifndef CR_RUNTIME_DELAYS_H
#define CR_RUNTIME_DELAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cr_delay {
    int64_t due_ms; /* monotonic */
    size_t place;   /* in the heap, counted from 1; 0: not there */
};

struct cr_delays {
    struct cr_delay **heap; /* [0] is due first */
    size_t len;
    size_t cap;
};

void cr_delays_dispose(struct cr_delays *delays);
/* Adds it, or moves it to another time. */
void cr_delays_set(struct cr_delays *delays, struct cr_delay *delay, int64_t due_ms);
/* Nothing when it is not there. */
void cr_delays_remove(struct cr_delays *delays, struct cr_delay *delay);
static inline struct cr_delay *cr_delays_first(const struct cr_delays *delays)
{
    return delays->len ? delays->heap[0] : NULL;
}
static inline bool cr_delay_pending(const struct cr_delay *delay)
{
    return delay->place != 0;
}

#endif
