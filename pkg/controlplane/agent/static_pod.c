#include "controlplane/agent/static_pod.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/manifest_text.h"
#include "controlplane/agent/static_internal.h"

static void container_dispose(struct cr_static_container *container)
{
    free(container->name);
    free(container->image);
    free(container->version);
    cr_strvec_dispose(&container->argv);
    for (size_t i = 0; i < container->mounts_len; i++) {
        free(container->mounts[i].path);
        free(container->mounts[i].host);
    }
    free(container->mounts);
}

void cr_static_pod_free(struct cr_static_pod *pod)
{
    if (!pod)
        return;
    for (size_t i = 0; i < pod->len; i++)
        container_dispose(&pod->containers[i]);
    free(pod->containers);
    cr_json_free(pod->json);
    free(pod);
}

static bool add_container(struct cr_static_pod *pod, const struct cr_json *json, bool init, struct cr_error *err)
{
    if (pod->len == CR_STATIC_POD_CONTAINERS_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "the manifest has more than %d containers",
                            CR_STATIC_POD_CONTAINERS_MAX);
    pod->containers = cr_reallocarray(pod->containers, pod->len + 1, sizeof *pod->containers);
    struct cr_static_container *container = &pod->containers[pod->len++];
    const char *image = cr_or_empty(cr_json_string_at(json, "image"));
    *container = (struct cr_static_container){
        .json = json,
        .name = cr_strdup(cr_or_empty(cr_json_string_at(json, "name"))),
        .image = cr_strdup(image),
        .version = cr_image_tag(image),
        /* kubernetes.io/docs/concepts/workloads/pods/sidecar-containers: it runs as long as the pod. */
        .init = init && !cr_streq(cr_json_string_at(json, "restartPolicy"), "Always"),
    };
    cr_static_command(container);
    return cr_static_mounts(pod->json, container, err);
}

static bool add_containers(struct cr_static_pod *pod, const char *list, struct cr_error *err)
{
    const struct cr_json *containers = cr_json_at(pod->json, "spec", list);
    for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c))
        if (!add_container(pod, c, cr_streq(list, "initContainers"), err))
            return false;
    return true;
}

struct cr_static_pod *cr_static_pod_read(const char *text, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_new(struct cr_static_pod);
    pod->json = cr_manifest_parse(text, len, err);
    if (!pod->json)
        return NULL;
    const char *ns = cr_json_string_at(pod->json, "metadata", "namespace");
    pod->name = cr_json_string_at(pod->json, "metadata", "name");
    pod->ns = ns && *ns ? ns : "default";
    pod->host_network = cr_json_bool_at(pod->json, false, "spec", "hostNetwork");
    if (!add_containers(pod, "initContainers", err) || !add_containers(pod, "containers", err))
        return NULL;
    return cr_steal(&pod);
}

const char *cr_static_pod_annotation(const struct cr_static_pod *pod, const char *name)
{
    return pod ? cr_json_string_at(pod->json, "metadata", "annotations", name) : NULL;
}

const char *cr_static_container_process(const struct cr_static_container *container)
{
    if (!container->argv_has_name || !container->argv.len)
        return NULL;
    const char *program = container->argv.items[0];
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    return *name && !strchr(name, '$') ? name : NULL;
}

const struct cr_component *cr_static_container_component(const struct cr_static_container *container,
                                                         const struct cr_catalogue *catalogue)
{
    const struct cr_component *by_process = cr_catalogue_by_name(catalogue, cr_static_container_process(container));
    return by_process ? by_process : cr_catalogue_by_image(catalogue, container->image);
}
