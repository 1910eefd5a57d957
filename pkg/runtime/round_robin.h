/* Items of many groups, each group a queue, taken round robin: the first of each group, then the second, however many
 * one group has. A group may be limited in how many of its items are under way at a time. Two priorities, each with an
 * order of its own. For one thread at a time. Private to pkg/runtime. */
#ifndef CR_RUNTIME_ROUND_ROBIN_H
#define CR_RUNTIME_ROUND_ROBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/cleanup.h"

/* To be embedded; zeroed at first. Borrowed from its owner. */
struct cr_round_robin_item {
    TAILQ_ENTRY(cr_round_robin_item) link;
    struct cr_round_robin_group *group; /* while it waits or is under way */
    bool low;
};

struct cr_round_robin;
/* most: items of one group that may be under way at a time; at least 1. */
struct cr_round_robin *cr_round_robin_new(size_t most);
/* What waits is forgotten. */
void cr_round_robin_free(struct cr_round_robin *rr);
CR_DEFINE_CLEANUP(cr_round_robin, struct cr_round_robin, cr_round_robin_free)

void cr_round_robin_limit(struct cr_round_robin *rr, size_t most);
/* It waits; it must neither wait nor be under way. group: copied. */
void cr_round_robin_add(struct cr_round_robin *rr, struct cr_round_robin_item *item, const char *group, bool low);
/* It waits no more. */
void cr_round_robin_remove(struct cr_round_robin *rr, struct cr_round_robin_item *item);
/* The next item; NULL: none waits, or only items of groups that have as many under way as they may. */
struct cr_round_robin_item *cr_round_robin_next(struct cr_round_robin *rr, bool low);
/* The one that was next is under way: its group comes after all others. */
void cr_round_robin_start(struct cr_round_robin *rr, struct cr_round_robin_item *item);
void cr_round_robin_done(struct cr_round_robin *rr, struct cr_round_robin_item *item);

#endif
