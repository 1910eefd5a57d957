/* Reads HTTP endpoints of pods ("pages") in parallel: the part that evidence of trust and evidence of sidecars have in
 * common. Private to acts_*. */
#ifndef CR_POLICY_CONTROLLER_ACTS_PAGES_H
#define CR_POLICY_CONTROLLER_ACTS_PAGES_H

#include "policy/controller/acts.h"
#include "net/page_fetch.h"

#define CR_PAGE_REFUSED "it is not at an address that may be asked"

/* One page; all borrowed. */
struct cr_page_look {
    const struct cr_world_pod *pod;
    int port;
    const char *path;
    int64_t read_ms;   /* wall clock: when it was read last; 0: never */
    size_t max;        /* bytes of the longest page that is taken; 0: CR_PAGE_MAX */
    const void *extra; /* the caller's */
};

/* page: NULL when the pod may not be asked (CR_PAGE_REFUSED); it is gone when this returns. */
typedef void (*cr_page_look_seen)(void *arg, const struct cr_page_look *look, const struct cr_page *page);

/* Reads at most max of looks, the least recently read ones first, and calls seen once for each of them, in the calling
 * thread. Blocks for up to 2 s. Changes the order of looks. */
void cr_act_read_looks(const struct cr_actor *actor, struct cr_page_look *looks, size_t len, size_t max,
                       cr_page_look_seen seen, void *arg);

#endif
