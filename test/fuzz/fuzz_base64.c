/* What is decoded encodes to the text it came from, white space apart. */
#include "fuzz.h"

#include <string.h>

#include "codec/base64.h"

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf out = {.secret = true};
    if (!cr_base64_decode((const char *)data, size, &out, &err)) {
        require(out.len == 0 && err.kind == CR_ERR_INVALID);
        return 0;
    }
    cr_autofree char *text = cr_base64_encode(out.data, out.len);
    const char *at = text;
    for (size_t i = 0; i < size; i++)
        require(is_space(data[i]) || (char)data[i] == *at++);
    require(!*at);
    return 0;
}
