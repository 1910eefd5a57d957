/* The guard against stale caches: a key waits until the cache has seen the key's own last writes (the idea of
 * KEP-5647). Without it a reconcile that follows a write closely looks at what was before it, decides the same once
 * more, and its preconditions answer Conflict. Thread-safe; one thread at a time for one key. */
#ifndef CR_RUNTIME_OWN_WRITES_H
#define CR_RUNTIME_OWN_WRITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "codec/json.h"
#include "runtime/store.h"

/* No reconcile waits longer: after a restore of etcd the cache may never get there. Preconditions protect all the
 * same. */
enum { CR_OWN_WRITES_MAX_MS = 2 * 60 * 1000 };

struct cr_own_writes;
struct cr_own_writes *cr_own_writes_new(void);
void cr_own_writes_free(struct cr_own_writes *own);
CR_DEFINE_CLEANUP(cr_own_writes, struct cr_own_writes, cr_own_writes_free)

/* written: what the API server answered to a write for this key. It takes the place of an earlier write of the same
 * object. now_ms: monotonic. */
void cr_own_writes_add(struct cr_own_writes *own, const char *key, const char *kind, const struct cr_json *written,
                       int64_t now_ms);

/* What the cache has of an object: a reference, or NULL when it does not have it. */
typedef struct cr_packed *(*cr_own_writes_look_fn)(void *arg, const char *kind, const char *ns, const char *name);

enum cr_own_writes_state {
    CR_OWN_WRITES_SEEN,
    CR_OWN_WRITES_WAIT,     /* the cache shows an object of the same UID with a smaller resourceVersion (KEP-5504) */
    CR_OWN_WRITES_GIVEN_UP, /* it did so for CR_OWN_WRITES_MAX_MS: nothing is waited for any more */
};
/* What is seen is forgotten: so is an object that is gone, or has another UID. Asks only while something is waited for,
 * and parses only what has a smaller resourceVersion. */
enum cr_own_writes_state cr_own_writes_check(struct cr_own_writes *own, const char *key, int64_t now_ms,
                                             cr_own_writes_look_fn look, void *arg);
/* The key is gone. */
void cr_own_writes_forget(struct cr_own_writes *own, const char *key);

#endif
