#include "controlplane/agent/file_watcher.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "tlsreload/folder_watch.h"

enum { RETRY_MS = 10 * 1000 /* how often it tries again where inotify is not to be had */ };

struct cr_file_watcher {
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    int wake_fd; /* eventfd */

    /* Used by the thread only. */
    struct cr_strvec watched_paths, watched_folders;
    struct cr_folder_watch *files; /* NULL: nothing to watch yet, or none to be had */
    int folders_fd;                /* inotify; -1 likewise */
    int64_t listed_ms;             /* monotonic: an entry of a folder changed; 0: none since */

    pthread_mutex_t lock; /* guards the rest */
    bool stop;
    bool replaced; /* paths and folders, since the thread last took them */
    struct cr_strvec paths, folders;
    struct cr_error failure; /* kind None: it watches */
};

static void wake(struct cr_file_watcher *watcher)
{
    const uint64_t one = 1;
    ssize_t ignored = write(watcher->wake_fd, &one, sizeof one);
    (void)ignored;
}

/* --- the thread --- */

static void set_failure(struct cr_file_watcher *watcher, const struct cr_error *err)
{
    pthread_mutex_lock(&watcher->lock);
    bool is_new = watcher->failure.kind != err->kind;
    watcher->failure = *err;
    pthread_mutex_unlock(&watcher->lock);
    if (is_new && err->kind != CR_ERR_NONE)
        cr_log(CR_LOG_WARN, "files cannot be watched: changes are found by the periodic survey only",
               {"error", err->text});
}

static bool watch_folders(struct cr_file_watcher *watcher, struct cr_error *err)
{
    static const uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE;
    if (watcher->folders_fd < 0)
        watcher->folders_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watcher->folders_fd < 0)
        return cr_error_set(err, CR_ERR_TRANSIENT, "folders cannot be watched: %s", strerror(errno));
    for (size_t i = 0; i < watcher->watched_folders.len; i++) {
        const char *folder = watcher->watched_folders.items[i];
        if (inotify_add_watch(watcher->folders_fd, folder, mask | IN_ONLYDIR) < 0 && errno == ENOSPC)
            return cr_error_set(err, CR_ERR_TRANSIENT,
                                "%s cannot be watched: raise the sysctl fs.inotify.max_user_watches", folder);
    }
    return true;
}

static bool watch_files(struct cr_file_watcher *watcher, struct cr_error *err)
{
    /* The folder above reports that a folder was replaced. */
    CR_CLEANUP(cr_strvec) struct cr_strvec all = {0};
    cr_strvec_copy(&all, &watcher->watched_paths);
    cr_strvec_copy(&all, &watcher->watched_folders);
    cr_folder_watch_free(watcher->files);
    watcher->files = cr_folder_watch_new((const char *const *)all.items, all.len, err);
    return watcher->files != NULL;
}

static void close_folders(struct cr_file_watcher *watcher)
{
    if (watcher->folders_fd >= 0)
        close(watcher->folders_fd);
    watcher->folders_fd = -1;
}

/* True: what is watched is not what was watched before. */
static bool take_replacement(struct cr_file_watcher *watcher)
{
    bool other = false;
    pthread_mutex_lock(&watcher->lock);
    if (watcher->replaced) {
        other = !cr_strvec_equal(&watcher->paths, &watcher->watched_paths) ||
                !cr_strvec_equal(&watcher->folders, &watcher->watched_folders);
        cr_strvec_dispose(&watcher->watched_paths);
        cr_strvec_dispose(&watcher->watched_folders);
        cr_strvec_copy(&watcher->watched_paths, &watcher->paths);
        cr_strvec_copy(&watcher->watched_folders, &watcher->folders);
    }
    watcher->replaced = false;
    pthread_mutex_unlock(&watcher->lock);
    return other;
}

static void watch_all(struct cr_file_watcher *watcher, bool other)
{
    struct cr_error err = {0};
    if (other)
        close_folders(watcher); /* else the earlier folders would stay watched */
    bool watches = watch_folders(watcher, &err) && ((watcher->files && !other) || watch_files(watcher, &err));
    (void)watches; /* err says it */
    set_failure(watcher, &err);
    if (other)
        watcher->changed(watcher->arg);
}

static void drain_folders(struct cr_file_watcher *watcher)
{
    _Alignas(struct inotify_event) char buf[4096];
    while (watcher->folders_fd >= 0 && read(watcher->folders_fd, buf, sizeof buf) > 0)
        watcher->listed_ms = cr_clock_monotonic_ms();
}

