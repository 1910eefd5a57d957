#include "runtime/workers.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A queue that records its calls, in place of the real one: so delays of many seconds are seen without waiting for
 * them. The real one has tests of its own. */
struct cr_queue {
    pthread_mutex_t lock;
    const char *const *keys; /* to be handed out, up to the NULL */
    struct cr_buf recorded;
};

static void note(struct cr_queue *queue, const char *what, const char *key, int64_t ms)
{
    pthread_mutex_lock(&queue->lock);
    cr_buf_printf(&queue->recorded, "%s %s", what, key);
    if (ms >= 0)
        cr_buf_printf(&queue->recorded, " %lld", (long long)ms);
    cr_buf_puts(&queue->recorded, "; ");
    pthread_mutex_unlock(&queue->lock);
}

char *cr_queue_take(struct cr_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    char *key = cr_strdup_or_null(*queue->keys);
    if (key)
        queue->keys++;
    pthread_mutex_unlock(&queue->lock);
    return key;
}

void cr_queue_done(struct cr_queue *queue, const char *key)
{
    note(queue, "done", key, -1);
}

void cr_queue_forget(struct cr_queue *queue, const char *key)
{
    note(queue, "forget", key, -1);
}

void cr_queue_recorded(struct cr_queue *queue, const char *key)
{
    note(queue, "recorded", key, -1);
}

void cr_queue_add_after(struct cr_queue *queue, const char *key, int64_t delay_ms)
{
    note(queue, "after", key, delay_ms);
}

void cr_queue_add_low(struct cr_queue *queue, const char *key, int64_t delay_ms)
{
    note(queue, "low", key, delay_ms);
}

void cr_queue_add_backoff(struct cr_queue *queue, const char *key, int64_t min_delay_ms)
{
    note(queue, "backoff", key, min_delay_ms);
}

/* --- a reconciler by script --- */

struct outcome {
    const char *rule;
    enum cr_error_kind kind; /* None: success */
    int retry_after_ms;
    int64_t requeue_after_ms;
    const char *recorded; /* with the key "k" */
    const char *result;
    bool is_recorded;
};

struct scene {
    struct cr_loop *loop;
    const struct outcome *outcome;
    pthread_mutex_t lock;
    int calls;
    bool dirty; /* a reconcile began with what another one left */
    int ended;
    bool ended_in_loop;
};

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    (void)key;
    struct scene *scene = arg;
    const struct outcome *outcome = scene->outcome;
    pthread_mutex_lock(&scene->lock);
    scene->calls++;
    scene->dirty = scene->dirty || result->requeue_after_ms || err->kind != CR_ERR_NONE || err->retry_after_ms;
    pthread_mutex_unlock(&scene->lock);
    result->requeue_after_ms = outcome->requeue_after_ms;
    result->recorded = outcome->is_recorded;
    if (outcome->kind == CR_ERR_NONE)
        return true;
    cr_error_set(err, outcome->kind, "as told");
    err->retry_after_ms = outcome->retry_after_ms;
    return false;
}

static void on_ended(void *arg)
{
    struct scene *scene = arg;
    scene->ended++;
    scene->ended_in_loop = cr_loop_in_thread(scene->loop);
    cr_loop_stop(scene->loop);
}

static void give_up(void *loop)
{
    cr_loop_stop(loop);
}

/* Works off the keys with so many threads. Returns the calls that the queue recorded, owned. */
static char *play(const struct outcome *outcome, const char *const *keys, int threads, struct scene *scene,
                  struct cr_metrics *metrics)
{
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    struct cr_queue queue = {.keys = keys};
    *scene = (struct scene){.loop = loop, .outcome = outcome};
    pthread_mutex_init(&scene->lock, NULL);
    pthread_mutex_init(&queue.lock, NULL);
    struct cr_workers_options options = {
        .count = threads,
        .queue = &queue,
        .reconcile = reconcile,
        .arg = scene,
        .total = cr_metrics_counter(metrics, "total", "Reconciles.", CR_LABELS("result")),
        .seconds = cr_metrics_histogram(metrics, "seconds", "How long.", NULL, (const double[]){1000}, 1),
        .on_ended = on_ended,
        .on_ended_arg = scene,
    };
    struct cr_timer *deadline = cr_timer_new(loop, give_up, loop);
    cr_timer_arm(deadline, 20 * 1000);
    struct cr_workers *workers = cr_workers_start(loop, &options);
    cr_loop_run(loop);
    cr_timer_free(deadline);
    cr_workers_free(workers);
    pthread_mutex_destroy(&scene->lock);
    pthread_mutex_destroy(&queue.lock);
    return cr_buf_steal(&queue.recorded);
}

