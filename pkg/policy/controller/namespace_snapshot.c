#include "policy/controller/namespace_snapshot.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/project.h"
#include "kube/object.h"

/* What was found; the store may drop its own. */
struct found {
    struct cr_strvec names;
    struct cr_packed **items; /* owned references */
};

struct cr_namespace_snapshot {
    struct found secrets_found;
    struct found users_found;
    struct found templates_found; /* of users that have none of their own */
    struct found pods_found;
    struct cr_strvec *pods_use; /* of each of these pods: what no consumer stands for; empty: nothing */
    struct cr_snapshots opened; /* the Secrets: their labels are read */
    struct cr_view_secret *secrets;
    struct cr_view_user *users;
    struct cr_view_pod *pods;
    struct cr_view view;
};

static void add_found(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct found *found = arg;
    (void)ns;
    found->items = cr_reallocarray(found->items, found->names.len + 1, sizeof(struct cr_packed *));
    found->items[found->names.len] = cr_packed_ref(packed);
    cr_strvec_add(&found->names, name);
}

/* Takes only objects that use a Secret, or may use one by another object's template. */
static void add_user(void *found, const char *ns, const char *name, struct cr_packed *packed)
{
    const void *extra = cr_packed_extra(packed);
    if (cr_projected_uses(extra)->len || cr_projected_template_of(extra))
        add_found(found, ns, name, packed);
}

static void add_pod(void *found, const char *ns, const char *name, struct cr_packed *packed)
{
    if (cr_projected_pod_uses(cr_packed_extra(packed)))
        add_found(found, ns, name, packed);
}

static void found_dispose(struct found *found)
{
    for (size_t i = 0; i < found->names.len; i++)
        cr_packed_unref(found->items[i]);
    free(found->items);
    cr_strvec_dispose(&found->names);
}

static void add_secrets(struct cr_namespace_snapshot *ns_snapshot, struct cr_cache *cache, const char *ns)
{
    struct found *found = &ns_snapshot->secrets_found;
    cr_cache_visit(cache, CR_CACHED_SECRETS, ns, add_found, found);
    ns_snapshot->secrets = cr_calloc(found->names.len, sizeof *ns_snapshot->secrets);
    ns_snapshot->opened.items = cr_calloc(found->names.len, sizeof(struct cr_snapshot *));
    for (size_t i = 0; i < found->names.len; i++) {
        struct cr_snapshot *snapshot = cr_packed_open(found->items[i]);
        ns_snapshot->opened.items[ns_snapshot->opened.len++] = snapshot;
        ns_snapshot->secrets[i] = (struct cr_view_secret){.name = found->names.items[i],
                                                          .type = cr_json_string_at(snapshot->json, "type"),
                                                          .labels = cr_json_at(snapshot->json, "metadata", "labels"),
                                                          .created_ms = cr_obj_created_ms(snapshot->json)};
    }
    ns_snapshot->view.secrets = ns_snapshot->secrets;
    ns_snapshot->view.secrets_len = found->names.len;
}

static void add_users(struct cr_namespace_snapshot *ns_snapshot, struct cr_cache *cache,
                      const struct cr_consumer_kind *kind, const char *ns)
{
    struct found *found = &ns_snapshot->users_found;
    cr_cache_visit_kind(cache, kind, ns, add_user, found);
    ns_snapshot->users = cr_reallocarray(ns_snapshot->users, found->names.len, sizeof *ns_snapshot->users);
    for (size_t i = ns_snapshot->view.users_len; i < found->names.len; i++) {
        const void *extra = cr_packed_extra(found->items[i]);
        CR_CLEANUP(cr_packed) struct cr_packed *template = cr_cache_template_of(cache, ns, extra);
        if (template)
            add_found(&ns_snapshot->templates_found, ns, found->names.items[i], template);
        ns_snapshot->users[i] =
            (struct cr_view_user){.kind = kind->resource.kind,
                                  .name = found->names.items[i],
                                  .created_ms = cr_projected_created_ms(extra),
                                  .secrets = cr_projected_uses(template ? cr_packed_extra(template) : extra)};
    }
    ns_snapshot->view.users_len = found->names.len;
    ns_snapshot->view.users = ns_snapshot->users;
}

