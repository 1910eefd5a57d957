#include "drain/manager.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "drain/drain_metrics.h"
#include "drain/drain_thread.h"
#include "drain/ready_file.h"
#include "wire/http_server.h"

/* Requests that wait for the same thing. Loop thread only, or after the loop has ended. */

struct cr_waiter;

struct cr_waiters {
    struct cr_waiter *first; /* owned */
};

struct cr_waiter {
    struct cr_waiter *next;          /* owned */
    struct cr_http_pending *pending; /* owned */
    int64_t until_ms;
};

static void forget_the_gone(struct cr_waiters *waiters)
{
    for (struct cr_waiter **at = &waiters->first; *at;) {
        struct cr_waiter *waiter = *at;
        if (!cr_http_pending_is_gone(waiter->pending)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        cr_http_pending_answer(waiter->pending, 0, "", NULL); /* it reaches no client */
        free(waiter);
    }
}

/* Takes pending. until_ms: monotonic; INT64_MAX: without an end. Those that have hung up are forgotten. */
static void waiters_add(struct cr_waiters *waiters, struct cr_http_pending *pending, int64_t until_ms)
{
    struct cr_waiter *waiter = cr_new(struct cr_waiter);
    forget_the_gone(waiters);
    *waiter = (struct cr_waiter){.next = waiters->first, .pending = pending, .until_ms = until_ms};
    waiters->first = waiter;
}

/* Answers those that have waited long enough at now_ms; INT64_MAX: all. */
static void waiters_answer(struct cr_waiters *waiters, int64_t now_ms, int status, const char *content_type,
                           const struct cr_buf *body)
{
    for (struct cr_waiter **at = &waiters->first; *at;) {
        struct cr_waiter *waiter = *at;
        if (waiter->until_ms > now_ms) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        cr_http_pending_answer(waiter->pending, status, content_type, body);
        free(waiter);
    }
}

/* True when at least one waits. */
static bool waiters_any(const struct cr_waiters *waiters)
{
    for (const struct cr_waiter *at = waiters->first; at; at = at->next)
        if (!cr_http_pending_is_gone(at->pending))
            return true;
    return false;
}

enum { OK = 200, FAILED = 500, UNAVAILABLE = 503 };
enum { LOOK_MS = 250, FINISH_LOOK_MS = 50, MOMENT_MS = 3000, ANSWERS_MS = 1000 };

static const char json[] = "application/json";
static const char plain[] = "text/plain; charset=utf-8";

struct cr_drain_manager {
    const struct cr_drain_flags *flags;
    struct cr_loop *loop;
    struct cr_metrics *metrics;
    struct cr_drain_metrics drain_metrics;
    struct cr_http_server *server; /* NULL: no pages */
    struct cr_drain_thread *drain;
    struct cr_waiters for_drain; /* for its end */
    struct cr_ready_file file;
    struct cr_waiters for_file;
    struct cr_timer *look; /* for the file, while a request waits for it */
    bool file_seen;
    void (*over)(void *arg, enum cr_drain_result result);
    void *over_arg;
    struct cr_timer *notify; /* over, when the answers are out */
    enum cr_drain_result result;
    int64_t answers_end_ms;
    struct cr_timer *finish;
    int64_t moment_ends_ms;
    void (*done)(void *arg);
    void *done_arg;
};

/* --- texts --- */

static void put_progress(const struct cr_drain_progress *progress, struct cr_buf *out)
{
    const int64_t ms_per_s = 1000;
    cr_buf_printf(out, "\"result\":\"%s\",\"elapsedSeconds\":%lld.%03lld,\"openConnections\":",
                  cr_drain_result_word(progress->result), (long long)(progress->elapsed_ms / ms_per_s),
                  (long long)(progress->elapsed_ms % ms_per_s));
    if (progress->known)
        cr_buf_printf(out, "%llu", (unsigned long long)progress->open);
    else
        cr_buf_puts(out, "null");
    cr_buf_printf(out, ",\"errors\":%llu,\"lastError\":", (unsigned long long)progress->errors);
    cr_text_quote(progress->last_error.text, out);
}

static int status_page(void *arg, struct cr_buf *body, const char **content_type)
{
    struct cr_drain_manager *manager = arg;
    struct cr_drain_progress progress;
    bool has_begun = cr_drain_thread_progress(manager->drain, &progress);
    *content_type = json;
    cr_buf_printf(body, "{\"proxy\":\"%s\",\"phase\":\"%s\",", manager->flags->strategy->name,
                  has_begun ? cr_drain_phase_word(progress.phase) : "Idle");
    put_progress(&progress, body);
    cr_buf_puts(body, "}\n");
    return OK;
}

static int metrics_page(void *arg, struct cr_buf *body, const char **content_type)
{
    struct cr_drain_manager *manager = arg;
    *content_type = "text/plain; version=0.0.4; charset=utf-8";
    cr_metrics_write(manager->metrics, body);
    return OK;
}

static int health_page(void *arg, struct cr_buf *body, const char **content_type)
{
    (void)arg;
    (void)content_type;
    cr_buf_puts(body, "ok\n");
    return OK;
}

/* --- the drain --- */

/* The process may end with the drain, and the answers with it, so they are waited for; but a client that does not read
 * its answer does not delay the end. */
static void notify_over(void *arg)
{
    struct cr_drain_manager *manager = arg;
    bool waits = manager->server && cr_http_server_waiting(manager->server);
    if (waits && cr_clock_monotonic_ms() < manager->answers_end_ms)
        cr_timer_arm(manager->notify, FINISH_LOOK_MS);
    else
        manager->over(manager->over_arg, manager->result);
}

static void on_over(void *arg)
{
    struct cr_drain_manager *manager = arg;
    struct cr_drain_progress progress;
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    (void)cr_drain_thread_progress(manager->drain, &progress);
    cr_buf_puts(&body, "{");
    put_progress(&progress, &body);
    cr_buf_puts(&body, "}\n");
    waiters_answer(&manager->for_drain, INT64_MAX, OK, json, &body);
    if (!manager->over)
        return;
    manager->result = progress.result;
    manager->answers_end_ms = cr_clock_monotonic_ms() + ANSWERS_MS;
    cr_timer_arm(manager->notify, 0);
}

static bool begin(struct cr_drain_manager *manager, struct cr_error *err)
{
    struct cr_drain_options options = {.strategy = manager->flags->strategy,
                                       .target = manager->flags->target,
                                       .rules = manager->flags->rules,
                                       .attempt_ms = manager->flags->attempt_ms};
    return cr_drain_thread_begin(manager->drain, &options, err);
}

static void shutdown_page(void *arg, struct cr_http_pending *pending)
{
    struct cr_drain_manager *manager = arg;
    struct cr_error err = {0};
    if (begin(manager, &err)) {
        waiters_add(&manager->for_drain, pending, INT64_MAX);
        return;
    }
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_printf(&body, "%s\n", err.text);
    cr_log(CR_LOG_ERROR, "cannot drain", {"error", err.text});
    cr_http_pending_answer(pending, UNAVAILABLE, plain, &body);
}

void cr_drain_manager_begin(struct cr_drain_manager *manager, void (*over)(void *arg, enum cr_drain_result result),
                            void *arg)
{
    struct cr_error err = {0};
    manager->over = over;
    manager->over_arg = arg;
    if (begin(manager, &err))
        return;
    cr_log(CR_LOG_ERROR, "cannot drain", {"error", err.text});
    over(arg, CR_DRAIN_RESULT_NONE);
}

/* --- the ready file --- */

static void answer_file(struct cr_drain_manager *manager, int64_t now_ms, int status, const char *text)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_printf(&body, "%s\n", text);
    waiters_answer(&manager->for_file, now_ms, status, plain, &body);
}

