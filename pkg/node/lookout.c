#include "node/lookout.h"

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

enum { NO_WATCH_MS = 10 * 1000 /* without inotify it is asked for anew so often */ };

struct cr_lookout {
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    int wake_fd; /* eventfd */

    /* The thread's alone. */
    struct cr_strvec watched_paths, watched_folders;
    struct cr_folder_watch *files; /* NULL: nothing to watch yet, or none to be had */
    int folders_fd;                /* inotify; -1 likewise */
    int64_t listed_ms;             /* monotonic: an entry of a folder changed; 0: none since */

    pthread_mutex_t lock; /* guards the rest */
    bool stop;
    bool fresh; /* paths and folders are not taken yet */
    struct cr_strvec paths, folders;
    struct cr_error blind; /* kind None: it sees */
};

static void wake(struct cr_lookout *lookout)
{
    const uint64_t one = 1;
    ssize_t ignored = write(lookout->wake_fd, &one, sizeof one);
    (void)ignored;
}

/* --- the thread --- */

static void note_blindness(struct cr_lookout *lookout, const struct cr_error *err)
{
    pthread_mutex_lock(&lookout->lock);
    bool news = lookout->blind.kind != err->kind;
    lookout->blind = *err;
    pthread_mutex_unlock(&lookout->lock);
    if (news && err->kind != CR_ERR_NONE)
        cr_log(CR_LOG_WARN, "files are looked at now and then only, since they cannot be watched",
               {"error", err->text});
}

static bool watch_folders(struct cr_lookout *lookout, struct cr_error *err)
{
    static const uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE;
    if (lookout->folders_fd < 0)
        lookout->folders_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (lookout->folders_fd < 0)
        return cr_error_set(err, CR_ERR_TRANSIENT, "folders cannot be watched: %s", strerror(errno));
    for (size_t i = 0; i < lookout->watched_folders.len; i++) {
        const char *folder = lookout->watched_folders.items[i];
        if (inotify_add_watch(lookout->folders_fd, folder, mask | IN_ONLYDIR) < 0 && errno == ENOSPC)
            return cr_error_set(err, CR_ERR_TRANSIENT,
                                "%s cannot be watched: raise the sysctl fs.inotify.max_user_watches", folder);
    }
    return true;
}

static bool watch_files(struct cr_lookout *lookout, struct cr_error *err)
{
    /* A folder that is replaced is told of by the one above it. */
    CR_CLEANUP(cr_strvec) struct cr_strvec all = {0};
    cr_strvec_copy(&all, &lookout->watched_paths);
    cr_strvec_copy(&all, &lookout->watched_folders);
    cr_folder_watch_free(lookout->files);
    lookout->files = cr_folder_watch_new((const char *const *)all.items, all.len, err);
    return lookout->files != NULL;
}

static void close_folders(struct cr_lookout *lookout)
{
    if (lookout->folders_fd >= 0)
        close(lookout->folders_fd);
    lookout->folders_fd = -1;
}

/* True: what is watched is not what was watched before. */
static bool take_wishes(struct cr_lookout *lookout)
{
    bool other = false;
    pthread_mutex_lock(&lookout->lock);
    if (lookout->fresh) {
        other = !cr_strvec_equal(&lookout->paths, &lookout->watched_paths) ||
                !cr_strvec_equal(&lookout->folders, &lookout->watched_folders);
        cr_strvec_dispose(&lookout->watched_paths);
        cr_strvec_dispose(&lookout->watched_folders);
        cr_strvec_copy(&lookout->watched_paths, &lookout->paths);
        cr_strvec_copy(&lookout->watched_folders, &lookout->folders);
    }
    lookout->fresh = false;
    pthread_mutex_unlock(&lookout->lock);
    return other;
}

static void watch_all(struct cr_lookout *lookout, bool other)
{
    struct cr_error err = {0};
    if (other)
        close_folders(lookout); /* else folders of before would stay watched */
    bool sees = watch_folders(lookout, &err) && ((lookout->files && !other) || watch_files(lookout, &err));
    (void)sees;
    note_blindness(lookout, &err);
    if (other)
        lookout->changed(lookout->arg);
}

static void drain_folders(struct cr_lookout *lookout)
{
    _Alignas(struct inotify_event) char buf[4096];
    while (lookout->folders_fd >= 0 && read(lookout->folders_fd, buf, sizeof buf) > 0)
        lookout->listed_ms = cr_clock_monotonic_ms();
}

