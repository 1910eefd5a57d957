#include "policy/rules/decide_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

void cr_decision_dispose(struct cr_decision *decision)
{
    free(decision->reason);
    free(decision->component);
    free(decision->not_accepted);
    free(decision->secrets);
    *decision = (struct cr_decision){0};
}

enum cr_class cr_class_of(const struct cr_policy_secret *secret, const char *key, enum cr_role role)
{
    if (key[0]) {
        if (cr_streq(key, secret->certificate) || cr_streq(key, secret->private_key))
            return CR_CLASS_LEAF;
        return cr_streq(key, secret->trust) ? CR_CLASS_TRUST : CR_CLASS_OPAQUE;
    }
    switch (role) {
    case CR_ROLE_SERVER_LEAF:
    case CR_ROLE_CLIENT_LEAF:
        return CR_CLASS_LEAF;
    case CR_ROLE_CLIENT_CA:
    case CR_ROLE_SERVER_CA:
        return CR_CLASS_TRUST;
    case CR_ROLE_OPAQUE:
    case CR_ROLE_COUNT:
        break;
    }
    return CR_CLASS_OPAQUE;
}

/* --- which software a container runs --- */

const struct cr_json *cr_container_named(const struct cr_json *pod_spec, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(pod_spec, lists[i]);
        for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c))
            if (cr_streq(cr_json_string_at(c, "name"), name))
                return c;
    }
    return NULL;
}

/* What is asked of one Secret in one pod. */
struct question {
    const struct cr_decide_input *input;
    size_t secret; /* index into the input's changes */
    const struct cr_sidecar_container *sidecar;
    unsigned passed_on; /* by the sidecar: CR_CLASS_* */
};

/* Whether another container of the pod may be the one that the policy names. */
static bool another_fits(const struct question *q, const struct cr_component *given, const char *container)
{
    const struct cr_decide_input *input = q->input;
    const struct cr_json *list = cr_json_get(input->pod_spec, "containers");
    for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c)) {
        const char *name = cr_json_string_at(c, "name");
        if (cr_streq(name, container) || (name && cr_streq(name, q->sidecar->container)))
            continue;
        const struct cr_component *seen = cr_catalogue_by_image(input->catalogue, cr_json_string_at(c, "image"));
        if (!seen || seen == given)
            return true;
    }
    return false;
}

/* The policy names one component for the whole pod. A container with an image that is known to be something else keeps
 * its own entry (a mesh's proxy beside the program), unless no other container could be meant. */
static const struct cr_component *component_of(const struct question *q, const struct cr_usage *usage)
{
    const struct cr_decide_input *input = q->input;
    if (cr_streq(usage->container, q->sidecar->container))
        return cr_catalogue_by_name(input->catalogue, CR_SIDECAR_COMPONENT);
    const struct cr_component *seen = cr_catalogue_by_image(input->catalogue, usage->image);
    if (!input->consumer->component)
        return seen;
    const struct cr_component *given = cr_catalogue_by_name(input->catalogue, input->consumer->component);
    if (seen && seen != given && another_fits(q, given, usage->container))
        return seen;
    return given;
}

/* The version that the policy names is that of the component that it names. */
static struct cr_program program_of(const struct cr_decide_input *input, const struct cr_component *component,
                                    const struct cr_json *container)
{
    const char *given = input->consumer->component;
    bool named = component && cr_catalogue_by_name(input->catalogue, given) == component;
    return (struct cr_program){.component = component,
                               .pod_spec = input->pod_spec,
                               .container = container,
                               .version = named ? cr_component_version(given) : NULL};
}

/* --- findings --- */

static enum cr_ground ground_of(const struct question *q, const struct cr_finding *finding)
{
    if (!cr_usage_refreshes(finding->usage->kind) || finding->is_immutable)
        return CR_GROUND_FIXED;
    if (finding->usage->init)
        return CR_GROUND_INIT;
    const struct cr_capability *capability = &finding->capability;
    if (!capability->verified && capability->method != CR_METHOD_RESTART)
        return CR_GROUND_UNKNOWN;
    switch (capability->method) {
    case CR_METHOD_WATCH:
    case CR_METHOD_PER_HANDSHAKE:
    case CR_METHOD_POLL:
    case CR_METHOD_API_WATCH:
        return CR_GROUND_RELOADS;
    case CR_METHOD_SIGNAL:
    case CR_METHOD_HTTP:
    case CR_METHOD_COMMAND:
        return cr_decide_notifier(finding, q->passed_on) == CR_NOTIFIER_SIDECAR ? CR_GROUND_NOTIFIED
                                                                                : CR_GROUND_NOT_NOTIFIED;
    case CR_METHOD_RESTART:
        return CR_GROUND_CAPABILITY;
    case CR_METHOD_UNKNOWN:
    case CR_METHOD_COUNT:
        break;
    }
    return CR_GROUND_UNKNOWN;
}

