/* The watches of Secrets, as narrow as what policies want lets them be (watch_scope.h), each an informer with a store
 * of its own. A Secret may be in several: it is looked up in all, and the newest counts. A watch ends when what
 * replaces it is in sync, so there is never a gap. Loop thread, but for what is said to be for any. */
#ifndef CR_CLUSTER_SECRET_WATCHES_H
#define CR_CLUSTER_SECRET_WATCHES_H

#include "base/cleanup.h"
#include "base/strvec.h"
#include "cluster/domain_index.h"
#include "cluster/policy_index.h"
#include "cluster/watch_scope.h"
#include "runtime/manager.h"

struct cr_secret_watches_options {
    struct cr_manager *manager; /* has the informers, starts its workers when they have answered */
    struct cr_client *client;
    struct cr_loop *loop;
    const struct cr_strvec *namespaces; /* empty: all */
    enum cr_secret_scope scope;
    /* What is wanted. */
    struct cr_policy_index *index;
    struct cr_domain_index *domains;
    /* As an informer's; not called when another watch has notified of the same already. The stores have it. */
    bool (*project)(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
    void (*on_change)(void *arg, const struct cr_change *change);
    /* What is known of a Secret, or whether it may be seen, has changed without a change of it: name NULL: of all
     * Secrets of the namespace; ns NULL: of all namespaces. */
    void (*on_known)(void *arg, const char *ns, const char *name);
    /* No policy names or remembers it any more, and no trust domain wants it; key: "ns/name". */
    void (*on_unwanted)(void *arg, const char *key);
    void *arg;
};

struct cr_secret_watches;
/* All that is given outlives it. */
struct cr_secret_watches *cr_secret_watches_new(const struct cr_secret_watches_options *options);
/* After the manager, which has freed the informers. */
void cr_secret_watches_free(struct cr_secret_watches *watches);
CR_DEFINE_CLEANUP(cr_secret_watches, struct cr_secret_watches, cr_secret_watches_free)

/* The policies of a namespace (NULL: of all) are known: from now on it has watches. */
void cr_secret_watches_begin(struct cr_secret_watches *watches, const char *ns);
/* The indexes may want other Secrets now. The watches are updated a moment later, because policies come in bursts. */
void cr_secret_watches_update(struct cr_secret_watches *watches);

/* --- reading: any thread --- */

enum cr_secret_known {
    CR_SECRET_UNKNOWN, /* not known yet: policies that want it wait */
    CR_SECRET_HELD,
    CR_SECRET_ABSENT, /* a watch in sync that would have it does not have it */
};
enum cr_secret_known cr_secret_watches_known(struct cr_secret_watches *watches, const char *ns, const char *name);
/* Of the caller's own; NULL when none is held. */
struct cr_snapshot *cr_secret_watches_get(struct cr_secret_watches *watches, const char *ns, const char *name);
struct cr_packed *cr_secret_watches_get_packed(struct cr_secret_watches *watches, const char *ns, const char *name);
/* Each Secret of the namespace that is held, once. As cr_store_visit. */
void cr_secret_watches_visit(struct cr_secret_watches *watches, const char *ns, cr_store_visit_fn visit, void *arg);
/* Whether all that a selector (cr_selector_text) takes is held. */
bool cr_secret_watches_knows_selected(struct cr_secret_watches *watches, const char *ns, const char *selector);

/* True, with err: the API server forbids reading it (err says what to grant), and what is held of it may be old. */
bool cr_secret_watches_refused(struct cr_secret_watches *watches, const char *ns, const char *name,
                               struct cr_error *err) CR_MUST_USE;
bool cr_secret_watches_refused_selected(struct cr_secret_watches *watches, const char *ns, const char *selector,
                                        struct cr_error *err) CR_MUST_USE;

#endif
