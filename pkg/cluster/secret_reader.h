/* Secrets are read, that is decoded and their certificates verified, by a dedicated thread and by callers that need one
 * at once, never by the event loop: what a tenant writes may cost a third of a second (pki/paths.h). The thread serves
 * namespaces round-robin, so that the Secrets of one namespace do not delay those of another. */
#ifndef CR_CLUSTER_SECRET_READER_H
#define CR_CLUSTER_SECRET_READER_H

#include "base/cleanup.h"
#include "codec/json.h"
#include "cluster/secret_refs.h"
#include "cluster/secret_view.h"
#include "runtime/store.h"

enum {
    /* What waits to be read is key material, so its size is limited: bytes of one namespace, and of all namespaces.
     * What is beyond them is dropped and wiped, and the caller that needs it gets it from the API server. */
    CR_SECRET_READER_NAMESPACE_BYTES_MAX = 2 * 1024 * 1024,
    CR_SECRET_READER_BYTES_MAX = 8 * 1024 * 1024,
};

struct cr_secret_reader;
/* refs: borrowed. The thread begins with the first Secret that waits. */
struct cr_secret_reader *cr_secret_reader_new(struct cr_secret_refs *refs);
/* Ends the thread. What still waits is wiped with its snapshot, and must not be asked for any more. */
void cr_secret_reader_free(struct cr_secret_reader *reader);
CR_DEFINE_CLEANUP(cr_secret_reader, struct cr_secret_reader, cr_secret_reader_free)

/* The informer's projection: takes data from json, to be read soon. What is left of json is no secret, and the snapshot
 * is marked so. Its extra is the argument of cr_secret_reader_view; NULL when no policy names the Secret. */
void cr_secret_reader_project(struct cr_secret_reader *reader, struct cr_json *json, struct cr_snapshot *snapshot);
/* The same, but read before it returns. Not on the loop. */
void cr_secret_reader_project_now(struct cr_secret_reader *reader, struct cr_json *json, struct cr_snapshot *snapshot);

/* Owned; NULL when the Secret was not read through these names, or was dropped (then it must be fetched). extra: of a
 * snapshot that was projected, may be NULL. Any thread but the loop's: reads what was not read yet. */
struct cr_secret_view *cr_secret_reader_view(void *extra, const struct cr_policy_secret *names);

/* How many Secrets wait now, for tests. */
size_t cr_secret_reader_waiting(struct cr_secret_reader *reader, size_t *bytes);

#endif
