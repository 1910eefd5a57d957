#include "drain/drain_thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/alloc.h"
#include "base/log.h"

/* The drain's end on its way to the loop, which may come there when the rest of this is gone. */
struct notice {
    struct cr_drain_thread *thread; /* NULL: gone */
};

struct cr_drain_thread {
    struct cr_loop *loop;
    struct cr_drain_metrics *metrics;
    void (*on_over)(void *arg);
    void *arg;
    struct cr_drain_options options;
    pthread_t id;
    bool runs;
    int cancel_fd;         /* owned */
    struct notice *notice; /* owned by the loop, which runs take_notice */
    pthread_mutex_t lock;  /* of the rest */
    bool has_begun;
    struct cr_drain_progress progress;
};

static void keep_progress(void *arg, const struct cr_drain_progress *progress)
{
    struct cr_drain_thread *thread = arg;
    pthread_mutex_lock(&thread->lock);
    thread->progress = *progress;
    pthread_mutex_unlock(&thread->lock);
    cr_drain_metrics_update(thread->metrics, progress);
}

static void take_notice(void *arg)
{
    cr_autofree struct notice *notice = arg;
    struct cr_drain_thread *thread = notice->thread;
    if (!thread)
        return;
    pthread_join(thread->id, NULL);
    thread->runs = false;
    thread->notice = NULL;
    thread->on_over(thread->arg);
}

static void *run(void *arg)
{
    struct cr_drain_thread *thread = arg;
    struct cr_drain_progress last = {0};
    (void)cr_drain_run(&thread->options, &last);
    pthread_mutex_lock(&thread->lock);
    thread->progress = last;
    pthread_mutex_unlock(&thread->lock);
    cr_drain_metrics_end(thread->metrics, &last);
    cr_loop_post(thread->loop, take_notice, thread->notice);
    return NULL;
}

struct cr_drain_thread *cr_drain_thread_new(struct cr_loop *loop, struct cr_drain_metrics *metrics,
                                            void (*on_over)(void *arg), void *arg)
{
    struct cr_drain_thread *thread = cr_new(struct cr_drain_thread);
    *thread = (struct cr_drain_thread){.loop = loop, .metrics = metrics, .on_over = on_over, .arg = arg};
    pthread_mutex_init(&thread->lock, NULL);
    thread->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->cancel_fd < 0)
        cr_log(CR_LOG_WARN, "a drain cannot be cancelled: no eventfd");
    return thread;
}

void cr_drain_thread_free(struct cr_drain_thread *thread)
{
    if (!thread)
        return;
    if (thread->runs) {
        (void)!eventfd_write(thread->cancel_fd, 1);
        pthread_join(thread->id, NULL);
        thread->notice->thread = NULL;
    }
    if (thread->cancel_fd >= 0)
        close(thread->cancel_fd);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
}

bool cr_drain_thread_begin(struct cr_drain_thread *thread, const struct cr_drain_options *options, struct cr_error *err)
{
    if (thread->runs)
        return true;
    thread->options = *options;
    thread->options.cancel_fd = thread->cancel_fd;
    thread->options.on_progress = keep_progress;
    thread->options.arg = thread;
    thread->notice = cr_new(struct notice);
    thread->notice->thread = thread;
    pthread_mutex_lock(&thread->lock);
    thread->has_begun = true;
    thread->progress = (struct cr_drain_progress){0};
    pthread_mutex_unlock(&thread->lock);
    cr_drain_metrics_begin(thread->metrics);
    int error = pthread_create(&thread->id, NULL, run, thread);
    thread->runs = error == 0;
    if (thread->runs)
        return true;
    free(cr_steal(&thread->notice));
    return cr_error_set(err, CR_ERR_TRANSIENT, "no thread for the drain: %s", strerror(error));
}

bool cr_drain_thread_runs(const struct cr_drain_thread *thread)
{
    return thread->runs;
}

bool cr_drain_thread_progress(struct cr_drain_thread *thread, struct cr_drain_progress *out)
{
    pthread_mutex_lock(&thread->lock);
    bool has_begun = thread->has_begun;
    *out = thread->progress;
    pthread_mutex_unlock(&thread->lock);
    return has_begun;
}