/* Milliseconds until something is due; -1: nothing is. */
static int due(struct cr_lookout *lookout)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    int files = lookout->files ? cr_folder_watch_due(lookout->files, now_ms) : -1;
    drain_folders(lookout);
    int64_t quiet = lookout->listed_ms ? lookout->listed_ms + CR_FOLDER_WATCH_QUIET_MS - now_ms : -1;
    if (files == 0 || (lookout->listed_ms && quiet <= 0)) {
        lookout->listed_ms = 0;
        lookout->changed(lookout->arg);
        return 0;
    }
    if (files < 0 || quiet < 0)
        return files < 0 ? (int)quiet : files;
    return files < quiet ? files : (int)quiet;
}

/* False: it is to end. */
static bool wait_for(struct cr_lookout *lookout, int ms)
{
    struct pollfd fds[] = {
        {.fd = lookout->wake_fd, .events = POLLIN},
        {.fd = lookout->files ? cr_folder_watch_fd(lookout->files) : -1, .events = POLLIN},
        {.fd = lookout->folders_fd, .events = POLLIN},
    };
    (void)poll(fds, 3, ms);
    uint64_t ignored;
    if (fds[0].revents & POLLIN)
        (void)!read(lookout->wake_fd, &ignored, sizeof ignored);
    pthread_mutex_lock(&lookout->lock);
    bool stop = lookout->stop;
    pthread_mutex_unlock(&lookout->lock);
    return !stop;
}

static bool is_blind(struct cr_lookout *lookout)
{
    struct cr_error err = {0};
    return !cr_lookout_sees(lookout, &err);
}

static void *run(void *arg)
{
    struct cr_lookout *lookout = arg;
    int ms = -1;
    while (wait_for(lookout, ms)) {
        pthread_mutex_lock(&lookout->lock);
        bool fresh = lookout->fresh;
        pthread_mutex_unlock(&lookout->lock);
        bool blind = is_blind(lookout);
        if (fresh || blind)
            watch_all(lookout, take_wishes(lookout));
        ms = due(lookout);
        if (is_blind(lookout) && (ms < 0 || ms > NO_WATCH_MS))
            ms = NO_WATCH_MS;
    }
    return NULL;
}

/* --- outside --- */

static bool start_thread(struct cr_lookout *lookout, struct cr_error *err)
{
    int error = cr_thread_start(&lookout->thread, run, lookout);
    return error == 0 || cr_error_set(err, CR_ERR_TRANSIENT, "cannot start a thread: %s", strerror(error));
}

static void destroy(struct cr_lookout *lookout)
{
    cr_folder_watch_free(lookout->files);
    close_folders(lookout);
    if (lookout->wake_fd >= 0)
        close(lookout->wake_fd);
    cr_strvec_dispose(&lookout->watched_paths);
    cr_strvec_dispose(&lookout->watched_folders);
    cr_strvec_dispose(&lookout->paths);
    cr_strvec_dispose(&lookout->folders);
    pthread_mutex_destroy(&lookout->lock);
    free(lookout);
}

struct cr_lookout *cr_lookout_start(void (*changed)(void *arg), void *arg, struct cr_error *err)
{
    struct cr_lookout *lookout = cr_new(struct cr_lookout);
    *lookout = (struct cr_lookout){.changed = changed, .arg = arg, .folders_fd = -1};
    pthread_mutex_init(&lookout->lock, NULL);
    lookout->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lookout->wake_fd >= 0 && start_thread(lookout, err))
        return lookout;
    if (lookout->wake_fd < 0)
        cr_error_set(err, CR_ERR_TRANSIENT, "cannot make an eventfd: %s", strerror(errno));
    destroy(lookout);
    return NULL;
}

void cr_lookout_set(struct cr_lookout *lookout, const struct cr_strvec *paths, const struct cr_strvec *folders)
{
    pthread_mutex_lock(&lookout->lock);
    cr_strvec_dispose(&lookout->paths);
    cr_strvec_dispose(&lookout->folders);
    cr_strvec_copy(&lookout->paths, paths);
    cr_strvec_copy(&lookout->folders, folders);
    lookout->fresh = true;
    pthread_mutex_unlock(&lookout->lock);
    wake(lookout);
}

bool cr_lookout_sees(struct cr_lookout *lookout, struct cr_error *err)
{
    pthread_mutex_lock(&lookout->lock);
    struct cr_error blind = lookout->blind;
    pthread_mutex_unlock(&lookout->lock);
    return blind.kind == CR_ERR_NONE || cr_error_set(err, blind.kind, "%s", blind.text);
}

void cr_lookout_free(struct cr_lookout *lookout)
{
    if (!lookout)
        return;
    pthread_mutex_lock(&lookout->lock);
    lookout->stop = true;
    pthread_mutex_unlock(&lookout->lock);
    wake(lookout);
    pthread_join(lookout->thread, NULL);
    destroy(lookout);
}
