/* Pods that use a Secret and belong to no workload: made by hand, or by a controller of a kind that is not known here.
 * They are neither restarted nor probed, so nothing is known of a pod that came before the last change, or so soon
 * after it that its kubelet may have had the old Secret; "every consumer has it" would be wrong. */
#include "policy/rules/plan_internal.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/rules/look_again.h"

enum { LOOK_AGAIN_MS = 60 * 1000 }; /* at first, beside the event of its end */

bool cr_plan_add_unmanaged(struct plan_ctx *ctx, struct cr_buf *text)
{
    size_t before = text->len;
    for (size_t i = 0; ctx->world->unmanaged && i < ctx->world->policy->secrets_len; i++) {
        const struct cr_unmanaged_pods *unmanaged = &ctx->world->unmanaged[i];
        const char *secret = ctx->world->policy->secrets[i].name;
        int64_t at_ms = unmanaged->pods ? cr_status_secret(&ctx->plan->status, secret)->changed_ms : 0;
        if (!at_ms || unmanaged->created_ms >= at_ms + CR_KUBELET_REFRESH_MS)
            continue;
        char when[CR_TIME_TEXT];
        cr_time_format(at_ms, when);
        cr_buf_printf(text,
                      "%sPod %s%s uses Secret %s and belongs to no workload that certroll knows: it came before the "
                      "change of %s, or too soon after it, and may have what was there before. Restart it by hand.",
                      text->len ? " " : "", unmanaged->oldest, unmanaged->pods > 1 ? ", the oldest of several," : "",
                      secret, when);
        cr_plan_requeue(ctx->plan, cr_look_again_ms(LOOK_AGAIN_MS, ctx->world->now_ms - at_ms));
    }
    return text->len > before;
}
