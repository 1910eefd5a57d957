/* The hosts for which Ingresses and Gateways of a namespace serve Secrets of a policy. The plan takes them as names in
 * use. Gathered from the cache, within limits, because an account that may write Ingresses makes work for the policies
 * of its own namespace. Private to pkg/policy/controller. */
#ifndef CR_POLICY_CONTROLLER_HOSTS_IN_USE_H
#define CR_POLICY_CONTROLLER_HOSTS_IN_USE_H

#include "cluster/cache.h"
#include "policy/rules/plan.h"

/* Limits for one policy: the Ingresses and Gateways that are opened (the oldest ones), and the hosts that are taken
 * from them, each of which is compared with the names of a leaf. As docs/limits.md says. */
enum { CR_HOST_OBJECTS_MAX = 512, CR_HOSTS_MAX = 1000 };

struct cr_secret_hosts {
    struct cr_world_host *items;
    size_t len;
};

struct cr_hosts_in_use {
    struct cr_secret_hosts *of; /* parallel to the policy's Secrets; NULL: hosts are not looked at */
    size_t objects_beyond;      /* Ingresses and Gateways that were not opened */
    bool hosts_beyond;          /* of those that were, not all hosts were taken */
    struct cr_strvec texts;     /* what the hosts borrow */
};

/* Gathers nothing where the cache does not look at hosts. policy: the effective one. */
void cr_hosts_in_use_gather(struct cr_cache *cache, const struct cr_policy *policy, struct cr_hosts_in_use *out);
void cr_hosts_in_use_dispose(struct cr_hosts_in_use *hosts, size_t secrets_len);

#endif
