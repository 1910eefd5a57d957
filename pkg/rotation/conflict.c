#include "rotation/conflict.h"

#include <string.h>

#include "base/strings.h"

bool cr_conflict_takes_part(const struct cr_policy *policy)
{
    return policy->mode == CR_MODE_ENFORCE && !policy->deleting;
}

static const struct cr_policy_secret *secret_named(const struct cr_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->secrets_len; i++)
        if (cr_streq(policy->secrets[i].name, name))
            return &policy->secrets[i];
    return NULL;
}

static bool has_consumer(const struct cr_policy *policy, const struct cr_policy_consumer *consumer)
{
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (cr_streq(policy->consumers[i].target, consumer->target) &&
            cr_streq(policy->consumers[i].kind, consumer->kind))
            return true;
    return false;
}

bool cr_conflict_covers(const struct cr_policy *policy, const char *secret, const struct cr_policy_consumer *consumer)
{
    return cr_conflict_takes_part(policy) && secret_named(policy, secret) && has_consumer(policy, consumer);
}

bool cr_conflict_same_keys(const struct cr_policy *policy, const struct cr_policy_secret *secret)
{
    const struct cr_policy_secret *its = secret_named(policy, secret->name);
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
        struct claim claim = {.policy = rivals[i], .secret = secret_named(rivals[i], secret->name)};
        if (!claim.secret || !cr_conflict_takes_part(rivals[i]) || !beats(&claim, &best) ||
            !has_consumer(rivals[i], consumer))
            continue;
        best = claim;
        owner = (int)i;
    }
    return owner;
}
