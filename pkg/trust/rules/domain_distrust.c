/* CAs that spec.distrust lists: no reader may trust what a compromised key has signed. Such a CA is replaced at once,
 * as by any rotation, but it leaves every bundle as soon as what replaces it has arrived, whatever spec.retire and
 * retainPrevious say. What the domain cannot bring about itself (a leaf or bundle that it may not write, a source that
 * has no other leaf, a reader that is not known) holds that until spec.evidence.stageDeadline, and no longer. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- which CAs --- */

struct cr_domain_distrusted *cr_domain_distrusted_record(struct cr_domain_status *status, const char *fingerprint)
{
    for (size_t i = 0; i < status->distrusted_len; i++)
        if (strcmp(status->distrusted[i].fingerprint, fingerprint) == 0)
            return &status->distrusted[i];
    return NULL;
}

static void forget_unlisted(const struct cr_domain *domain, struct cr_domain_status *status)
{
    size_t kept = 0;
    for (size_t i = 0; i < status->distrusted_len; i++) {
        if (cr_domain_distrusts(domain, status->distrusted[i].fingerprint))
            status->distrusted[kept++] = status->distrusted[i];
        else
            free(status->distrusted[i].subject);
    }
    status->distrusted_len = kept;
}

/* The domain has published it, or would have. A status that was lost says nothing. */
static bool is_of_the_domain(const struct domain_ctx *ctx, size_t ca)
{
    const struct cr_domain_status *status = ctx->world->status;
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    bool known = !status->cas_len || ctx->world->cas[ca].in_source;
    for (size_t i = 0; i < status->cas_len; i++)
        known = known || strcmp(status->cas[i].fingerprint, ctx->world->cas[ca].fingerprint) == 0;
    return known || (authority->current != CR_DOMAIN_CA_ABSENT && authority->current_ca == ca) ||
           (authority->next != CR_DOMAIN_CA_ABSENT && authority->next_ca == ca);
}

/* It came back where it was gone: another program or a person has put it there. */
static bool is_back(const struct domain_ctx *ctx, size_t ca, const struct cr_domain_distrusted *record)
{
    if (!record->gone_ms)
        return false;
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (!cr_domain_is_foreign(&ctx->world->objects[i]) && cr_domain_has_ca(&ctx->world->objects[i], ca))
            return true;
    return false;
}

static void remember(struct domain_ctx *ctx, size_t ca)
{
    struct cr_domain_status *status = &ctx->plan->status;
    const struct cr_domain_ca *at_hand = &ctx->world->cas[ca];
    struct cr_domain_distrusted *record = cr_domain_distrusted_record(status, at_hand->fingerprint);
    bool back = record && is_back(ctx, ca, record);
    if (record ? !back : status->distrusted_len == CR_DOMAIN_DISTRUST_MAX)
        return;
    if (!record) {
        record = &status->distrusted[status->distrusted_len++];
        *record = (struct cr_domain_distrusted){.subject = cr_strdup_or_null(at_hand->subject)};
        memcpy(record->fingerprint, at_hand->fingerprint, sizeof record->fingerprint);
    }
    record->since_ms = ctx->world->now_ms;
    record->stray_ms = back || !is_of_the_domain(ctx, ca) ? ctx->world->now_ms : 0;
    record->gone_ms = 0;
    ctx->plan->record_first = true; /* policies hold nothing back for it once they read it */
    cr_domain_say(ctx, true, "Distrusting",
                  cr_asprintf("CA %s (%s) is distrusted: it is replaced, and then taken out of every bundle",
                              cr_or_empty(at_hand->subject), at_hand->fingerprint));
}

static bool is_stray(const struct domain_ctx *ctx, size_t ca)
{
    const struct cr_domain_distrusted *record =
        cr_domain_distrusted_record(&ctx->plan->status, ctx->world->cas[ca].fingerprint);
    return ctx->distrusted[ca] && record && record->stray_ms;
}

void cr_domain_plan_distrust(struct domain_ctx *ctx)
{
    const struct cr_domain_world *world = ctx->world;
    if (ctx->may_record)
        forget_unlisted(world->domain, &ctx->plan->status);
    for (size_t ca = 0; ca < world->cas_len; ca++) {
        ctx->distrusted[ca] = cr_domain_distrusts(world->domain, world->cas[ca].fingerprint);
        if (ctx->distrusted[ca] && ctx->may_record)
            remember(ctx, ca);
        ctx->stray[ca] = is_stray(ctx, ca);
    }
    ctx->overdue = cr_domain_distrust_is_overdue(world->domain, &ctx->plan->status, world->now_ms);
    int64_t since_ms = cr_domain_status_distrusts_since_ms(&ctx->plan->status);
    if (since_ms)
        cr_domain_requeue_at(ctx, since_ms + world->domain->evidence.stage_deadline_ms + 1);
}

