/* spec.consumers[].after: a consumer is restarted when those that it comes after have finished. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

static const struct plan_consumer *listed(const struct plan_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->consumers_len; i++)
        if (!ctx->consumers[i].spec->found && cr_streq(ctx->consumers[i].spec->name, name))
            return &ctx->consumers[i];
    return NULL;
}

/* All that is pending, whichever Secret it is about: an order is often one between Secrets. */
static bool has_finished(const struct plan_ctx *ctx, const struct plan_consumer *consumer)
{
    for (size_t k = 0; k < ctx->changes_len; k++)
        if (!cr_plan_has(ctx, consumer, k))
            return false;
    return true;
}

struct cr_gate cr_plan_order(struct plan_ctx *ctx, struct plan_consumer *consumer)
{
    const struct cr_strvec *after = &consumer->spec->after;
    for (size_t i = 0; i < after->len; i++) {
        const struct plan_consumer *before = listed(ctx, after->items[i]);
        if (!before)
            return cr_gate_make(CR_HOLD_ORDER_UNKNOWN,
                                "after: nobody can tell when %s has finished: it is of a kind that is not acted on",
                                after->items[i]);
        if (!has_finished(ctx, before))
            return cr_gate_make(CR_HOLD_ORDER, "after: waits for %s", after->items[i]);
    }
    return CR_GATE_OPEN;
}
