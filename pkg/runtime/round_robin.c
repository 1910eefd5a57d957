#include "runtime/round_robin.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

TAILQ_HEAD(items, cr_round_robin_item);

/* There while anything of it waits or is under way. */
struct cr_round_robin_group {
    char *name;
    struct items waiting[2]; /* [low], the oldest first */
    size_t under_way;
    bool in_line[2];
    TAILQ_ENTRY(cr_round_robin_group) line[2];
};
TAILQ_HEAD(groups, cr_round_robin_group);

struct cr_round_robin {
    struct cr_strmap *groups; /* by name */
    struct groups line[2];    /* [low] those that have something that waits; the first is the next */
    size_t most;
};

static void group_free(void *value)
{
    struct cr_round_robin_group *group = value;
    free(group->name);
    free(group);
}

struct cr_round_robin *cr_round_robin_new(size_t most)
{
    struct cr_round_robin *rr = cr_new(struct cr_round_robin);
    rr->groups = cr_strmap_new(group_free);
    TAILQ_INIT(&rr->line[false]);
    TAILQ_INIT(&rr->line[true]);
    rr->most = most;
    return rr;
}

void cr_round_robin_free(struct cr_round_robin *rr)
{
    if (!rr)
        return;
    cr_strmap_free(rr->groups);
    free(rr);
}

void cr_round_robin_limit(struct cr_round_robin *rr, size_t most)
{
    rr->most = most;
}

static struct cr_round_robin_group *group_of(struct cr_round_robin *rr, const char *name)
{
    struct cr_round_robin_group *group = cr_strmap_get(rr->groups, name);
    if (group)
        return group;
    group = cr_new(struct cr_round_robin_group);
    group->name = cr_strdup(name);
    TAILQ_INIT(&group->waiting[false]);
    TAILQ_INIT(&group->waiting[true]);
    cr_strmap_set(rr->groups, name, group);
    return group;
}

static void leave_line(struct cr_round_robin *rr, struct cr_round_robin_group *group, bool low)
{
    if (group->in_line[low])
        TAILQ_REMOVE(&rr->line[low], group, line[low]);
    group->in_line[low] = false;
}

static void join_line(struct cr_round_robin *rr, struct cr_round_robin_group *group, bool low)
{
    if (!group->in_line[low])
        TAILQ_INSERT_TAIL(&rr->line[low], group, line[low]);
    group->in_line[low] = true;
}

static void drop_if_empty(struct cr_round_robin *rr, struct cr_round_robin_group *group)
{
    if (!group->under_way && !group->in_line[false] && !group->in_line[true])
        cr_strmap_remove(rr->groups, group->name);
}

void cr_round_robin_add(struct cr_round_robin *rr, struct cr_round_robin_item *item, const char *group, bool low)
{
    item->group = group_of(rr, group);
    item->low = low;
    TAILQ_INSERT_TAIL(&item->group->waiting[low], item, link);
    join_line(rr, item->group, low);
}

static void take_out(struct cr_round_robin *rr, struct cr_round_robin_item *item)
{
    struct cr_round_robin_group *group = item->group;
    TAILQ_REMOVE(&group->waiting[item->low], item, link);
    if (TAILQ_EMPTY(&group->waiting[item->low]))
        leave_line(rr, group, item->low);
}

void cr_round_robin_remove(struct cr_round_robin *rr, struct cr_round_robin_item *item)
{
    struct cr_round_robin_group *group = item->group;
    take_out(rr, item);
    item->group = NULL;
    drop_if_empty(rr, group);
}

struct cr_round_robin_item *cr_round_robin_next(struct cr_round_robin *rr, bool low)
{
    struct cr_round_robin_group *group;
    TAILQ_FOREACH(group, &rr->line[low], line[low])
    if (group->under_way < rr->most)
        return TAILQ_FIRST(&group->waiting[low]);
    return NULL;
}

void cr_round_robin_start(struct cr_round_robin *rr, struct cr_round_robin_item *item)
{
    struct cr_round_robin_group *group = item->group;
    take_out(rr, item);
    group->under_way++;
    for (int low = 0; low < 2; low++) {
        if (!group->in_line[low])
            continue;
        leave_line(rr, group, low);
        join_line(rr, group, low);
    }
}

void cr_round_robin_done(struct cr_round_robin *rr, struct cr_round_robin_item *item)
{
    struct cr_round_robin_group *group = item->group;
    group->under_way--;
    item->group = NULL;
    drop_if_empty(rr, group);
}
