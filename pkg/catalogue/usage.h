/* How the containers of a pod template take a Secret. Pure: reads a PodSpec as JSON. A user may write an object with as
 * many volumes, mounts and variables as its size allows, and the names are read on the thread that serves all watches:
 * so each walk here takes steps in proportion to the object and to what it finds. */
#ifndef CR_CATALOGUE_USAGE_H
#define CR_CATALOGUE_USAGE_H

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
    /* Volume, Projected: keys[i] of the Secret is the file paths[i] (absolute). Without items in the volume keys is
     * empty and all keys stand in `directory` by their names. SubPath: `directory` is the mount path, a file or a
     * directory; keys and paths as above, empty when the subPath is not known (subPathExpr) or names nothing in the
     * volume that is known. Env: paths[i] is the variable that holds keys[i]; envFrom: keys is empty (all of them),
     * `directory` the prefix. */
    char *directory;
    struct cr_strvec keys;
    struct cr_strvec paths;
};

struct cr_usage_list {
    struct cr_usage *items;
    size_t len;
};
void cr_usage_list_dispose(struct cr_usage_list *list);
CR_DEFINE_DISPOSE(cr_usage_list, struct cr_usage_list, cr_usage_list_dispose)

/* A Secret's usages that are looked at, and about how many bytes of text they may have: a user may mount a volume of
 * many items thousands of times, and each usage has the name of its image. As docs/limits.md says. */
enum { CR_USAGES_MAX = 256, CR_USAGES_BYTES_MAX = 1024 * 1024 };
/* All usages of the Secret in the PodSpec: init containers, then containers, each in the order of the template; an
 * entry per mount and source, one for all secretKeyRefs of a container, one per envFrom. A volume that no container
 * mounts is no usage; neither is a Secret that only a CSI driver or the kubelet reads (imagePullSecrets,
 * nodePublishSecretRef). Where there are more than is looked at, a SubPath without directory and keys is the last: what
 * never refreshes decides. */
void cr_usage_collect(const struct cr_json *pod_spec, const char *secret, struct cr_usage_list *out);

/* Names of all Secrets that the PodSpec's volumes (mounted or not) and environment refer to, each once. out: empty
 * before. */
void cr_usage_secrets(const struct cr_json *pod_spec, struct cr_strvec *out);
/* The same of those in volumes that some container mounts. */
void cr_usage_mounted(const struct cr_json *pod_spec, struct cr_strvec *out);

/* Names of the Secrets that a whole object uses, each once. Workloads: those with a usage in the pod template (an Argo
 * Rollout with a workloadRef has none of its own). Ingress
 * (networking.k8s.io/v1): spec.tls[].secretName. Gateway (gateway.networking.k8s.io/v1):
 * spec.listeners[].tls.certificateRefs, of its own namespace only. Other kinds: none. out: empty before. */
void cr_usage_of_object(const char *kind, const struct cr_json *object, struct cr_strvec *out);

/* Hosts of one object that are looked at: each is compared with each name of a leaf. */
enum { CR_USAGE_HOSTS_MAX = 256 };
/* Adds the hosts for which the leaf of this Secret is shown by an Ingress (spec.tls[].hosts) or a Gateway
 * (spec.listeners[].hostname), the first CR_USAGE_HOSTS_MAX of them. A listener with several certificateRefs adds none:
 * which certificate is shown depends on what the others hold. Other kinds: none. */
void cr_usage_hosts(const char *kind, const struct cr_json *object, const char *secret, struct cr_strvec *out);

#endif
