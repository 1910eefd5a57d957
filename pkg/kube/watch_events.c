/* From the frames of a watch to events: bookmarks, versions, and objects that nobody wants or that are too large
 * to be read. */
#include "kube/watch_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "codec/json_text.h"
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

/* --- what is too much to be read --- */

/* Any user who may write an object may make it large; that must not end the watch of all others. */
static void notify_unreadable(const struct cr_watch *watch, const char *ns, const char *name)
{
    cr_client_metrics_event(cr_client_metrics(watch->client), watch->resource, "too_large");
    cr_log(CR_LOG_WARN, "an object is too large to be read: nothing newer is known of it",
           {"resource", watch->resource->plural}, {"namespace", ns}, {"name", name});
    if (watch->handler.on_unreadable)
        watch->handler.on_unreadable(watch->handler.arg, ns, name);
}

static void notify_deleted(const struct cr_watch *watch, const struct cr_watch_head *head)
{
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    cr_json_set_string(metadata, "name", head->name);
    cr_json_set_string(metadata, "namespace", head->ns[0] ? head->ns : NULL);
    cr_json_set_string(metadata, "resourceVersion", head->resource_version);
    cr_resource_stamp(watch->resource, object);
    watch->handler.on_delete(watch->handler.arg, object);
}

void cr_watch_take_name(void *arg, const struct cr_watch_head *head)
{
    struct cr_watch *watch = arg;
    note_event(watch);
    advance(watch, head->resource_version);
    if (head->deleted)
        notify_deleted(watch, head);
    else
        notify_unreadable(watch, head->ns, head->name);
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

static struct cr_json *parse_frame(const struct cr_watch *watch, const char *frame, size_t len,
                                   struct cr_json_budget *budget, struct cr_error *err)
{
    /* Who set which field: often half of an object, and not read here. */
    static const char *const managers[] = {"object", "metadata", "managedFields", NULL};
    const char *const apart[] = {"object", watch->apart, NULL};
    const struct cr_json_parts parts = {.apart = watch->apart ? apart : NULL, .without = managers, .budget = budget};
    return cr_json_parse_parts(frame, len, &parts, err);
}

/* A frame of too many values. False: it is not written as API servers do. */
static bool take_name_of(struct cr_watch *watch, const char *frame, size_t len)
{
    struct cr_watch_head head;
    if (cr_watch_head_read(frame, len, &head) != CR_WATCH_HEAD_OBJECT)
        return false;
    if (watch->handler.wants && !cr_watch_wants(watch, &head))
        cr_watch_pass_over(watch, &head);
    else
        cr_watch_take_name(watch, &head);
    return true;
}

bool cr_watch_take_frame(void *arg, const char *frame, size_t len, struct cr_error *err)
{
    struct cr_watch *watch = arg;
    struct cr_json_budget budget = {.values = CR_OBJECT_VALUES_MAX};
    struct cr_error problem = {0};
    struct cr_json *envelope = parse_frame(watch, frame, len, &budget, &problem);
    if (budget.exceeded && take_name_of(watch, frame, len))
        return true;
    if (!envelope) {
        if (err)
            *err = problem;
        return bad_data(watch, err, "an event cannot be read");
    }
    bool more = take_event(watch, envelope, err);
    discard(watch, envelope);
    return more;
}

/* --- pages --- */

/* One of the list, from its text, so that there is a tree of one at a time; NULL: it is too much to be read. Owned. */
static struct cr_json *parse_item(const struct cr_watch *watch, const struct cr_json_slice *item)
{
    static const char *const managers[] = {"metadata", "managedFields", NULL};
    const char *const apart[] = {watch->apart, NULL};
    struct cr_json_budget budget = {.values = CR_OBJECT_VALUES_MAX};
    const struct cr_json_parts parts = {.apart = watch->apart ? apart : NULL, .without = managers, .budget = &budget};
    return cr_json_parse_parts(item->text, item->len, &parts, NULL);
}

/* A member of an object, if it is a plain string that fits; else "". */
static void copy_member(const struct cr_json_slice *object, const char *name, char *out, size_t size)
{
    struct cr_json_slice value;
    out[0] = '\0';
    if (cr_json_members_find(object, name, &value) && value.len > 2 && value.len - 2 < size &&
        cr_json_slice_is_plain(&value) && *value.text == '"') {
        memcpy(out, value.text + 1, value.len - 2);
        out[value.len - 2] = '\0';
    }
}

/* As of a frame that is too much. False: it has no name. */
static bool take_name_of_item(const struct cr_watch *watch, const struct cr_json_slice *item)
{
    struct cr_watch_head head = {0};
    struct cr_json_slice metadata;
    if (!cr_json_members_find(item, "metadata", &metadata))
        return false;
    copy_member(&metadata, "namespace", head.ns, sizeof head.ns);
    copy_member(&metadata, "name", head.name, sizeof head.name);
    if (!head.name[0])
        return false;
    if (!watch->handler.wants || watch->handler.wants(watch->handler.arg, head.ns, head.name))
        notify_unreadable(watch, head.ns, head.name);
    return true;
}

static bool take_item(struct cr_watch *watch, const struct cr_json_slice *text, struct cr_error *err)
{
    struct cr_json *item = parse_item(watch, text);
    if (!item && take_name_of_item(watch, text))
        return true;
    if (!cr_obj_name(item)) {
        discard(watch, item);
        return cr_error_set(err, CR_ERR_TRANSIENT, "an object without a name");
    }
    if (!wanted(watch, item)) {
        discard(watch, item);
        return true;
    }
    cr_resource_stamp(watch->resource, item);
    watch->handler.on_object(watch->handler.arg, item);
    return true;
}

static bool take_items(struct cr_watch *watch, const struct cr_json *page, struct cr_error *err)
{
    const struct cr_json *items = cr_json_get(page, "items");
    size_t len = 0;
    const char *text = cr_json_text(items, &len);
    if ((!text || *text != '[') && (!text || strncmp(text, "null", 4) != 0))
        return cr_error_set(err, CR_ERR_TRANSIENT, "the list has no items");
    if (!watch->continue_token)
        watch->handler.on_replace(watch->handler.arg);
    struct cr_json_members elements = cr_json_elements_of(text, len);
    struct cr_json_slice item;
    while (cr_json_elements_next(&elements, &item))
        if (!take_item(watch, &item, err))
            return false;
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
    static const char *const items[] = {"items", NULL};
    struct cr_json *page = cr_json_parse_apart(cr_buf_text(&watch->body), watch->body.len, items, err);
    bool ok = page && take_items(watch, page, err);
    cr_buf_dispose(&watch->body); /* which has the items' text */
    if (!page)
        return bad_data(watch, err, "a list cannot be read");
    ok = ok && finish_page(watch, page, err);
    discard(watch, page);
    if (!ok)
        cr_strset(&watch->continue_token, NULL);
    return ok;
}
