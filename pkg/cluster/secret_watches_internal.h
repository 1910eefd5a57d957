/* Private to secret_watches*.c. secret_watches.c begins and ends watches, secret_watches_read.c looks into them. */
#ifndef CR_CLUSTER_SECRET_WATCHES_INTERNAL_H
#define CR_CLUSTER_SECRET_WATCHES_INTERNAL_H

#include <pthread.h>
#include <stdint.h>

#include "base/strmap.h"
#include "cluster/secret_watches.h"
#include "runtime/informer.h"

struct cr_secret_group;

enum cr_secret_watch_kind { CR_SECRET_BY_NAME, CR_SECRET_BY_LABEL, CR_SECRET_SHARED };

struct cr_secret_watch {
    struct cr_secret_group *group;
    enum cr_secret_watch_kind kind;
    enum cr_shared_scope shared; /* of kind SHARED */
    char *ns;                    /* NULL: all */
    char *what;                  /* the name, or the selector; NULL: shared */
    uint64_t began;              /* the group's generation: all that was wanted by then is in its list */
    bool desired;
    struct cr_informer *informer; /* the manager's */
};

/* A Secret or a selector that policies want, by "ns/name" or "ns/selector". */
struct cr_secret_wanted {
    uint64_t since; /* generation */
    uint64_t seen;  /* the last generation in which it was wanted */
};

struct cr_secret_group {
    struct cr_secret_watches *watches;
    char *ns; /* NULL: all */
    bool begun;
    uint64_t generation;   /* counts the scans of what is wanted */
    bool dropped;          /* something is no longer wanted since the last scan of what is left over */
    int64_t scan_after_ms; /* monotonic: when the next of these may be */
    struct cr_strmap *wanted;
    struct cr_strmap *selectors;
    struct cr_strmap *named;                 /* "ns/name" → struct cr_secret_watch, owned */
    struct cr_strmap *labelled;              /* "ns/selector" → the same */
    struct cr_secret_watch **shared_watches; /* oldest first: at most the last is desired */
    size_t shared_watches_len;
    char *logged; /* the last logged description */
};

struct cr_secret_watches {
    struct cr_secret_watches_options options;
    struct cr_secret_group *groups;
    size_t groups_len;
    struct cr_timer *timer;
    bool armed;
    int64_t due_ms;         /* while armed */
    int64_t rests_until_ms; /* monotonic: no look before */
    /* The loop's thread changes what is in groups under it; others read under it. */
    pthread_rwlock_t lock;
};

struct cr_secret_group *cr_secret_group_of(struct cr_secret_watches *watches, const char *ns);
/* NULL: none is desired. */
struct cr_secret_watch *cr_secret_group_shared(const struct cr_secret_group *group);
/* Newest of what the watches hold, leaving one out (NULL: none); a reference, or NULL. */
struct cr_packed *cr_secret_group_find(const struct cr_secret_group *group, const struct cr_secret_watch *but,
                                       const char *ns, const char *name);
/* The first full state is in, and it is not refused. */
bool cr_secret_watch_is_synced(const struct cr_secret_watch *watch);
bool cr_secret_watch_holds(const struct cr_secret_watch *watch, const char *ns, const char *name);
/* Whether a selector's watch that stays has it. */
bool cr_secret_group_selects(const struct cr_secret_group *group, const char *ns, const char *name);

#endif
