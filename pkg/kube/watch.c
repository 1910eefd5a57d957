#include "kube/watch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/cause.h"
#include "kube/client_internal.h"
#include "kube/config_internal.h"
#include "kube/status.h"
#include "kube/watch_internal.h"

enum {
    MAX_FRAME = 4 * 1024 * 1024, /* etcd takes 1.5 MiB; JSON may double that. Above it only the name is read */
    MAX_PAGE = 16 * 1024 * 1024, /* else the next has half as many objects. One has 9 MiB when all of it is escaped */
    MAX_ERROR = 64 * 1024,
    PAGE = 500,
    PAGE_IDLE_MS = 60 * 1000,
    WATCH_MIN_S = 5 * 60, /* client-go's span: the server's load is spread */
    WATCH_MAX_S = 10 * 60,
    WATCH_GRACE_MS = 30 * 1000, /* beyond the time-out that the server was asked for */
    BACKOFF_FIRST_MS = 500,
    BACKOFF_MAX_MS = 30 * 1000,
    HEALTHY_MS = 60 * 1000,
    SHORT_MS = 5 * 1000, /* a stream that ends sooner did not do its work */
    MAX_RETRY_AFTER_MS = 5 * 60 * 1000,
    MISSING_MIN_MS = 60 * 1000, /* what the cluster does not have, a person adds, and waits that long for it */
};

/* --- the request --- */

static enum cr_watch_phase next_phase(const struct cr_watch *watch)
{
    if (watch->resource_version)
        return CR_WATCH_EVENTS;
    return watch->no_stream_list ? CR_WATCH_PAGES : CR_WATCH_STREAM_LIST;
}

static void add_number(struct cr_buf *path, const char *key, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    cr_query_add(path, key, text);
}

static char *request_path(const struct cr_watch *watch, int timeout_s)
{
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_autofree char *base = cr_resource_path(watch->resource, watch->ns, NULL, NULL);
    cr_buf_puts(&path, base);
    cr_query_add(&path, "labelSelector", watch->label_selector);
    cr_query_add(&path, "fieldSelector", watch->field_selector);
    if (watch->phase == CR_WATCH_PAGES) {
        add_number(&path, "limit", watch->page_limit);
        cr_query_add(&path, "continue", watch->continue_token);
        return cr_buf_steal(&path);
    }
    cr_query_add(&path, "watch", "true");
    cr_query_add(&path, "allowWatchBookmarks", "true");
    add_number(&path, "timeoutSeconds", timeout_s);
    if (watch->phase == CR_WATCH_STREAM_LIST) {
        cr_query_add(&path, "sendInitialEvents", "true");
        cr_query_add(&path, "resourceVersionMatch", "NotOlderThan");
        cr_query_add(&path, "resourceVersion", ""); /* the most recent state */
    } else {
        cr_query_add(&path, "resourceVersion", watch->resource_version);
    }
    return cr_buf_steal(&path);
}

static bool on_status(void *arg, int status, int retry_after_ms);
static bool on_data(void *arg, const char *data, size_t len);
static void on_end(void *arg, const struct cr_error *err);

static void begin_connection(struct cr_watch *watch)
{
    watch->phase = next_phase(watch);
    watch->status = 0;
    watch->retry_after_ms = 0;
    watch->ended = false;
    watch->problem = (struct cr_error){0};
    watch->opened_ms = cr_clock_monotonic_ms();
    cr_frames_reset(&watch->frames);
    cr_buf_dispose(&watch->body);
}