/* Milliseconds until something is due; -1: nothing is. */
static int due(struct cr_file_watcher *watcher)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    int files = watcher->files ? cr_folder_watch_due(watcher->files, now_ms) : -1;
    drain_folders(watcher);
    int64_t quiet = watcher->listed_ms ? watcher->listed_ms + CR_FOLDER_WATCH_QUIET_MS - now_ms : -1;
    if (files == 0 || (watcher->listed_ms && quiet <= 0)) {
        watcher->listed_ms = 0;
        watcher->changed(watcher->arg);
        return 0;
    }
    if (files < 0 || quiet < 0)
        return files < 0 ? (int)quiet : files;
    return files < quiet ? files : (int)quiet;
}

/* False: it is to end. */
static bool wait_for(struct cr_file_watcher *watcher, int ms)
{
    struct pollfd fds[] = {
        {.fd = watcher->wake_fd, .events = POLLIN},
        {.fd = watcher->files ? cr_folder_watch_fd(watcher->files) : -1, .events = POLLIN},
        {.fd = watcher->folders_fd, .events = POLLIN},
    };
    (void)poll(fds, 3, ms);
    uint64_t ignored;
    if (fds[0].revents & POLLIN)
        (void)!read(watcher->wake_fd, &ignored, sizeof ignored);
    pthread_mutex_lock(&watcher->lock);
    bool stop = watcher->stop;
    pthread_mutex_unlock(&watcher->lock);
    return !stop;
}

static bool has_failed(struct cr_file_watcher *watcher)
{
    struct cr_error err = {0};
    return !cr_file_watcher_works(watcher, &err);
}

static void *run(void *arg)
{
    struct cr_file_watcher *watcher = arg;
    int ms = -1;
    while (wait_for(watcher, ms)) {
        pthread_mutex_lock(&watcher->lock);
        bool replaced = watcher->replaced;
        pthread_mutex_unlock(&watcher->lock);
        bool failed = has_failed(watcher);
        if (replaced || failed)
            watch_all(watcher, take_replacement(watcher));
        ms = due(watcher);
        if (has_failed(watcher) && (ms < 0 || ms > RETRY_MS))
            ms = RETRY_MS;
    }
    return NULL;
}

/* --- outside --- */

static bool start_thread(struct cr_file_watcher *watcher, struct cr_error *err)
{
    int error = cr_thread_start(&watcher->thread, run, watcher);
    return error == 0 || cr_error_set(err, CR_ERR_TRANSIENT, "cannot start a thread: %s", strerror(error));
}

static void destroy(struct cr_file_watcher *watcher)
{
    cr_folder_watch_free(watcher->files);
    close_folders(watcher);
    if (watcher->wake_fd >= 0)
        close(watcher->wake_fd);
    cr_strvec_dispose(&watcher->watched_paths);
    cr_strvec_dispose(&watcher->watched_folders);
    cr_strvec_dispose(&watcher->paths);
    cr_strvec_dispose(&watcher->folders);
    pthread_mutex_destroy(&watcher->lock);
    free(watcher);
}

struct cr_file_watcher *cr_file_watcher_start(void (*changed)(void *arg), void *arg, struct cr_error *err)
{
    struct cr_file_watcher *watcher = cr_new(struct cr_file_watcher);
    *watcher = (struct cr_file_watcher){.changed = changed, .arg = arg, .folders_fd = -1};
    pthread_mutex_init(&watcher->lock, NULL);
    watcher->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher->wake_fd >= 0 && start_thread(watcher, err))
        return watcher;
    if (watcher->wake_fd < 0)
        cr_error_set(err, CR_ERR_TRANSIENT, "cannot make an eventfd: %s", strerror(errno));
    destroy(watcher);
    return NULL;
}

void cr_file_watcher_set(struct cr_file_watcher *watcher, const struct cr_strvec *paths,
                         const struct cr_strvec *folders)
{
    pthread_mutex_lock(&watcher->lock);
    cr_strvec_dispose(&watcher->paths);
    cr_strvec_dispose(&watcher->folders);
    cr_strvec_copy(&watcher->paths, paths);
    cr_strvec_copy(&watcher->folders, folders);
    watcher->replaced = true;
    pthread_mutex_unlock(&watcher->lock);
    wake(watcher);
}

bool cr_file_watcher_works(struct cr_file_watcher *watcher, struct cr_error *err)
{
    pthread_mutex_lock(&watcher->lock);
    struct cr_error failure = watcher->failure;
    pthread_mutex_unlock(&watcher->lock);
    return failure.kind == CR_ERR_NONE || cr_error_set(err, failure.kind, "%s", failure.text);
}

void cr_file_watcher_free(struct cr_file_watcher *watcher)
{
    if (!watcher)
        return;
    pthread_mutex_lock(&watcher->lock);
    watcher->stop = true;
    pthread_mutex_unlock(&watcher->lock);
    wake(watcher);
    pthread_join(watcher->thread, NULL);
    destroy(watcher);
}
