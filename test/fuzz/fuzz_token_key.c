/* A token, or whatever lies in its place. */
#include "fuzz.h"

#include <string.h>

#include "node/token_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *key = NULL;
    bool is_token = cr_token_key((const char *)data, size, "uid", &key);
    require(is_token || !key);
    require(!key || (strlen(key) == 64 && strspn(key, "0123456789abcdef") == 64));
    free(key);
    return 0;
}
