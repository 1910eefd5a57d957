/* The text of a manifest as a value: the Pod that a kubelet reads in it, or words why it is not read. Pure. Private to
 * pkg/controlplane/agent. */
#ifndef CR_CONTROLPLANE_AGENT_MANIFEST_TEXT_H
#define CR_CONTROLPLANE_AGENT_MANIFEST_TEXT_H

#include "codec/json.h"

/* The kubelet takes a text that begins with "{" as JSON and all else as YAML (apimachinery pkg/util/yaml ToJSON), and
 * of several documents the first; one that two readers could take for different Pods is refused here. At most
 * CR_YAML_MAX_BYTES. Owned. Errors: Invalid, "the manifest …". */
struct cr_json *cr_manifest_parse(const char *text, size_t len, struct cr_error *err) CR_MUST_USE;

#endif
