#include "controlplane/rules/control_plane_plan.h"

#include "base/alloc.h"
#include "controlplane/rules/control_plane_internal.h"

static void init(struct cp_ctx *ctx, const struct cr_control_plane_world *world, struct cr_control_plane_plan *plan)
{
    *ctx = (struct cp_ctx){.world = world, .plan = plan};
    ctx->acts = world->policy->enforce && !world->policy->suspend;
    cr_control_plane_status_keep(&plan->status, world->status);
    plan->status.observed_generation = world->policy->generation;
}

static void dispose(struct cp_ctx *ctx)
{
    for (int pki = 0; pki < CP_PKIS; pki++) {
        free(ctx->authorities[pki].others[0]);
        free(ctx->authorities[pki].others[1]);
        free(ctx->authorities[pki].leaves);
    }
    for (size_t i = 0; i < ctx->candidates_len; i++)
        free(ctx->candidates[i].blocked);
    free(ctx->candidates);
    free(ctx->nodes);
    free(ctx->rows);
    free(ctx->signing_hold);
    free(ctx->immutable_example);
    free(ctx->hold);
    free(ctx->bad.why);
    free(ctx->missing);
    free(ctx->soon);
    cr_buf_dispose(&ctx->blocked.text);
    cr_buf_dispose(&ctx->degraded.text);
}

void cr_control_plane_plan(const struct cr_control_plane_world *world, struct cr_control_plane_plan *out)
{
    struct cp_ctx ctx;
    *out = (struct cr_control_plane_plan){0};
    init(&ctx, world, out);
    cr_cp_view(&ctx);
    cr_cp_readers(&ctx);
    cr_cp_authorities(&ctx);
    cr_cp_service_accounts(&ctx);
    cr_cp_followers(&ctx);
    cr_cp_candidates(&ctx);
    cr_cp_orders(&ctx);
    cr_cp_workloads(&ctx);
    cr_cp_counts(&ctx);
    cr_cp_troubles(&ctx);
    cr_cp_conditions(&ctx);
    dispose(&ctx);
}

void cr_control_plane_plan_dispose(struct cr_control_plane_plan *plan)
{
    if (!plan)
        return;
    cr_strvec_dispose(&plan->renew_tokens);
    cr_strvec_dispose(&plan->restart_workloads);
    cr_control_plane_status_dispose(&plan->status);
    *plan = (struct cr_control_plane_plan){0};
}
