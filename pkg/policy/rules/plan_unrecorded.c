/* Restarts that were done before their change was on record (cr_plan_ahead), while the record never came: the process
 * was killed, or what it wrote was refused. Their annotations show them. The Secret may hold something else by now,
 * also what was settled before; the pods that were made for the material in between must be known all the same. */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

static size_t index_of(const struct cr_policy *policy, const char *secret)
{
    size_t i = 0;
    while (i < policy->secrets_len && !cr_streq(policy->secrets[i].name, secret))
        i++;
    return i;
}

/* The Secret of one policy, with what is the same for all consumers. */
struct search {
    const struct cr_world *world;
    size_t index;                  /* of the Secret */
    char name[CR_ANNOTATION_NAME]; /* of its annotation */
};

static struct search search_for(const struct plan_ctx *ctx, const char *secret)
{
    struct search search = {.world = ctx->world, .index = index_of(ctx->world->policy, secret)};
    cr_restart_annotation_name(secret, search.name);
    return search;
}

/* What a workload that is this policy's says about the Secret; NULL: nothing. */
static const char *annotation_of(const struct search *search, size_t consumer)
{
    const struct cr_world_consumer *who = &search->world->consumers[consumer];
    if (who->others && who->others[search->index].policy)
        return NULL;
    return cr_restart_annotation_of(who->workload, search->name);
}

/* Newer than what is observed. And not newer than the Secret: then it is the cache that lags, or etcd was restored. */
static bool is_unrecorded(const char *value, enum cr_class class, const struct cr_secret_status *secret,
                          const struct cr_world_secret *now)
{
    return cr_restart_annotation_is_between(value, class, secret->observed_resource_version, now->resource_version);
}

/* Changes against these are known without it. */
static bool is_known(const char *value, enum cr_class class, const struct cr_secret_status *secret)
{
    return cr_restart_annotation_covers(value, &secret->settled, class) ||
           (secret->pending.set && cr_restart_annotation_covers(value, &secret->pending.target, class));
}

static const enum cr_class all_classes[] = {CR_CLASS_LEAF, CR_CLASS_TRUST, CR_CLASS_OPAQUE};

unsigned cr_plan_unrecorded(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_world_secret *now)
{
    const struct search search = search_for(ctx, secret->name);
    unsigned changes = 0;
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++) {
        const char *value = annotation_of(&search, i);
        for (size_t k = 0; value && k < cr_array_len(all_classes); k++)
            if (is_unrecorded(value, all_classes[k], secret, now) && !is_known(value, all_classes[k], secret))
                changes |= cr_plan_changes_since(value, now->material, all_classes[k]);
    }
    return changes;
}

/* And the Secret is still what it was then. */
static bool was_restarted_for(const char *value, const struct cr_secret_status *secret,
                              const struct cr_world_secret *now)
{
    for (size_t k = 0; value && k < cr_array_len(all_classes); k++)
        if (is_unrecorded(value, all_classes[k], secret, now) &&
            cr_restart_annotation_is_at(value, all_classes[k], now->resource_version) &&
            cr_restart_annotation_covers(value, now->material, all_classes[k]))
            return true;
    return false;
}

/* Pods that such a restart has brought came after the change, though it is seen only now. */
int64_t cr_plan_unrecorded_since_ms(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                                    const struct cr_world_secret *now)
{
    const struct search search = search_for(ctx, secret->name);
    int64_t since_ms = ctx->world->now_ms;
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++) {
        if (!was_restarted_for(annotation_of(&search, i), secret, now))
            continue;
        int64_t at_ms = cr_plan_restarted_at_ms(ctx->world->consumers[i].workload);
        if (at_ms && at_ms < since_ms)
            since_ms = at_ms;
    }
    return since_ms;
}
