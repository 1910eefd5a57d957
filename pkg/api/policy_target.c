#include "api/policy_target.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"

bool cr_policy_kind_by_api(const char *kind)
{
    return cr_consumer_kind_of(kind)->manner == CR_KIND_BY_API;
}

bool cr_policy_kind_runs_to_end(const char *kind)
{
    return cr_consumer_kind_of(kind)->manner == CR_KIND_RUNS_TO_END;
}

/* What is meant where no apiVersion is given. Owned. */
static char *usual_api_version(const char *kind)
{
    const struct cr_consumer_kind *row = cr_consumer_kind_of(kind);
    return *row->resource.kind ? cr_resource_api_version(&row->resource) : cr_strdup("apps/v1");
}

bool cr_policy_target_decode(const struct cr_node *consumer, struct cr_policy_consumer *out, bool *known,
                             struct cr_error *err)
{
    struct cr_node target;
    *known = false;
    if (!cr_node_object(consumer, "targetRef", &target, err))
        return false;
    if (!target.json)
        return cr_error_set(err, CR_ERR_INVALID, "%s.targetRef is required", consumer->path);
    if (!cr_node_required(&target, "kind", &out->kind, err))
        return false;
    cr_autofree char *usual = usual_api_version(out->kind);
    if (!cr_node_string(&target, "apiVersion", usual, &out->api_version, err) ||
        !cr_node_required(&target, "name", &out->target, err))
        return false;
    *known = cr_consumer_kind_find(out->api_version, out->kind) != NULL;
    return true;
}

/* How soon it takes a Secret up may be known better than by default; that it must be restarted cannot. */
static bool reloads_by_api(const struct cr_policy_consumer *consumer)
{
    for (size_t role = 0; role < CR_ROLE_COUNT; role++)
        if (consumer->reload[role].set && consumer->reload[role].method != CR_METHOD_API_WATCH)
            return false;
    return true;
}

static bool check_run(const struct cr_node *consumer, const struct cr_policy_consumer *decoded, struct cr_error *err)
{
    static const char *const idle[] = {"verify", "component", "reload"};
    for (size_t i = 0; i < cr_array_len(idle); i++)
        if (cr_node_has(consumer, idle[i]))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.%s: nothing is done for %s %s, whose next run has the new material; remove it",
                                consumer->path, idle[i], decoded->kind, decoded->target);
    return true;
}

static bool check_by_api(const struct cr_node *consumer, const struct cr_policy_consumer *decoded, struct cr_error *err)
{
    if (cr_node_has(consumer, "verify"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.verify: %s %s has no pods that could be asked; remove it",
                            consumer->path, decoded->kind, decoded->target);
    if (cr_node_has(consumer, "component"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.component: %s %s has no pods; remove it", consumer->path,
                            decoded->kind, decoded->target);
    return reloads_by_api(decoded) ||
           cr_error_set(
               err, CR_ERR_INVALID,
               "%s.reload: the controller of %s %s watches Secrets by the API: only method ApiWatch is allowed",
               consumer->path, decoded->kind, decoded->target);
}

bool cr_policy_target_check(const struct cr_node *consumer, const struct cr_policy_consumer *decoded,
                            struct cr_error *err)
{
    switch (cr_consumer_kind_of(decoded->kind)->manner) {
    case CR_KIND_BY_API:
        return check_by_api(consumer, decoded, err);
    case CR_KIND_RUNS_TO_END:
        return check_run(consumer, decoded, err);
    case CR_KIND_STAYS:
        break;
    }
    return true;
}
