/* A token, or whatever lies in its place. */
#include "fuzz.h"

#include <string.h>

#include "api/token_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char key[CR_SHA256_HEX] = "";
    char same[CR_SHA256_HEX] = "";
    bool is_token = cr_pod_token_key((const char *)data, size, "uid", key);
    require(is_token || !*key);
    bool has_key = cr_token_key((const char *)data, size, same);
    require(!has_key || (strlen(same) == 64 && strspn(same, "0123456789abcdef") == 64));
    require(!*key || (has_key && strcmp(key, same) == 0));
    return 0;
}
