/* A TrustDomain or ClusterTrustDomain from anybody: decoded, or refused with words. The text is YAML, which JSON is
 * too.
 */
#include "fuzz.h"

#include <string.h>

#include "api/domain.h"
#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object)
        return 0;
    CR_CLEANUP(cr_domain) struct cr_domain *domain = cr_domain_decode(object, &err);
    require(domain || (err.kind == CR_ERR_INVALID && err.text[0]));
    return 0;
}
