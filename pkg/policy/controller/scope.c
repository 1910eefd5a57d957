#include "policy/controller/scope.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/project.h"
#include "policy/controller/namespace_snapshot.h"
#include "kube/object.h"
#include "policy/rules/conflict.h"

struct cr_rival {
    struct cr_snapshot *snapshot; /* keeps what the expansion borrows */
    struct cr_policy_status status;
    struct cr_expansion expansion;
};

/* --- the effective policy --- */

static const struct cr_view nothing;

/* Most policies name everything; then the namespace need not be read. */
static const struct cr_view *view_for(struct cr_cache *cache, const struct cr_policy *policy,
                                      const struct cr_policy_status *status, struct cr_scope *scope)
{
    if (!cr_discover_needed(policy, status))
        return &nothing;
    if (!scope->ns_snapshot)
        scope->ns_snapshot = cr_namespace_snapshot_new(cache, policy->ns);
    return cr_namespace_snapshot_view(scope->ns_snapshot);
}

static void expand(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                   struct cr_scope *scope, struct cr_expansion *out)
{
    cr_discover_expand(policy, status, view_for(cache, policy, status, scope), out);
}

/* --- other policies --- */

static void add_rival(struct cr_cache *cache, struct cr_snapshot *snapshot, const struct cr_policy *policy,
                      struct cr_scope *scope)
{
    scope->rivals = cr_reallocarray(scope->rivals, scope->rivals_len + 1, sizeof *scope->rivals);
    struct cr_rival *rival = &scope->rivals[scope->rivals_len++];
    *rival = (struct cr_rival){.snapshot = cr_snapshot_ref(snapshot)};
    cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &rival->status);
    expand(cache, policy, &rival->status, scope, &rival->expansion);
}

/* Adds the keys of the policies that take one of the Secrets, self among them. Labels matter only to selectors. */
static void find_sharers(struct cr_cache *cache, const struct cr_policy *self, struct cr_strvec *keys)
{
    struct cr_policy_index *index = cr_cache_policy_index(cache);
    bool selects = cr_policy_index_selects(index, self->ns);
    cr_autofree struct cr_used_secret *secrets = cr_calloc(self->secrets_len, sizeof *secrets);
    CR_CLEANUP(cr_snapshots)
    struct cr_snapshots kept = {.items = cr_calloc(self->secrets_len, sizeof(struct cr_snapshot *))};
    for (size_t i = 0; i < self->secrets_len; i++) {
        const char *name = self->secrets[i].name;
        struct cr_snapshot *secret = selects ? cr_cache_get(cache, CR_CACHED_SECRETS, self->ns, name) : NULL;
        kept.items[kept.len++] = secret;
        secrets[i] = (struct cr_used_secret){.name = name, .secret = secret ? secret->json : NULL};
    }
    cr_policy_index_of_secrets(index, self->ns, secrets, self->secrets_len, keys);
}

static void find_rivals(struct cr_cache *cache, struct cr_scope *scope)
{
    const struct cr_policy *self = &scope->expansion.policy;
    if (!cr_conflict_takes_part(self))
        return;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    find_sharers(cache, self, &keys);
    for (size_t i = 0; i < keys.len; i++) {
        const char *name = strchr(keys.items[i], '/') + 1;
        if (cr_streq(name, self->name))
            continue;
        const char *problem = NULL;
        CR_CLEANUP(cr_snapshot)
        struct cr_snapshot *snapshot = cr_cache_get(cache, CR_CACHED_POLICIES, self->ns, name);
        const struct cr_policy *policy = snapshot ? cr_cached_policy(snapshot, &problem) : NULL;
        if (policy && cr_conflict_takes_part(policy))
            add_rival(cache, snapshot, policy, scope);
    }
}

/* --- ownership of a Secret and workload pair --- */

/* A status with this many consumers no longer lists those that have converged. */
enum { LISTED_MAX = 100 };

static bool has_converged(const struct cr_policy_status *status, const struct cr_policy_consumer *consumer)
{
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *entry = &status->consumers[i];
        if (cr_streq(entry->target, consumer->target) && cr_streq(entry->kind, consumer->kind))
            return entry->state == CR_CONSUMER_IDLE || entry->state == CR_CONSUMER_CONVERGED;
    }
    return status->consumers_len >= LISTED_MAX;
}

