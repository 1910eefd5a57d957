#include "trust/controller/covering_policies.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "policy/controller/scope.h"
#include "kube/object.h"
#include "policy/rules/decide.h"

static void add(struct cr_cache *cache, const char *ns, const char *key, struct cr_covering_policies *out)
{
    const char *problem = NULL;
    struct cr_snapshot *snapshot = cr_cache_get(cache, CR_CACHED_POLICIES, ns, strchr(key, '/') + 1);
    const struct cr_policy *policy = snapshot ? cr_cached_policy(snapshot, &problem) : NULL;
    if (!policy) {
        cr_snapshot_unref(snapshot);
        return;
    }
    out->snapshots.items[out->snapshots.len++] = snapshot;
    cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &out->statuses[out->len]);
    out->items[out->len] = (struct cr_covering_policy){.policy = policy, .status = &out->statuses[out->len]};
    out->len++;
}

/* Labels are those in the cache: a policy that selects the Secret has brought it there. */
void cr_covering_policies_gather(struct cr_cache *cache, const char *ns, const char *secret,
                                 struct cr_covering_policies *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_cache_get(cache, CR_CACHED_SECRETS, ns, secret);
    cr_policy_index_of_secret(cr_cache_policy_index(cache), ns, secret, NULL, snapshot ? snapshot->json : NULL, &keys);
    size_t len = keys.len < CR_COVERING_POLICIES_MAX ? keys.len : CR_COVERING_POLICIES_MAX;
    *out = (struct cr_covering_policies){.items = cr_calloc(len, sizeof *out->items),
                                         .statuses = cr_calloc(len, sizeof *out->statuses),
                                         .snapshots = {.items = cr_calloc(len, sizeof(struct cr_snapshot *))},
                                         .too_many = keys.len > len};
    for (size_t i = 0; i < len; i++)
        add(cache, ns, keys.items[i], out);
}

void cr_covering_policies_dispose(struct cr_covering_policies *covering)
{
    for (size_t i = 0; i < covering->len; i++)
        cr_policy_status_dispose(&covering->statuses[i]);
    free(covering->items);
    free(covering->statuses);
    cr_snapshots_dispose(&covering->snapshots);
    *covering = (struct cr_covering_policies){0};
}

bool cr_covering_policies_await_trust(const struct cr_covering_policies *covering, const char *secret)
{
    const unsigned trust =
        CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED | CR_CHANGE_TRUST_RENEWED | CR_CHANGE_TRUST_REPLACED;
    for (size_t i = 0; i < covering->len; i++) {
        const struct cr_secret_status *known = cr_status_secret(&covering->statuses[i], secret);
        if (known && known->pending.set && (known->pending.changes & trust))
            return true;
    }
    return false;
}

/* --- keys that software does not take --- */

struct question {
    struct cr_cache *cache;
    const struct cr_catalogue *catalogue;
    const char *secret;
    const char *key_type;
    unsigned roles;
};

static char *refusal_of(const struct question *question, const struct cr_policy *policy,
                        const struct cr_policy_consumer *consumer, const struct cr_policy_secret *secret)
{
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *workload = cr_cache_workload(question->cache, policy->ns, consumer->kind, consumer->target);
    const struct cr_json *pod_spec = workload ? cr_json_at(workload->json, "spec", "template", "spec") : NULL;
    if (!pod_spec || cr_policy_kind_by_api(consumer->kind))
        return NULL;
    cr_autofree char *software =
        cr_decide_refuses_key(consumer, pod_spec, question->catalogue, secret, question->key_type, question->roles);
    return software
               ? cr_asprintf("%s %s of CertRotationPolicy %s/%s runs %s, which takes no leaf with a key of type %s",
                             consumer->kind, consumer->target, policy->ns, policy->name, software, question->key_type)
               : NULL;
}

/* Checks the effective policy, with the consumers that it has found. */
static char *refused_by(const struct question *question, const struct cr_covering_policy *covering)
{
    CR_CLEANUP(cr_scope) struct cr_scope scope = {0};
    cr_scope_gather(question->cache, covering->policy, covering->status, &scope);
    const struct cr_policy *policy = &scope.expansion.policy;
    const struct cr_policy_secret *secret = cr_policy_secret_of(policy, question->secret);
    char *refusal = NULL;
    for (size_t i = 0; secret && !refusal && i < policy->consumers_len; i++)
        refusal = refusal_of(question, policy, &policy->consumers[i], secret);
    return refusal;
}

char *cr_covering_policies_refuse_key(const struct cr_covering_policies *covering, struct cr_cache *cache,
                                      const struct cr_catalogue *catalogue, const char *secret, const char *key_type,
                                      unsigned roles)
{
    const struct question question = {
        .cache = cache, .catalogue = catalogue, .secret = secret, .key_type = key_type, .roles = roles};
    char *refusal = NULL;
    for (size_t i = 0; !refusal && i < covering->len; i++)
        refusal = refused_by(&question, &covering->items[i]);
    return refusal;
}
