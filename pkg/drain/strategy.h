/* How each kind of proxy is asked to let its clients go, and how many are still connected. Tables, one a proxy; each
 * operation is one attempt in the calling thread: drain/drain.h decides when it is tried again. */
#ifndef CR_DRAIN_STRATEGY_H
#define CR_DRAIN_STRATEGY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strvec.h"

/* What the flags say of the proxy; all borrowed, NULL where not given. */
struct cr_drain_target {
    /* What begin has seen, and count needs when it is no longer to be seen: nginx's ports, a process. It belongs to the
     * strategy that wrote it; the drain owns it, and it is empty before. NULL: nothing is kept, and what count would
     * need it for is unknown to it. */
    struct cr_strvec *memory;
    const char *address;      /* of Envoy's admin interface, of HAProxy's stats socket (wire/address.h) */
    bool listeners;           /* Envoy: drain_listeners?graceful instead of failing the health check */
    struct cr_strvec ignored; /* listeners, frontends that are not counted, beside those of admin and stats */
    const char *pid_file;     /* nginx */
    const char *process;      /* nginx, without a pid file: the name of its process */
    const char *begin_url; /* generic: http://127.0.0.1:8080/drain, http+unix:///run/app.sock:/drain; NULL: it knows by
                              itself */
    const char *begin_method; /* generic: "POST" */
    const char *count_url;    /* generic */
    const char *count_metric; /* generic: sum of its samples in Prometheus' text format; NULL: the body is a number */
};

struct cr_drain_attempt {
    int64_t deadline_ms; /* monotonic */
    int cancel_fd;       /* readable: give up; -1: none */
};

struct cr_drain_count {
    uint64_t open; /* connections of clients */
    bool ended;    /* the proxy has ended */
};

struct cr_drain_strategy {
    const char *name;   /* as --proxy has it */
    const char *begins; /* what begin does, for the log: "fails its health check" */
    /* What the flags lack for it. Errors: Invalid. Fills in defaults. */
    bool (*prepare)(struct cr_drain_target *target, struct cr_error *err);
    /* The order, once it was taken; again does no harm. */
    bool (*begin)(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err);
    /* An answer that is not understood whole is an error, not a number. */
    bool (*count)(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err);
};

/* Errors: Invalid, with the names that there are. */
const struct cr_drain_strategy *cr_drain_strategy_find(const char *name, struct cr_error *err);

extern const struct cr_drain_strategy cr_drain_envoy;
extern const struct cr_drain_strategy cr_drain_haproxy;
extern const struct cr_drain_strategy cr_drain_nginx;
extern const struct cr_drain_strategy cr_drain_generic;

#endif
