/* The effective KubeletConfiguration: a file, and parts that are merged over it (RFC 7386). Private to
 * pkg/controlplane/agent/kubelet_*.c. */
#ifndef CR_CONTROLPLANE_AGENT_KUBELET_INTERNAL_H
#define CR_CONTROLPLANE_AGENT_KUBELET_INTERNAL_H

#include "controlplane/agent/kubelet_files.h"

struct cr_kubelet_layers {
    struct cr_kubelet_layer {
        const char *path; /* borrowed */
        char *folder;     /* that its relative paths are below */
        struct cr_json *doc;
    } * items;
    size_t len;
};

/* folder: the kubelet's own. */
bool cr_kubelet_layers_read(const struct cr_kubelet_texts *texts, const char *folder, struct cr_kubelet_layers *out,
                            struct cr_error *err) CR_MUST_USE;
void cr_kubelet_layers_dispose(struct cr_kubelet_layers *layers);
CR_DEFINE_DISPOSE(cr_kubelet_layers, struct cr_kubelet_layers, cr_kubelet_layers_dispose)

/* What a field ("authentication.x509.clientCAFile") is at last. Borrowed. */
struct cr_kubelet_field {
    const struct cr_json *value; /* NULL: not there, or null */
    const struct cr_kubelet_layer *layer;
    const char *name;
};
bool cr_kubelet_layers_find(const struct cr_kubelet_layers *layers, const char *name, struct cr_kubelet_field *out,
                            struct cr_error *err) CR_MUST_USE;
/* "<path>: <field> <problem>". Always false. */
bool cr_kubelet_field_invalid(const struct cr_kubelet_field *field, const char *problem, struct cr_error *err);
/* The gates of all of them, as an object of booleans; out is an object. */
bool cr_kubelet_layers_gates(const struct cr_kubelet_layers *layers, struct cr_json *out,
                             struct cr_error *err) CR_MUST_USE;

#endif
