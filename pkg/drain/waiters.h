/* Requests that wait for the same thing. Loop thread only, or after the loop has ended. */
#ifndef CR_DRAIN_WAITERS_H
#define CR_DRAIN_WAITERS_H

#include <stdint.h>

#include "wire/http_server.h"

struct cr_waiter;

struct cr_waiters {
    struct cr_waiter *first; /* owned */
};

/* Takes pending. until_ms: monotonic; INT64_MAX: without an end. Those that have hung up are forgotten. */
void cr_waiters_add(struct cr_waiters *waiters, struct cr_http_pending *pending, int64_t until_ms);
/* Answers those that have waited long enough at now_ms; INT64_MAX: all. */
void cr_waiters_answer(struct cr_waiters *waiters, int64_t now_ms, int status, const char *content_type,
                       const struct cr_buf *body);
/* True when at least one waits. */
bool cr_waiters_any(const struct cr_waiters *waiters);

#endif
