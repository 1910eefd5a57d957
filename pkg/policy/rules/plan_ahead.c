/* Restarts before the record. A restart is one write together with its own memory, so it need not wait for another one:
 * what a crash in between leaves is found by its annotation. What is lost by that, and when it is not allowed, is in
 * docs/decisions.md, "Before it is on record". */
#include "policy/rules/plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* What is settled is on record, unless it is a first sight or what another policy remembers. */
static bool is_settled(const struct cr_policy_status *recorded, const char *secret)
{
    for (size_t i = 0; i < recorded->secrets_len; i++)
        if (cr_streq(recorded->secrets[i].name, secret))
            return recorded->secrets[i].has_settled;
    return false;
}

static bool may_precede(const struct cr_policy_status *recorded, const struct cr_plan_restart *restart)
{
    cr_autofree char *names = cr_strdup(restart->secrets);
    char *rest = names;
    for (char *name; (name = strsep(&rest, ","));)
        if (!is_settled(recorded, name))
            return false;
    return restart->carries_memory;
}

/* Its template shows one restart only; the one before would be forgotten with it. */
static bool overwrites_none(const struct cr_policy_status *recorded, const struct cr_plan *plan,
                            const struct cr_plan_restart *restart)
{
    return cr_plan_restarts_are_recorded(recorded, &plan->status.consumers[restart->consumer]);
}

void cr_plan_ahead(const struct cr_world *world, const struct cr_plan *first, struct cr_plan *out)
{
    struct cr_world as_if = *world;
    as_if.status = &first->status;
    cr_plan_make(&as_if, out);
    out->nudges_len = out->probes_len = out->evictions_len = 0;
    size_t kept = 0;
    for (size_t i = 0; i < out->restarts_len; i++) {
        if (may_precede(world->status, &out->restarts[i]) && overwrites_none(world->status, out, &out->restarts[i]))
            out->restarts[kept++] = out->restarts[i];
        else
            cr_plan_restart_dispose(&out->restarts[i]);
    }
    out->restarts_len = kept;
}
