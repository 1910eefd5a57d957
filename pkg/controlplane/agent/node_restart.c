#include "controlplane/agent/node_restart_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

/* --- what may be done --- */

static bool is_allowed(const struct cr_node_allowed *allowed, const char *component)
{
    return allowed && allowed->components && cr_strvec_has(allowed->components, component);
}

/* Why it is not restarted; NULL: it may be. Static. */
static const char *refusal(const struct cr_node_program *program, const struct cr_node_allowed *allowed)
{
    if (!is_allowed(allowed, program->component))
        return "--allow-restart of the agent does not name it";
    if (cr_node_restart_is_kubelet(program))
        return allowed->kubelet_command && allowed->kubelet_command->len ? NULL
                                                                         : "the agent has no --kubelet-restart-command";
    return program->manifest ? NULL : "it has no manifest";
}

void cr_node_restart_way(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_allowed *allowed, struct cr_node_component *out)
{
    struct cr_node_port ports[CR_NODE_PORTS_MAX];
    const char *unasked = NULL;
    const char *why = refusal(program, allowed);
    (void)cr_node_ports(look, program, ports, &unasked);
    cr_strset(&out->restart, NULL);
    cr_strset(&out->restart_refused, NULL);
    if (why)
        out->restart_refused = cr_strdup(why);
    else if (unasked)
        out->restart_refused = cr_asprintf("nobody could tell whether it is well again: %s", unasked);
    else
        out->restart = cr_strdup(cr_node_restart_is_kubelet(program) ? "Command" : "Manifest");
}

bool cr_node_restart_is_kubelet(const struct cr_node_program *program)
{
    return !program->manifest && cr_streq(program->component, "kubelet");
}

bool cr_node_restart_begin(const struct cr_node_layout *layout, const struct cr_node_look *look,
                           const struct cr_node_program *program, const struct cr_node_act *act,
                           const struct cr_node_allowed *allowed, struct cr_error *err)
{
    const char *why = refusal(program, allowed);
    if (!cr_streq(act->component, program->component) || !act->token)
        return cr_error_set(err, CR_ERR_INTERNAL, "the order is about another component");
    if (why)
        return cr_error_set(err, CR_ERR_FORBIDDEN, "%s is not restarted: %s", program->component, why);
    return cr_node_restart_is_kubelet(program) ? cr_node_restart_kubelet(program, act, allowed, err)
                                               : cr_node_restart_manifest(layout, look, program, act->token, err);
}
