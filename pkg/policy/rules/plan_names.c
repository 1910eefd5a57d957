/* Names that clients ask for, as far as the policy says them (verify.serverName), or an Ingress or a Gateway that it
 * has as a consumer (their hosts), and leaves that are not for them. Such a leaf is valid, and every client that
 * verifies names refuses it: rolled out, it is an outage that looks like success.
 *
 * Which leaf an endpoint shows is certain where it names the Secret, or where the workload uses no other that may have
 * a leaf. Else a Secret answers for a name only if its leaf was for that name before, and no other leaf of the workload
 * is.
 *
 * Names in use that are not written in the policy are the hosts for which Ingresses and Gateways of its namespace show
 * a Secret of it, where the operator looks at them (--hosts-in-use), be they consumers or not.
 *
 * A leaf that is not for such a host is held where the one that pods have is for it. Where that is not either, holding
 * would mend nothing, and would keep a renewal from clients that ask for other names: it is reported. So a user who may
 * write an Ingress can hold no leaf that takes no name away. */
#include "policy/rules/plan_internal.h"

#include <stdlib.h>

#include "api/missing_name.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "pki/leaf_names.h"
#include "catalogue/usage.h"

/* Shown in one sentence, and so many characters of each. */
enum { MISSING_SHOWN = 2, NAMES_SHOWN = 3, NAME_SHOWN = 64 };

/* --- names in use --- */

/* Of a Secret of the policy, by its name; SIZE_MAX: the policy has none of that name. */
static size_t index_of(const struct plan_ctx *ctx, const char *name)
{
    const struct cr_policy_secret *own = cr_policy_secret_of(ctx->world->policy, name);
    return own ? (size_t)(own - ctx->world->policy->secrets) : SIZE_MAX;
}

/* A Secret of the policy as it is now, by its name; borrowed. NULL: the policy has none of that name. */
static const struct cr_world_secret *world_secret(const struct plan_ctx *ctx, const char *name)
{
    size_t own = index_of(ctx, name);
    return own == SIZE_MAX ? NULL : &ctx->world->secrets[own];
}

static void add_own_leaves(const struct plan_ctx *ctx, const struct cr_json *pod_spec, struct plan_leaves *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_usage_secrets(pod_spec, &used);
    for (size_t i = 0; i < used.len; i++) {
        size_t own = index_of(ctx, used.items[i]);
        const struct cr_material *material = own == SIZE_MAX ? NULL : ctx->world->secrets[own].material;
        if (own == SIZE_MAX || (material && !material->has_leaf))
            continue;
        out->of_policy[own] = true;
        out->len++;
    }
}

/* As a file: a variable is a password far more often than a certificate. */
static void add_leaves_of_others(const struct plan_ctx *ctx, const struct cr_json *pod_spec, struct plan_leaves *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec mounted = {0};
    cr_usage_mounted(pod_spec, &mounted);
    for (size_t i = 0; i < mounted.len; i++)
        out->len += index_of(ctx, mounted.items[i]) == SIZE_MAX;
}

static void add_leaves(const struct plan_ctx *ctx, size_t consumer, struct plan_leaves *out)
{
    const struct cr_json *pod_spec = cr_json_at(ctx->world->consumers[consumer].workload, "spec", "template", "spec");
    out->of_policy = cr_calloc(ctx->world->policy->secrets_len, sizeof *out->of_policy);
    add_own_leaves(ctx, pod_spec, out);
    add_leaves_of_others(ctx, pod_spec, out);
}

static bool asks_for_names(const struct cr_policy_verify *verify)
{
    for (size_t i = 0; i < verify->endpoints_len; i++)
        if (verify->endpoints[i].server_name)
            return true;
    return false;
}

/* Owned: see leaves_for. */
static bool *search_leaves(const struct cr_world *world, const char *name)
{
    bool *out = cr_calloc(world->policy->secrets_len, sizeof *out);
    for (size_t i = 0; i < world->policy->secrets_len; i++)
        out[i] = world->secrets[i].material && cr_leaf_names_cover(&world->secrets[i].material->names, name);
    return out;
}

static void add_names(struct plan_ctx *ctx, const struct cr_policy_verify *verify)
{
    for (size_t i = 0; i < verify->endpoints_len; i++) {
        const char *name = verify->endpoints[i].server_name;
        if (name && !cr_strmap_get(ctx->leaves_for, name))
            cr_strmap_set(ctx->leaves_for, name, search_leaves(ctx->world, name));
    }
}

