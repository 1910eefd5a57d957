#include "drain/waiters.h"

#include <stdlib.h>

#include "base/alloc.h"

struct cr_waiter {
    struct cr_waiter *next;          /* owned */
    struct cr_http_pending *pending; /* owned */
    int64_t until_ms;
};

static void forget_the_gone(struct cr_waiters *waiters)
{
    for (struct cr_waiter **at = &waiters->first; *at;) {
        struct cr_waiter *waiter = *at;
        if (!cr_http_pending_is_gone(waiter->pending)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        cr_http_pending_answer(waiter->pending, 0, "", NULL); /* it reaches no client */
        free(waiter);
    }
}

void cr_waiters_add(struct cr_waiters *waiters, struct cr_http_pending *pending, int64_t until_ms)
{
    struct cr_waiter *waiter = cr_new(struct cr_waiter);
    forget_the_gone(waiters);
    *waiter = (struct cr_waiter){.next = waiters->first, .pending = pending, .until_ms = until_ms};
    waiters->first = waiter;
}

void cr_waiters_answer(struct cr_waiters *waiters, int64_t now_ms, int status, const char *content_type,
                       const struct cr_buf *body)
{
    for (struct cr_waiter **at = &waiters->first; *at;) {
        struct cr_waiter *waiter = *at;
        if (waiter->until_ms > now_ms) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        cr_http_pending_answer(waiter->pending, status, content_type, body);
        free(waiter);
    }
}

bool cr_waiters_any(const struct cr_waiters *waiters)
{
    for (const struct cr_waiter *at = waiters->first; at; at = at->next)
        if (!cr_http_pending_is_gone(at->pending))
            return true;
    return false;
}
