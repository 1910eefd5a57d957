/* The Secrets of a policy as views: from the cache where its projection read them, else by one GET that is remembered
 * for that resourceVersion (a policy that came after its Secrets, or names new keys). Thread-safe. */
#ifndef CR_CLUSTER_SECRET_SOURCE_H
#define CR_CLUSTER_SECRET_SOURCE_H

#include "cluster/cache.h"
#include "cluster/secret_view.h"

struct cr_secret_source;
/* ns: the operator's own namespace, where the key of digests is; NULL: none. */
struct cr_secret_source *cr_secret_source_new(struct cr_cache *cache, struct cr_client *client, const char *ns);
void cr_secret_source_free(struct cr_secret_source *source);
CR_DEFINE_CLEANUP(cr_secret_source, struct cr_secret_source, cr_secret_source_free)

/* not_before: the resourceVersion at which the Secret was last put on record (NULL: none). A cache that lags behind it,
 * in a process that was paused or is one of two, must not take the change back: then the API server is asked, of the
 * same lag once a minute.
 * *view: owned; NULL when the Secret does not exist. May block for one request, and the first time that there is opaque
 * material for those that read or make the key of its digests. */
bool cr_secret_source_get(struct cr_secret_source *source, const char *ns, const struct cr_policy_secret *names,
                          const char *not_before, struct cr_secret_view **view, struct cr_error *err) CR_MUST_USE;
/* No policy has it any more. key: "ns/name". */
void cr_secret_source_forget(struct cr_secret_source *source, const char *key);
/* Why opaque material cannot be digested (see digest_key.h); static. NULL: nothing is known against it. */
const char *cr_secret_source_opaque_problem(struct cr_secret_source *source);

#endif
