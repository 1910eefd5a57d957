/* The API client: requests as blocking calls for workers (never in the loop's thread). Objects stay parsed JSON. Writes
 * are patches, creates and evictions with preconditions; never a PUT of an object read before. All values that go into
 * a URL are percent-encoded here. Errors carry the API's Status: its reason decides the kind, its message the text. */
#ifndef CR_KUBE_CLIENT_H
#define CR_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "codec/json.h"
#include "kube/config.h"
#include "kube/resource.h"
#include "metrics/metrics.h"
#include "net/http.h"
#include "sys/loop.h"

struct cr_client;

/* Connections: one for each thread that asks at the same time (net/http_requests.h), and a pool for watches
 * (net/http.h), on the loop. Takes config. Any thread. */
struct cr_client *cr_client_new(struct cr_loop *loop, struct cr_kube_config *config, const char *user_agent);
/* A client of the same server with the same credentials, but with connections of its own, and with timeout_ms for each
 * request as a whole: for what may not wait for long (a Lease). It has no watches and no write gate. The other client
 * must outlive it; cancelling one does not cancel the other, so a Lease can still be given up when all else has ended.
 * Any thread. */
struct cr_client *cr_client_new_dedicated(struct cr_client *client, int timeout_ms);
/* After the loop has ended, or in its thread; when no thread asks any more: cr_client_cancel, join them, then free. */
void cr_client_free(struct cr_client *client);
CR_DEFINE_CLEANUP(cr_client, struct cr_client, cr_client_free)
/* rest_client_* of its requests, and certroll_watch_* of its watches (docs/metrics.md); also of what is made of it
 * later by cr_client_new_dedicated. metrics outlives the client. Once, before any request. */
void cr_client_count_in(struct cr_client *client, struct cr_metrics *metrics);
/* Borrowed. server, ns and source may be read at any time; credentials and CAs change while the client lives. */
const struct cr_kube_config *cr_client_config(const struct cr_client *client);
/* Shutdown: requests under way and all that come later end with Cancelled. Watches go on. Any thread. */
void cr_client_cancel(struct cr_client *client);

/* For how many ms from now a write (any method but GET) may still be sent; 0 or less: no more. Any thread. */
typedef int64_t (*cr_write_gate_fn)(void *arg);
/* Asked before each write, which is Cancelled when the gate is closed. When it is sent, its time is looked at again (a
 * process may have been stopped in between); if that is over, it is Transient, since the gate may have been kept open
 * meanwhile, and then the work must be done. What is on its way already is not called back: preconditions are for that.
 * Once, before any request. */
void cr_client_set_write_gate(struct cr_client *client, cr_write_gate_fn gate, void *arg);

/* Owned object. Errors: NotFound, Forbidden, … */
struct cr_json *cr_client_get(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                              const char *name, struct cr_error *err) CR_MUST_USE;
/* The same, with metadata.managedFields, which all others leave out. */
struct cr_json *cr_client_get_with_managed_fields(struct cr_client *client, const struct cr_resource *resource,
                                                  const char *ns, const char *name, struct cr_error *err) CR_MUST_USE;
/* As cr_client_get, but the object's member of that name stays text (cr_json_text), for what is big and read once. It
 * lies in answer, which must be empty, is the caller's to dispose, and must not go before the member does. */
struct cr_json *cr_client_get_apart(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                    const char *name, const char *apart, struct cr_buf *answer,
                                    struct cr_error *err) CR_MUST_USE;
/* Whether this literal address, however it is written, and port are the API server's as configured (a name is not
 * resolved). Any thread. */
bool cr_client_is_server(const struct cr_client *client, const char *address, int port);
/* The server's version ("v1.36.3"), owned: the first thing to ask, its errors are the set-up's errors. */
char *cr_client_server_version(struct cr_client *client, struct cr_error *err) CR_MUST_USE;
/* One list, whole: pages are followed, and when the server has forgotten the state they are of (410), the list begins
 * again, at most three times. ns NULL: all namespaces. selectors may be NULL. Owned List object. */
struct cr_json *cr_client_list(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                               const char *label_selector, const char *field_selector,
                               struct cr_error *err) CR_MUST_USE;
struct cr_json *cr_client_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                 const struct cr_json *object, struct cr_error *err) CR_MUST_USE;
/* A create that is a dry run: authorization and admission answer as for a real one, and nothing is stored. False: why
 * not. */
bool cr_client_try_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                          const struct cr_json *object, struct cr_error *err) CR_MUST_USE;
/* Merge patch (RFC 7386) of the object or, with subresource, of "status". Preconditions (metadata.uid,
 * metadata.resourceVersion) are members of the patch, put there by the caller. Owned new object. A precondition that
 * fails is Conflict. */
struct cr_json *cr_client_merge_patch(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                      const char *name, const char *subresource, const struct cr_json *patch,
                                      struct cr_error *err) CR_MUST_USE;
/* Server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/, KEP-555) as manager "certroll":
 * the object, with apiVersion, kind and name, has all fields that we want and no managedFields; it is created when it
 * is not there. A field that another manager has is Conflict, and the text names manager and field; with force it
 * becomes ours. metadata.uid and resourceVersion are preconditions: with a uid it is never created. Owned new object.
 */
struct cr_json *cr_client_apply(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                const char *name, const char *subresource, const struct cr_json *object, bool force,
                                struct cr_error *err) CR_MUST_USE;

struct cr_delete_options {
    const char *uid; /* preconditions, NULL: none. One that fails is Conflict */
    const char *resource_version;
    const char *propagation; /* "Background", "Foreground", "Orphan"; NULL: as the resource has it */
};
/* options NULL: none. True when it is deleted or will be (finalizers); what is not there is NotFound. */
bool cr_client_delete(struct cr_client *client, const struct cr_resource *resource, const char *ns, const char *name,
                      const struct cr_delete_options *options, struct cr_error *err) CR_MUST_USE;
/* policy/v1 Eviction with a UID precondition. 429 (a budget forbids it) is Throttled, with retry_after_ms when the
 * server says; a pod under several budgets, which cannot be evicted at all, is Transient (500, as the server has it).
 */
bool cr_client_evict(struct cr_client *client, const char *ns, const char *pod, const char *uid,
                     struct cr_error *err) CR_MUST_USE;

/* For tests and new kinds: a relative path such as "/version", already encoded. */
struct cr_json *cr_client_raw(struct cr_client *client, const char *method, const char *path, const char *content_type,
                              const char *body, struct cr_error *err) CR_MUST_USE;

#endif
