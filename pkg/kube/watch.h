/* A reflector: list, then watch, for ever. Lists as a streaming watch (sendInitialEvents, KEP-3157) where the server
 * has it, else in pages; bookmarks move the resourceVersion; 410 lists again; 429/503 honour Retry-After without
 * listing again; jittered exponential backoff; random 5–10 min watch time-outs; silence longer than the time-out ends a
 * stream. Frames are cut at newlines and size-capped before they are parsed. */
#ifndef CR_KUBE_WATCH_H
#define CR_KUBE_WATCH_H

#include "base/cleanup.h"
#include "codec/json.h"
#include "kube/client.h"

/* All callbacks run in the loop's thread and must not free the watch. */
struct cr_watch_handler {
    /* Whether an object is to be looked at, asked before more of it is read: what is not wanted is passed over, added,
     * changed or deleted, and of an event costs neither parsing nor memory, whatever its size. ns "": none. Borrowed.
     * NULL: all are. */
    bool (*wants)(void *arg, const char *ns, const char *name);
    /* Added or modified; takes the object. */
    void (*on_object)(void *arg, struct cr_json *object);
    /* It is there, and too large to be read (CR_OBJECT_VALUES_MAX, or the bytes of an event): what is known of it from
     * before is older. Borrowed. Optional. */
    void (*on_unreadable)(void *arg, const char *ns, const char *name);
    /* Deleted; the object is borrowed. */
    void (*on_delete)(void *arg, const struct cr_json *object);
    /* A full state begins: what on_object does not bring until on_synced is gone. */
    void (*on_replace)(void *arg);
    /* The full state is complete (each time). */
    void (*on_synced)(void *arg);
    /* For the log and metrics: connection trouble, with what will be done. Optional. */
    void (*on_trouble)(void *arg, const struct cr_error *err, int64_t retry_ms);
    /* The server accepted a list or a watch: earlier trouble is over. Optional. */
    void (*on_connected)(void *arg);
    /* Nothing happened up to this resourceVersion. Optional. */
    void (*on_bookmark)(void *arg, const char *resource_version);
    void *arg;
};

struct cr_watch_options {
    const struct cr_resource *resource; /* static */
    const char *ns;                     /* NULL: all namespaces. Copied */
    const char *label_selector;         /* NULL: none. Copied */
    const char *field_selector;
    bool secret; /* wipe frames and objects: the data carries keys */
    /* A member of the objects that stays text (cr_json_text) when an event brings it, for what is big: on_object takes
     * it out of the object before it returns. Static; NULL: none. */
    const char *apart;
    /* The cluster may not have it, or not let us see it, and that is no error: asked again every one or two minutes. */
    bool optional;
};

struct cr_watch;
/* Loop thread, or before the loop runs. */
struct cr_watch *cr_watch_start(struct cr_client *client, struct cr_loop *loop, const struct cr_watch_options *options,
                                const struct cr_watch_handler *handler);
/* Loop thread, or after the loop has ended. No callback comes afterwards. */
void cr_watch_free(struct cr_watch *watch);
CR_DEFINE_CLEANUP(cr_watch, struct cr_watch, cr_watch_free)

#endif
