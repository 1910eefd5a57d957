/* How the containers of a pod template take a Secret. Pure: reads a PodSpec as JSON. */
#ifndef CR_ROTATION_USAGE_H
#define CR_ROTATION_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"

enum cr_usage_kind { CR_USAGE_VOLUME, CR_USAGE_PROJECTED, CR_USAGE_SUBPATH, CR_USAGE_ENV };
const char *cr_usage_kind_name(enum cr_usage_kind kind);
/* SubPath and Env never refresh in a running container (kubernetes.io/docs/concepts/configuration/secret). */
bool cr_usage_refreshes(enum cr_usage_kind kind);

struct cr_usage {
    char *container;
    char *image;
    bool init; /* an init container that runs once (restartPolicy Always is a sidecar: not init) */
    enum cr_usage_kind kind;
    /* Volume, Projected: where each key of the Secret appears as a file: keys[i] at paths[i]. No items in the volume: keys
     * is empty and `directory` holds all keys by their names. SubPath: the one file (or directory). */
    char *directory;
    struct cr_strvec keys;
    struct cr_strvec paths;
    /* Env: the variable's name per key; envFrom: keys empty, prefix in `directory`. */
};

struct cr_usage_list {
    struct cr_usage *items;
    size_t len;
};
void cr_usage_list_dispose(struct cr_usage_list *list);
CR_DEFINE_DISPOSE(cr_usage_list, struct cr_usage_list, cr_usage_list_dispose)

/* All usages of the Secret in the PodSpec, container by container; a mount per entry. */
void cr_usage_collect(const struct cr_json *pod_spec, const char *secret, struct cr_usage_list *out);

/* Names of all Secrets that the PodSpec's volumes and environment refer to. */
void cr_usage_secrets(const struct cr_json *pod_spec, struct cr_strvec *out);

#endif
