/* An informer: a watch that keeps a store and notifies of what changed. */
#ifndef CR_RUNTIME_INFORMER_H
#define CR_RUNTIME_INFORMER_H

#include "kube/watch.h"
#include "metrics/metrics.h"
#include "runtime/store.h"

/* Something came, changed or went. All borrowed. */
struct cr_change {
    const char *ns; /* "": none */
    const char *name;
    struct cr_packed *before;  /* NULL: it was not there */
    struct cr_snapshot *after; /* NULL: it is gone */
};

struct cr_informer_options {
    struct cr_watch_options watch;
    /* Whether an object is to be looked at at all (see cr_watch_handler); what is not is as if it did not exist. Loop
     * thread. NULL: all are. */
    bool (*wants)(void *arg, const char *ns, const char *name);
    /* Converts a fresh object into what is kept: snapshot->json is json already; strips it in place and may set extra.
     * False: not kept at all (as if it did not exist). Loop thread. NULL: kept whole, without managedFields. */
    bool (*project)(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
    /* Makes of an object that is too large to be read what is kept of it, in place of what was read before: its
     * snapshot->json has its name and namespace alone. May set extra. Loop thread. NULL: what was read last stays. */
    void (*project_unreadable)(void *arg, struct cr_snapshot *snapshot);
    /* The store has it already. Not called when the resourceVersion is the same. Loop thread. */
    void (*on_change)(void *arg, const struct cr_change *change);
    /* Refused from now on, or no longer. Loop thread; optional. */
    void (*on_refused)(void *arg);
    /* The first full state is in. Called before the function of cr_informer_on_synced; loop thread; optional. */
    void (*on_first_sync)(void *arg);
    void *arg; /* of all */
    /* Some work can be done without it, which the others then wait for no more: see cr_informer_refused. */
    bool partial;
    /* The code that asked for it is notified that it is refused: then the rest is ready without it (see
     * cr_informer_ready). */
    bool on_demand;
    /* Code that needs it waits for it, other code so long at most (see cr_informer_answered); 0: however long. */
    int64_t patience_ms;
};

struct cr_informer;
struct cr_informer *cr_informer_new(struct cr_client *client, struct cr_loop *loop,
                                    const struct cr_informer_options *options);
/* Loop thread, or before it runs. */
void cr_informer_start(struct cr_informer *informer);
void cr_informer_free(struct cr_informer *informer);
CR_DEFINE_CLEANUP(cr_informer, struct cr_informer, cr_informer_free)
/* Whether the first full state is in. Any thread. */
bool cr_informer_synced(struct cr_informer *informer);
/* The API server forbids to see the resource, or takes what the first list asks for invalid, which a person must put
 * right; what the store has may be old. True, with the resource, the namespace and what to grant. Any thread. */
bool cr_informer_refused(struct cr_informer *informer, struct cr_error *err) CR_MUST_USE;
/* Borrowed; lives as long as the informer. */
struct cr_store *cr_informer_store(struct cr_informer *informer);
/* False, with the resource, the namespace and what to do about it, when the first full state is not in, a person has to
 * put something right (permissions, the CRD), or nothing was received for a minute. Any thread. */
bool cr_informer_healthy(struct cr_informer *informer, struct cr_error *err) CR_MUST_USE;
/* The same, but true for one on demand that is refused (Forbidden). */
bool cr_informer_ready(struct cr_informer *informer, struct cr_error *err) CR_MUST_USE;
/* The first full state is on its way, and nothing has gone wrong meanwhile that would stop it. Any thread. */
bool cr_informer_begins(struct cr_informer *informer);
const struct cr_resource *cr_informer_resource(const struct cr_informer *informer);

/* For the manager. Whether its first full state is in, or is partial and refused, or its patience is over. Any thread.
 */
bool cr_informer_answered(struct cr_informer *informer);
/* fn: in the loop's thread, when that comes to be; once for each of the three. */
void cr_informer_on_synced(struct cr_informer *informer, void (*fn)(void *arg), void *arg);
/* Ends the watch, the store stays. Loop thread, or after the loop has ended. */
void cr_informer_stop(struct cr_informer *informer);

#endif
