/* Which file of the node is which material of which program, and what the program does when it changes: what static
 * pods and the kubelet are started with, held against the catalogue. Kubeconfigs, etcd's --config-file and --config of
 * kube-scheduler and kube-proxy are followed into the files that they name. Pure but for the caller's own reading.
 *
 * Not seen, since the catalogue has no rows for them: files of webhooks and plug-ins (--admission-control-config-file,
 * --authentication-token-webhook-config-file, --egress-selector-config-file), and links (two names of one file:
 * controlplane/agent/node_reading.h sees those). */
#ifndef CR_CONTROLPLANE_AGENT_PARAMETERS_H
#define CR_CONTROLPLANE_AGENT_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "controlplane/agent/kubelet_files.h"
#include "controlplane/agent/static_pod.h"
#include "catalogue/catalogue.h"

enum cr_node_place {
    CR_NODE_PLACE_HOST,      /* the file `host` of the node */
    CR_NODE_PLACE_EMBEDDED,  /* in the kubeconfig `host`, and read with it */
    CR_NODE_PLACE_ELSEWHERE, /* no file of the node: `why` */
    CR_NODE_PLACE_UNKNOWN,   /* cannot be determined: `why` */
};
const char *cr_node_place_name(enum cr_node_place place); /* "Host", "Embedded", "Elsewhere", "Unknown" */

struct cr_node_parameter {
    char *component; /* "kube-apiserver" */
    char *version;   /* as its image's tag or the caller says; NULL: not known */
    char *pod;       /* of the manifest; NULL: the kubelet */
    char *container; /* NULL: the kubelet */
    char *parameter; /* as the catalogue names it: "--client-ca-file", "ETCD_CERT_FILE", "kubeconfig client-key" */
    char *via;       /* what names the file that says so: "--authentication-kubeconfig"; NULL: it is said itself */
    enum cr_role role;
    enum cr_node_place place;
    char *path; /* as the program sees it; NULL: cannot be determined */
    char *host; /* as the node has it; NULL with Elsewhere and Unknown */
    char *why;  /* with Elsewhere and Unknown, in words */
    /* Mounted as a file by itself, or it may be: what is renamed over it on the node is never seen by the running
     * program, whatever its method. */
    bool alone;
    bool own; /* the kubelet asks the API server for it, writes it, and does not look at what others write there */
    /* A shared signing and trust file: kube-controller-manager signs with it, and a component of this node uses it as a
     * trust bundle, as in kubeadm's layout. A second certificate in it stops all signing, and the next leader does not
     * start ("expected 1 certificate, found 2"). Set in all rows of that file. */
    bool signs_and_trusts;
    struct cr_capability capability; /* method, longest delay, confidence, source; borrowed from the catalogue */
};

enum { CR_NODE_PARAMETERS_MAX = 2048 };

struct cr_node_parameters {
    struct cr_node_parameter *items;
    size_t len;
    /* What could not be determined, in words, each beginning with the program: with any of these the list may miss a
     * file, so nothing that needs all of them is safe. */
    struct cr_strvec troubles;
};
void cr_node_parameters_dispose(struct cr_node_parameters *parameters);
CR_DEFINE_DISPOSE(cr_node_parameters, struct cr_node_parameters, cr_node_parameters_dispose)

/* Files of the node by their absolute paths, for those that are followed. Appends to out, which is secret and capped.
 */
struct cr_node_source {
    bool (*read)(void *ctx, const char *host, struct cr_buf *out, struct cr_error *err);
    void *ctx;
};

/* Adds what each container of the pod reads, and each of its probes that starts a program; nothing for programs that
 * the catalogue does not know. The catalogue must outlive the list. */
void cr_node_parameters_add_pod(struct cr_node_parameters *parameters, const struct cr_catalogue *catalogue,
                                const struct cr_static_pod *pod, const struct cr_node_source *source);
/* version: the kubelet's ("v1.36.3"); NULL: not known, and so the strictest. */
void cr_node_parameters_add_kubelet(struct cr_node_parameters *parameters, const struct cr_catalogue *catalogue,
                                    const struct cr_kubelet_files *files, const char *version,
                                    const struct cr_node_source *source);

/* The two uses of a shared signing and trust file: kube-controller-manager signs with it; it is a trust bundle (a
 * kubeconfig is none, though it may embed one). */
bool cr_node_parameter_signs(const struct cr_node_parameter *parameter);
bool cr_node_parameter_is_bundle(const struct cr_node_parameter *parameter);

/* Whether the program takes up what is written to this file by itself, within capability.max_delay_ms. False is the
 * safe answer: also for what is from memory only, embedded, or mounted alone. */
bool cr_node_parameter_reloads(const struct cr_node_parameter *parameter);

#endif
