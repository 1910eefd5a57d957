/* A node of tests: manifests and a kubelet as text, the files that are followed, and the parameters as lines. */
#ifndef TEST_SUPPORT_NODESCENE_H
#define TEST_SUPPORT_NODESCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/parameters.h"

/* Path and text, up to a NULL path; a NULL text cannot be read. */
struct scene_file {
    const char *path;
    const char *text;
};

static inline bool scene_read(void *ctx, const char *host, struct cr_buf *out, struct cr_error *err)
{
    for (const struct scene_file *file = ctx; file && file->path; file++) {
        if (!cr_streq(file->path, host))
            continue;
        if (!file->text)
            return cr_error_set(err, CR_ERR_FORBIDDEN, "%s: Permission denied", host);
        return cr_buf_append(out, file->text, strlen(file->text)) || cr_error_set(err, CR_ERR_INVALID, "too big");
    }
    return cr_error_set(err, CR_ERR_NOT_FOUND, "%s: No such file or directory", host);
}

static inline void scene_add_pod(struct cr_node_parameters *out, const struct cr_catalogue *catalogue, const char *text,
                                 struct scene_file *files)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_static_pod_read(text, strlen(text), &err);
    if (!pod)
        fail_msg("the test's own manifest: %s\n%s", err.text, text);
    cr_node_parameters_add_pod(out, catalogue, pod, &(struct cr_node_source){.read = scene_read, .ctx = files});
}

/* flags: behind "kubelet", by spaces; config: its file, NULL without one. */
static inline void scene_add_kubelet(struct cr_node_parameters *out, const struct cr_catalogue *catalogue,
                                     const char *flags, const char *config, const char *version,
                                     struct scene_file *files)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
    CR_CLEANUP(cr_kubelet_files) struct cr_kubelet_files read = {0};
    cr_autofree char *line = cr_asprintf("kubelet%s%s", *flags ? " " : "", flags);
    size_t len = strlen(line) + 1;
    for (char *p = strchr(line, ' '); p; p = strchr(p + 1, ' '))
        *p = '\0';
    struct cr_kubelet_text text = {.path = "/config.yaml", .text = config, .len = config ? strlen(config) : 0};
    if (!cr_kubelet_command_read(line, len, "/", &command, &err) ||
        !cr_kubelet_files_read(&command, &(struct cr_kubelet_texts){.config = config ? &text : NULL}, &read, &err))
        fail_msg("the test's own kubelet: %s", err.text);
    cr_node_parameters_add_kubelet(out, catalogue, &read, version,
                                   &(struct cr_node_source){.read = scene_read, .ctx = files});
}

/* "parameter<via role Place host method delay_s confidence word…"; words: alone, own, trap, reloads. What was tried is
 * verified, too: the catalogue's rows become that one by one. */
static inline char *scene_line(const struct cr_node_parameter *p)
{
    return cr_asprintf("%s%s%s %s %s %s %s %d %s%s%s%s%s", p->parameter, p->via ? "<" : "", cr_or_empty(p->via),
                       cr_role_name(p->role), cr_node_place_name(p->place), p->host ? p->host : p->why,
                       cr_method_name(p->capability.method), (int)(p->capability.max_delay_ms / 1000),
                       cr_streq(p->capability.confidence, "experiment") ? "verified"
                       : p->capability.confidence                       ? p->capability.confidence
                                                                        : "-",
                       p->alone ? " alone" : "", p->own ? " own" : "", p->signs_and_trusts ? " trap" : "",
                       cr_node_parameter_reloads(p) ? " reloads" : "");
}

/* All lines of a component, each ended by a line feed. Owned. */
static inline char *scene_lines(const struct cr_node_parameters *parameters, const char *component)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < parameters->len; i++) {
        if (!cr_streq(parameters->items[i].component, component))
            continue;
        cr_autofree char *line = scene_line(&parameters->items[i]);
        cr_buf_printf(&buf, "%s\n", line);
    }
    return cr_buf_steal(&buf);
}

#endif
