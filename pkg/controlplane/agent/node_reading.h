/* What is on the node at this moment: its static pods, its kubelet, which program reads which file, what is in the
 * files, and since when the processes run. Reads only. The node's own paths may be seen below a folder (a container's
 * mount of the host's root): links are followed below that folder, as the host would.
 *
 * A kubelet is known by its process alone, which has its command line: while it does not run it has no rows, and
 * without layout.manifests kubeadm's folder is looked at, with a trouble that says so. A caller that remembers rows
 * keeps them over such a moment. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_READING_H
#define CR_CONTROLPLANE_AGENT_NODE_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "controlplane/agent/kubelet_files.h"
#include "controlplane/agent/node_material.h"
#include "controlplane/agent/parameters.h"
#include "controlplane/agent/static_pod.h"
#include "pki/ca_set.h"
#include "sys/proc.h"

struct cr_node_layout {
    const char *root;      /* prefix of the host's paths; "": the host's are ours */
    const char *proc;      /* "/proc" of the host's process namespace */
    const char *manifests; /* NULL: the kubelet's staticPodPath */
    /* status.nodeInfo.kubeletVersion of the Node ("v1.36.3"); NULL: not known, and so the strictest. It is not in
     * /proc, and no program of the host is run to be asked. */
    const char *kubelet_version;
    /* Only processes of this agent's own network namespace are the node's (static pods of a control plane and the
     * kubelet are in the host's). */
    bool own_network_only;
};

/* A program that runs, or ought to: each container of a static pod that the catalogue knows and that stays (an init
 * container does not), and, last, the kubelet. What probes start (etcdctl) has rows and is no program: each run is a
 * new process. If several processes may be the program, the youngest is: the one before is about to end. */
struct cr_node_program {
    char *component; /* "kube-apiserver", "kubelet" */
    char *version;   /* NULL: not known */
    char *pod;       /* of the manifest, without the node's name; NULL: the kubelet */
    char *container; /* NULL: the kubelet */
    char *manifest;  /* the host's path; NULL: the kubelet */
    bool running;
    struct cr_proc process; /* with running */
    /* Wall clock; 0: does not run. Worked out of ticks since the machine started, so it differs by some ms from look to
     * look, and by more when the clock was set: identity distinguishes one process from another. */
    int64_t started_ms;
    char *identity; /* of the process, for ever: "<boot id>-<pid>-<ticks>"; NULL: does not run */
};

/* A file by what it is now: parallel to parameters.items. */
struct cr_node_content {
    struct cr_node_material material;
    struct cr_strvec issuers; /* Leaf: fingerprints of those of cas that it verifies against, each trusted alone */
    bool exists;
    uint64_t device, inode; /* two names of one file are equal in both */
    int64_t ctime_ms;       /* wall; of the last link on the way to it, or the file: whichever is later */
};

struct cr_node_look {
    struct cr_node_program *programs;
    size_t programs_len;
    struct cr_node_parameters parameters;
    struct cr_node_content *contents; /* [parameters.len] */
    struct cr_ca_set *cas;            /* of all Trust files of the node */
    struct cr_static_pod **pods;      /* owned; by their manifests' names */
    char **manifests;                 /* [pods_len] host paths */
    size_t pods_len;
    struct cr_kubelet_files kubelet;
    bool has_kubelet;
    /* What is to be watched, as this process sees it: every file that was read or is missing, by its name and, where
     * links led elsewhere, by where it really is; and every folder whose entries were listed, so that a new name
     * counts. */
    struct cr_strvec paths, folders;
};
void cr_node_look_dispose(struct cr_node_look *look);
CR_DEFINE_DISPOSE(cr_node_look, struct cr_node_look, cr_node_look_dispose)

/* The catalogue must outlive out. What cannot be read is a trouble in out->parameters.troubles, or the content's
 * problem, never an end. Blocks for the disk; one thread. Keys are wiped. now_ms: wall. */
void cr_node_look(const struct cr_node_layout *layout, const struct cr_catalogue *catalogue, int64_t now_ms,
                  struct cr_node_look *out);

/* The node's projected service account tokens (below the kubelet's folder, pods/<uid>/volumes/kubernetes.io~projected),
 * counted by the "kid" of their header. *items owned, by key, those without one last. A pod that has ended has none,
 * since its volumes go with its containers. A process that sees the folder as a container's mount sees the tokens of
 * later pods only with mountPropagation: HostToContainer. False: a folder cannot be read, so the count is not known. */
bool cr_node_tokens_count(const struct cr_node_layout *layout, const char *kubelet_folder,
                          struct cr_node_token_count **items, size_t *len, struct cr_error *err) CR_MUST_USE;

#endif
