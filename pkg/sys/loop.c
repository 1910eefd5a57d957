#include "sys/loop.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

struct post {
    struct post *next;
    void (*fn)(void *arg);
    void *arg;
};

struct cr_loop {
    struct event_base *base;
    /* Posts wake the loop by an eventfd, so that libevent itself needs no locks: only one thread ever calls it. */
    int wake_fd;
    struct event *wake;
    struct event *signals[2];
    void (*on_terminate)(void *arg);
    void *terminate_arg;
    _Atomic pid_t owner; /* thread in cr_loop_run, 0: none */
    atomic_bool stop;
    pthread_mutex_t lock; /* guards posts, last */
    struct post *posts;
    struct post **last;
};

struct cr_timer {
    struct event *event;
    void (*fn)(void *arg);
    void *arg;
};

/* A start-up that lacks file descriptors or epoll cannot be served at all. */
static void *needed(void *p, const char *what)
{
    if (!p) {
        cr_log(CR_LOG_ERROR, "the event loop cannot start", {"missing", what});
        abort();
    }
    return p;
}

static struct post *take_posts(struct cr_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct post *first = loop->posts;
    loop->posts = NULL;
    loop->last = &loop->posts;
    pthread_mutex_unlock(&loop->lock);
    return first;
}

/* One batch: what a post posts waits behind the sockets. */
static bool run_posts(struct cr_loop *loop)
{
    struct post *post = take_posts(loop);
    bool any = post != NULL;
    while (post) {
        struct post *next = post->next;
        void (*fn)(void *) = post->fn;
        void *arg = post->arg;
        free(post);
        fn(arg);
        post = next;
    }
    return any;
}

static void wake_up(const struct cr_loop *loop)
{
    uint64_t one = 1;
    ssize_t ignored = write(loop->wake_fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: the counter is full, so the loop is awake anyway */
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct cr_loop *loop = arg;
    uint64_t count = 0;
    ssize_t ignored = read(fd, &count, sizeof count);
    (void)ignored;
    /* Read first: a stop that is seen here was preceded by all posts made before it. */
    bool stop = atomic_load(&loop->stop);
    run_posts(loop);
    if (stop)
        event_base_loopbreak(loop->base);
}

/* No cached time, so that a timer armed after a long callback counts from then; precise, since the coarse clock may
 * fire some milliseconds early and make its callback wait again. */
static struct event_base *new_base(void)
{
    struct event_config *config = needed(event_config_new(), "memory");
    event_config_set_flag(config,
                          EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME | EVENT_BASE_FLAG_PRECISE_TIMER);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return needed(base, "a file descriptor for epoll");
}

struct cr_loop *cr_loop_new(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    struct cr_loop *loop = cr_new(struct cr_loop);
    pthread_mutex_init(&loop->lock, NULL);
    loop->last = &loop->posts;
    loop->base = new_base();
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->wake = needed(event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop), "memory");
    needed(event_add(loop->wake, NULL) == 0 ? loop->wake : NULL, "a file descriptor for wake-ups");
    return loop;
}

void cr_loop_free(struct cr_loop *loop)
{
    if (!loop)
        return;
    atomic_store(&loop->owner, gettid());
    while (run_posts(loop))
        ;
    for (size_t i = 0; i < 2; i++)
        if (loop->signals[i])
            event_free(loop->signals[i]);
    event_free(loop->wake);
    close(loop->wake_fd);
    event_base_loop(loop->base, EVLOOP_NONBLOCK); /* libevent frees connections one pass after they were closed */
    event_base_free(loop->base);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

void cr_loop_run(struct cr_loop *loop)
{
    atomic_store(&loop->owner, gettid());
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    atomic_store(&loop->owner, 0);
}

void cr_loop_stop(struct cr_loop *loop)
{
    atomic_store(&loop->stop, true);
    wake_up(loop);
}

void cr_loop_post(struct cr_loop *loop, void (*fn)(void *arg), void *arg)
{
    struct post *post = cr_new(struct post);
    post->fn = fn;
    post->arg = arg;
    pthread_mutex_lock(&loop->lock);
    bool first = !loop->posts;
    *loop->last = post;
    loop->last = &post->next;
    /* Within the lock: the thread that runs this post may free the loop right after it. */
    if (first)
        wake_up(loop);
    pthread_mutex_unlock(&loop->lock);
}

bool cr_loop_in_thread(const struct cr_loop *loop)
{
    return atomic_load(&loop->owner) == gettid();
}

struct event_base *cr_loop_base(struct cr_loop *loop)
{
    return loop->base;
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    struct cr_loop *loop = arg;
    cr_log(CR_LOG_INFO, "signal received", {"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"});
    loop->on_terminate(loop->terminate_arg);
}

void cr_loop_on_terminate(struct cr_loop *loop, void (*fn)(void *arg), void *arg)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    loop->on_terminate = fn;
    loop->terminate_arg = arg;
    for (size_t i = 0; i < 2; i++) {
        loop->signals[i] = needed(evsignal_new(loop->base, numbers[i], on_signal, loop), "memory");
        event_add(loop->signals[i], NULL);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct cr_timer *timer = arg;
    timer->fn(timer->arg); /* may free the timer */
}

struct cr_timer *cr_timer_new(struct cr_loop *loop, void (*fn)(void *arg), void *arg)
{
    struct cr_timer *timer = cr_new(struct cr_timer);
    timer->fn = fn;
    timer->arg = arg;
    timer->event = needed(evtimer_new(loop->base, on_timer, timer), "memory");
    return timer;
}

void cr_timer_arm(struct cr_timer *timer, int64_t delay_ms)
{
    enum { LONGEST_S = 10 * 365 * 86400 }; /* far below any overflow of the clock's arithmetic */
    if (delay_ms < 0)
        delay_ms = 0;
    if (delay_ms > (int64_t)LONGEST_S * 1000)
        delay_ms = (int64_t)LONGEST_S * 1000;
    struct timeval tv = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
    event_add(timer->event, &tv);
}

void cr_timer_disarm(struct cr_timer *timer)
{
    event_del(timer->event);
}

void cr_timer_free(struct cr_timer *timer)
{
    if (!timer)
        return;
    event_free(timer->event);
    free(timer);
}
