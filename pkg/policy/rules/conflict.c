#include "policy/rules/conflict.h"

#include <string.h>

#include "base/strings.h"

bool cr_conflict_takes_part(const struct cr_policy *policy)
{
    return policy->mode == CR_MODE_ENFORCE && !policy->deleting;
}

static bool has_consumer(const struct cr_policy *policy, const struct cr_policy_consumer *consumer)
{
    return cr_policy_consumer_of(policy, consumer->kind, consumer->target) != NULL;
}

bool cr_conflict_covers(const struct cr_policy *policy, const char *secret, const struct cr_policy_consumer *consumer)
{
    return cr_conflict_takes_part(policy) && cr_policy_secret_of(policy, secret) && has_consumer(policy, consumer);
}

bool cr_conflict_same_keys(const struct cr_policy *policy, const struct cr_policy_secret *secret)
{
    const struct cr_policy_secret *its = cr_policy_secret_of(policy, secret->name);
    return its && cr_streq(its->certificate, secret->certificate) && cr_streq(its->private_key, secret->private_key) &&
           cr_streq(its->trust, secret->trust);
}

struct claim {
    const struct cr_policy *policy;
    const struct cr_policy_secret *secret;
};

static bool beats(const struct claim *a, const struct claim *b)
{
    if (a->secret->leaving != b->secret->leaving)
        return a->secret->leaving;
    if (a->policy->created_ms != b->policy->created_ms)
        return a->policy->created_ms < b->policy->created_ms;
    return strcmp(a->policy->name, b->policy->name) < 0;
}

int cr_conflict_owner(const struct cr_policy *self, const struct cr_policy *const *rivals, size_t rivals_len,
                      const struct cr_policy_secret *secret, const struct cr_policy_consumer *consumer)
{
    int owner = CR_CONFLICT_NONE;
    struct claim best = {.policy = self, .secret = secret};
    if (!cr_conflict_takes_part(self))
        return owner;
    for (size_t i = 0; i < rivals_len; i++) {
        struct claim claim = {.policy = rivals[i], .secret = cr_policy_secret_of(rivals[i], secret->name)};
        if (!claim.secret || !cr_conflict_takes_part(rivals[i]) || !beats(&claim, &best) ||
            !has_consumer(rivals[i], consumer))
            continue;
        best = claim;
        owner = (int)i;
    }
    return owner;
}
