#include "runtime/start_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"
#include "kube/backoff.h"

struct cr_start_check {
    struct cr_start_check_options options;
    void (*on_passed)(void *arg);
    void *on_passed_arg;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool started;
    bool stop;
    struct cr_error last; /* kind None: it holds */
};

struct cr_start_check *cr_start_check_new(const struct cr_start_check_options *options)
{
    struct cr_start_check *check = cr_new(struct cr_start_check);
    check->options = *options;
    cr_error_set(&check->last, CR_ERR_TRANSIENT, "what must hold before anything is written is being checked");
    cr_cond_init(&check->changed);
    pthread_mutex_init(&check->lock, NULL);
    return check;
}

void cr_start_check_free(struct cr_start_check *check)
{
    if (!check)
        return;
    cr_start_check_stop(check);
    pthread_cond_destroy(&check->changed);
    pthread_mutex_destroy(&check->lock);
    free(check);
}

/* --- the thread --- */

/* Returns whether it goes on. */
static bool note(struct cr_start_check *check, const struct cr_error *why)
{
    pthread_mutex_lock(&check->lock);
    bool known = why->kind == check->last.kind && strcmp(why->text, check->last.text) == 0;
    bool stop = check->stop;
    if (!stop)
        check->last = *why;
    pthread_mutex_unlock(&check->lock);
    if (!stop && !known && check->options.on_refused && why->kind != CR_ERR_NONE)
        check->options.on_refused(check->options.arg, why);
    return !stop;
}

/* Returns whether it goes on. */
static bool pause_for(struct cr_start_check *check, int64_t ms)
{
    int64_t until_ms = cr_clock_monotonic_ms() + ms;
    pthread_mutex_lock(&check->lock);
    while (!check->stop && cr_cond_wait_until(&check->changed, &check->lock, until_ms))
        ;
    bool stop = check->stop;
    pthread_mutex_unlock(&check->lock);
    return !stop;
}

static void *run(void *arg)
{
    struct cr_start_check *check = arg;
    struct cr_backoff pace = {.first_ms = check->options.first_ms, .max_ms = check->options.max_ms};
    for (;;) {
        struct cr_error why = {0};
        bool holds = check->options.holds(check->options.arg, &why);
        if (!note(check, &why))
            return NULL;
        if (holds)
            break;
        if (!pause_for(check, cr_backoff_next(&pace)))
            return NULL;
    }
    check->on_passed(check->on_passed_arg);
    return NULL;
}

void cr_start_check_start(struct cr_start_check *check, void (*on_passed)(void *arg), void *arg)
{
    check->on_passed = on_passed;
    check->on_passed_arg = arg;
    if (cr_thread_start(&check->thread, run, check) != 0) {
        cr_log(CR_LOG_ERROR, "no thread can be started for the check at the start");
        abort();
    }
    pthread_mutex_lock(&check->lock);
    check->started = true;
    pthread_mutex_unlock(&check->lock);
}

void cr_start_check_stop(struct cr_start_check *check)
{
    pthread_mutex_lock(&check->lock);
    bool runs = check->started;
    check->started = false;
    check->stop = true;
    pthread_cond_broadcast(&check->changed);
    pthread_mutex_unlock(&check->lock);
    if (!runs)
        return;
    if (check->options.cancel)
        check->options.cancel(check->options.arg);
    pthread_join(check->thread, NULL);
}

bool cr_start_check_passed(struct cr_start_check *check, struct cr_error *err)
{
    pthread_mutex_lock(&check->lock);
    bool passed = check->last.kind == CR_ERR_NONE;
    if (!passed)
        *err = check->last;
    pthread_mutex_unlock(&check->lock);
    return passed;
}