/* What the pod uses and the template of its workload does not; without a workload all of it. */
static void find_uncovered(struct cr_cache *cache, const char *ns, const struct cr_strvec *uses,
                           const struct cr_packed *workload, struct cr_strvec *out)
{
    const void *extra = cr_packed_extra(workload);
    CR_CLEANUP(cr_packed) struct cr_packed *other = workload ? cr_cache_template_of(cache, ns, extra) : NULL;
    const struct cr_strvec *template = workload ? cr_projected_uses(other ? cr_packed_extra(other) : extra) : NULL;
    for (size_t i = 0; i < uses->len; i++)
        if (!template || !cr_strvec_has(template, uses->items[i]))
            cr_strvec_add(out, uses->items[i]);
}

/* unreachable: kinds of workloads that cannot be known; their pods are as if they belonged to nothing. */
static struct cr_view_pod view_pod(struct cr_namespace_snapshot *ns_snapshot, struct cr_cache *cache, const char *ns,
                                   size_t i, const struct cr_strvec *unreachable)
{
    const void *extra = cr_packed_extra(ns_snapshot->pods_found.items[i]);
    const char *kind = NULL;
    const char *name = NULL;
    struct cr_view_pod pod = {.name = ns_snapshot->pods_found.names.items[i],
                              .created_ms = cr_projected_pod_created_ms(extra),
                              .secrets = cr_projected_pod_uses(extra),
                              .uncovered = cr_projected_pod_is_left(extra)};
    if (!cr_projected_owner(extra, &kind, &name) || cr_strvec_has(unreachable, kind))
        return pod;
    CR_CLEANUP(cr_packed) struct cr_packed *workload = cr_cache_workload_packed(cache, ns, kind, name);
    find_uncovered(cache, ns, pod.secrets, workload, &ns_snapshot->pods_use[i]);
    pod.secrets = &ns_snapshot->pods_use[i];
    pod.uncovered = true;
    return pod;
}

static void add_pods(struct cr_namespace_snapshot *ns_snapshot, struct cr_cache *cache, const char *ns)
{
    const struct found *found = &ns_snapshot->pods_found;
    CR_CLEANUP(cr_strvec) struct cr_strvec unreachable = {0};
    cr_cache_kinds_unreachable(cache, ns, &unreachable);
    cr_cache_visit(cache, CR_CACHED_PODS, ns, add_pod, &ns_snapshot->pods_found);
    ns_snapshot->pods = cr_calloc(found->names.len, sizeof *ns_snapshot->pods);
    ns_snapshot->pods_use = cr_calloc(found->names.len, sizeof *ns_snapshot->pods_use);
    for (size_t i = 0; i < found->names.len; i++) {
        struct cr_view_pod pod = view_pod(ns_snapshot, cache, ns, i, &unreachable);
        if (pod.secrets->len)
            ns_snapshot->pods[ns_snapshot->view.pods_len++] = pod;
    }
    ns_snapshot->view.pods = ns_snapshot->pods;
}

struct cr_namespace_snapshot *cr_namespace_snapshot_new(struct cr_cache *cache, const char *ns)
{
    struct cr_namespace_snapshot *ns_snapshot = cr_new(struct cr_namespace_snapshot);
    add_secrets(ns_snapshot, cache, ns);
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kind_is_watched(&cr_consumer_kinds[i]))
            add_users(ns_snapshot, cache, &cr_consumer_kinds[i], ns);
    add_pods(ns_snapshot, cache, ns);
    return ns_snapshot;
}

void cr_namespace_snapshot_free(struct cr_namespace_snapshot *ns_snapshot)
{
    if (!ns_snapshot)
        return;
    for (size_t i = 0; i < ns_snapshot->pods_found.names.len; i++)
        cr_strvec_dispose(&ns_snapshot->pods_use[i]);
    free(ns_snapshot->pods_use);
    cr_snapshots_dispose(&ns_snapshot->opened);
    found_dispose(&ns_snapshot->secrets_found);
    found_dispose(&ns_snapshot->users_found);
    found_dispose(&ns_snapshot->templates_found);
    found_dispose(&ns_snapshot->pods_found);
    free(ns_snapshot->secrets);
    free(ns_snapshot->users);
    free(ns_snapshot->pods);
    free(ns_snapshot);
}

const struct cr_view *cr_namespace_snapshot_view(const struct cr_namespace_snapshot *ns_snapshot)
{
    return &ns_snapshot->view;
}