static void look_for_file(void *arg)
{
    struct cr_drain_manager *manager = arg;
    struct cr_error err = {0};
    bool there = false;
    if (!cr_ready_file_is_there(&manager->file, &there, &err))
        cr_log(CR_LOG_DEBUG, "cannot look for the ready file", {"error", err.text});
    if (there && !manager->file_seen)
        cr_log(CR_LOG_INFO, "the ready file is there", {"file", manager->file.path});
    manager->file_seen = manager->file_seen || there;
    if (there)
        answer_file(manager, INT64_MAX, OK, "OK");
    else
        answer_file(manager, cr_clock_monotonic_ms(), FAILED, "the ready file has not come in time");
    if (waiters_any(&manager->for_file))
        cr_timer_arm(manager->look, LOOK_MS);
}

static void ready_page(void *arg, struct cr_http_pending *pending)
{
    struct cr_drain_manager *manager = arg;
    int64_t patience_ms = manager->flags->ready_timeout_ms;
    cr_log(CR_LOG_INFO, "somebody waits for the ready file", {"file", manager->file.path});
    waiters_add(&manager->for_file, pending, patience_ms < 0 ? INT64_MAX : cr_clock_monotonic_ms() + patience_ms);
    look_for_file(manager);
}

/* --- the end --- */

