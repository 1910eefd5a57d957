/* What belongs to a policy without being listed in it: Secrets by their labels, consumers by the Secrets that they use.
 * Pure: the policy as written and what is in its namespace, in; the effective policy, out. The plan runs on the
 * effective policy. */
#ifndef CR_WORKLOAD_DISCOVER_H
#define CR_WORKLOAD_DISCOVER_H

#include <stddef.h>
#include <stdint.h>

#include "api/policy.h"
#include "api/status.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"

/* --- what is in the namespace (all borrowed) --- */

struct cr_view_secret {
    const char *name;
    const char *type;
    const struct cr_json *labels;
    int64_t created_ms; /* wall, the API server's clock */
};

/* A workload, an Ingress or a Gateway. */
struct cr_view_user {
    const char *kind;
    const char *name;
    int64_t created_ms;
    const struct cr_strvec *secrets; /* cr_usage_of_object */
};

/* A pod of no workload that could be restarted, or one that its workload does not speak for. */
struct cr_view_pod {
    const char *name;
    int64_t created_ms;
    const struct cr_strvec *secrets;
    /* Its workload is not there, or its template has none of these Secrets: an older template had. */
    bool uncovered;
};

struct cr_view {
    const struct cr_view_secret *secrets;
    size_t secrets_len;
    const struct cr_view_user *users;
    size_t users_len;
    const struct cr_view_pod *pods;
    size_t pods_len;
};

/* --- the effective policy --- */

/* Pods that use one Secret, and that no consumer stands for. */
struct cr_other_pods {
    size_t pods;
    const char *oldest; /* borrowed from the expansion; NULL: there are none */
    int64_t created_ms; /* that one */
};

struct cr_expansion {
    /* Borrows from the policy that it was made of and from its own names; not for cr_policy_free. */
    struct cr_policy policy;
    /* How many belong to it; more than the policy has when a bound cut them off. */
    size_t secrets_wanted;
    size_t consumers_wanted;
    /* Parallel to the policy's secrets; all none without spec.discover.enabled. */
    struct cr_other_pods *unmanaged; /* of no workload */
    struct cr_other_pods *uncovered; /* cr_view_pod.uncovered */
    struct cr_strvec names;          /* of what was found */
};

/* Secrets: those that the policy names, then those that its selector matches, but for what other programs keep for
 * themselves (a table in discover.c). One that was selected before stays
 *   - while it does not exist, as long as a consumer uses it: deleted and created again it may hold other material;
 *   - when it does not match any more, until a change of it that is pending and usable is finished ("leaving"); also
 *     one that was missed and comes back without its label, with other material.
 * Consumers: those that the policy lists, with their settings, then with spec.discover.enabled all that use one of
 * these Secrets, by kind and name. A found one is called "deployment-web"; with a hash at the end where that would be
 * too long, not be a name, or be taken. Bounds: CR_POLICY_SECRETS_MAX and CR_POLICY_EFFECTIVE_MAX. What the status
 * knows comes before what it does not, older before younger, so that something new never pushes out what is under way.
 */
void cr_discover_expand(const struct cr_policy *policy, const struct cr_policy_status *status,
                        const struct cr_view *view, struct cr_expansion *out);
void cr_expansion_dispose(struct cr_expansion *expansion);
CR_DEFINE_DISPOSE(cr_expansion, struct cr_expansion, cr_expansion_dispose)

/* Whether what is in the namespace can say more about the policy than it says itself. */
bool cr_discover_needed(const struct cr_policy *policy, const struct cr_policy_status *status);
/* Whether the policy's selector takes a Secret with these labels and of this type. */
bool cr_discover_selects(const struct cr_policy *policy, const char *type, const struct cr_json *labels);

#endif
