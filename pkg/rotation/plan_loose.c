/* Pods that use a Secret and belong to no workload: made by hand, or by a controller of a kind that is not known here.
 * Nobody restarts them and nobody asks them, so of one that came before the last change, or so soon after it that its
 * kubelet may have had the old Secret, nothing is known; "every consumer has it" would be wrong. */
#include "rotation/plan_internal.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

enum { LOOK_AGAIN_MS = 60 * 1000 }; /* its end is no event of the policy's */

/* When the last change of a Secret was seen that all consumers have by now; 0: none is on record. */
static int64_t changed_ms(const struct cr_policy_status *status, const char *secret)
{
    for (size_t i = 0; i < status->history_len; i++)
        if (cr_streq(status->history[i].secret, secret))
            return status->history[i].started_ms;
    return 0;
}

bool cr_plan_add_loose(struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; ctx->world->loose && i < ctx->world->policy->secrets_len; i++) {
        const struct cr_loose_pods *loose = &ctx->world->loose[i];
        const char *secret = ctx->world->policy->secrets[i].name;
        int64_t at_ms = loose->pods ? changed_ms(&ctx->plan->status, secret) : 0;
        if (!at_ms || loose->created_ms >= at_ms + CR_KUBELET_REFRESH_MS)
            continue;
        char when[CR_TIME_TEXT];
        cr_time_format(at_ms, when);
        cr_autofree char *others = loose->pods > 1 ? cr_asprintf(" (of %zu such pods the oldest)", loose->pods) : NULL;
        cr_buf_printf(text,
                      "%sPod %s%s uses Secret %s and belongs to no workload that certroll knows: it came before the "
                      "change of %s, or too soon after it, and may have what was there before. Restart it by hand.",
                      text->len ? " " : "", loose->oldest, cr_or_empty(others), secret, when);
        cr_plan_requeue(ctx->plan, LOOK_AGAIN_MS);
    }
    return text->len > before;
}