void cr_plan_names_make(struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    ctx->leaves_of = cr_calloc(policy->consumers_len, sizeof *ctx->leaves_of);
    ctx->leaves_for = cr_strmap_new(free);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        add_names(ctx, &policy->consumers[i].verify);
        if (ctx->world->consumers[i].found && asks_for_names(&policy->consumers[i].verify))
            add_leaves(ctx, i, &ctx->leaves_of[i]);
    }
}

void cr_plan_names_dispose(struct plan_ctx *ctx)
{
    for (size_t i = 0; ctx->leaves_of && i < ctx->world->policy->consumers_len; i++)
        free(ctx->leaves_of[i].of_policy);
    free(ctx->leaves_of);
    ctx->leaves_of = NULL;
    cr_strmap_free(ctx->leaves_for);
    ctx->leaves_for = NULL;
}

/* --- which leaf a name belongs to --- */

/* Whether a leaf that its consumers may have is for the name. */
static bool was_for(const struct cr_secret_status *secret, const char *name)
{
    return (secret->has_settled && cr_leaf_names_cover(&secret->settled.names, name)) ||
           (secret->pending.set && cr_leaf_names_cover(&secret->pending.target.names, name));
}

/* For a name that a consumer asks for; parallel to policy->secrets. Borrowed. */
static const bool *leaves_for(const struct plan_ctx *ctx, const char *name)
{
    return cr_strmap_get(ctx->leaves_for, name);
}

/* Some leaf that the consumer may show, as its Secret holds it now. but: leaves that Secret out; SIZE_MAX: none. */
static bool some_leaf_is_for(const struct plan_ctx *ctx, size_t consumer, size_t but, const char *name)
{
    const bool *shown = ctx->leaves_of[consumer].of_policy;
    const bool *is_for = leaves_for(ctx, name);
    for (size_t i = 0; shown && i < ctx->world->policy->secrets_len; i++)
        if (i != but && shown[i] && is_for[i])
            return true;
    return false;
}

static bool answers_for(const struct plan_ctx *ctx, size_t consumer, const struct cr_verify_endpoint *endpoint,
                        const struct cr_secret_status *secret)
{
    const struct plan_leaves *leaves = &ctx->leaves_of[consumer];
    size_t own = index_of(ctx, secret->name);
    if (endpoint->secret_name)
        return cr_streq(endpoint->secret_name, secret->name);
    if (own == SIZE_MAX || !leaves->of_policy || !leaves->of_policy[own])
        return false;
    return leaves->len == 1 ||
           (!some_leaf_is_for(ctx, consumer, own, endpoint->server_name) && was_for(secret, endpoint->server_name));
}

static bool is_missing(const struct plan_ctx *ctx, size_t consumer, const struct cr_verify_endpoint *endpoint,
                       const struct cr_secret_status *secret, const struct cr_material *leaf)
{
    return endpoint->server_name && answers_for(ctx, consumer, endpoint, secret) &&
           !cr_leaf_names_cover(&leaf->names, endpoint->server_name);
}

/* Whether the endpoint's name is one that a condition reports as checked. */
static bool has_its_name(const struct plan_ctx *ctx, size_t consumer, const struct cr_verify_endpoint *endpoint)
{
    if (!endpoint->server_name)
        return false;
    if (!endpoint->secret_name)
        return some_leaf_is_for(ctx, consumer, SIZE_MAX, endpoint->server_name);
    size_t own = index_of(ctx, endpoint->secret_name);
    return own != SIZE_MAX && leaves_for(ctx, endpoint->server_name)[own];
}

struct plan_names_checked cr_plan_names_checked(const struct plan_ctx *ctx)
{
    struct plan_names_checked out = {0};
    for (size_t i = 0; i < ctx->world->policy->consumers_len; i++) {
        const struct cr_policy_verify *verify = &ctx->world->policy->consumers[i].verify;
        out.endpoints += verify->endpoints_len;
        for (size_t e = 0; e < verify->endpoints_len; e++)
            out.names += has_its_name(ctx, i, &verify->endpoints[e]);
    }
    return out;
}

/* --- what becomes of a leaf without it --- */

/* An annotation that cannot be understood was meant to say something: it holds. */
enum cr_on_missing_name cr_plan_on_missing_name(const struct plan_ctx *ctx, const char *secret,
                                                enum cr_on_missing_name otherwise)
{
    const struct cr_world_secret *own = world_secret(ctx, secret);
    enum cr_on_missing_name value = CR_ON_MISSING_NAME_HOLD;
    if (!own || !own->on_missing_name)
        return otherwise;
    (void)cr_on_missing_name_parse(own->on_missing_name, &value);
    return value;
}

