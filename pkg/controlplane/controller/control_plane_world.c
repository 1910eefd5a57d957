#include "controlplane/controller/control_plane_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/lease.h"

void cr_control_plane_gathered_dispose(struct cr_control_plane_gathered *gathered)
{
    free(gathered->nodes);
    free(gathered->root_cas);
    free(gathered->token_secrets);
    free(gathered->controller_manager_leader);
    free(gathered->scheduler_leader);
    cr_packed_list_dispose(&gathered->node_list);
    cr_packed_list_dispose(&gathered->reports);
    cr_packed_list_dispose(&gathered->namespaces);
    cr_packed_list_dispose(&gathered->root_ca_list);
    cr_packed_list_dispose(&gathered->secret_list);
    *gathered = (struct cr_control_plane_gathered){0};
}

/* --- what the watches have --- */

/* The report of a node that is gone belongs to no node. */
static void gather_nodes(struct cr_control_plane_gathered *out)
{
    out->nodes = cr_calloc(out->node_list.len + 1, sizeof *out->nodes);
    for (size_t i = 0; i < out->node_list.len; i++) {
        const char *name = out->node_list.items[i].name;
        const struct cr_kept_report *kept = cr_packed_extra(cr_packed_list_find(&out->reports, "", name));
        out->nodes[i] =
            (struct cr_control_plane_node){.name = name,
                                           .report = kept ? &kept->report : NULL,
                                           .control_plane = cr_packed_extra(out->node_list.items[i].packed) != NULL};
    }
    out->world.nodes = out->nodes;
    out->world.nodes_len = out->node_list.len;
}

static bool is_terminating(struct cr_packed *ns)
{
    return cr_packed_extra(ns) != NULL;
}

struct cr_control_plane_object cr_control_plane_object_of(const char *ns, const char *name,
                                                          const struct cr_kept_trust *kept, bool ns_terminating)
{
    static const struct cr_kept_trust none;
    const struct cr_kept_trust *from = kept ? kept : &none;
    return (struct cr_control_plane_object){.ns = ns,
                                            .name = name,
                                            .terminating = ns_terminating || from->deleting,
                                            .out_of_reach = from->immutable || from->unreadable,
                                            .prints = from->readable ? &from->prints : NULL,
                                            .key = from->key,
                                            .has_token = from->has_token};
}

static void gather_root_cas(struct cr_control_plane_gathered *out)
{
    out->root_cas = cr_calloc(out->namespaces.len + 1, sizeof *out->root_cas);
    for (size_t i = 0; i < out->namespaces.len; i++) {
        const struct cr_packed_item *ns = &out->namespaces.items[i];
        const struct cr_kept_trust *kept =
            cr_packed_extra(cr_packed_list_find(&out->root_ca_list, ns->name, CR_ROOT_CA_CONFIGMAP));
        out->root_cas[i] = cr_control_plane_object_of(ns->name, CR_ROOT_CA_CONFIGMAP, kept, is_terminating(ns->packed));
    }
    out->world.root_cas = out->root_cas;
    out->world.root_cas_len = out->namespaces.len;
}

static void gather_token_secrets(struct cr_control_plane_gathered *out)
{
    out->token_secrets = cr_calloc(out->secret_list.len + 1, sizeof *out->token_secrets);
    for (size_t i = 0; i < out->secret_list.len; i++) {
        const struct cr_packed_item *secret = &out->secret_list.items[i];
        const struct cr_kept_trust *kept = cr_packed_extra(secret->packed);
        out->token_secrets[i] = cr_control_plane_object_of(
            secret->ns, secret->name, kept, is_terminating(cr_packed_list_find(&out->namespaces, "", secret->ns)));
    }
    out->world.token_secrets = out->token_secrets;
    out->world.token_secrets_len = out->secret_list.len;
}

/* --- leaders --- */

const char *cr_control_plane_leader(const char *holder, const struct cr_packed_list *nodes)
{
    for (size_t i = 0; holder && i < nodes->len; i++) {
        size_t len = strlen(nodes->items[i].name);
        if (strncmp(holder, nodes->items[i].name, len) == 0 && holder[len] == '_')
            return nodes->items[i].name;
    }
    return NULL;
}

static bool of_control_plane(const char *component)
{
    return !cr_streq(component, "kubelet") && !cr_streq(component, "kube-proxy");
}

static bool waits_for_restart(const struct cr_node_report *report)
{
    for (size_t i = 0; report && i < report->files_len; i++)
        if (report->files[i].loaded == CR_NODE_LOADED_NO && of_control_plane(report->files[i].component))
            return true;
    return false;
}

static bool needs_leaders(const struct cr_control_plane_world *world)
{
    for (size_t i = 0; i < world->nodes_len; i++)
        if (waits_for_restart(world->nodes[i].report))
            return true;
    return false;
}

static bool find_leader(struct cr_client *client, const char *lease_name, const struct cr_packed_list *nodes,
                        char **leader, struct cr_error *err)
{
    const struct cr_lease_place place = {client, CR_CONTROL_PLANE_NAMESPACE, lease_name};
    CR_CLEANUP(cr_lease) struct cr_lease lease = {0};
    struct cr_error failed = {0};
    if (cr_lease_get(&place, &lease, &failed)) {
        *leader = cr_strdup_or_null(cr_control_plane_leader(lease.holder, nodes));
        return true;
    }
    if (failed.kind == CR_ERR_NOT_FOUND)
        return true;
    *err = failed;
    return cr_error_wrap(err, "Lease " CR_CONTROL_PLANE_NAMESPACE "/%s", lease_name);
}

static bool gather_leaders(struct cr_client *client, struct cr_control_plane_gathered *out, struct cr_error *err)
{
    if (!needs_leaders(&out->world))
        return true;
    bool found =
        find_leader(client, "kube-controller-manager", &out->node_list, &out->controller_manager_leader, err) &&
        find_leader(client, "kube-scheduler", &out->node_list, &out->scheduler_leader, err);
    out->world.controller_manager_leader = out->controller_manager_leader;
    out->world.scheduler_leader = out->scheduler_leader;
    return found;
}

bool cr_control_plane_gather(struct cr_control_plane_cache *cache, struct cr_client *client,
                             const struct cr_control_plane_policy *policy, const struct cr_control_plane_status *status,
                             int64_t now_ms, struct cr_control_plane_gathered *out, struct cr_error *err)
{
    *out = (struct cr_control_plane_gathered){.world = {.policy = policy, .status = status, .now_ms = now_ms}};
    cr_control_plane_cache_list(cache, CR_WATCH_NODES, &out->node_list);
    cr_control_plane_cache_list(cache, CR_WATCH_REPORTS, &out->reports);
    cr_control_plane_cache_list(cache, CR_WATCH_NAMESPACES, &out->namespaces);
    cr_control_plane_cache_list(cache, CR_WATCH_ROOT_CAS, &out->root_ca_list);
    cr_control_plane_cache_list(cache, CR_WATCH_TOKEN_SECRETS, &out->secret_list);
    gather_nodes(out);
    gather_root_cas(out);
    gather_token_secrets(out);
    return gather_leaders(client, out, err);
}