static void connect(struct cr_watch *watch, const struct cr_credential *credential)
{
    int timeout_s = (int)cr_random_between(WATCH_MIN_S, WATCH_MAX_S);
    cr_autofree char *path = request_path(watch, timeout_s);
    cr_autofree char *url = cr_asprintf("%s%s", cr_client_config(watch->client)->server, path);
    const struct cr_http_request request = {.method = "GET",
                                            .url = url,
                                            .bearer = credential->token,
                                            .accept = "application/json",
                                            .secret = watch->secret};
    const struct cr_http_stream_handler handler = {
        .on_status = on_status, .on_data = on_data, .on_end = on_end, .arg = watch};
    int idle_ms = watch->phase == CR_WATCH_PAGES ? PAGE_IDLE_MS : timeout_s * 1000 + WATCH_GRACE_MS;
    watch->generation = credential->generation;
    struct cr_http_stream *stream = cr_http_stream_start(cr_client_streams(watch->client), &request, &handler, idle_ms);
    watch->stream = watch->ended ? NULL : stream;
}

static void on_credentials(void *arg);
static void broken(struct cr_watch *watch, struct cr_error *err);

/* Here nothing may wait: while a credential plugin runs, the connection begins again when the plugin ends. */
static void start_connection(void *arg)
{
    struct cr_watch *watch = arg;
    begin_connection(watch);
    struct cr_error err = {0};
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    const struct cr_auth_wait_options options = {
        .loop = cr_client_loop(watch->client), .on_ended = on_credentials, .arg = watch};
    switch (cr_auth_ask(cr_client_auth(watch->client), &options, &watch->wait, &credential, &err)) {
    case CR_AUTH_READY:
        connect(watch, &credential);
        return;
    case CR_AUTH_PENDING:
        return;
    case CR_AUTH_FAILED:
        broken(watch, &err);
    }
}

static void on_credentials(void *arg)
{
    struct cr_watch *watch = arg;
    watch->wait = NULL;
    start_connection(watch);
}

/* --- the answer --- */

static bool on_status(void *arg, int status, int retry_after_ms)
{
    struct cr_watch *watch = arg;
    watch->status = status;
    watch->retry_after_ms = retry_after_ms;
    cr_client_metrics_answered(cr_client_metrics(watch->client), "GET", status);
    if (status != 200)
        return true; /* the body says why */
    if (watch->phase == CR_WATCH_STREAM_LIST)
        watch->handler.on_replace(watch->handler.arg);
    if (watch->handler.on_connected)
        watch->handler.on_connected(watch->handler.arg);
    return true;
}

/* The start of an error answer is enough; a list must be whole. */
static bool collect(struct cr_watch *watch, const char *data, size_t len)
{
    bool list = watch->status == 200;
    watch->body.max = list ? MAX_PAGE : MAX_ERROR;
    watch->body.secret = watch->secret;
    if (cr_buf_append(&watch->body, data, len) || !list)
        return true;
    if (watch->page_limit > 1)
        watch->page_limit /= 2;
    return cr_error_set(&watch->problem, CR_ERR_TRANSIENT, "a page is longer than %d bytes, next with limit=%d",
                        MAX_PAGE, watch->page_limit);
}

static bool take_data(struct cr_watch *watch, const char *data, size_t len)
{
    if (watch->status != 200 || watch->phase == CR_WATCH_PAGES)
        return collect(watch, data, len);
    if (cr_frames_feed(&watch->frames, data, len, &watch->problem))
        return true;
    if (watch->problem.kind == CR_ERR_INVALID)
        watch->bad_data = true;
    return false;
}

/* What is done because of it, here and in workers, is measured from now. */
static bool on_data(void *arg, const char *data, size_t len)
{
    struct cr_watch *watch = arg;
    cr_client_metrics_received(cr_client_metrics(watch->client), watch->resource, len);
    cr_cause_set(cr_clock_monotonic_ns());
    bool more = take_data(watch, data, len);
    cr_cause_set(0);
    return more;
}

/* --- after the end --- */

