/* Where in a text of YAML a value stands. It serves code that changes a file that people wrote and leaves every other
 * byte of it as it was. JSON is read as well, being flow style. Pure. */
#ifndef CR_CODEC_YAML_PLACE_H
#define CR_CODEC_YAML_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum cr_yaml_shape {
    CR_YAML_ABSENT,        /* there is no such key */
    CR_YAML_SCALAR,        /* plain or quoted; empty (nothing behind the colon) has start == end */
    CR_YAML_BLOCK_SCALAR,  /* "|" or ">" */
    CR_YAML_BLOCK_MAPPING, /* its keys have lines of their own */
    CR_YAML_FLOW_MAPPING,  /* "{ }" */
    CR_YAML_SEQUENCE,
};

/* All are bytes from the text's begin. */
struct cr_yaml_place {
    enum cr_yaml_shape shape;
    size_t key_end; /* behind the key's last byte, before its colon */
    size_t start;   /* of the value; a tag belongs to it. Not for block mappings */
    size_t end;     /* behind a scalar; behind the brace of a flow mapping that opens it */
    size_t first;   /* where the first key of a mapping that is not empty begins */
    bool empty;     /* a mapping without keys */
};

/* The value at a path of keys (NULL behind the last, at least one). The text must be one that cr_yaml_parse takes: what
 * is refused there is not looked for here. What is on the path and no mapping has no such key. Errors: as
 * cr_yaml_parse, and Invalid where a key on the way is no scalar. Thread-safe. */
bool cr_yaml_find(const char *text, size_t len, const char *const *path, struct cr_yaml_place *out,
                  struct cr_error *err) CR_MUST_USE;

#endif
