/* Which watches of Secrets a group of namespaces takes: as narrow as what is wanted lets them be. A group is all
 * namespaces, or one that is watched by itself. Pure.
 *
 * Few Secrets have a watch each, by name (fieldSelector=metadata.name=…), and so has each selector (labelSelector=…).
 * Beyond that one shared watch has most of them, and only what is not in it a watch of its own. */
#ifndef CR_CLUSTER_WATCH_SCOPE_H
#define CR_CLUSTER_WATCH_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

enum cr_secret_scope {
    CR_SECRET_SCOPE_AUTO,
    CR_SECRET_SCOPE_NAMED, /* by name only, however many: RBAC may then be restricted by resourceNames */
};

/* The shared watch of a group, each has what the one before has. */
enum cr_shared_scope {
    CR_SHARED_NONE,
    CR_SHARED_TLS,   /* type kubernetes.io/tls */
    CR_SHARED_USUAL, /* all but tokens of service accounts and Helm's releases, which are never selected */
    CR_SHARED_ALL,
};
enum { CR_SHARED_COUNT = CR_SHARED_ALL + 1 };

/* Watches of their own in a group. Each takes one of the 100 streams that an API server gives a connection
 * (--http2-max-streams-per-connection; 90 are used), and a place in its watch cache: beyond some tens one shared watch
 * costs both sides less, though it brings what no policy wants. */
enum { CR_WATCH_SCOPE_LIMIT = 50 };
/* A shared watch is given up for so many, in percent of the limit: or each edit at the limit would list everything. */
enum { CR_WATCH_SCOPE_LOW_PERCENT = 60 };

/* A Secret that is named or remembered, or a selector. */
struct cr_watch_scope_item {
    /* The narrowest shared watch that has it, as far as it is known. A selector: USUAL. A Secret of which nothing is
     * known is thought to be of type TLS; one that does not exist may come as any: ALL. */
    enum cr_shared_scope least;
    bool passed_over; /* it was wanted after the present shared watch had begun its list, and is not in it */
    bool selected;    /* a Secret that the watch of a selector has: needs none of its own */
};

struct cr_watch_scope_in {
    enum cr_secret_scope scope;
    size_t limit; /* this group's part of CR_WATCH_SCOPE_LIMIT */
    enum cr_shared_scope present;
    bool listing; /* the present one has not had its whole list yet */
    const struct cr_watch_scope_item *items;
    size_t len;
};

struct cr_watch_scope {
    enum cr_shared_scope shared;
    bool relist; /* another one of this kind is begun beside the present one, which has passed over too much */
    /* The same is to happen once the present one has had its list, and what was passed over waits for that: where
     * policies come faster than lists, one would be begun after the other, and none would come to its end. */
    bool later;
};

struct cr_watch_scope cr_watch_scope_decide(const struct cr_watch_scope_in *in);
/* Whether the item has a watch of its own then. */
bool cr_watch_scope_own(const struct cr_watch_scope_in *in, struct cr_watch_scope decided,
                        const struct cr_watch_scope_item *item);
/* limit of each of so many groups. */
size_t cr_watch_scope_share(size_t groups);

/* The narrowest shared watch that has Secrets of this type. */
enum cr_shared_scope cr_shared_scope_of_type(const char *type);
/* Its fieldSelector; NULL: none. */
const char *cr_shared_scope_field_selector(enum cr_shared_scope shared);

#endif
