/* The part of a pod's certroll-sidecar in a decision: it passes on what it mounts; this finds which containers use
 * that. */
#include "policy/rules/decide_internal.h"

#include "base/alloc.h"
#include "base/strings.h"

static bool is_sidecar(const struct cr_sidecar_container *sidecar, const struct cr_usage *usage)
{
    return sidecar->container && cr_streq(usage->container, sidecar->container);
}

/* One that shows the certificate of its own page: its flags point to it. */
static bool is_for_its_page(const struct cr_decide_input *input, const struct cr_policy_secret *secret,
                            const struct cr_usage *usage)
{
    const struct cr_component *component = cr_catalogue_by_name(input->catalogue, CR_SIDECAR_COMPONENT);
    const struct cr_json *container = cr_container_named(input->pod_spec, usage->container);
    CR_CLEANUP(cr_parameter_uses) struct cr_parameter_uses uses = {0};
    cr_catalogue_roles(component, container, usage, secret, &uses);
    for (size_t i = 0; i < uses.len; i++)
        if (uses.items[i].parameter)
            return true;
    return false;
}

static void add_usage(struct cr_usage_list *out, struct cr_usage usage)
{
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] = usage;
}

/* The same files, as the other container gets them. */
static void add_for_reader(struct cr_usage_list *out, const struct cr_usage *usage, const struct cr_json *reader)
{
    struct cr_usage copy = {.container = cr_strdup(cr_or_empty(cr_json_string_at(reader, "name"))),
                            .image = cr_strdup(cr_or_empty(cr_json_string_at(reader, "image"))),
                            .kind = usage->kind,
                            .directory = cr_strdup_or_null(usage->directory)};
    cr_strvec_copy(&copy.keys, &usage->keys);
    cr_strvec_copy(&copy.paths, &usage->paths);
    add_usage(out, copy);
}

static void add_for_readers(const struct cr_decide_input *input, const struct cr_sidecar_container *sidecar,
                            const struct cr_usage *usage, struct cr_usage_list *out)
{
    size_t len = 0;
    cr_autofree const struct cr_json **readers = cr_sidecar_readers(input->pod_spec, sidecar, &len);
    for (size_t i = 0; i < len; i++)
        add_for_reader(out, usage, readers[i]);
}

/* What makes outputs once before the pod starts is replaced by what the sidecar makes of the same Secret later. */
static bool is_made_again(const struct cr_decide_input *input, const struct cr_sidecar_container *sidecar,
                          const struct cr_policy_secret *secret, const struct cr_usage *usage)
{
    return usage->init && cr_sidecar_prepares(input->pod_spec, sidecar, usage->container) &&
           cr_sidecar_classes(input->pod_spec, sidecar, secret);
}

void cr_decide_usages(const struct cr_decide_input *input, const struct cr_sidecar_container *sidecar,
                      const struct cr_policy_secret *secret, struct cr_usage_list *usages)
{
    struct cr_usage_list counted = {0};
    bool others = false;
    for (size_t i = 0; i < usages->len; i++)
        others = others ||
                 (!is_sidecar(sidecar, &usages->items[i]) && !is_made_again(input, sidecar, secret, &usages->items[i]));
    for (size_t i = 0; i < usages->len; i++) {
        struct cr_usage *usage = &usages->items[i];
        bool passed_on =
            is_sidecar(sidecar, usage) && cr_usage_refreshes(usage->kind) && !is_for_its_page(input, secret, usage);
        if (passed_on && !others)
            add_for_readers(input, sidecar, usage, &counted);
        if (passed_on || is_made_again(input, sidecar, secret, usage))
            continue;
        add_usage(&counted, *usage);
        *usage = (struct cr_usage){0};
    }
    cr_usage_list_dispose(usages);
    *usages = counted;
}

enum cr_notifier cr_decide_notifier(const struct cr_finding *finding, unsigned passed_on)
{
    return finding->class != CR_CLASS_OPAQUE && (passed_on & finding->class) ? CR_NOTIFIER_SIDECAR : CR_NOTIFIER_NONE;
}
