/* A component's kubeconfig: what is a file has a path, what is embedded has none, and a key is never kept; a text that
 * is refused leaves nothing. */
#include "fuzz.h"

#include <string.h>

#include "controlplane/agent/kubeconfig_file.h"

static void check_item(const struct cr_kubeconfig_item *item)
{
    require((item->source == CR_KUBECONFIG_FILE) == (item->path != NULL));
    require(!item->pem || item->source == CR_KUBECONFIG_EMBEDDED);
    require(!item->path || *item->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cr_kubeconfig_file empty;
    struct cr_error err = {0};
    struct cr_kubeconfig_file file;
    bool read = cr_kubeconfig_file_read("/etc/kubernetes/scheduler.conf", (const char *)data, size, &file, &err);
    check_item(&file.ca);
    check_item(&file.certificate);
    check_item(&file.key);
    require(!file.key.pem);
    require((file.certificate.source == CR_KUBECONFIG_NONE) == (file.key.source == CR_KUBECONFIG_NONE));
    require(read ? file.context != NULL : err.text[0] != '\0' && memcmp(&file, &empty, sizeof file) == 0);
    cr_kubeconfig_file_dispose(&file);
    return 0;
}