static void look_up(const struct question *q, const struct cr_json *container, struct cr_finding *finding)
{
    const struct cr_decide_input *input = q->input;
    const struct cr_reload_override *override = &input->consumer->reload[finding->role];
    struct cr_program program = program_of(input, finding->component, container);
    finding->not_accepted = cr_finding_refuses_key(finding, &program, &input->changes[finding->secret]);
    finding->overridden = override->set;
    cr_catalogue_capability(&program, finding->parameter, finding->role, &finding->capability);
    if (!override->set)
        return;
    /* What the catalogue knows of how it is notified stays: a policy cannot say that. */
    const char *trigger = finding->capability.method == override->method ? finding->capability.signal : NULL;
    finding->capability = (struct cr_capability){
        .method = override->method,
        .max_delay_ms = override->max_delay_ms ? override->max_delay_ms : cr_method_default_delay_ms(override->method),
        .signal = trigger,
        .verified = true,
        .source = "policy",
    };
}

static void add_finding(const struct question *q, const struct cr_json *container, struct cr_finding finding,
                        struct cr_findings *out)
{
    look_up(q, container, &finding);
    finding.ground = ground_of(q, &finding);
    if (finding.ground == CR_GROUND_NOTIFIED && !finding.capability.max_delay_ms)
        finding.capability.max_delay_ms = CR_NOTIFIED_DELAY_MS;
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] = finding;
}

/* Whether one of the opaque keys that changed is in this usage: by the file, or all that it picks. */
static bool brings_changed_key(const struct cr_secret_change *change, const struct cr_finding *finding)
{
    const struct cr_strvec *changed = change->opaque_keys;
    const struct cr_strvec *picked = &finding->usage->keys;
    if (!changed || !changed->len)
        return true;
    if (finding->key[0])
        return cr_strvec_has(changed, finding->key);
    for (size_t i = 0; i < picked->len; i++)
        if (cr_strvec_has(changed, picked->items[i]))
            return true;
    return picked->len == 0;
}

static bool has_changed(const struct cr_secret_change *change, const struct cr_finding *finding)
{
    if (!(cr_diff_classes(change->changes) & finding->class))
        return false;
    return finding->class != CR_CLASS_OPAQUE || brings_changed_key(change, finding);
}

/* The policy says how the workload takes up opaque material, so it takes some: what a volume with all keys brings. */
static void judge_declared(const struct question *q, const struct cr_json *container, struct cr_finding finding,
                           struct cr_decision_secret *result, struct cr_findings *out)
{
    bool whole = finding.usage->keys.len == 0 && cr_usage_refreshes(finding.usage->kind);
    if (!q->input->consumer->reload[CR_ROLE_OPAQUE].set || !whole || result->roles & CR_ROLE_BIT(CR_ROLE_OPAQUE))
        return;
    finding.role = CR_ROLE_OPAQUE;
    finding.class = CR_CLASS_OPAQUE;
    result->roles |= CR_ROLE_BIT(CR_ROLE_OPAQUE);
    if (has_changed(&q->input->changes[finding.secret], &finding))
        add_finding(q, container, finding, out);
}

/* One usage: the roles that its files play, and which of these have a class that changed. */
static void judge_usage(const struct question *q, const struct cr_usage *usage, struct cr_decision_secret *result,
                        struct cr_findings *out)
{
    const struct cr_secret_change *change = &q->input->changes[q->secret];
    const struct cr_json *container = cr_container_named(q->input->pod_spec, usage->container);
    const struct cr_component *component = component_of(q, usage);
    struct cr_finding of_usage = {
        .secret = q->secret, .usage = usage, .component = component, .is_immutable = change->was_immutable};
    CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
    cr_catalogue_roles(component, container, usage, change->secret, &uses);
    for (size_t i = 0; i < uses.len; i++) {
        if (uses.items[i].hands_on)
            continue;
        struct cr_finding finding = of_usage;
        finding.parameter = uses.items[i].parameter;
        finding.role = uses.items[i].role;
        finding.class = cr_class_of(change->secret, uses.items[i].key, uses.items[i].role);
        memcpy(finding.key, uses.items[i].key, sizeof finding.key);
        result->roles |= CR_ROLE_BIT(finding.role);
        if (has_changed(change, &finding))
            add_finding(q, container, finding, out);
    }
    judge_declared(q, container, of_usage, result, out);
}

