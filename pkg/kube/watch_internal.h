/* Private to pkg/kube: a reflector's state. watch.c connects and retries; watch_events.c reads what came. */
#ifndef CR_KUBE_WATCH_INTERNAL_H
#define CR_KUBE_WATCH_INTERNAL_H

#include "base/buffer.h"
#include "kube/auth.h"
#include "kube/backoff.h"
#include "kube/watch.h"
#include "kube/watch_frames.h"

enum cr_watch_phase {
    CR_WATCH_STREAM_LIST, /* a watch that begins with the whole state, up to its mark (KEP-3157) */
    CR_WATCH_PAGES,       /* a list in pages, for servers without it */
    CR_WATCH_EVENTS,      /* what happens after resource_version */
};

struct cr_watch {
    struct cr_client *client;
    const struct cr_resource *resource;
    char *ns;
    char *label_selector;
    char *field_selector;
    char *what;        /* "watch /api/v1/pods": for errors */
    const char *apart; /* NULL: none */
    bool secret;
    bool optional;
    struct cr_watch_handler handler;

    /* The state that outlives a connection. */
    char *resource_version; /* up to here all is known; NULL: list first */
    char *continue_token;   /* of a list in pages that has begun; NULL: from the start */
    int page_limit;
    bool no_stream_list; /* the server was found not to have it */
    int unmarked;        /* streaming lists in a row that ended without their mark */
    struct cr_backoff backoff;
    struct cr_timer *timer;
    bool bad_data; /* what came could not be read: events alone do not reset the backoff */
    bool closing;

    /* The connection. */
    struct cr_auth_wait *wait;     /* for credentials; NULL: none */
    uint64_t generation;           /* of the credentials it was opened with */
    struct cr_http_stream *stream; /* NULL: none */
    bool ended;
    enum cr_watch_phase phase;
    int status; /* HTTP; 0: no answer yet */
    int retry_after_ms;
    int64_t opened_ms;
    struct cr_frames frames;
    struct cr_buf body;      /* pages and error answers */
    struct cr_error problem; /* why this side ended it */
};

/* One frame of a watch (of a cr_frames_handler, as the next two; arg is the watch). False ends the connection. */
bool cr_watch_take_frame(void *arg, const char *frame, size_t len, struct cr_error *err) CR_MUST_USE;
bool cr_watch_wants(void *arg, const struct cr_watch_head *head);
/* Nothing of it is looked at, but the watch has seen it. */
void cr_watch_pass_over(void *arg, const struct cr_watch_head *head);
/* An event of an object that is too large to be read. */
void cr_watch_take_name(void *arg, const struct cr_watch_head *head);
/* The page in watch->body. */
bool cr_watch_take_page(struct cr_watch *watch, struct cr_error *err) CR_MUST_USE;

#endif
