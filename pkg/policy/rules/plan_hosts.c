/* Names in use that are not written in the policy: the hosts for which Ingresses and Gateways of its namespace show a
 * Secret of it, where the operator looks at them (--hosts-in-use), be they consumers or not.
 *
 * A leaf that is not for such a host is held where the one that pods have is for it. Where that is not either, holding
 * would mend nothing, and would keep a renewal from clients that ask for other names: it is reported. So a user who may
 * write an Ingress can hold no leaf that takes no name away. */
#include "policy/rules/plan_internal.h"

#include "api/missing_name.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "pki/leaf_names.h"

static bool is_reported(const struct plan_ctx *ctx, const char *secret)
{
    return cr_plan_on_missing_name(ctx, secret, CR_ON_MISSING_NAME_HOLD) == CR_ON_MISSING_NAME_REPORT;
}

static size_t add_host(struct cr_buf *text, size_t before, const struct cr_world_host *host)
{
    cr_autofree char *of = cr_asprintf("%s %s", host->kind, host->object);
    return cr_plan_add_name(text, before, host->host, of);
}

size_t cr_plan_add_held_hosts(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                              const struct cr_material *leaf, size_t before, struct cr_buf *text)
{
    const struct cr_world_secret *now = cr_plan_world_secret(ctx, secret->name);
    if (is_reported(ctx, secret->name))
        return before;
    size_t count = before;
    for (size_t i = 0; i < now->hosts_len; i++)
        if (!cr_leaf_names_cover(&leaf->names, now->hosts[i].host) && cr_plan_was_for(secret, now->hosts[i].host))
            count = add_host(text, count, &now->hosts[i]);
    return count;
}

/* --- what holds nothing --- */

static void add_line(struct cr_buf *text, char *line)
{
    cr_buf_printf(text, "%s%s", text->len ? "; " : "", line);
    free(line);
}

/* That one says so itself (cr_plan_reported_names). */
static bool is_consumer(const struct plan_ctx *ctx, const struct cr_world_host *host)
{
    const struct cr_policy *policy = ctx->world->policy;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].target, host->object) && cr_streq(policy->consumers[i].kind, host->kind))
            return true;
    return false;
}

static bool add_missing_hosts(const struct plan_ctx *ctx, size_t secret, struct cr_buf *text)
{
    const struct cr_world_secret *now = &ctx->world->secrets[secret];
    CR_CLEANUP(cr_buf) struct cr_buf missing = CR_BUF_INIT(0);
    size_t count = 0;
    for (size_t i = 0; now->material && now->material->has_leaf && i < now->hosts_len; i++)
        if (!cr_leaf_names_cover(&now->material->names, now->hosts[i].host) && !is_consumer(ctx, &now->hosts[i]))
            count = add_host(&missing, count, &now->hosts[i]);
    if (!count)
        return false;
    cr_plan_end_names(&missing, count);
    add_line(text, cr_asprintf("the leaf of Secret %s is not for %s; %s", ctx->world->policy->secrets[secret].name,
                               cr_buf_text(&missing),
                               is_reported(ctx, ctx->world->policy->secrets[secret].name)
                                   ? "it is rolled out all the same (annotation " CR_MISSING_NAME_ANNOTATION ": Report)"
                                   : "nothing is held, since pods have no leaf that is"));
    return true;
}

static bool add_unknown_word(const struct plan_ctx *ctx, size_t secret, struct cr_buf *text)
{
    enum cr_on_missing_name value = CR_ON_MISSING_NAME_HOLD;
    const char *said = ctx->world->secrets[secret].on_missing_name;
    if (!said || cr_on_missing_name_parse(said, &value))
        return false;
    add_line(text,
             cr_asprintf("Secret %s: its annotation " CR_MISSING_NAME_ANNOTATION " is neither Hold nor Report, but "
                         "'%s'; it counts as Hold",
                         ctx->world->policy->secrets[secret].name, said));
    return true;
}

static bool add_what_is_too_many(const struct plan_ctx *ctx, struct cr_buf *text)
{
    const struct cr_world_beyond *beyond = &ctx->world->beyond;
    if (beyond->host_objects)
        add_line(text, cr_asprintf("the hosts of %zu Ingresses and Gateways that name its Secrets, the youngest, are "
                                   "not looked at: they hold no leaf",
                                   beyond->host_objects));
    if (beyond->hosts)
        add_line(text, cr_strdup("the Ingresses and Gateways that name its Secrets have more hosts than are looked "
                                 "at: the rest hold no leaf"));
    return beyond->host_objects || beyond->hosts;
}

const char *cr_plan_add_host_warnings(const struct plan_ctx *ctx, struct cr_buf *text)
{
    const char *reason = NULL;
    for (size_t i = 0; i < ctx->world->policy->secrets_len; i++) {
        if (add_unknown_word(ctx, i, text) && !reason)
            reason = "UnknownAnnotation";
        /* What is held says which hosts it is held for. */
        const struct cr_secret_status *secret =
            cr_status_secret(&ctx->plan->status, ctx->world->policy->secrets[i].name);
        if (!secret->problem_reason && add_missing_hosts(ctx, i, text) && !reason)
            reason = CR_PROBLEM_NAME_MISSING;
    }
    return add_what_is_too_many(ctx, text) && !reason ? "TooManyHosts" : reason;
}
