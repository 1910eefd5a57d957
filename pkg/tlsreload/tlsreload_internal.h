/* What the parts of tlsreload share. Private to pkg/tlsreload. */
#ifndef CR_TLSRELOAD_TLSRELOAD_INTERNAL_H
#define CR_TLSRELOAD_TLSRELOAD_INTERNAL_H

#include <pthread.h>

#include "tlsreload/context_internal.h"
#include "tlsreload/folder_watch.h"
#include "tlsreload/tlsreload.h"

/* Who looks at the files when something happened to them. */
struct cr_tls_watcher {
    pthread_mutex_t starting; /* there is one, however many start it */
    bool started;
    pthread_t thread;
    struct cr_folder_watch *watch; /* owned */
    int stop_fd;                   /* an eventfd; -1 until it is started */
};

struct cr_tlsreload {
    struct cr_tlsreload_options options;
    char *paths[3]; /* owned: certificate, key, client CAs; absolute. For fixed material: what errors call it */
    bool fixed;     /* there are no files */
    struct cr_tls_watcher watcher;
    struct cr_tls_sessions sessions; /* for the thread that looks: cr_tlsreload_new's, then the watcher's */

    pthread_mutex_t lock;            /* held for moments: never while something is read or made */
    struct cr_tls_context *current;  /* under the lock; never NULL */
    struct cr_tlsreload_state state; /* under the lock */
};

enum cr_tls_look {
    CR_TLS_SAME,     /* the files hold what is served */
    CR_TLS_RELOADED, /* they hold something else, and that is served now */
    CR_TLS_REFUSED,  /* they hold nothing that can be served, or cannot be read */
};
/* What a look found that was refused. */
struct cr_tls_refusal {
    unsigned char digest[CR_TLS_DIGEST]; /* of what the files hold; zeros when they could not be read */
    struct cr_error error;
    bool in_time; /* not valid yet: another look may find it so without any change */
};
/* Reads the files and serves what they hold, if that can be done. refusal is written when it is refused. */
enum cr_tls_look cr_tlsreload_look(struct cr_tlsreload *tls, struct cr_tls_refusal *refusal);
/* What was refused is now known as that: state and event. */
void cr_tlsreload_report(struct cr_tlsreload *tls, const struct cr_tls_refusal *refusal);

bool cr_tls_watcher_start(struct cr_tlsreload *tls, struct cr_error *err) CR_MUST_USE;
/* Ends it, if there is one. */
void cr_tls_watcher_stop(struct cr_tlsreload *tls);

#endif
