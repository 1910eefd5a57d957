/* Which policies an event concerns, and which Secrets all policies want. Both are looked up, without a check of each
 * policy. Whether an object belongs to a policy by its selector or by discovery is decided by the object before and
 * after the event, and by what the policy's status knows: an object that leaves the policy concerns it as well.
 * A namespace chooses how many labels its Secrets have, and how many policies select by them. Beyond a number of
 * comparisons, and for what was not looked at, an answer has all policies of the namespace that select: each sees for
 * itself that nothing has changed.
 * Thread-safe; the loop writes. */
#ifndef CR_CLUSTER_POLICY_INDEX_H
#define CR_CLUSTER_POLICY_INDEX_H

#include <stdbool.h>

#include "api/policy.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"

struct cr_policy_index;
struct cr_policy_index *cr_policy_index_new(void);
void cr_policy_index_free(struct cr_policy_index *index);
CR_DEFINE_CLEANUP(cr_policy_index, struct cr_policy_index, cr_policy_index_free)

/* The policy as it is now. object: with its status; policy: decoded from it, taken; NULL: it cannot be used, and takes
 * nothing. Adds the keys of the neighbours that this concerns: they share a Secret with the policy, as it was or as it
 * is, and may have gained what it lost, or lost what it gained. True: it wants other Secrets or consumers than before,
 * or uses another selector. */
bool cr_policy_index_put(struct cr_policy_index *index, const struct cr_json *object, struct cr_policy *policy,
                         struct cr_strvec *neighbours);
/* It is gone. */
void cr_policy_index_remove(struct cr_policy_index *index, const char *ns, const char *name,
                            struct cr_strvec *neighbours);

/* --- whom it concerns: each adds keys ("ns/name") of policies, none twice in one call --- */

/* A Secret, as far as selectors look at it: type and metadata.labels. NULL: it does not exist, or no policy has a
 * selector; or it was not looked at, since there are too many: then any selector may take it. */
struct cr_used_secret {
    const char *name;
    const struct cr_json *secret;
    bool unread;
};

/* Adds the policies that take the Secret: by name, by memory, or by their selector, as it was or as it is. */
void cr_policy_index_of_secret(struct cr_policy_index *index, const char *ns, const char *name,
                               const struct cr_json *before, const struct cr_json *after, struct cr_strvec *keys);
/* Which of the policies that take a Secret are affected when an object uses it: those that discover consumers, or all.
 */
enum cr_index_users { CR_INDEX_DISCOVERING, CR_INDEX_ALL };
/* Adds the policies that a workload, Ingress or Gateway belongs to: it is listed, or found by the Secrets that it uses.
 * used: of the object as it was and as it is. */
void cr_policy_index_of_user(struct cr_policy_index *index, const char *ns, const char *kind, const char *name,
                             const struct cr_used_secret *used, size_t used_len, enum cr_index_users who,
                             struct cr_strvec *keys);
/* Adds the policies that take any of these Secrets as they are. */
void cr_policy_index_of_secrets(struct cr_policy_index *index, const char *ns, const struct cr_used_secret *secrets,
                                size_t len, struct cr_strvec *keys);
/* Adds the policies of the namespace that wait for a PodDisruptionBudget, by their status. */
void cr_policy_index_of_budgets(struct cr_policy_index *index, const char *ns, struct cr_strvec *keys);
/* Whether a policy of the namespace has a selector, so that labels have to be known. */
bool cr_policy_index_selects(struct cr_policy_index *index, const char *ns);

/* --- what all of them want. visit is called under a lock: it does little and does not call the index. --- */

/* Each Secret that a policy names or remembers, once. */
void cr_policy_index_visit_secrets(struct cr_policy_index *index,
                                   void (*visit)(void *arg, const char *ns, const char *name), void *arg);
/* Each policy's selector, as a list's labelSelector ("app=shop,tier in (a,b)"); the same may come several times. */
void cr_policy_index_visit_selectors(struct cr_policy_index *index,
                                     void (*visit)(void *arg, const char *ns, const char *selector), void *arg);
/* Whether a policy names or remembers it. */
bool cr_policy_index_wants_secret(struct cr_policy_index *index, const char *ns, const char *name);

#endif
