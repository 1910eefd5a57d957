/* A Secret from anybody, as YAML, which JSON is too: read, or refused with words; nothing of it is left in the words.
 */
#include "fuzz.h"

#include <string.h>

#include "codec/yaml.h"
#include "cluster/secret_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char key[CR_VIEW_KEY] = "0123456789abcdef0123456789abcde";
    static char crt[] = "tls.crt", prv[] = "tls.key", ca[] = "ca.crt";
    const struct cr_policy_secret names = {.certificate = crt, .private_key = prv, .trust = ca};
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *secret = cr_yaml_parse((const char *)data, size, &err);
    if (!secret)
        return 0;
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_view_read(secret, &names, size % 2 ? key : NULL);
    require(cr_opaque_is_valid(view->material.opaque));
    require((view->problem == CR_MATERIAL_OK) == (view->problem_text == NULL));
    require(!view->problem_text || !strpbrk(view->problem_text, "\r\n\x1b"));
    return 0;
}
