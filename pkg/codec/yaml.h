/* YAML to JSON values (libyaml): kubeconfig files and the catalogue. Bytes, depth and nodes are capped while the
 * events are read (libyaml 0.2.5 needs 10 s for 80,000 "["). Refused, each with line and column, is whatever two
 * readers could take for different things: anchors, aliases and merge keys, tags beyond the core schema, keys that
 * come twice, a second document, yes/no/on/off and numbers with leading zeros (YAML 1.1 and 1.2 differ).
 *
 * Plain scalars follow the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema): null, booleans,
 * integers, floats; everything else, and whatever is quoted or a block, is a string. Keys are strings as written. */
#ifndef CR_CODEC_YAML_H
#define CR_CODEC_YAML_H

#include "codec/json.h"

enum {
    CR_YAML_MAX_BYTES = 1024 * 1024,
    CR_YAML_MAX_DEPTH = 64,
    CR_YAML_MAX_NODES = 100 * 1000, /* keys included */
    CR_YAML_MAX_KEYS = 1000,        /* of one mapping */
};

/* The only document of the text; an empty text is an empty object. Owned by the caller; free it with
 * cr_json_free_secret when it may carry keys. Errors: Invalid, with line and column and never the text; Transient when
 * libyaml finds no memory. Thread-safe. */
struct cr_json *cr_yaml_parse(const char *text, size_t len, struct cr_error *err) CR_MUST_USE;

#endif
