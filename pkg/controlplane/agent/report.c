#include "controlplane/agent/report_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/pairs.h"
#include "controlplane/agent/processes.h"

/* The rows of a report: each file with what its process has of it. */

static const char not_seen[] = "it is not known while the program cannot be looked at";

/* --- one row --- */

static bool copy_prints(const struct cr_strvec *from, struct cr_strvec *to)
{
    for (size_t i = 0; i < from->len && i < CR_NODE_REPORT_PRINTS_MAX; i++)
        cr_strvec_add(to, from->items[i]);
    return from->len > CR_NODE_REPORT_PRINTS_MAX;
}

static void fill(const struct cr_node_parameter *parameter, const struct cr_node_content *content,
                 struct cr_node_file *out)
{
    const struct cr_node_material *material = &content->material;
    *out = (struct cr_node_file){
        .component = cr_strdup(parameter->component),
        .parameter = cr_strdup(parameter->parameter),
        .via = cr_strdup_or_null(parameter->via),
        .role = parameter->role,
        .place = cr_strdup(cr_node_place_name(parameter->place)),
        .path = cr_strdup_or_null(parameter->host),
        .alone = parameter->alone,
        .own = parameter->own,
        .signs_and_trusts = parameter->signs_and_trusts,
        .method = parameter->capability.method,
        .max_delay_ms = parameter->capability.max_delay_ms,
        .kind = material->kind,
        .problem = cr_strdup_or_null(material->problem),
        .not_after_ms = material->not_after_ms,
    };
    out->more = copy_prints(&material->prints, &out->prints);
    (void)copy_prints(&content->issuers, &out->issuers);
}

static bool same_row(const struct cr_node_file *a, const struct cr_node_file *b)
{
    return cr_streq(a->component, b->component) && cr_streq(a->parameter, b->parameter) && cr_streq(a->via, b->via) &&
           a->role == b->role && cr_streq(a->path, b->path);
}

/* The same file may be named twice by one flag. */
static const struct cr_node_file *row_before(const struct cr_node_reporting *in, const struct cr_node_file *row)
{
    size_t skip = 0;
    for (const struct cr_node_file *file = in->out->files; file < row; file++)
        skip += same_row(file, row);
    for (size_t i = 0; i < in->before->files_len; i++)
        if (same_row(&in->before->files[i], row) && skip-- == 0)
            return &in->before->files[i];
    return NULL;
}

/* --- which process it belongs to --- */

static bool same_program(const struct cr_node_parameter *a, const struct cr_node_parameter *b)
{
    return cr_streq(a->component, b->component) && cr_streq(a->pod, b->pod) && cr_streq(a->container, b->container);
}

/* Its index in look->programs; programs_len: what no process stays for. */
static size_t program_of(const struct cr_node_look *look, const struct cr_node_parameter *parameter)
{
    size_t i = 0;
    while (i < look->programs_len && !(cr_streq(look->programs[i].component, parameter->component) &&
                                       cr_streq(look->programs[i].pod, parameter->pod) &&
                                       cr_streq(look->programs[i].container, parameter->container)))
        i++;
    return i;
}

/* A kubeconfig that others name as what says it: they have its rows. */
static bool is_followed(const struct cr_node_look *look, const struct cr_node_parameter *parameter)
{
    for (size_t i = 0; i < look->parameters.len; i++)
        if (cr_streq(look->parameters.items[i].via, parameter->parameter) &&
            same_program(&look->parameters.items[i], parameter))
            return true;
    return false;
}

/* --- judging --- */

/* Nothing is remembered of a process that was not reported. */
static struct cr_node_memory memory_of(const struct cr_node_reporting *in, size_t program,
                                       const struct cr_node_file *row)
{
    struct cr_node_memory memory = {.row = row_before(in, row), .seen_ms = in->before->seen_ms, .same_process = true};
    if (memory.row && memory.row->kept)
        memory.seen_ms = 0; /* it was not looked at then */
    if (program == in->look->programs_len)
        return memory;
    const struct cr_node_component *now = &in->out->components[program];
    const struct cr_node_component *then = cr_node_report_component_before(in, now);
    memory.same_process = then && now->process && cr_streq(then->process, now->process);
    memory.later_process = then && cr_node_process_began_after(now->process, then->process);
    if (!then)
        memory.row = NULL;
    return memory;
}