/* Who can put it right, and how. */
static void advise(const struct cr_watch *watch, struct cr_error *err)
{
    char advice[256] = "";
    const char *group = watch->resource->group;
    if (err->kind == CR_ERR_FORBIDDEN)
        snprintf(advice, sizeof advice, "; grant get, list and watch on %s%s%s %s%s", watch->resource->plural,
                 *group ? "." : "", group, watch->ns ? "in namespace " : "in all namespaces", cr_or_empty(watch->ns));
    else if (err->kind == CR_ERR_NOT_FOUND)
        snprintf(advice, sizeof advice, "; the server does not know %s in %s%s%s: is the CRD installed?",
                 watch->resource->plural, group, *group ? "/" : "", watch->resource->version);
    size_t used = strlen(err->text);
    if (used + strlen(advice) < sizeof err->text)
        memcpy(err->text + used, advice, strlen(advice) + 1);
}

static int64_t retry_delay(struct cr_watch *watch, const struct cr_error *err)
{
    int64_t delay = cr_backoff_next(&watch->backoff);
    if (watch->optional && (err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_FORBIDDEN))
        return cr_random_between(MISSING_MIN_MS, 2 * MISSING_MIN_MS);
    int64_t asked = err->retry_after_ms;
    if (asked > MAX_RETRY_AFTER_MS)
        asked = MAX_RETRY_AFTER_MS;
    /* A little later than asked for, since all other clients got the same time. */
    return asked > 0 ? asked + cr_random_between(0, delay) : delay;
}

static void retry(struct cr_watch *watch, struct cr_error *err)
{
    struct cr_auth *auth = cr_client_auth(watch->client);
    /* No answer at all may mean that its certificate is of a new CA. */
    if (!watch->status)
        cr_auth_reread(auth);
    else if (err->kind == CR_ERR_UNAUTHORIZED)
        (void)cr_auth_refused(auth, watch->generation);
    advise(watch, err);
    cr_client_metrics_restarted(cr_client_metrics(watch->client), watch->resource, err->kind);
    int64_t delay = retry_delay(watch, err);
    cr_timer_arm(watch->timer, delay);
    if (watch->handler.on_trouble)
        watch->handler.on_trouble(watch->handler.arg, err, delay);
}

static void forget_list(struct cr_watch *watch)
{
    cr_strset(&watch->resource_version, NULL);
    cr_strset(&watch->continue_token, NULL);
}

/* Servers before 1.27 and those without the gate answer 422 or 400 to a streaming list. */
static bool refused_stream_list(const struct cr_watch *watch)
{
    return watch->phase == CR_WATCH_STREAM_LIST && (watch->status == 400 || watch->status == 422);
}

static void fall_back_to_pages(struct cr_watch *watch, const char *why)
{
    watch->no_stream_list = true;
    cr_log(CR_LOG_INFO, "no streaming lists on this server, listing in pages", {"resource", watch->resource->plural},
           {"why", why});
}

/* err says what was done as well. */
static void failed(struct cr_watch *watch, struct cr_error *err)
{
    if (refused_stream_list(watch)) {
        fall_back_to_pages(watch, err->text);
        cr_timer_arm(watch->timer, 0);
        return;
    }
    /* Gone: too old. Invalid: the server cannot read the version or the token that we had of it. */
    if (err->kind == CR_ERR_GONE || (err->kind == CR_ERR_INVALID && watch->status >= 400))
        forget_list(watch);
    retry(watch, err);
}

static void broken(struct cr_watch *watch, struct cr_error *err)
{
    cr_error_wrap(err, "%s", watch->what);
    failed(watch, err);
}

/* The body ended as it should. */
static void completed(struct cr_watch *watch)
{
    struct cr_error err = {0};
    if (watch->phase == CR_WATCH_PAGES) {
        if (cr_watch_take_page(watch, &err))
            cr_timer_arm(watch->timer, 0);
        else
            broken(watch, &err);
        return;
    }
    if (watch->phase == CR_WATCH_STREAM_LIST) {
        if (++watch->unmarked >= 2)
            fall_back_to_pages(watch, "the list ended twice without its mark");
        cr_error_set(&err, CR_ERR_TRANSIENT, "the list ended before it was complete");
        broken(watch, &err);
        return;
    }
    int64_t lived = cr_clock_monotonic_ms() - watch->opened_ms;
    if (lived >= SHORT_MS) {
        cr_client_metrics_restarted(cr_client_metrics(watch->client), watch->resource, CR_ERR_NONE);
        cr_timer_arm(watch->timer, 0); /* the time-out that was asked for */
        return;
    }
    cr_error_set(&err, CR_ERR_TRANSIENT, "the server ended the watch after %lld ms", (long long)lived);
    broken(watch, &err);
}