/* --- in words --- */

/* Adds a name to a sentence that shows the first few. before: how many names there are already; of: what asks for the
 * name. Returns how many there are now. */
static size_t add_name(struct cr_buf *text, size_t before, const char *name, const char *of)
{
    if (before < MISSING_SHOWN)
        cr_buf_printf(text, "%s%.*s (%s)", before ? ", " : "", NAME_SHOWN, name, of);
    return before + 1;
}

static void end_names(struct cr_buf *text, size_t count)
{
    if (count > MISSING_SHOWN)
        cr_buf_printf(text, " and %zu more", count - MISSING_SHOWN);
}

static void list_names(struct cr_buf *text, const struct cr_strvec *names)
{
    if (!names->len)
        cr_buf_puts(text, "no DNS name and no address");
    for (size_t i = 0; i < names->len && i < NAMES_SHOWN; i++)
        cr_buf_printf(text, "%s%.*s", i ? ", " : "", NAME_SHOWN, names->items[i]);
    if (names->len > NAMES_SHOWN)
        cr_buf_printf(text, " and %zu more", names->len - NAMES_SHOWN);
}

/* Adds the first ones of this consumer. Returns how many there are with those counted before. */
static size_t add_missing(const struct plan_ctx *ctx, size_t consumer, const struct cr_secret_status *secret,
                          const struct cr_material *leaf, size_t before, struct cr_buf *text)
{
    const struct cr_policy_consumer *spec = &ctx->world->policy->consumers[consumer];
    size_t count = before;
    for (size_t i = 0; i < spec->verify.endpoints_len; i++) {
        const struct cr_verify_endpoint *endpoint = &spec->verify.endpoints[i];
        if (!is_missing(ctx, consumer, endpoint, secret, leaf))
            continue;
        cr_autofree char *of = cr_asprintf("port %d of consumer %s", endpoint->port, spec->name);
        count = add_name(text, count, endpoint->server_name, of);
    }
    return count;
}

static bool is_reported(const struct plan_ctx *ctx, const char *secret)
{
    return cr_plan_on_missing_name(ctx, secret, CR_ON_MISSING_NAME_HOLD) == CR_ON_MISSING_NAME_REPORT;
}

static size_t add_host(struct cr_buf *text, size_t before, const struct cr_world_host *host)
{
    cr_autofree char *of = cr_asprintf("%s %s", host->kind, host->object);
    return add_name(text, before, host->host, of);
}

/* Adds the hosts of Ingresses and Gateways for which the leaf is held. */
static size_t add_held_hosts(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                             const struct cr_material *leaf, size_t before, struct cr_buf *text)
{
    const struct cr_world_secret *now = world_secret(ctx, secret->name);
    if (is_reported(ctx, secret->name))
        return before;
    size_t count = before;
    for (size_t i = 0; now && i < now->hosts_len; i++)
        if (!cr_leaf_names_cover(&leaf->names, now->hosts[i].host) && was_for(secret, now->hosts[i].host))
            count = add_host(text, count, &now->hosts[i]);
    return count;
}

char *cr_plan_missing_names(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_material *leaf)
{
    const struct cr_policy *policy = ctx->world->policy;
    CR_CLEANUP(cr_buf) struct cr_buf missing = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf names = CR_BUF_INIT(0);
    size_t count = 0;
    for (size_t i = 0; leaf->has_leaf && i < policy->consumers_len; i++)
        if (cr_plan_on_missing_name(ctx, secret->name, policy->consumers[i].verify.on_missing_name) ==
            CR_ON_MISSING_NAME_HOLD)
            count = add_missing(ctx, i, secret, leaf, count, &missing);
    bool of_policy = count > 0;
    if (leaf->has_leaf)
        count = add_held_hosts(ctx, secret, leaf, count, &missing);
    if (!count)
        return NULL;
    end_names(&missing, count);
    list_names(&names, &leaf->names);
    return cr_asprintf("the leaf is not for %s, which clients ask for; it is for %s. Pods go on with the one that they "
                       "have. Issue a leaf with that name, or correct %s; with %s it is rolled out all the same",
                       cr_buf_text(&missing), cr_buf_text(&names),
                       of_policy ? "verify.serverName" : "the Ingress or the Gateway",
                       of_policy ? "verify.onMissingName: Report, or the annotation " CR_MISSING_NAME_ANNOTATION
                                   ": Report on the Secret,"
                                 : "the annotation " CR_MISSING_NAME_ANNOTATION ": Report on the Secret");
}

