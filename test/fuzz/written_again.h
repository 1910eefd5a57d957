/* What is remembered in a status: whatever was decoded, written and read again it is the same. */
#ifndef FUZZ_WRITTEN_AGAIN_H
#define FUZZ_WRITTEN_AGAIN_H

#include "fuzz.h"

#include "codec/yaml.h"

/* once_more: decoded and encoded; owned. */
static inline void require_the_same_again(const uint8_t *data, size_t size,
                                          struct cr_json *(*once_more)(const struct cr_json *status))
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *status = cr_yaml_parse((const char *)data, size, &err);
    if (!status)
        return;
    CR_CLEANUP(cr_json) struct cr_json *first = once_more(status);
    CR_CLEANUP(cr_json) struct cr_json *second = once_more(first);
    require(cr_json_equal(first, second));
}

#endif
