/* The state behind cr_auth. */
#ifndef CR_KUBE_AUTH_INTERNAL_H
#define CR_KUBE_AUTH_INTERNAL_H

#include <pthread.h>

#include "kube/auth.h"
#include "kube/backoff.h"

struct cr_auth_wait {
    struct cr_auth *auth;
    struct cr_auth_wait_options options;
    bool posted;    /* to the loop, which owns it then */
    bool cancelled; /* loop thread */
    LIST_ENTRY(cr_auth_wait) link;
};

struct cr_auth {
    pthread_mutex_t lock;   /* guards all below but what never changes in config */
    pthread_cond_t changed; /* a run of the plugin ended, or a user was cancelled */
    struct cr_kube_config *config;
    int64_t read_ms;    /* of the files; monotonic */
    char *file_trouble; /* said once, not each minute */
    LIST_HEAD(, cr_auth_user) users;
    uint64_t generation; /* how many times there were new credentials */

    /* The plugin; all zero without one. */
    bool running;
    pthread_t thread;
    bool to_join;
    int cancel_fd; /* eventfd; -1: none */
    bool has_credential;
    bool refused;          /* the server does not take it: no caller gets it before the run under way has ended */
    int64_t refused_ms;    /* when a refusal had the plugin run; monotonic */
    int64_t refresh_at_ms; /* wall clock: from then on a new one is fetched, while this one still serves */
    int64_t expires_ms;    /* wall clock: of no use afterwards */
    int64_t retry_ms;      /* monotonic: not run before, after a failure */
    struct cr_backoff backoff;
    struct cr_error failure; /* of the last run; kind None: it went well */
    char *plugin_trouble;
    LIST_HEAD(, cr_auth_wait) waits;
};

/* Under the lock. Notifies all users that CA or certificate changed. */
void cr_auth_notify_users(struct cr_auth *auth);
/* Under the lock. Says trouble once in the log; NULL: it is over. */
void cr_auth_note_trouble(const struct cr_auth *auth, char **last, const char *what, const char *trouble);

#endif