bool cr_domain_distrust_is_overdue(const struct cr_domain *domain, const struct cr_domain_status *status,
                                   int64_t now_ms)
{
    int64_t since_ms = cr_domain_status_distrusts_since_ms(status);
    return since_ms && now_ms > since_ms + domain->evidence.stage_deadline_ms;
}

bool cr_domain_distrust_is_pending(const struct cr_domain *domain, const struct cr_domain_status *status)
{
    size_t gone = 0;
    for (size_t i = 0; i < status->distrusted_len; i++)
        gone += status->distrusted[i].gone_ms && cr_domain_distrusts(domain, status->distrusted[i].fingerprint);
    return gone < domain->distrust.len;
}

/* --- what verifies against them alone --- */

bool cr_domain_needs_distrusted(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf)
{
    bool needs = false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++) {
        if (!cr_domain_leaf_verifies(leaf, ca))
            continue;
        if (!ctx->distrusted[ca])
            return false;
        needs = true;
    }
    return needs;
}

/* A leaf that is in use, and is lost with them. */
bool cr_domain_is_lost(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    return cr_domain_keeps_cas(object) && object->published.not_after_ms > ctx->world->now_ms &&
           cr_domain_needs_distrusted(ctx, &object->published);
}

/* --- when they go --- */

bool cr_domain_publishes_distrusted(const struct domain_ctx *ctx)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->distrusted[ca] && ctx->anywhere[ca])
            return true;
    return false;
}

static bool is_any_current(const struct domain_ctx *ctx)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->current[ca])
            return true;
    return false;
}

static bool loses_leaf(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (cr_domain_is_lost(ctx, i))
            return true;
    return false;
}

static bool would_cut_off(const struct domain_ctx *ctx)
{
    cr_autofree bool *kept = cr_calloc(ctx->world->cas_len + 1, sizeof *kept);
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        kept[ca] = !ctx->distrusted[ca];
    return cr_domain_would_cut_off(ctx, kept);
}

bool cr_domain_drops_distrusted(const struct domain_ctx *ctx)
{
    bool is_under_way = ctx->waits || ctx->holds || ctx->switches || ctx->has_next;
    return cr_domain_publishes_distrusted(ctx) && is_any_current(ctx) && ctx->arrived && !is_under_way &&
           (ctx->overdue || (!loses_leaf(ctx) && !cr_domain_misses_any(ctx) && !would_cut_off(ctx)));
}

/* --- when no reader trusts them any more --- */

/* Else what is published there has none of them, and all that read it are known to have that. */
bool cr_domain_has_distrusted(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->distrusted[ca] && cr_domain_has_ca(object, ca))
            return true;
    if (object->unknown || cr_domain_is_foreign(object) || cr_domain_is_missed(ctx, at))
        return *ctx->plan->status.objects[at].trust != '\0';
    const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, at);
    return cr_domain_is_there(ctx, at) && !(evidence && cr_domain_has_trust(ctx, evidence));
}

static bool is_over(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (cr_domain_has_distrusted(ctx, i))
            return false;
    const struct cr_domain_authority_view *authority = &ctx->world->authority;
    bool issues = ctx->has_current && ctx->distrusted[authority->current_ca];
    return !issues && !ctx->plan->writes_len && !ctx->plan->stage_next_ca && !ctx->plan->first_ca;
}

static void finish(struct domain_ctx *ctx)
{
    struct cr_domain_status *status = &ctx->plan->status;
    for (size_t i = 0; i < status->distrusted_len; i++) {
        struct cr_domain_distrusted *record = &status->distrusted[i];
        if (record->gone_ms)
            continue;
        record->gone_ms = ctx->world->now_ms;
        record->stray_ms = 0;
        cr_domain_say(ctx, false, "Distrusted",
                      cr_asprintf("CA %s (%s) is in no bundle, and no consumer trusts it any more",
                                  cr_or_empty(record->subject), record->fingerprint));
    }
}

void cr_domain_plan_distrust_end(struct domain_ctx *ctx)
{
    if (ctx->may_record && is_over(ctx))
        finish(ctx);
}
