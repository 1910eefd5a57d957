/* The kubelet: a process of the node, and what its command line leads to. */
#include "controlplane/agent/node_reading_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/processes.h"

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

void cr_node_sight_kubelet(struct cr_node_sight *sight, struct cr_node_program *kubelet)
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