static void judge(const struct cr_node_reporting *in, size_t i, struct cr_node_file *row)
{
    const struct cr_node_parameter *parameter = &in->look->parameters.items[i];
    size_t k = program_of(in->look, parameter);
    bool stays = k < in->look->programs_len;
    const struct cr_node_memory memory = memory_of(in, k, row);
    cr_node_loaded_judge(parameter, &in->look->contents[i], stays ? &in->look->programs[k] : NULL, &memory,
                         stays && in->proofs ? &in->proofs[k] : NULL, in->now_ms, row);
}

/* A key is read with its certificate, and fits it, or both rows say so: what is known of the one is of the other. */
static void judge_key(const struct cr_node_file *certificate, struct cr_node_file *key)
{
    key->changed_ms = certificate->changed_ms;
    key->loaded = certificate->loaded;
    key->has_known = certificate->has_known;
    key->due_ms = certificate->due_ms;
    key->evidence = certificate->evidence;
    cr_strset(&key->why, certificate->why);
}

static bool is_key(const struct cr_node_content *content)
{
    const struct cr_node_material *material = &content->material;
    return (material->kind == CR_NODE_FILE_LEAF || material->kind == CR_NODE_FILE_SIGNER) && !material->prints.len &&
           !material->problem;
}

/* Which row each parameter has: [parameters.len], CR_NODE_NO_PARTNER: none. */
static size_t *place_rows(const struct cr_node_reporting *in)
{
    const struct cr_node_look *look = in->look;
    size_t *places = cr_calloc(look->parameters.len + 1, sizeof *places);
    for (size_t i = 0; i < look->parameters.len; i++) {
        places[i] = CR_NODE_NO_PARTNER;
        if (is_followed(look, &look->parameters.items[i]))
            continue;
        places[i] = in->out->files_len;
        fill(&look->parameters.items[i], &look->contents[i], &in->out->files[in->out->files_len++]);
    }
    return places;
}

/* --- report.c --- */
static void node_report_rows(const struct cr_node_reporting *in)
{
    const struct cr_node_parameters *parameters = &in->look->parameters;
    struct cr_node_file *files = cr_calloc(parameters->len + 1, sizeof *files);
    in->out->files = files;
    cr_autofree size_t *places = place_rows(in);
    cr_autofree size_t *partners = cr_calloc(parameters->len + 1, sizeof *partners);
    cr_node_pairs_find(parameters, partners);
    for (size_t i = 0; i < parameters->len; i++)
        if (places[i] != CR_NODE_NO_PARTNER)
            judge(in, i, &files[places[i]]);
    for (size_t i = 0; i < parameters->len; i++) {
        size_t certificate = partners[i] == CR_NODE_NO_PARTNER ? CR_NODE_NO_PARTNER : places[partners[i]];
        if (places[i] != CR_NODE_NO_PARTNER && certificate != CR_NODE_NO_PARTNER && is_key(&in->look->contents[i]))
            judge_key(&files[certificate], &files[places[i]]);
    }
}

/* --- of a program that is away: a kubelet is known by its process alone --- */

static void keep(const struct cr_node_file *before, struct cr_node_file *out)
{
    *out = *before;
    out->component = cr_strdup(before->component);
    out->parameter = cr_strdup(before->parameter);
    out->via = cr_strdup_or_null(before->via);
    out->place = cr_strdup_or_null(before->place);
    out->path = cr_strdup_or_null(before->path);
    out->kept = true;
    out->problem = cr_strdup(not_seen);
    out->prints = out->issuers = out->has = (struct cr_strvec){0};
    cr_strvec_copy(&out->prints, &before->prints);
    cr_strvec_copy(&out->issuers, &before->issuers);
    out->has_known = false;
    out->loaded = CR_NODE_LOADED_UNKNOWN;
    out->evidence = CR_NODE_EVIDENCE_NONE;
    out->due_ms = 0;
    out->why = cr_strdup(not_seen);
}

/* The rows that a component had are kept, as not known. */
static void report_keep_rows(const struct cr_node_reporting *in, const char *component)
{
    struct cr_node_report *out = in->out;
    for (size_t i = 0; i < in->before->files_len; i++) {
        if (!cr_streq(in->before->files[i].component, component))
            continue;
        out->files = cr_reallocarray(out->files, out->files_len + 1, sizeof *out->files);
        keep(&in->before->files[i], &out->files[out->files_len++]);
    }
}

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
    node_report_rows(&in);
    if (!look->has_kubelet)
        report_keep_rows(&in, "kubelet");
    add_cas(look, out);
    cr_strvec_copy(&out->troubles, &look->parameters.troubles);
}
