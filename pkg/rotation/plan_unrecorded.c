/* Restarts that were done before their change was on record (plan_ahead.c), and whose record never came: the process
 * was killed, or what it wrote was refused. Their annotations tell. The Secret may hold something else by now, also
 * what was settled before; the pods that were made for the material in between must be known all the same. */
#include "rotation/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

/* What a workload that is this policy's says about the Secret; NULL: nothing. */
static const char *annotation_of(const struct cr_world *world, size_t consumer, const char *secret)
{
    const struct cr_world_consumer *who = &world->consumers[consumer];
    for (size_t i = 0; who->others && i < world->policy->secrets_len; i++)
        if (cr_streq(world->policy->secrets[i].name, secret) && who->others[i].policy)
            return NULL;
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, name);
    return cr_json_string_at(who->workload, "spec", "template", "metadata", "annotations", name);
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
    unsigned changes = 0;
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++) {
        const char *value = annotation_of(ctx->world, i, secret->name);
        for (size_t k = 0; value && k < cr_array_len(all_classes); k++)
            if (is_unrecorded(value, all_classes[k], secret, now) && !is_known(value, all_classes[k], secret))
                changes |= cr_plan_changes_since(value, now->material, all_classes[k]);
    }
    return changes;
}

static bool was_restarted_for(const char *value, const struct cr_secret_status *secret,
                              const struct cr_world_secret *now)
{
    for (size_t k = 0; value && k < cr_array_len(all_classes); k++)
        if (is_unrecorded(value, all_classes[k], secret, now) &&
            cr_restart_annotation_covers(value, now->material, all_classes[k]))
            return true;
    return false;
}

/* Pods that such a restart has brought came after the change, though it is seen only now. */
int64_t cr_plan_unrecorded_since_ms(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                                    const struct cr_world_secret *now)
{
    int64_t since_ms = ctx->world->now_ms;
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++) {
        if (!was_restarted_for(annotation_of(ctx->world, i, secret->name), secret, now))
            continue;
        const char *text = cr_json_string_at(ctx->world->consumers[i].workload, "spec", "template", "metadata",
                                             "annotations", "kubectl.kubernetes.io/restartedAt");
        int64_t at_ms = 0;
        if (text && cr_time_parse(text, &at_ms, NULL) && at_ms < since_ms)
            since_ms = at_ms;
    }
    return since_ms;
}
