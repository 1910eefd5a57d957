#include "controlplane/agent/node_reading_internal.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/strings.h"

/* Where kubeadm has them, for while no kubelet says so. */
static const char usual_manifests[] = "/etc/kubernetes/manifests";

static void program_dispose(struct cr_node_program *program)
{
    free(program->component);
    free(program->version);
    free(program->pod);
    free(program->container);
    free(program->manifest);
    free(program->identity);
}

void cr_node_look_dispose(struct cr_node_look *look)
{
    for (size_t i = 0; i < look->programs_len; i++)
        program_dispose(&look->programs[i]);
    free(look->programs);
    for (size_t i = 0; look->contents && i < look->parameters.len; i++) {
        cr_node_material_dispose(&look->contents[i].material);
        cr_strvec_dispose(&look->contents[i].issuers);
    }
    free(look->contents);
    cr_node_parameters_dispose(&look->parameters);
    cr_ca_set_free(look->cas);
    for (size_t i = 0; i < look->pods_len; i++) {
        cr_static_pod_free(look->pods[i]);
        free(look->manifests[i]);
    }
    free(look->pods);
    free(look->manifests);
    cr_kubelet_files_dispose(&look->kubelet);
    cr_strvec_dispose(&look->paths);
    cr_strvec_dispose(&look->folders);
    *look = (struct cr_node_look){0};
}

/* --- what the parts of it share --- */

void cr_node_sight_trouble(struct cr_node_sight *sight, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *words = cr_vasprintf(fmt, args);
    va_end(args);
    if (sight->out->parameters.troubles.len < CR_NODE_PARAMETERS_MAX)
        cr_strvec_add_unique(&sight->out->parameters.troubles, words);
}

struct cr_node_program *cr_node_sight_program(struct cr_node_sight *sight, const char *component)
{
    struct cr_node_look *out = sight->out;
    out->programs = cr_reallocarray(out->programs, out->programs_len + 1, sizeof *out->programs);
    out->programs[out->programs_len] = (struct cr_node_program){.component = cr_strdup(component)};
    return &out->programs[out->programs_len++];
}

bool cr_node_sight_list(struct cr_node_sight *sight, const char *host, size_t max, struct cr_strvec *out,
                        struct cr_error *err)
{
    cr_autofree char *seen = cr_asprintf("%s%s", sight->layout->root, host);
    cr_strvec_add_unique(&sight->out->folders, seen);
    return cr_host_folder_list(sight->layout->root, host, max, out, err);
}

static bool read_source(void *ctx, const char *host, struct cr_buf *out, struct cr_error *err)
{
    struct cr_node_sight *sight = ctx;
    const struct cr_host_file *file = cr_host_files_read(&sight->files, host);
    if (file->err.kind)
        return cr_error_set(err, file->err.kind, "%s", file->err.text);
    return cr_buf_append(out, cr_buf_text(&file->text), file->text.len) ||
           cr_error_set(err, CR_ERR_INVALID, "%s: longer than the %zu bytes that are allowed", host, out->max);
}

struct cr_node_source cr_node_sight_source(struct cr_node_sight *sight)
{
    return (struct cr_node_source){.read = read_source, .ctx = sight};
}

/* --- all together --- */

/* Borrowed; NULL: the kubelet has no static pods. */
static const char *manifests_of(struct cr_node_sight *sight)
{
    if (sight->layout->manifests)
        return sight->layout->manifests;
    if (sight->out->has_kubelet)
        return sight->out->kubelet.static_pods.path;
    cr_node_sight_trouble(sight, "kubelet: where its static pods are is not known: %s is looked at", usual_manifests);
    return usual_manifests;
}

void cr_node_look(const struct cr_node_layout *layout, const struct cr_catalogue *catalogue, int64_t now_ms,
                  struct cr_node_look *out)
{
    *out = (struct cr_node_look){.cas = cr_ca_set_new()};
    struct cr_node_sight sight = {
        .layout = layout, .catalogue = catalogue, .now_ms = now_ms, .files = {.root = layout->root}, .out = out};
    struct cr_node_program kubelet = {.component = cr_strdup("kubelet"),
                                      .version = cr_strdup_or_null(layout->kubelet_version)};
    cr_node_sight_kubelet(&sight, &kubelet);
    const char *manifests = manifests_of(&sight);
    if (manifests)
        cr_node_sight_pods(&sight, manifests);
    free(cr_node_sight_program(&sight, "")->component);
    out->programs[out->programs_len - 1] = kubelet;
    cr_node_sight_contents(&sight);
    cr_host_files_paths(&sight.files, &out->paths);
    cr_host_files_dispose(&sight.files);
}
