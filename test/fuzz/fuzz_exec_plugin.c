/* What a credential plugin prints: a token or a pair that can be used, in a form that can stand in a header, or refused
 * with words that repeat nothing of it. */
#include "fuzz.h"

#include <string.h>

#include "kube/config_internal.h"
#include "kube/exec_plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_exec_credential) struct cr_exec_credential credential = {0};
    if (!cr_exec_credential_decode("client.authentication.k8s.io/v1", (const char *)data, size, &credential, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !credential.token && !credential.key_pem);
        return 0;
    }
    require(credential.token || credential.cert_pem);
    require(!credential.cert_pem == !credential.key_pem);
    require(!credential.token || cr_kube_config_is_token(credential.token));
    return 0;
}
