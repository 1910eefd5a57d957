/* Up to the first empty word a kubelet's command line, then a configuration, and behind "\n---\n" a part of one:
 * refused with words, or files with absolute paths. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "controlplane/agent/kubelet_files.h"

/* A file has an absolute path. */
static void check_file(const struct cr_kubelet_file *file)
{
    require(!file->path || file->path[0] == '/');
    require(file->path || !file->parameter);
}

static void check(const struct cr_kubelet_files *files)
{
    check_file(&files->client_ca);
    check_file(&files->certificate);
    check_file(&files->key);
    check_file(&files->kubeconfig);
    check_file(&files->bootstrap_kubeconfig);
    check_file(&files->static_pods);
    require(files->rotates_client == (files->client_pair != NULL));
    require(files->rotates_server == (files->server_pair != NULL));
    require(files->rotates_server || files->certificate.path || files->key.path);
    require(files->port >= 0 && files->port <= 65535 && files->address);
    require(cr_json_len(cr_json_get(files->settings, "command")) >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *rest = memmem(text, size, "\0\0", 2);
    size_t len = rest ? (size_t)(rest - text) + 1 : size;
    struct cr_error err = {0};
    struct cr_kubelet_command command;
    if (!cr_kubelet_command_read(text, len, "/run", &command, &err)) {
        require(err.text[0] != '\0' && !command.folder && !command.flags.items);
        return 0;
    }
    rest = rest ? rest + 2 : text + size;
    size_t rest_len = size - (size_t)(rest - text);
    const char *cut = memmem(rest, rest_len, "\n---\n", 5);
    struct cr_kubelet_text config = {
        .path = "/c/config.yaml", .text = rest, .len = cut ? (size_t)(cut - rest) : rest_len};
    struct cr_kubelet_text part = {.path = "/d/1.conf", .text = cut ? cut + 5 : rest};
    part.len = cut ? size - (size_t)(part.text - text) : 0;
    struct cr_kubelet_texts texts = {
        .config = command.config ? &config : NULL, .parts = &part, .parts_len = command.config_dir && cut};
    struct cr_kubelet_files files;
    if (cr_kubelet_files_read(&command, &texts, &files, &err))
        check(&files);
    else
        require(err.text[0] != '\0' && !files.settings);
    cr_kubelet_files_dispose(&files);
    cr_kubelet_command_dispose(&command);
    return 0;
}
