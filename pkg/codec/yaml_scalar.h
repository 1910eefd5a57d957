/* What a plain scalar of YAML means. Private to pkg/codec. */
#ifndef CR_CODEC_YAML_SCALAR_H
#define CR_CODEC_YAML_SCALAR_H

#include "codec/json.h"

/* The value of an unquoted scalar in the core schema of YAML 1.2. NULL and a static *problem when the text means
 * different things to different readers, or no JSON number holds it. */
struct cr_json *cr_yaml_plain_scalar(const char *text, const char **problem);

#endif
