/* Whatever a manifest says, a file of the host is an absolute path without dots, and what is none has words. */
#include "fuzz.h"

#include <string.h>

#include "controlplane/agent/static_pod.h"

static void check_file(const struct cr_static_container *container, const char *path)
{
    CR_CLEANUP(cr_static_file) struct cr_static_file file = {0};
    cr_static_container_file(container, path, &file);
    if (file.place == CR_STATIC_PLACE_HOST)
        require(file.path && file.path[0] == '/' && !strstr(file.path, "/../") && !strstr(file.path, "//"));
    else
        require(!file.path && !file.alone && file.why && file.why[0]);
}

static void check_container(const struct cr_static_container *container)
{
    for (size_t i = 0; i < container->argv.len; i++) {
        const char *word = container->argv.items[i];
        const char *value = strchr(word, '=');
        check_file(container, word);
        check_file(container, value ? value + 1 : "/etc/kubernetes/pki/ca.crt");
    }
    for (size_t i = 0; i < container->mounts_len; i++) {
        require(container->mounts[i].path[0] == '/');
        check_file(container, container->mounts[i].path);
    }
    require(!container->argv_known || !container->argv_has_name || container->argv.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_static_pod_read((const char *)data, size, &err);
    require(pod || (err.kind == CR_ERR_INVALID && strncmp(err.text, "the manifest", 12) == 0));
    for (size_t i = 0; pod && i < pod->len; i++)
        check_container(&pod->containers[i]);
    return 0;
}
