#include "policy/controller/scope.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/project.h"
#include "policy/controller/namespace_snapshot.h"
#include "kube/object.h"
#include "policy/rules/conflict.h"

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

static void add_rival(struct cr_cache *cache, const struct cr_snapshot *snapshot, const struct cr_policy *policy,
                      struct cr_scope *scope)
{
    CR_CLEANUP(cr_policy_status) struct cr_policy_status status = {0};
    CR_CLEANUP(cr_expansion) struct cr_expansion expansion = {0};
    cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &status);
    expand(cache, policy, &status, scope, &expansion);
    cr_conflicts_add(scope->conflicts, &expansion.policy, &status);
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

/* One is opened at a time. */
static void add_rivals(struct cr_cache *cache, const struct cr_strvec *keys, struct cr_scope *scope)
{
    const struct cr_policy *self = &scope->expansion.policy;
    for (size_t i = 0; i < keys->len; i++) {
        const char *name = strchr(keys->items[i], '/') + 1;
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

/* What the consumers of a policy use, as the cache has it. */
struct users {
    struct cr_packed **items; /* owned references, which keep the rest; NULL: it does not exist */
    const struct cr_strvec **uses;
    size_t len;
};

static void users_dispose(struct users *users)
{
    for (size_t i = 0; i < users->len; i++)
        cr_packed_unref(users->items[i]);
    free(users->items);
    free(users->uses);
}

static struct users users_of(struct cr_cache *cache, const struct cr_policy *self)
{
    struct users users = {.items = cr_calloc(self->consumers_len, sizeof(struct cr_packed *)),
                          .uses = cr_calloc(self->consumers_len, sizeof(struct cr_strvec *)),
                          .len = self->consumers_len};
    for (size_t i = 0; i < users.len; i++) {
        const struct cr_policy_consumer *consumer = &self->consumers[i];
        users.items[i] = cr_cache_workload_packed(cache, self->ns, consumer->kind, consumer->target);
        users.uses[i] = users.items[i] ? cr_projected_uses(cr_packed_extra(users.items[i])) : NULL;
    }
    return users;
}

static void find_others(struct cr_cache *cache, struct cr_scope *scope)
{
    const struct cr_policy *self = &scope->expansion.policy;
    scope->others = cr_calloc(self->consumers_len, sizeof(struct cr_world_other *));
    if (!cr_conflict_takes_part(self))
        return;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    find_sharers(cache, self, &keys);
    __attribute__((cleanup(users_dispose))) struct users users = users_of(cache, self);
    scope->conflicts = cr_conflicts_new(self, users.uses);
    add_rivals(cache, &keys, scope);
    for (size_t i = 0; i < self->consumers_len; i++)
        scope->others[i] = cr_conflicts_of(scope->conflicts, i);
}

/* --- all of it --- */

void cr_scope_gather(struct cr_cache *cache, const struct cr_policy *policy, const struct cr_policy_status *status,
                     struct cr_scope *out)
{
    *out = (struct cr_scope){0};
    expand(cache, policy, status, out, &out->expansion);
    out->unseen = cr_cache_unseen(cache, policy);
    out->unseen_pods = cr_cache_pods_unseen(cache, policy, status, NULL);
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
    cr_conflicts_free(scope->conflicts);
    cr_expansion_dispose(&scope->expansion);
    cr_namespace_snapshot_free(scope->ns_snapshot);
    free(scope->unseen);
    *scope = (struct cr_scope){0};
}
