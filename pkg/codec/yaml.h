/* YAML to JSON values (libyaml): kubeconfig files and the catalogue. Bytes, depth and nodes are capped while the
 * events are read (libyaml needs seconds for deep nonsense), aliases and anchors are refused. Scalars follow the
 * YAML 1.2 core schema as Kubernetes reads it: true/false, integers, null/~; quoted ones are strings. */
#ifndef CR_CODEC_YAML_H
#define CR_CODEC_YAML_H

#include "codec/json.h"

/* The first document of the text; an empty text is an empty object. Owned by the caller. Errors: Invalid, with line and
 * column. */
struct cr_json *cr_yaml_parse(const char *text, size_t len, struct cr_error *err) CR_MUST_USE;

#endif
