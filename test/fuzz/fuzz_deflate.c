/* A text and, up to the first NUL byte, its model: packed and unpacked it is the same. */
#include "split.h"

#include "fuzz.h"

#include "base/cleanup.h"
#include "codec/deflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct split split = split_of(data, size);
    const struct cr_pem_input model = split_next(&split);
    const char *text = split.at ? split.at : "";
    size_t len = (size_t)(split.end - split.at);
    size_t packed_len = 0;
    cr_autofree char *packed = cr_deflate(text, len, model.data, model.len, &packed_len);
    cr_autofree char *again = cr_inflate(packed, packed_len, model.data, model.len, len);
    require(memcmp(again, text, len) == 0 && again[len] == '\0');
    return 0;
}
