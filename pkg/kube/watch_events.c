#include "kube/watch_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "kube/client_internal.h"
#include "kube/object.h"
#include "kube/status.h"

/* KEP-3157: the bookmark that ends the initial events. */
static const char initial_end[] = "k8s.io/initial-events-end";

static void discard(const struct cr_watch *watch, struct cr_json *j)
{
    if (watch->secret)
        cr_json_free_secret(j);
    else
        cr_json_free(j);
}

/* An event means that the connection works: the next trouble is a new one. */
static void note_event(struct cr_watch *watch)
{
    if (!watch->bad_data)
        cr_backoff_reset(&watch->backoff);
}

static bool bad_data(struct cr_watch *watch, struct cr_error *err, const char *what)
{
    watch->bad_data = true;
    if (err)
        err->kind = CR_ERR_TRANSIENT;
    return cr_error_wrap(err, "%s", what);
}

/* Until the initial events are complete there is no version to go on from: they come in no order. */
static void advance(struct cr_watch *watch, const char *version)
{
    if (version && *version && watch->phase == CR_WATCH_EVENTS)
        cr_strset(&watch->resource_version, version);
}

static bool take_bookmark(struct cr_watch *watch, const struct cr_json *object, struct cr_error *err)
{
    bool complete = cr_streq(cr_obj_annotation(object, initial_end), "true");
    if (watch->phase == CR_WATCH_STREAM_LIST && !complete) {
        watch->no_stream_list = true;
        return cr_error_set(err, CR_ERR_TRANSIENT, "the server ignores sendInitialEvents");
    }
    bool first = watch->phase == CR_WATCH_STREAM_LIST;
    watch->phase = CR_WATCH_EVENTS;
    advance(watch, cr_obj_resource_version(object));
    if (first && !watch->resource_version)
        return cr_error_set(err, CR_ERR_TRANSIENT, "the bookmark that ends the list has no resourceVersion");
    if (first) {
        watch->unmarked = 0;
        cr_client_metrics_listed(cr_client_metrics(watch->client), watch->resource);
        watch->handler.on_synced(watch->handler.arg);
    } else if (watch->handler.on_bookmark) {
        watch->handler.on_bookmark(watch->handler.arg, cr_or_empty(watch->resource_version));
    }
    return true;
}

static bool wanted(const struct cr_watch *watch, const struct cr_json *object)
{
    return !watch->handler.wants ||
           watch->handler.wants(watch->handler.arg, cr_or_empty(cr_obj_namespace(object)), cr_obj_name(object));
}

bool cr_watch_wants(void *arg, const struct cr_watch_head *head)
{
    const struct cr_watch *watch = arg;
    return watch->handler.wants(watch->handler.arg, head->ns, head->name);
}

void cr_watch_pass_over(void *arg, const struct cr_watch_head *head)
{
    struct cr_watch *watch = arg;
    note_event(watch);
    advance(watch, head->resource_version);
    cr_client_metrics_event(cr_client_metrics(watch->client), watch->resource, "passed_over");
}

/* The server does not choose what labels there are. */
static void count(const struct cr_watch *watch, const char *type)
{
    static const char *const known[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    for (size_t i = 0; i < cr_array_len(known); i++)
        if (strcmp(type, known[i]) == 0)
            cr_client_metrics_event(cr_client_metrics(watch->client), watch->resource, known[i]);
}

/* The object leaves the envelope, so nothing is copied. */
static bool take_event(struct cr_watch *watch, struct cr_json *envelope, struct cr_error *err)
{
    const char *type = cr_or_empty(cr_json_string_at(envelope, "type"));
    struct cr_json *object = cr_json_edit(envelope, "object");
    if (!cr_json_is_object(object))
        return cr_error_set(err, CR_ERR_TRANSIENT, "an event without an object");
    count(watch, type);
    if (strcmp(type, "ERROR") == 0)
        return cr_status_from_object("the watch ended", object, err);
    note_event(watch);
    if (strcmp(type, "BOOKMARK") == 0)
        return take_bookmark(watch, object, err);
    bool deleted = strcmp(type, "DELETED") == 0;
    if (!deleted && strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)
        return true; /* a type of a later server */
    if (!cr_obj_name(object))
        return cr_error_set(err, CR_ERR_TRANSIENT, "an object without a name");
    advance(watch, cr_obj_resource_version(object));
    if (!wanted(watch, object))
        return true;
    if (deleted)
        watch->handler.on_delete(watch->handler.arg, object);
    else
        watch->handler.on_object(watch->handler.arg, cr_json_take(envelope, "object"));
    return true;
}

static struct cr_json *parse_frame(const struct cr_watch *watch, const char *frame, size_t len, struct cr_error *err)
{
    /* Who set which field: often half of an object, and read by nobody here. */
    static const char *const managers[] = {"object", "metadata", "managedFields", NULL};
    const char *const apart[] = {"object", watch->apart, NULL};
    const struct cr_json_parts parts = {.apart = watch->apart ? apart : NULL, .without = managers};
    return cr_json_parse_parts(frame, len, &parts, err);
}

bool cr_watch_take_frame(void *arg, const char *frame, size_t len, struct cr_error *err)
{
    struct cr_watch *watch = arg;
    struct cr_json *envelope = parse_frame(watch, frame, len, err);
    if (!envelope)
        return bad_data(watch, err, "an event cannot be read");
    bool more = take_event(watch, envelope, err);
    discard(watch, envelope);
    return more;
}

/* --- pages --- */

static bool take_items(struct cr_watch *watch, struct cr_json *page, struct cr_error *err)
{
    struct cr_json *items = cr_json_edit(page, "items");
    if (!cr_json_is_array(items) && !cr_json_is_null(items))
        return cr_error_set(err, CR_ERR_TRANSIENT, "the list has no items");
    if (!watch->continue_token)
        watch->handler.on_replace(watch->handler.arg);
    for (struct cr_json *item = cr_json_take_first(items); item; item = cr_json_take_first(items)) {
        if (!cr_obj_name(item)) {
            discard(watch, item);
            return cr_error_set(err, CR_ERR_TRANSIENT, "an object without a name");
        }
        if (!wanted(watch, item)) {
            discard(watch, item);
            continue;
        }
        cr_resource_stamp(watch->resource, item);
        watch->handler.on_object(watch->handler.arg, item);
    }
    return true;
}

static bool finish_page(struct cr_watch *watch, const struct cr_json *page, struct cr_error *err)
{
    const char *more = cr_json_string_at(page, "metadata", "continue");
    if (more && *more) {
        cr_strset(&watch->continue_token, more);
        return true;
    }
    const char *version = cr_obj_resource_version(page);
    if (!version || !*version)
        return cr_error_set(err, CR_ERR_TRANSIENT, "the list has no resourceVersion");
    cr_strset(&watch->continue_token, NULL);
    cr_strset(&watch->resource_version, version);
    note_event(watch);
    cr_client_metrics_listed(cr_client_metrics(watch->client), watch->resource);
    watch->handler.on_synced(watch->handler.arg);
    return true;
}

bool cr_watch_take_page(struct cr_watch *watch, struct cr_error *err)
{
    struct cr_json *page = cr_json_parse(cr_buf_text(&watch->body), watch->body.len, err);
    cr_buf_dispose(&watch->body);
    if (!page)
        return bad_data(watch, err, "a list cannot be read");
    bool ok = take_items(watch, page, err) && finish_page(watch, page, err);
    discard(watch, page);
    if (!ok)
        cr_strset(&watch->continue_token, NULL);
    return ok;
}
