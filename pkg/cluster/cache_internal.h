/* Private to cache*.c. cache.c has the informers of whole resources, cache_secrets.c what is particular of Secrets,
 * cache_domains.c what only trust domains see. */
#ifndef CR_CLUSTER_CACHE_INTERNAL_H
#define CR_CLUSTER_CACHE_INTERNAL_H

#include "base/buffer.h"
#include "cluster/cache.h"
#include "cluster/domain_index.h"
#include "cluster/policy_index.h"
#include "cluster/secret_reader.h"
#include "cluster/secret_watches.h"

struct cache_informer;
struct cr_cache_domains;

struct cr_cache {
    struct cr_cache_options options;
    struct cr_secret_refs *refs;
    struct cr_secret_reader *reader;
    struct cr_client *client;
    struct cr_loop *loop;
    struct cr_policy_index *index;
    struct cr_domain_index *domain_index;
    struct cr_secret_watches *secrets;
    struct cache_informer *informers;
    size_t informers_len;
    struct cr_cache_domains *domains; /* NULL: trust domains are not watched */
};

void cr_cache_notify(struct cr_cache *cache, const struct cr_strvec *policies);

struct cr_secret_watches *cr_cache_watch_secrets(struct cr_cache *cache, struct cr_manager *manager,
                                                 struct cr_client *client, struct cr_loop *loop);
/* These do nothing unless trust domains are watched. */
void cr_cache_notify_domains_of_secret(struct cr_cache *cache, const char *ns, const char *name);
void cr_cache_notify_domains_of_policy(struct cr_cache *cache, const char *ns);
void cr_cache_domains_free(struct cr_cache_domains *domains);

/* Parts of cr_cache_waits, cr_cache_refused and cr_cache_unseen; the latter two add sentences. */
bool cr_cache_waits_for_secrets(struct cr_cache *cache, const struct cr_policy *policy,
                                const struct cr_policy_status *status);
void cr_cache_add_refused_secrets(struct cr_cache *cache, const struct cr_policy *policy,
                                  const struct cr_policy_status *status, struct cr_buf *text);
void cr_cache_add_unseen_secrets(const struct cr_cache *cache, const struct cr_policy *policy, struct cr_buf *text);

#endif
