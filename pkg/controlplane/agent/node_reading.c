#include "controlplane/agent/node_reading_internal.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/processes.h"

/* Static pods: the manifests that a kubelet would read, their programs, and which process belongs to which program. */

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
static const struct cr_proc *choose_pod(const struct cr_node_sight *sight, const struct cr_static_container *container,
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
    const struct cr_proc *process = choose_pod(sight, container, &found);
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

/* folder: the host's path of the folder, or of one manifest. */
static void sight_pods(struct cr_node_sight *sight, const char *folder)
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

/* The kubelet: a process of the node, and what its command line leads to. */

enum { PARTS_MAX = 256, DEPTH_MAX = 8, ENTRIES_MAX = 4096 };

/* --- its command line --- */

static bool read_command(struct cr_node_sight *sight, const struct cr_proc *process, struct cr_kubelet_command *out,
                         struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf words = CR_BUF_INIT(0);
    if (!cr_node_process_words(sight->layout, process, &words, err))
        return false;
    cr_autofree char *folder = cr_node_process_folder(sight->layout, process);
    return cr_kubelet_command_read(cr_buf_text(&words), words.len, folder, out, err);
}

/* Who runs `kubelet --version` has one for a moment, too. */
static bool serves(const struct cr_kubelet_command *command)
{
    return command->config || command->config_dir || cr_given_flags_text(&command->flags, "kubeconfig");
}

/* The youngest that serves, else the youngest with a command line that can be read. */
static bool choose(struct cr_node_sight *sight, const struct cr_procs *found, struct cr_kubelet_command *command,
                   struct cr_node_program *kubelet, struct cr_error *err)
{
    for (size_t i = 0; i < found->len; i++) {
        struct cr_kubelet_command one = {0};
        if (!read_command(sight, &found->items[i], &one, err))
            continue;
        bool better = !kubelet->running || serves(&one);
        if (better) {
            cr_kubelet_command_dispose(command);
            *command = one;
            cr_node_processes_set(sight->layout, &found->items[i], kubelet);
        } else {
            cr_kubelet_command_dispose(&one);
        }
        if (serves(command))
            return true;
    }
    return kubelet->running;
}

/* --- its configuration --- */

struct parts {
    struct cr_strvec paths;        /* the host's */
    struct cr_kubelet_text *items; /* owned; borrows from paths and files */
    size_t len;
};

static void parts_dispose(struct parts *parts)
{
    cr_strvec_dispose(&parts->paths);
    free(parts->items);
}
CR_DEFINE_DISPOSE(parts, struct parts, parts_dispose)

/* As filepath.WalkDir goes: by the names of each folder; links to folders are not followed, those to files are. */
static bool find_parts(struct cr_node_sight *sight, const char *folder, int depth, struct cr_strvec *out,
                       struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    if (!cr_node_sight_list(sight, folder, ENTRIES_MAX, &names, err))
        return false;
    for (size_t i = 0; i < names.len; i++) {
        cr_autofree char *path = cr_asprintf("%s/%s", folder, names.items[i]);
        CR_CLEANUP(cr_host_way) struct cr_host_way way;
        struct cr_error gone = {0};
        bool is_folder = cr_host_way_go(sight->layout->root, path, &way, &gone) && S_ISDIR(way.end.st_mode);
        if (is_folder && depth == DEPTH_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "%s: folders within folders, deeper than %d", path, DEPTH_MAX);
        if (is_folder && !find_parts(sight, path, depth + 1, out, err))
            return false;
        if (!is_folder && cr_ends_with(names.items[i], ".conf"))
            cr_strvec_add(out, path);
        if (out->len > PARTS_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "%s: more than %d files", folder, PARTS_MAX);
    }
    return true;
}

static bool read_text(struct cr_node_sight *sight, const char *host, struct cr_kubelet_text *out, struct cr_error *err)
{
    const struct cr_host_file *file = cr_host_files_read(&sight->files, host);
    if (file->err.kind)
        return cr_error_set(err, file->err.kind, "%s", file->err.text);
    *out = (struct cr_kubelet_text){.path = file->host, .text = cr_buf_text(&file->text), .len = file->text.len};
    return true;
}

static bool read_parts(struct cr_node_sight *sight, const char *folder, struct parts *out, struct cr_error *err)
{
    if (!folder)
        return true;
    if (!find_parts(sight, folder, 0, &out->paths, err))
        return false;
    out->items = cr_calloc(out->paths.len + 1, sizeof *out->items);
    for (; out->len < out->paths.len; out->len++)
        if (!read_text(sight, out->paths.items[out->len], &out->items[out->len], err))
            return false;
    return true;
}

static bool read_files(struct cr_node_sight *sight, const struct cr_kubelet_command *command, struct cr_error *err)
{
    CR_CLEANUP(parts) struct parts parts = {0};
    struct cr_kubelet_text config;
    if ((command->config && !read_text(sight, command->config, &config, err)) ||
        !read_parts(sight, command->config_dir, &parts, err))
        return false;
    const struct cr_kubelet_texts texts = {
        .config = command->config ? &config : NULL, .parts = parts.items, .parts_len = parts.len};
    return cr_kubelet_files_read(command, &texts, &sight->out->kubelet, err);
}

/* --- all together --- */

static bool read_kubelet(struct cr_node_sight *sight, struct cr_node_program *kubelet, struct cr_error *err)
{
    CR_CLEANUP(cr_procs) struct cr_procs found;
    CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
    if (!cr_node_processes_find(sight->layout, "kubelet", &found, err))
        return false;
    if (!found.len)
        return cr_error_set(err, CR_ERR_NOT_FOUND, "it does not run, or not by that name and in this network");
    return choose(sight, &found, &command, kubelet, err) && read_files(sight, &command, err);
}

/* kubelet: the program, of which its process was or was not found. */
static void sight_kubelet(struct cr_node_sight *sight, struct cr_node_program *kubelet)
{
    struct cr_error err = {0};
    struct cr_node_look *out = sight->out;
    out->has_kubelet = read_kubelet(sight, kubelet, &err);
    if (!out->has_kubelet) {
        cr_node_sight_trouble(sight, "kubelet: %s", err.text);
        return;
    }
    const struct cr_node_source source = cr_node_sight_source(sight);
    cr_node_parameters_add_kubelet(&out->parameters, sight->catalogue, &out->kubelet, sight->layout->kubelet_version,
                                   &source);
}

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
    sight_kubelet(&sight, &kubelet);
    const char *manifests = manifests_of(&sight);
    if (manifests)
        sight_pods(&sight, manifests);
    free(cr_node_sight_program(&sight, "")->component);
    out->programs[out->programs_len - 1] = kubelet;
    cr_node_sight_contents(&sight);
    cr_host_files_paths(&sight.files, &out->paths);
    cr_host_files_dispose(&sight.files);
}