static void note_usages(const struct cr_secret_change *change, const struct cr_usage_list *usages,
                        struct cr_decision_secret *result)
{
    result->used = usages->len > 0;
    for (size_t i = 0; i < usages->len; i++)
        result->refreshes = result->refreshes || (cr_usage_refreshes(usages->items[i].kind) && !usages->items[i].init &&
                                                  !change->was_immutable);
}

static void sum_up(struct cr_decision_secret *result, const struct cr_finding *findings, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct cr_finding *finding = &findings[i];
        result->not_accepted = result->not_accepted || finding->not_accepted;
        if (!cr_finding_reloads(finding)) {
            result->restart_classes |= finding->class;
            continue;
        }
        result->reload_classes |= finding->class;
        result->reloads = true;
        if (finding->ground == CR_GROUND_NOTIFIED)
            result->trigger_classes |= finding->class;
        if (finding->capability.max_delay_ms > result->max_delay_ms)
            result->max_delay_ms = finding->capability.max_delay_ms;
    }
    /* What a restart brings need not be waited for by other ways. */
    result->reload_classes &= ~result->restart_classes;
    result->trigger_classes &= ~result->restart_classes;
    if (result->restart_classes)
        result->kind = CR_DECISION_RESTART;
    else if (result->trigger_classes)
        result->kind = CR_DECISION_TRIGGER;
    else if (result->reload_classes)
        result->kind = CR_DECISION_HOT_RELOAD;
}

/* The strongest ground; among reloads the slowest; the first of equals. */
static const struct cr_finding *deciding_of(const struct cr_findings *findings)
{
    const struct cr_finding *best = NULL;
    for (size_t i = 0; i < findings->len; i++) {
        const struct cr_finding *f = &findings->items[i];
        if (!best || f->ground > best->ground ||
            (f->ground == best->ground && cr_finding_reloads(f) &&
             f->capability.max_delay_ms > best->capability.max_delay_ms))
            best = f;
    }
    return best;
}

/* Without anything that concerns it, a decision still says for which software. */
static const char *component_name(const struct cr_decide_input *input, const struct cr_usage_list *usages,
                                  const struct cr_findings *findings, const struct cr_finding *deciding)
{
    if (deciding)
        return cr_component_name(deciding->component);
    for (size_t i = 0; i < input->changes_len; i++) {
        const struct question q = {.input = input, .secret = i, .sidecar = &findings->sidecar};
        for (size_t k = 0; k < usages[i].len; k++)
            if (component_of(&q, &usages[i].items[k]))
                return cr_component_name(component_of(&q, &usages[i].items[k]));
    }
    return NULL;
}

/* usages: filled; findings refer to them. */
static void judge_secret(const struct cr_decide_input *input, size_t index, struct cr_usage_list *usages,
                         struct cr_decision_secret *result, struct cr_findings *findings)
{
    size_t first = findings->len;
    const struct cr_secret_change *change = &input->changes[index];
    const struct question q = {.input = input,
                               .secret = index,
                               .sidecar = &findings->sidecar,
                               .passed_on = cr_sidecar_classes(input->pod_spec, &findings->sidecar, change->secret)};
    cr_usage_collect(input->pod_spec, change->secret->name, usages);
    note_usages(change, usages, result);
    cr_decide_usages(input, &findings->sidecar, change->secret, usages);
    for (size_t k = 0; k < usages->len; k++)
        judge_usage(&q, &usages->items[k], result, findings);
    sum_up(result, findings->items + first, findings->len - first);
}

void cr_decide(const struct cr_decide_input *input, struct cr_decision *out)
{
    *out = (struct cr_decision){.secrets_len = input->changes_len};
    out->secrets = cr_calloc(input->changes_len, sizeof *out->secrets);
    struct cr_usage_list *usages = cr_calloc(input->changes_len, sizeof *usages);
    struct cr_findings findings = {.sidecar = cr_sidecar_find(input->pod_spec)};
    for (size_t i = 0; i < input->changes_len; i++) {
        judge_secret(input, i, &usages[i], &out->secrets[i], &findings);
        if (out->secrets[i].kind > out->kind)
            out->kind = out->secrets[i].kind;
    }
    const struct cr_finding *deciding = deciding_of(&findings);
    out->component = cr_strdup_or_null(component_name(input, usages, &findings, deciding));
    out->unknown = deciding && deciding->ground == CR_GROUND_UNKNOWN;
    out->reason = cr_decide_reason(input, out, &findings, deciding);
    out->not_accepted = cr_decide_not_accepted(input, &findings);
    for (size_t i = 0; i < input->changes_len; i++)
        cr_usage_list_dispose(&usages[i]);
    free(usages);
    free(findings.items);
}
