/* What is watched for the control plane: policies in kube-system, and once there is one, nodes and their reports,
 * namespaces, kube-root-ca.crt of each, token Secrets, and the ConfigMap with the key of service accounts. Kept as
 * control_plane_project.h says. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_CACHE_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "runtime/store.h"
#include "sys/loop.h"

/* In kube-system, for programs that must request new tokens themselves: data.key is the key that all API servers sign
 * with. */
#define CR_CONTROL_PLANE_KEY_CONFIGMAP "certroll-service-account-key"
#define CR_ROOT_CA_CONFIGMAP           "kube-root-ca.crt"

enum cr_control_plane_watch {
    CR_WATCH_POLICIES,
    CR_WATCH_REPORTS,
    CR_WATCH_NODES,
    CR_WATCH_NAMESPACES,
    CR_WATCH_ROOT_CAS,
    CR_WATCH_TOKEN_SECRETS,
    CR_WATCH_KEY,
    CR_CONTROL_PLANE_WATCHES,
};

struct cr_control_plane_cache_options {
    struct cr_client *client;
    struct cr_loop *loop;
    /* Called on the loop thread when something has changed. It is not called when an agent has looked again and seen
     * the same, nor for changes to the status of a Node. */
    void (*on_change)(void *arg);
    void *arg;
};

struct cr_control_plane_cache;
/* Starts to watch policies; before the loop runs. */
struct cr_control_plane_cache *cr_control_plane_cache_new(const struct cr_control_plane_cache_options *options);
/* After the loop has ended. */
void cr_control_plane_cache_free(struct cr_control_plane_cache *cache);
CR_DEFINE_CLEANUP(cr_control_plane_cache, struct cr_control_plane_cache, cr_control_plane_cache_free)

/* False, with what is missing: Transient until the first full state of everything is in, Forbidden (with what to grant)
 * or NotFound (the CRD) when a person must help. Any thread. */
bool cr_control_plane_cache_ready(struct cr_control_plane_cache *cache, struct cr_error *err) CR_MUST_USE;

/* References to all of one kind, sorted by "ns/name". */
struct cr_packed_list {
    struct cr_packed_item {
        char *ns, *name; /* owned; ns "": none */
        struct cr_packed *packed;
    } * items;
    size_t len;
};
void cr_packed_list_dispose(struct cr_packed_list *list);
CR_DEFINE_DISPOSE(cr_packed_list, struct cr_packed_list, cr_packed_list_dispose)
/* out need not be initialised. Any thread, as the next. */
void cr_control_plane_cache_list(struct cr_control_plane_cache *cache, enum cr_control_plane_watch watch,
                                 struct cr_packed_list *out);
/* Borrowed; NULL: it is not there. */
struct cr_packed *cr_packed_list_find(const struct cr_packed_list *list, const char *ns, const char *name);
/* A reference, NULL when it is not there. */
struct cr_packed *cr_control_plane_cache_get(struct cr_control_plane_cache *cache, enum cr_control_plane_watch watch,
                                             const char *ns, const char *name);

#endif