/* The same of the hosts of an Ingress or a Gateway. */
static size_t add_missing_hosts(const struct plan_ctx *ctx, size_t consumer, const struct cr_secret_status *secret,
                                const struct cr_material *leaf, size_t before, struct cr_buf *text)
{
    const struct cr_policy_consumer *spec = &ctx->world->policy->consumers[consumer];
    CR_CLEANUP(cr_strvec) struct cr_strvec hosts = {0};
    size_t count = before;
    cr_usage_hosts(spec->kind, ctx->world->consumers[consumer].workload, secret->name, &hosts);
    for (size_t i = 0; i < hosts.len; i++) {
        if (cr_leaf_names_cover(&leaf->names, hosts.items[i]))
            continue;
        if (count < MISSING_SHOWN)
            cr_buf_printf(text, "%s%.*s", count ? ", " : "", NAME_SHOWN, hosts.items[i]);
        count++;
    }
    return count;
}

/* Why a leaf of this Secret is not held that is not for a name; NULL: it is. */
static const char *why_reported(const struct plan_ctx *ctx, const struct cr_policy_consumer *spec, const char *secret)
{
    if (cr_policy_kind_by_api(spec->kind))
        return "its controller serves what the Secret holds, so nothing can hold it";
    return cr_plan_on_missing_name(ctx, secret, spec->verify.on_missing_name) == CR_ON_MISSING_NAME_REPORT
               ? "it is rolled out all the same (onMissingName: Report)"
               : NULL;
}

char *cr_plan_reported_names(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    const struct cr_policy *policy = ctx->world->policy;
    const char *why = NULL;
    CR_CLEANUP(cr_buf) struct cr_buf missing = CR_BUF_INIT(0);
    CR_CLEANUP(cr_strvec) struct cr_strvec secrets = {0};
    size_t count = 0;
    for (size_t i = 0; i < policy->secrets_len; i++) {
        const struct cr_secret_status *secret = cr_status_secret(&ctx->plan->status, policy->secrets[i].name);
        const struct cr_material *leaf = ctx->world->secrets[i].material;
        const char *reported = why_reported(ctx, consumer->spec, secret->name);
        size_t before = count;
        if (reported && leaf && leaf->has_leaf)
            count = (cr_policy_kind_by_api(consumer->spec->kind) ? add_missing_hosts : add_missing)(
                ctx, (size_t)(consumer->spec - policy->consumers), secret, leaf, count, &missing);
        if (count > before && secrets.len < NAMES_SHOWN)
            cr_strvec_add(&secrets, secret->name);
        why = count > before ? reported : why;
    }
    if (!count)
        return NULL;
    end_names(&missing, count);
    cr_autofree char *of = cr_strvec_join(&secrets, ", ");
    return cr_asprintf("%s: the leaf of Secret %s is not for %s; %s", consumer->spec->name, of, cr_buf_text(&missing),
                       why);
}

char *cr_plan_lost_names(const struct cr_material *before, const struct cr_material *now)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec lost = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; now->has_leaf && i < before->names.len; i++)
        if (!cr_leaf_names_cover(&now->names, before->names.items[i]))
            cr_strvec_add(&lost, before->names.items[i]);
    if (!lost.len)
        return NULL;
    list_names(&text, &lost);
    return cr_asprintf("the new leaf is not for %s any more", cr_buf_text(&text));
}

/* --- hosts that hold nothing --- */

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

static bool add_unheld_hosts(const struct plan_ctx *ctx, size_t secret, struct cr_buf *text)
{
    const struct cr_world_secret *now = &ctx->world->secrets[secret];
    CR_CLEANUP(cr_buf) struct cr_buf missing = CR_BUF_INIT(0);
    size_t count = 0;
    for (size_t i = 0; now->material && now->material->has_leaf && i < now->hosts_len; i++)
        if (!cr_leaf_names_cover(&now->material->names, now->hosts[i].host) && !is_consumer(ctx, &now->hosts[i]))
            count = add_host(&missing, count, &now->hosts[i]);
    if (!count)
        return false;
    end_names(&missing, count);
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
        if (!secret->problem_reason && add_unheld_hosts(ctx, i, text) && !reason)
            reason = CR_PROBLEM_NAME_MISSING;
    }
    return add_what_is_too_many(ctx, text) && !reason ? "TooManyHosts" : reason;
}