static void the_kind_of_trouble_decides_the_least_delay(void **state)
{
    (void)state;
    static const struct outcome outcomes[] = {
        {"done: its backoff is forgotten, and nothing more", CR_ERR_NONE, 0, 0, "forget k; done k; ", "success"},
        {"done for now: again after a while, backoff forgotten", CR_ERR_NONE, 0, 1500,
         "forget k; after k 1500; done k; ", "requeue_after"},
        {"done, and on record", CR_ERR_NONE, 0, 0, "recorded k; forget k; done k; ", "success", .is_recorded = true},
        {"on record, although not all was done", CR_ERR_FORBIDDEN, 0, 0, "recorded k; backoff k 10000; done k; ",
         "error", .is_recorded = true},
        {"a negative while is none", CR_ERR_NONE, 0, -5, "forget k; done k; ", "success"},
        {"the network: the queue's own backoff", CR_ERR_TRANSIENT, 0, 0, "backoff k 0; done k; ", "error"},
        {"a 503 that says when", CR_ERR_TRANSIENT, 2000, 0, "backoff k 2000; done k; ", "error"},
        {"throttled: not before it said", CR_ERR_THROTTLED, 3000, 0, "backoff k 3000; done k; ", "error"},
        {"throttled without a time: own backoff", CR_ERR_THROTTLED, 0, 0, "backoff k 0; done k; ", "error"},
        {"throttled for longer than a person's pause", CR_ERR_THROTTLED, 60000, 0, "backoff k 60000; done k; ",
         "error"},
        {"a conflict: look again soon", CR_ERR_CONFLICT, 0, 0, "backoff k 0; done k; ", "error"},
        {"gone: look again soon", CR_ERR_GONE, 0, 0, "backoff k 0; done k; ", "error"},
        {"not found: look again soon", CR_ERR_NOT_FOUND, 0, 0, "backoff k 0; done k; ", "error"},
        {"credentials: read again meanwhile", CR_ERR_UNAUTHORIZED, 0, 0, "backoff k 0; done k; ", "error"},
        {"forbidden: a person must act", CR_ERR_FORBIDDEN, 0, 0, "backoff k 10000; done k; ", "error"},
        {"forbidden, and told a shorter time", CR_ERR_FORBIDDEN, 1000, 0, "backoff k 10000; done k; ", "error"},
        {"forbidden, and told a longer time", CR_ERR_FORBIDDEN, 20000, 0, "backoff k 20000; done k; ", "error"},
        {"invalid: a person must act", CR_ERR_INVALID, 0, 0, "backoff k 10000; done k; ", "error"},
        {"a bug: a release must come", CR_ERR_INTERNAL, 0, 0, "backoff k 10000; done k; ", "error"},
        {"a failure's wish to come again does not count", CR_ERR_TRANSIENT, 0, 5, "backoff k 0; done k; ", "error"},
        {"cancelled: dropped", CR_ERR_CANCELLED, 0, 0, "done k; ", "cancelled"},
    };
    static const char *const keys[] = {"k", NULL};
    for (size_t i = 0; i < cr_array_len(outcomes); i++) {
        CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
        struct scene scene;
        cr_autofree char *recorded = play(&outcomes[i], keys, 1, &scene, metrics);
        if (!cr_streq(recorded, outcomes[i].recorded))
            fail_msg("%s: %s", outcomes[i].rule, recorded);
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        cr_metrics_write(metrics, &text);
        cr_autofree char *counted = cr_asprintf("total{result=\"%s\"} 1\n", outcomes[i].result);
        if (!strstr(cr_buf_text(&text), counted) || !strstr(cr_buf_text(&text), "seconds_count 1\n"))
            fail_msg("%s: counted as\n%s", outcomes[i].rule, cr_buf_text(&text));
    }
}

static void what_one_key_left_is_not_the_next_one_s(void **state)
{
    (void)state;
    static const struct outcome outcomes[] = {
        {.kind = CR_ERR_THROTTLED, .retry_after_ms = 9000, .requeue_after_ms = 7},
        {.requeue_after_ms = 7},
    };
    static const char *const keys[] = {"a", "b", "c", NULL};
    for (size_t i = 0; i < cr_array_len(outcomes); i++) {
        struct scene scene;
        cr_autofree char *recorded = play(&outcomes[i], keys, 1, &scene, NULL);
        assert_int_equal(scene.calls, 3);
        assert_false(scene.dirty);
    }
}

static void the_end_is_notified_once_in_the_loop_when_all_have_ended(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", NULL};
    static const struct outcome outcome = {.kind = CR_ERR_CONFLICT};
    for (int threads = 1; threads <= 4; threads++) {
        struct scene scene;
        cr_autofree char *recorded = play(&outcome, keys, threads, &scene, NULL);
        assert_int_equal(scene.calls, cr_array_len(keys) - 1);
        assert_int_equal(scene.ended, 1);
        assert_true(scene.ended_in_loop);
        for (size_t i = 0; keys[i]; i++) {
            cr_autofree char *done = cr_asprintf("done %s; ", keys[i]);
            assert_non_null(strstr(recorded, done));
        }
    }
    cr_workers_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kind_of_trouble_decides_the_least_delay),
        cmocka_unit_test(what_one_key_left_is_not_the_next_one_s),
        cmocka_unit_test(the_end_is_notified_once_in_the_loop_when_all_have_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