static bool has_been_of_use(struct cr_drain_manager *manager)
{
    struct cr_drain_progress ignored;
    if (manager->flags->waits_for_file)
        return manager->file_seen;
    return cr_drain_thread_progress(manager->drain, &ignored);
}

static void finish_if_over(void *arg)
{
    struct cr_drain_manager *manager = arg;
    bool busy = cr_drain_thread_runs(manager->drain) || (manager->server && cr_http_server_waiting(manager->server));
    bool moment = !has_been_of_use(manager) && cr_clock_monotonic_ms() < manager->moment_ends_ms;
    if (busy || moment)
        cr_timer_arm(manager->finish, FINISH_LOOK_MS);
    else
        manager->done(manager->done_arg);
}

void cr_drain_manager_finish(struct cr_drain_manager *manager, void (*done)(void *arg), void *arg)
{
    manager->done = done;
    manager->done_arg = arg;
    manager->moment_ends_ms = cr_clock_monotonic_ms() + MOMENT_MS;
    cr_timer_arm(manager->finish, 0);
}

/* --- all --- */

struct cr_drain_manager *cr_drain_manager_new(const struct cr_drain_flags *flags, struct cr_loop *loop,
                                              struct cr_metrics *metrics)
{
    struct cr_drain_manager *manager = cr_new(struct cr_drain_manager);
    manager->flags = flags;
    manager->loop = loop;
    manager->metrics = metrics;
    cr_drain_metrics_init(&manager->drain_metrics, metrics);
    manager->drain = cr_drain_thread_new(loop, &manager->drain_metrics, on_over, manager);
    manager->look = cr_timer_new(loop, look_for_file, manager);
    manager->finish = cr_timer_new(loop, finish_if_over, manager);
    manager->notify = cr_timer_new(loop, notify_over, manager);
    if (flags->ready_file && flags->command == CR_DRAIN_COMMAND_SERVE)
        cr_ready_file_watch(&manager->file, flags->ready_file);
    return manager;
}

static void drop_waiters(struct cr_waiters *waiters)
{
    CR_CLEANUP(cr_buf) struct cr_buf body = CR_BUF_INIT(0);
    cr_buf_puts(&body, "shutting down\n");
    waiters_answer(waiters, INT64_MAX, UNAVAILABLE, plain, &body);
}

void cr_drain_manager_free(struct cr_drain_manager *manager)
{
    if (!manager)
        return;
    cr_drain_thread_free(manager->drain);
    drop_waiters(&manager->for_drain);
    drop_waiters(&manager->for_file);
    cr_timer_free(manager->look);
    cr_timer_free(manager->finish);
    cr_timer_free(manager->notify);
    free(manager);
}

void cr_drain_manager_serve(struct cr_drain_manager *manager, struct cr_http_server *server)
{
    const struct cr_drain_flags *flags = manager->flags;
    manager->server = server;
    cr_http_server_handle(server, "/healthz", health_page, manager);
    cr_http_server_handle(server, "/status", status_page, manager);
    cr_http_server_handle(server, "/metrics", metrics_page, manager);
    cr_http_server_make_one_at_a_time(server, "/metrics");
    cr_http_server_handle_waiting(server, "/shutdown", flags->waits_for_file ? ready_page : shutdown_page, manager);
    if (manager->file.path)
        cr_http_server_handle_waiting(server, "/shutdown/ready", ready_page, manager);
}
