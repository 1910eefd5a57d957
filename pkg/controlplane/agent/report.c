#include "controlplane/agent/report_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- what is taken over --- */

static void take_over_order(const struct cr_node_report *before, struct cr_node_report *out)
{
    out->node = cr_strdup_or_null(before->node);
    out->uid = cr_strdup_or_null(before->uid);
    out->resource_version = cr_strdup_or_null(before->resource_version);
    out->generation = before->generation;
    out->order.token = cr_strdup_or_null(before->order.token);
    out->order.component = cr_strdup_or_null(before->order.component);
    out->agent = cr_strdup_or_null(before->agent);
}

static void take_over_act(const struct cr_node_act *before, struct cr_node_act *out)
{
    *out = *before;
    out->token = cr_strdup_or_null(before->token);
    out->component = cr_strdup_or_null(before->component);
    out->message = cr_strdup_or_null(before->message);
    out->process = cr_strdup_or_null(before->process);
}

static void take_over_tokens(const struct cr_node_report *before, struct cr_node_report *out)
{
    out->tokens_known = before->tokens_known;
    out->tokens = cr_calloc(before->tokens_len + 1, sizeof *out->tokens);
    for (size_t i = 0; i < before->tokens_len; i++)
        out->tokens[out->tokens_len++] = (struct cr_node_token_count){.key = cr_strdup_or_null(before->tokens[i].key),
                                                                      .tokens = before->tokens[i].tokens};
}

/* --- components --- */

const struct cr_node_component *cr_node_report_component_before(const struct cr_node_reporting *in,
                                                                const struct cr_node_component *component)
{
    for (size_t i = 0; i < in->before->components_len; i++)
        if (cr_streq(in->before->components[i].name, component->name) &&
            cr_streq(in->before->components[i].pod, component->pod))
            return &in->before->components[i];
    return NULL;
}

/* The kubelet names the mirror pod so. */
static char *mirror_pod(const struct cr_node_reporting *in, const char *pod)
{
    return pod && in->out->node ? cr_asprintf("%s-%s", pod, in->out->node) : cr_strdup_or_null(pod);
}

static void set_health(const struct cr_node_reporting *in, enum cr_node_health health, const char *message,
                       struct cr_node_component *out)
{
    const struct cr_node_component *before = cr_node_report_component_before(in, out);
    out->health = health;
    out->health_message = *message ? cr_strdup(message) : NULL;
    out->health_ms = before && before->health == health && before->health_ms ? before->health_ms : in->now_ms;
}

static void add_component(const struct cr_node_reporting *in, const struct cr_node_allowed *allowed, size_t i)
{
    const struct cr_node_program *program = &in->look->programs[i];
    struct cr_node_component *out = &in->out->components[in->out->components_len++];
    *out = (struct cr_node_component){
        .name = cr_strdup(program->component),
        .version = cr_strdup_or_null(program->version),
        .pod = mirror_pod(in, program->pod),
        .running = program->running,
        .process = program->running ? cr_strdup_or_null(program->identity) : NULL,
        .started_ms = program->running ? program->started_ms : 0,
    };
    const struct cr_node_component *before = cr_node_report_component_before(in, out);
    if (before && before->process && before->started_ms && cr_streq(before->process, out->process))
        out->started_ms = before->started_ms;
    cr_node_restart_way(in->look, program, allowed, out);
    if (in->proofs)
        set_health(in, in->proofs[i].health, in->proofs[i].message, out);
    else
        set_health(in, CR_NODE_HEALTH_UNKNOWN, "it was not asked", out);
}

/* --- CAs --- */

static void add_cas(const struct cr_node_look *look, struct cr_node_report *out)
{
    size_t len = look->cas ? cr_ca_set_len(look->cas) : 0;
    out->cas = cr_calloc(CR_NODE_REPORT_CAS_MAX, sizeof *out->cas);
    for (size_t i = 0; i < len && out->cas_len < CR_NODE_REPORT_CAS_MAX; i++) {
        const struct cr_ca_facts *facts = cr_ca_set_facts(look->cas, i);
        struct cr_node_ca *ca = &out->cas[out->cas_len++];
        memcpy(ca->fingerprint, facts->fingerprint, sizeof ca->fingerprint);
        ca->subject = cr_strdup_or_null(facts->subject);
        ca->not_after_ms = facts->not_after_ms;
    }
}

void cr_node_report_make(const struct cr_node_look *look, const struct cr_node_proof *proofs,
                         const struct cr_node_allowed *allowed, const struct cr_node_report *before, int64_t now_ms,
                         struct cr_node_report *out)
{
    static const struct cr_node_report none = {0};
    const struct cr_node_reporting in = {
        .look = look, .proofs = proofs, .before = before ? before : &none, .now_ms = now_ms, .out = out};
    *out = (struct cr_node_report){.seen_ms = now_ms};
    take_over_order(in.before, out);
    take_over_act(&in.before->act, &out->act);
    take_over_tokens(in.before, out);
    out->components = cr_calloc(look->programs_len + 1, sizeof *out->components);
    for (size_t i = 0; i < look->programs_len; i++)
        add_component(&in, allowed, i);
    cr_node_report_rows(&in);
    if (!look->has_kubelet)
        cr_node_report_keep_rows(&in, "kubelet");
    add_cas(look, out);
    cr_strvec_copy(&out->troubles, &look->parameters.troubles);
}