static void note_health(struct cr_watch *watch)
{
    if (watch->status != 200 || cr_clock_monotonic_ms() - watch->opened_ms < HEALTHY_MS)
        return;
    cr_backoff_reset(&watch->backoff);
    watch->bad_data = false;
}

static void on_end(void *arg, const struct cr_error *end)
{
    struct cr_watch *watch = arg;
    watch->stream = NULL;
    watch->ended = true;
    if (watch->closing)
        return;
    note_health(watch);
    /* A frame that was cut is dropped: resource_version is that of the last whole one, so it comes again. */
    cr_frames_reset(&watch->frames);
    struct cr_error err = watch->problem;
    if (err.kind == CR_ERR_NONE && end) {
        if (end->kind == CR_ERR_CANCELLED)
            return; /* the client goes */
        err = *end;
    }
    if (!watch->status)
        cr_client_metrics_answered(cr_client_metrics(watch->client), "GET", 0);
    if (err.kind != CR_ERR_NONE) {
        broken(watch, &err);
    } else if (watch->status != 200) {
        cr_status_from_response(watch->what, watch->status, watch->retry_after_ms, watch->body.data, watch->body.len,
                                &err);
        failed(watch, &err);
    } else {
        completed(watch);
    }
}

/* --- life --- */

struct cr_watch *cr_watch_start(struct cr_client *client, struct cr_loop *loop, const struct cr_watch_options *options,
                                const struct cr_watch_handler *handler)
{
    struct cr_watch *watch = cr_new(struct cr_watch);
    watch->client = client;
    watch->resource = options->resource;
    watch->ns = cr_strdup_or_null(options->ns);
    watch->label_selector = cr_strdup_or_null(options->label_selector);
    watch->field_selector = cr_strdup_or_null(options->field_selector);
    watch->secret = options->secret;
    watch->apart = options->apart;
    watch->optional = options->optional;
    watch->handler = *handler;
    watch->page_limit = PAGE;
    watch->backoff = (struct cr_backoff){.first_ms = BACKOFF_FIRST_MS, .max_ms = BACKOFF_MAX_MS};
    const struct cr_frames_handler frames = {.on_frame = cr_watch_take_frame,
                                             .wants = handler->wants ? cr_watch_wants : NULL,
                                             .on_passed = cr_watch_pass_over,
                                             .on_too_long = cr_watch_take_name,
                                             .arg = watch};
    cr_frames_init(&watch->frames, MAX_FRAME, options->secret, &frames);
    cr_autofree char *path = cr_resource_path(watch->resource, watch->ns, NULL, NULL);
    watch->what = cr_asprintf("watch %s", path);
    watch->timer = cr_timer_new(loop, start_connection, watch);
    cr_timer_arm(watch->timer, 0);
    return watch;
}

void cr_watch_free(struct cr_watch *watch)
{
    if (!watch)
        return;
    watch->closing = true;
    cr_auth_wait_cancel(watch->wait);
    if (watch->stream)
        cr_http_stream_cancel(watch->stream);
    cr_timer_free(watch->timer);
    cr_frames_dispose(&watch->frames);
    cr_buf_dispose(&watch->body);
    free(watch->ns);
    free(watch->label_selector);
    free(watch->field_selector);
    free(watch->what);
    free(watch->resource_version);
    free(watch->continue_token);
    free(watch);
}
