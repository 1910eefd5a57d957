/* The manifest of a static pod, as a kubelet finds it in its folder: which programs it starts with which words, and
 * which files of the host those words mean. Pure: the text goes in, nothing is opened.
 *
 * Sources: the kubelet reads one Pod per file (pkg/kubelet/config/common.go tryDecodeSinglePod, file.go), expands
 * $(VAR) and mounts as pkg/kubelet/kubelet_pods.go makeMounts does; kubernetes.io/docs/concepts/storage/volumes
 * (hostPath, subPath). */
#ifndef CR_CONTROLPLANE_AGENT_STATIC_POD_H
#define CR_CONTROLPLANE_AGENT_STATIC_POD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "catalogue/catalogue.h"

enum cr_static_mount_kind {
    CR_STATIC_MOUNT_FOLDER, /* a folder of the host: files in it are seen as they are, renamed ones too */
    CR_STATIC_MOUNT_FILE,   /* a file of the host alone: the container keeps the inode, a renamed one is never seen */
    CR_STATIC_MOUNT_EITHER, /* of the host, a folder or a file: the manifest does not say (hostPath without a type,
                             * or a subPath) */
    CR_STATIC_MOUNT_ELSEWHERE, /* a volume that is no hostPath: projected, emptyDir, an image's */
    CR_STATIC_MOUNT_UNKNOWN,   /* what it shows is not known: no such volume, a subPathExpr that stays open */
};

struct cr_static_mount {
    enum cr_static_mount_kind kind;
    char *path; /* of the container; absolute, without a slash at the end */
    char *host; /* of the host, subPath included; NULL for Elsewhere and Unknown */
    bool sub;   /* part of a volume (subPath) */
};

struct cr_static_container {
    const struct cr_json *json; /* borrowed from the pod: what cr_program.container takes */
    char *name;
    char *image;
    char *version; /* the image's tag; NULL: none (a digest only) */
    bool init;     /* runs once, before the others (restartPolicy Always: does not) */
    /* The program's words, its own name first, whether the manifest has them in command, in args, behind a wrapper
     * (hyperkube, kube-log-runner, go-runner, tini, dumb-init, env) or in the script of a shell. "--flag=value" and
     * "--flag", "value" stay as they are. Without a command, which leaves the first word to the image, argv is the args
     * alone. */
    struct cr_strvec argv;
    bool argv_has_name; /* argv[0] is the program; false: the image's own, argv begins with its first argument */
    /* False: the process may be given other words than these, since a variable that the manifest does not show stands
     * in them, or a script does more than start one program at its end. Then argv is as much as could be read. */
    bool argv_known;
    struct cr_static_mount *mounts; /* in the order of the manifest */
    size_t mounts_len;
};

struct cr_static_pod {
    struct cr_json *json; /* owned: the whole Pod */
    const char *name;     /* borrowed from json. The mirror pod's is this, "-" and the node's name */
    const char *ns;       /* borrowed; "default" when the manifest has none, as in the kubelet */
    bool host_network;
    struct cr_static_container *containers; /* initContainers first, then containers */
    size_t len;
};

enum { CR_STATIC_POD_CONTAINERS_MAX = 64, CR_STATIC_POD_MOUNTS_MAX = 256 /* of one container */ };

/* One Pod of v1 in YAML, or, as in the kubelet, in JSON when the text begins with "{"; at most CR_YAML_MAX_BYTES.
 * Refused is what codec/yaml.h refuses (anchors, keys that come twice, numbers that two readers take differently), what
 * is no Pod, has no name, or has more than the caps. Owned. Errors: Invalid, with words that begin "the manifest".
 * Thread-safe, as all here. */
struct cr_static_pod *cr_static_pod_read(const char *text, size_t len, struct cr_error *err) CR_MUST_USE;
void cr_static_pod_free(struct cr_static_pod *pod);
CR_DEFINE_CLEANUP(cr_static_pod, struct cr_static_pod, cr_static_pod_free)

/* The value of an annotation of the manifest; NULL: none. Borrowed. */
const char *cr_static_pod_annotation(const struct cr_static_pod *pod, const char *name);

/* The base name of the program ("kube-apiserver"); NULL: the image's own, or it is not known. Borrowed. */
const char *cr_static_container_process(const struct cr_static_container *container);
/* What the catalogue knows the container as: by its process (RKE2 has one image for all of Kubernetes), else by its
 * image. NULL: unknown. Borrowed from the catalogue. */
const struct cr_component *cr_static_container_component(const struct cr_static_container *container,
                                                         const struct cr_catalogue *catalogue);

enum cr_static_place {
    CR_STATIC_PLACE_HOST,      /* path is the file's on the host */
    CR_STATIC_PLACE_IMAGE,     /* below no mount: the image's own file */
    CR_STATIC_PLACE_ELSEWHERE, /* in a volume that is no hostPath */
    CR_STATIC_PLACE_UNKNOWN,   /* cannot be determined; why says it in words */
};

struct cr_static_file {
    enum cr_static_place place;
    char *path; /* owned; only with Host */
    /* The path is a mount point itself and not known to be a folder, so if it is a file it is mounted alone: a rename
     * on the host is never seen in the container, only what is written in place and, for programs that watch, not even
     * that for sure (docs/control-plane-measured.md). */
    bool alone;
    const char *why; /* static words, with Elsewhere, Image and Unknown: "is below no mount" */
};
void cr_static_file_dispose(struct cr_static_file *file);
CR_DEFINE_DISPOSE(cr_static_file, struct cr_static_file, cr_static_file_dispose)

/* The file of the host that a path of the container means: the longest mount that holds it counts. A relative path is
 * below workingDir where the manifest has one. Links are not followed: a link in a mounted folder leads where it leads
 * *in the container*. A path with ".." cannot be determined, since a link may stand before it. */
void cr_static_container_file(const struct cr_static_container *container, const char *path,
                              struct cr_static_file *out);

#endif
