#include "controllers/concern.h"

#include <string.h>

#include "base/strings.h"
#include "kube/object.h"
#include "rotation/discover.h"

static const struct cr_policy *policy_of(const struct cr_snapshot *snapshot)
{
    const char *problem = NULL;
    return snapshot ? cr_projected_policy(snapshot, &problem) : NULL;
}

static bool selects(const struct cr_policy *policy, const struct cr_snapshot *secret)
{
    return policy->secret_selector.len && secret &&
           cr_discover_selects(policy, cr_json_string_at(secret->json, "type"),
                               cr_json_at(secret->json, "metadata", "labels"));
}

bool cr_policy_remembers(const struct cr_snapshot *policy, const char *secret)
{
    const struct cr_json *entries = cr_json_at(policy->json, "status", "secrets");
    for (const struct cr_json *entry = cr_json_first(entries); entry; entry = cr_json_next(entry))
        if (cr_streq(cr_json_string_at(entry, "name"), secret))
            return true;
    return false;
}

bool cr_policy_takes(const struct cr_snapshot *policy, const char *name, const struct cr_snapshot *secret)
{
    const struct cr_policy *decoded = policy_of(policy);
    return decoded &&
           (cr_policy_secret_of(decoded, name) || selects(decoded, secret) || cr_policy_remembers(policy, name));
}

bool cr_concerns_secret(const struct cr_snapshot *policy, const char *name, const struct cr_snapshot *before,
                        const struct cr_snapshot *after)
{
    return cr_policy_takes(policy, name, before) || cr_policy_takes(policy, name, after);
}

bool cr_concerns_user(const struct cr_snapshot *policy, const char *kind, const char *name,
                      const struct cr_used_secret *used, size_t used_len)
{
    const struct cr_policy *decoded = policy_of(policy);
    if (!decoded || cr_policy_consumer_of(decoded, kind, name))
        return decoded != NULL;
    for (size_t i = 0; decoded->discover.enabled && i < used_len; i++)
        if (cr_policy_takes(policy, used[i].name, used[i].secret))
            return true;
    return false;
}

/* --- policies beside each other --- */

/* By name or memory: what a selector alone takes is in the status a moment later. */
static bool knows_secret_of(const struct cr_snapshot *policy, const struct cr_snapshot *other)
{
    const struct cr_policy *decoded = policy_of(other);
    for (size_t i = 0; decoded && i < decoded->secrets_len; i++)
        if (cr_policy_takes(policy, decoded->secrets[i].name, NULL))
            return true;
    const struct cr_json *entries = cr_json_at(other->json, "status", "secrets");
    for (const struct cr_json *entry = cr_json_first(entries); entry; entry = cr_json_next(entry))
        if (cr_policy_takes(policy, cr_json_string_at(entry, "name"), NULL))
            return true;
    return false;
}

/* A status that moves matters only to who waits for it: the plan of that one says so. */
static bool says_conflict(const struct cr_snapshot *policy)
{
    const struct cr_json *conditions = cr_json_at(policy->json, "status", "conditions");
    for (const struct cr_json *c = cr_json_first(conditions); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, "type"), "Conflict"))
            return cr_streq(cr_json_string_at(c, "status"), "True");
    return false;
}

static bool only_status_moved(const struct cr_snapshot *before, const struct cr_snapshot *after)
{
    return before && after && cr_obj_generation(before->json) == cr_obj_generation(after->json) &&
           cr_obj_deleting(before->json) == cr_obj_deleting(after->json);
}

bool cr_concerns_neighbour(const struct cr_snapshot *neighbour, const struct cr_snapshot *before,
                           const struct cr_snapshot *after)
{
    if (only_status_moved(before, after) && !says_conflict(neighbour))
        return false;
    return (before && knows_secret_of(neighbour, before)) || (after && knows_secret_of(neighbour, after));
}