static struct cr_world_other other_of(struct cr_rival *rival, const struct cr_policy_secret *secret,
                                      const struct cr_policy_consumer *consumer)
{
    return (struct cr_world_other){.policy = rival->expansion.policy.name,
                                   .memory = cr_status_secret(&rival->status, secret->name),
                                   .other_keys = !cr_conflict_same_keys(&rival->expansion.policy, secret),
                                   .converged = has_converged(&rival->status, consumer)};
}

/* A pair of ours: what the policy that loses it to us remembers; a policy in the middle of a change is preferred. */
static struct cr_world_other own_of(struct cr_scope *scope, const struct cr_policy *const *rivals,
                                    const struct cr_policy_secret *secret, const struct cr_policy_consumer *consumer)
{
    struct cr_world_other own = {0};
    for (size_t i = 0; i < scope->rivals_len; i++) {
        const struct cr_secret_status *memory = cr_status_secret(&scope->rivals[i].status, secret->name);
        if (memory && (!own.memory || memory->pending.set) && cr_conflict_same_keys(rivals[i], secret) &&
            cr_conflict_covers(rivals[i], secret->name, consumer))
            own.memory = memory;
    }
    return own;
}

/* NULL when no other policy covers any of the consumer's pairs. */
static struct cr_world_other *others_of(struct cr_scope *scope, const struct cr_policy *const *rivals,
                                        const struct cr_policy_consumer *consumer, const struct cr_strvec *uses)
{
    const struct cr_policy *self = &scope->expansion.policy;
    struct cr_world_other *others = NULL;
    for (size_t s = 0; s < self->secrets_len; s++) {
        if (!cr_strvec_has(uses, self->secrets[s].name))
            continue;
        int owner = cr_conflict_owner(self, rivals, scope->rivals_len, &self->secrets[s], consumer);
        struct cr_world_other other = owner == CR_CONFLICT_NONE
                                          ? own_of(scope, rivals, &self->secrets[s], consumer)
                                          : other_of(&scope->rivals[owner], &self->secrets[s], consumer);
        if (!other.policy && !other.memory)
            continue;
        if (!others)
            others = cr_calloc(self->secrets_len, sizeof *others);
        others[s] = other;
    }
    return others;
}

static void find_others(struct cr_cache *cache, struct cr_scope *scope)
{
    const struct cr_policy *self = &scope->expansion.policy;
    scope->others = cr_calloc(self->consumers_len, sizeof(struct cr_world_other *));
    if (!scope->rivals_len)
        return;
    cr_autofree const struct cr_policy **rivals = cr_calloc(scope->rivals_len, sizeof *rivals);
    for (size_t i = 0; i < scope->rivals_len; i++)
        rivals[i] = &scope->rivals[i].expansion.policy;
    for (size_t i = 0; i < self->consumers_len; i++) {
        const struct cr_policy_consumer *consumer = &self->consumers[i];
        CR_CLEANUP(cr_packed)
        struct cr_packed *user = cr_cache_workload_packed(cache, self->ns, consumer->kind, consumer->target);
        if (user)
            scope->others[i] = others_of(scope, rivals, consumer, cr_projected_uses(cr_packed_extra(user)));
    }
}

/* --- all of it --- */

void cr_scope_gather(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                     struct cr_scope *out)
{
    *out = (struct cr_scope){0};
    expand(cache, policy, status, out, &out->expansion);
    out->unseen = cr_cache_unseen(cache, policy);
    out->unseen_pods = cr_cache_pods_unseen(cache, policy, NULL);
    find_rivals(cache, out);
    find_others(cache, out);
}

struct cr_world_beyond cr_scope_beyond(const struct cr_scope *scope)
{
    const struct cr_expansion *expansion = &scope->expansion;
    return (struct cr_world_beyond){.secrets = expansion->secrets_wanted - expansion->policy.secrets_len,
                                    .consumers = expansion->consumers_wanted - expansion->policy.consumers_len,
                                    .unseen = scope->unseen,
                                    .unseen_pods = scope->unseen_pods};
}

void cr_scope_dispose(struct cr_scope *scope)
{
    for (size_t i = 0; scope->others && i < scope->expansion.policy.consumers_len; i++)
        free(scope->others[i]);
    free(scope->others);
    for (size_t i = 0; i < scope->rivals_len; i++) {
        cr_expansion_dispose(&scope->rivals[i].expansion);
        cr_policy_status_dispose(&scope->rivals[i].status);
        cr_snapshot_unref(scope->rivals[i].snapshot);
    }
    free(scope->rivals);
    cr_expansion_dispose(&scope->expansion);
    cr_namespace_snapshot_free(scope->ns_snapshot);
    free(scope->unseen);
    *scope = (struct cr_scope){0};
}
