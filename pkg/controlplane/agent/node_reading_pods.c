/* Static pods: the manifests that a kubelet would read, their programs, and which process belongs to which program. */
#include "controlplane/agent/node_reading_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/processes.h"

enum { MANIFESTS_MAX = 1024 };

/* --- the manifests --- */

/* As cr_proc_find's names: the words may be the container's own, so that a second program of that name, which a person
 * runs by hand, is not it. */
static bool has_words(const struct cr_node_sight *sight, const struct cr_proc *process, const struct cr_strvec *argv)
{
    CR_CLEANUP(cr_buf) struct cr_buf words = CR_BUF_INIT(0);
    struct cr_error err = {0};
    if (!cr_node_process_words(sight->layout, process, &words, &err))
        return false;
    const char *at = cr_buf_text(&words);
    const char *end = at + words.len;
    for (size_t i = 0; i < argv->len; i++) {
        if (at >= end || (i && !cr_streq(at, argv->items[i])))
            return false;
        at += strlen(at) + 1;
    }
    return at >= end;
}

/* The youngest of those that were started as the manifest says; without one, which is so while a manifest has just been
 * changed, the youngest. */
static const struct cr_proc *choose(const struct cr_node_sight *sight, const struct cr_static_container *container,
                                    const struct cr_procs *found)
{
    for (size_t i = 0; found->len > 1 && container->argv_known && container->argv_has_name && i < found->len; i++)
        if (has_words(sight, &found->items[i], &container->argv))
            return &found->items[i];
    return found->len ? &found->items[0] : NULL;
}

static void find_process(struct cr_node_sight *sight, const struct cr_static_pod *pod,
                         const struct cr_static_container *container, struct cr_node_program *program)
{
    CR_CLEANUP(cr_procs) struct cr_procs found = {0};
    struct cr_error err = {0};
    const char *name = cr_static_container_process(container);
    if (sight->layout->own_network_only && !pod->host_network) {
        cr_node_sight_trouble(sight,
                              "%s of %s: its pod is not hostNetwork, so its process cannot be told from those of other "
                              "pods",
                              program->component, pod->name);
        return;
    }
    if (!cr_node_processes_find(sight->layout, name ? name : program->component, &found, &err)) {
        cr_node_sight_trouble(sight, "%s of %s: %s", program->component, pod->name, err.text);
        return;
    }
    const struct cr_proc *process = choose(sight, container, &found);
    if (process)
        cr_node_processes_set(sight->layout, process, program);
}

static void add_programs(struct cr_node_sight *sight, const struct cr_static_pod *pod, const char *manifest)
{
    for (size_t i = 0; i < pod->len; i++) {
        const struct cr_static_container *container = &pod->containers[i];
        const struct cr_component *component = cr_static_container_component(container, sight->catalogue);
        if (!component || container->init)
            continue;
        struct cr_node_program *program = cr_node_sight_program(sight, cr_component_name(component));
        program->version = cr_strdup_or_null(container->version);
        program->pod = cr_strdup(pod->name);
        program->container = cr_strdup(container->name);
        program->manifest = cr_strdup(manifest);
        find_process(sight, pod, container, program);
    }
}

/* A copy of a manifest that was left in the folder is a pod, too: which of the two the kubelet runs is chance. */
static void warn_of_twin(struct cr_node_sight *sight, const struct cr_static_pod *pod, const char *manifest)
{
    const struct cr_node_look *out = sight->out;
    for (size_t i = 0; i < out->pods_len; i++)
        if (cr_streq(out->pods[i]->name, pod->name) && cr_streq(out->pods[i]->ns, pod->ns))
            cr_node_sight_trouble(sight,
                                  "kubelet: %s and %s are manifests of the same pod, %s: which of them runs is chance",
                                  out->manifests[i], manifest, pod->name);
}

static void add_pod(struct cr_node_sight *sight, const char *manifest)
{
    struct cr_node_look *out = sight->out;
    struct cr_error err = {0};
    const struct cr_host_file *file = cr_host_files_read(&sight->files, manifest);
    struct cr_static_pod *pod = NULL;
    if (!file->err.kind)
        pod = cr_static_pod_read(cr_buf_text(&file->text), file->text.len, &err);
    if (!pod) {
        cr_node_sight_trouble(sight, "kubelet: static pod %s%s%s", file->err.kind ? "" : manifest,
                              file->err.kind ? "" : ": ", file->err.kind ? file->err.text : err.text);
        return;
    }
    warn_of_twin(sight, pod, manifest);
    out->pods = cr_reallocarray(out->pods, out->pods_len + 1, sizeof *out->pods);
    out->manifests = cr_reallocarray(out->manifests, out->pods_len + 1, sizeof *out->manifests);
    out->pods[out->pods_len] = pod;
    out->manifests[out->pods_len++] = cr_strdup(manifest);
    add_programs(sight, pod, manifest);
    const struct cr_node_source source = cr_node_sight_source(sight);
    cr_node_parameters_add_pod(&out->parameters, sight->catalogue, pod, &source);
}

/* pkg/kubelet/config/file.go extractFromDir: names that do not begin with a dot, and links to files, but no folders. */
static bool is_manifest(const struct cr_node_sight *sight, const char *path)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    return !cr_host_way_go(sight->layout->root, path, &way, &err) || S_ISREG(way.end.st_mode);
}

void cr_node_sight_pods(struct cr_node_sight *sight, const char *folder)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    if (cr_host_way_go(sight->layout->root, folder, &way, &err) && S_ISREG(way.end.st_mode)) {
        add_pod(sight, folder);
        return;
    }
    if (!cr_node_sight_list(sight, folder, MANIFESTS_MAX, &names, &err)) {
        cr_node_sight_trouble(sight, "kubelet: static pods: %s", err.text);
        return;
    }
    for (size_t i = 0; i < names.len; i++) {
        cr_autofree char *path = cr_asprintf("%s%s%s", folder, cr_ends_with(folder, "/") ? "" : "/", names.items[i]);
        if (names.items[i][0] != '.' && is_manifest(sight, path))
            add_pod(sight, path);
    }
}
