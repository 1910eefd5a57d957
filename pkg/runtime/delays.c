#include "runtime/delays.h"

#include <stdlib.h>

#include "base/alloc.h"

void cr_delays_dispose(struct cr_delays *delays)
{
    free(delays->heap);
    *delays = (struct cr_delays){0};
}

static void put(struct cr_delays *delays, size_t index, struct cr_delay *delay)
{
    delays->heap[index] = delay;
    delay->place = index + 1;
}

static void rise(struct cr_delays *delays, size_t index)
{
    struct cr_delay *delay = delays->heap[index];
    while (index) {
        size_t parent = (index - 1) / 2;
        if (delays->heap[parent]->due_ms <= delay->due_ms)
            break;
        put(delays, index, delays->heap[parent]);
        index = parent;
    }
    put(delays, index, delay);
}

static void sink(struct cr_delays *delays, size_t index)
{
    struct cr_delay *delay = delays->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= delays->len)
            break;
        if (child + 1 < delays->len && delays->heap[child + 1]->due_ms < delays->heap[child]->due_ms)
            child++;
        if (delay->due_ms <= delays->heap[child]->due_ms)
            break;
        put(delays, index, delays->heap[child]);
        index = child;
    }
    put(delays, index, delay);
}

void cr_delays_set(struct cr_delays *delays, struct cr_delay *delay, int64_t due_ms)
{
    cr_delays_remove(delays, delay);
    if (delays->len == delays->cap) {
        delays->cap = delays->cap ? delays->cap * 2 : 16;
        delays->heap = cr_reallocarray(delays->heap, delays->cap, sizeof *delays->heap);
    }
    delay->due_ms = due_ms;
    put(delays, delays->len++, delay);
    rise(delays, delays->len - 1);
}

void cr_delays_remove(struct cr_delays *delays, struct cr_delay *delay)
{
    if (!delay->place)
        return;
    size_t index = delay->place - 1;
    struct cr_delay *last = delays->heap[--delays->len];
    delay->place = 0;
    if (last == delay)
        return;
    put(delays, index, last);
    rise(delays, index);
    sink(delays, last->place - 1);
}
