/* What trust domains see of the cluster, beside what policies see (cache.h): the domains themselves, namespaces, and
 * which domains an object concerns. Nothing waits for these kinds, and nothing is wrong without them: an older
 * installation has neither the CRDs nor the rights. They are no part of what `cr_cache_get` reads. */
#ifndef CR_CLUSTER_CACHE_DOMAINS_H
#define CR_CLUSTER_CACHE_DOMAINS_H

#include "api/domain_status.h"
#include "api/selector.h"
#include "cluster/cache.h"

struct cr_domain_listener {
    /* Called for each domain that an event affects, with its key "ns/name", or "/name" for the cluster kind. Loop
     * thread. */
    void (*on_domain)(void *arg, const char *key);
    void *arg;
};
/* TrustDomains are watched from now on, and ClusterTrustDomains where all namespaces are. Once, before the manager
 * runs. */
void cr_cache_watch_domains(struct cr_cache *cache, const struct cr_domain_listener *listener);

/* ns "": of the cluster kind. A snapshot, or a reference, of the caller's own; NULL: it is not there. Any thread. */
struct cr_snapshot *cr_cache_domain(struct cr_cache *cache, const char *ns, const char *name);
struct cr_packed *cr_cache_domain_packed(struct cr_cache *cache, const char *ns, const char *name);

/* Which stage of a domain's rotation this version of a Secret was published for, by the domain's status. */
struct cr_domain_step cr_cache_domain_step(struct cr_cache *cache, const char *ns, const char *secret,
                                           const char *version);

/* Secrets, by "ns/name", that the domain reads or writes: they are watched from now on, and the domain is notified of
 * changes to them and to the policies of their namespaces. Empty: the domain is gone. Any thread. */
void cr_cache_domain_wants(struct cr_cache *cache, const char *key, const struct cr_strvec *secrets);

/* Namespaces are watched from the moment that there is a ClusterTrustDomain. False: their first full state is still to
 * come (Transient; all domains of the cluster kind are notified when it is in), or may not be seen. Any thread, as what
 * is below. */
bool cr_cache_namespaces_known(struct cr_cache *cache, struct cr_error *err) CR_MUST_USE;
struct cr_snapshot *cr_cache_namespace(struct cr_cache *cache, const char *name);
/* Adds the names of the namespaces with matching labels, in alphabetical order. */
void cr_cache_select_namespaces(struct cr_cache *cache, const struct cr_selector *selector, struct cr_strvec *names);

#endif
