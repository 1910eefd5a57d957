/* Which entry of the status is which consumer's: it is the workload that is remembered, not its name in the policy. */
#include "policy/rules/plan_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

static bool is_of(const struct cr_consumer_status *known, const struct cr_policy_consumer *spec)
{
    return cr_streq(known->target, spec->target) && cr_streq(known->kind, spec->kind);
}

/* NULL: nothing is remembered of it. One without a target is known by its name. */
static struct cr_consumer_status *find(struct cr_policy_status *status, const struct cr_policy_consumer *spec)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (is_of(&status->consumers[i], spec))
            return &status->consumers[i];
    struct cr_consumer_status *named = cr_status_consumer(status, spec->name);
    return named && !named->target ? named : NULL;
}

void cr_plan_keep_consumers(const struct cr_policy *policy, struct cr_policy_status *status)
{
    static const struct cr_strvec none = {0};
    struct cr_consumer_status *kept = cr_calloc(policy->consumers_len + 1, sizeof *kept);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        const struct cr_policy_consumer *spec = &policy->consumers[i];
        struct cr_consumer_status *known = find(status, spec);
        if (known) {
            kept[i] = *known;
            *known = (struct cr_consumer_status){0};
        }
        cr_strset(&kept[i].name, spec->name);
        cr_strset(&kept[i].kind, spec->kind);
        cr_strset(&kept[i].target, spec->target);
        kept[i].found = spec->found;
    }
    cr_status_keep_consumers(status, &none);
    free(status->consumers);
    status->consumers = kept;
    status->consumers_len = policy->consumers_len;
}
