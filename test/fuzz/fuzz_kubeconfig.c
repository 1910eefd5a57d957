/* Somebody's kubeconfig: refused with words, or a configuration that sends no credentials in the clear, with a token
 * that can stand in a header. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strings.h"
#include "kube/config.h"
#include "kube/config_internal.h"

static char path[64];

static void remove_file(void)
{
    (void)unlink(path);
}

static void write_file(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        snprintf(path, sizeof path, "/tmp/certroll-fuzz-kubeconfig-%d", (int)getpid());
        atexit(remove_file);
    }
    FILE *file = fopen(path, "we");
    require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    /* Of the files that it may name none is to be read here. */
    if (memmem(data, size, "/dev/", 5) || memmem(data, size, "/proc/", 6))
        return 0;
    write_file(data, size);
    CR_CLEANUP(cr_kube_config) struct cr_kube_config *config = cr_kube_config_load(path, NULL, &err);
    if (!config) {
        require(err.kind != CR_ERR_NONE && err.text[0]);
        return 0;
    }
    bool has_credentials = config->token || config->cert_pem || config->exec;
    require(config->server && config->ns && config->source);
    require(!has_credentials || strncasecmp(config->server, "https://", 8) == 0);
    require(!config->token || cr_kube_config_is_token(config->token));
    require(!config->cert_pem == !config->key_pem);
    return 0;
}
