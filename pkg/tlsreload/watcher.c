/* The thread that looks at the files: at each event of their folders, and by the clock for what causes no event. */
#include "tlsreload/tlsreload_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

enum {
    TRIES = 4, /* of a consistent reading, before it is reported that there is none */
    FIRST_PAUSE_MS = 100,
    LONGEST_MS = 5000,   /* so long it goes unsaid at most, however often the files change meanwhile */
    SLOW_MS = 30 * 1000, /* between looks that nothing in the files asks for */
};

/* What went wrong since the last look that went well, or was reported. */
struct trouble {
    int tries;
    int64_t since_ms; /* of the first try of what is not reported yet; -1: none */
    int64_t next_ms;  /* of the next try; -1: when something happens */
    bool reported;
    struct cr_tls_refusal last_reported;
};

static void forget(struct trouble *trouble)
{
    *trouble = (struct trouble){.since_ms = -1, .next_ms = -1};
}

static bool is_reported(const struct trouble *trouble, const struct cr_tls_refusal *refusal)
{
    return trouble->reported && memcmp(trouble->last_reported.digest, refusal->digest, sizeof refusal->digest) == 0 &&
           strcmp(trouble->last_reported.error.text, refusal->error.text) == 0;
}

/* What causes no event: that the disk works again, or that the time has come. */
static bool heals_silently(const struct cr_tls_refusal *refusal)
{
    return refusal->in_time || refusal->error.kind == CR_ERR_TRANSIENT;
}

static void refused(struct cr_tlsreload *tls, struct trouble *trouble, const struct cr_tls_refusal *refusal)
{
    int64_t now = cr_clock_monotonic_ms();
    trouble->next_ms = heals_silently(refusal) ? now + SLOW_MS : -1;
    if (is_reported(trouble, refusal)) {
        trouble->since_ms = -1;
        return;
    }
    if (trouble->since_ms < 0)
        trouble->since_ms = now;
    if (trouble->tries < TRIES && now - trouble->since_ms < LONGEST_MS) {
        trouble->next_ms = now + ((int64_t)FIRST_PAUSE_MS << trouble->tries++);
        return;
    }
    trouble->reported = true;
    trouble->last_reported = *refusal;
    trouble->since_ms = -1;
    cr_tlsreload_report(tls, refusal);
}

static void look(struct cr_tlsreload *tls, struct trouble *trouble)
{
    struct cr_tls_refusal refusal;
    if (cr_tlsreload_look(tls, &refusal) == CR_TLS_REFUSED)
        refused(tls, trouble, &refusal);
    else
        forget(trouble);
}

/* ms until the next look, at most; -1: none is planned. */
static int next_wait_ms(const struct trouble *trouble, int due, int64_t now)
{
    if (trouble->next_ms < 0)
        return due;
    int retry = trouble->next_ms > now ? (int)(trouble->next_ms - now) : 0;
    return due < 0 || retry < due ? retry : due;
}

static bool stopped(const struct cr_tls_watcher *watcher, int wait)
{
    struct pollfd fds[] = {{.fd = watcher->stop_fd, .events = POLLIN},
                           {.fd = cr_folder_watch_fd(watcher->watch), .events = POLLIN}};
    return poll(fds, 2, wait) > 0 && fds[0].revents;
}

static void *watch_on(void *arg)
{
    struct cr_tlsreload *tls = arg;
    struct trouble trouble;
    forget(&trouble);
    look(tls, &trouble); /* what happened between the first reading and the watch */
    for (;;) {
        int64_t now = cr_clock_monotonic_ms();
        int due = cr_folder_watch_due(tls->watcher.watch, now);
        if (due == 0)
            trouble.tries = 0;
        int wait = next_wait_ms(&trouble, due, now);
        if (wait == 0)
            look(tls, &trouble);
        else if (stopped(&tls->watcher, wait))
            return NULL;
    }
}

static bool start(struct cr_tlsreload *tls, struct cr_error *err)
{
    struct cr_tls_watcher *watcher = &tls->watcher;
    CR_CLEANUP(cr_folder_watch)
    struct cr_folder_watch *watch = cr_folder_watch_new((const char *const *)tls->paths, 3, err);
    if (!watch)
        return false;
    watcher->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher->stop_fd < 0)
        return cr_error_set(err, CR_ERR_TRANSIENT, "files cannot be watched: %s", strerror(errno));
    watcher->watch = watch;
    int error = cr_thread_start(&watcher->thread, watch_on, tls);
    if (!error) {
        (void)cr_steal(&watch);
        return true;
    }
    close(watcher->stop_fd);
    return cr_error_set(err, CR_ERR_TRANSIENT, "no thread can be had that watches files: %s", strerror(error));
}

bool cr_tls_watcher_start(struct cr_tlsreload *tls, struct cr_error *err)
{
    struct cr_tls_watcher *watcher = &tls->watcher;
    pthread_mutex_lock(&watcher->starting);
    watcher->started = watcher->started || start(tls, err);
    bool ok = watcher->started;
    pthread_mutex_unlock(&watcher->starting);
    return ok;
}

void cr_tls_watcher_stop(struct cr_tlsreload *tls)
{
    struct cr_tls_watcher *watcher = &tls->watcher;
    if (!watcher->started)
        return;
    eventfd_write(watcher->stop_fd, 1);
    pthread_join(watcher->thread, NULL);
    cr_folder_watch_free(watcher->watch);
    close(watcher->stop_fd);
}
