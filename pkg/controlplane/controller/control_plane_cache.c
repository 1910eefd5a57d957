#include "controlplane/controller/control_plane_cache.h"

#include <stdlib.h>
#include <string.h>

#include "api/control_plane.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "controlplane/controller/control_plane_project.h"
#include "runtime/informer.h"

struct cr_control_plane_cache {
    struct cr_control_plane_cache_options options;
    struct cr_informer *informers[CR_CONTROL_PLANE_WATCHES];
};

/* --- what is worth a look --- */

static void notify(const struct cr_control_plane_cache *cache)
{
    cache->options.on_change(cache->options.arg);
}

static void on_any(void *arg, const struct cr_change *change)
{
    (void)change;
    notify(arg);
}

static void on_all(void *arg)
{
    notify(arg);
}

/* The first policy asks for the other kinds, which stay watched. */
static void on_policy(void *arg, const struct cr_change *change)
{
    const struct cr_control_plane_cache *cache = arg;
    (void)change;
    for (size_t i = CR_WATCH_POLICIES + 1; i < CR_CONTROL_PLANE_WATCHES; i++)
        cr_informer_start(cache->informers[i]);
    notify(cache);
}

static bool was_silent(const struct cr_kept_report *report)
{
    return cr_clock_wall_ms() - report->report.seen_ms > cr_node_report_stale_ms(&report->report);
}

/* Agents renew their reports all the time, so only changes of content count. */
static void on_report(void *arg, const struct cr_change *change)
{
    const struct cr_kept_report *before = cr_packed_extra(change->before);
    const struct cr_kept_report *after = change->after ? change->after->extra : NULL;
    if (!before || !after || was_silent(before) || !cr_streq(before->content, after->content))
        notify(arg);
}

/* Kubelets write the status of their Nodes, which has nothing about certificates. */
static void on_node(void *arg, const struct cr_change *change)
{
    if (!change->before || !change->after || cr_packed_extra(change->before) != change->after->extra)
        notify(arg);
}

/* --- set-up --- */

static const struct watch {
    const struct cr_resource *resource;
    const char *ns, *field_selector, *apart;
    bool secret;
    bool (*project)(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
    void (*project_unreadable)(void *arg, struct cr_snapshot *snapshot);
    void (*on_change)(void *arg, const struct cr_change *change);
} watches[CR_CONTROL_PLANE_WATCHES] = {
    [CR_WATCH_POLICIES] = {&cr_res_control_planes, CR_CONTROL_PLANE_NAMESPACE, .on_change = on_policy},
    [CR_WATCH_REPORTS] = {&cr_res_node_reports, .project = cr_control_plane_project_report, .on_change = on_report},
    [CR_WATCH_NODES] = {&cr_res_nodes, .project = cr_control_plane_project_node, .on_change = on_node},
    [CR_WATCH_NAMESPACES] = {&cr_res_namespaces, .project = cr_control_plane_project_namespace, .on_change = on_any},
    [CR_WATCH_ROOT_CAS] = {&cr_res_configmaps, .field_selector = "metadata.name=" CR_ROOT_CA_CONFIGMAP,
                           .apart = "binaryData", /* a user's: whoever publishes the ConfigMap writes data alone */
                           .project = cr_control_plane_project_root_ca,
                           .project_unreadable = cr_control_plane_project_unreadable, .on_change = on_any},
    [CR_WATCH_TOKEN_SECRETS] = {&cr_res_secrets, .field_selector = "type=kubernetes.io/service-account-token",
                                .secret = true, .project = cr_control_plane_project_token_secret,
                                .project_unreadable = cr_control_plane_project_unreadable, .on_change = on_any},
    [CR_WATCH_KEY] = {&cr_res_configmaps, CR_CONTROL_PLANE_NAMESPACE, "metadata.name=" CR_CONTROL_PLANE_KEY_CONFIGMAP,
                      .on_change = on_any},
};

static struct cr_informer *new_informer(struct cr_control_plane_cache *cache, const struct watch *watch)
{
    const struct cr_informer_options options = {.watch = {.resource = watch->resource,
                                                          .ns = watch->ns,
                                                          .field_selector = watch->field_selector,
                                                          .apart = watch->apart,
                                                          .secret = watch->secret,
                                                          .optional = true},
                                                .project = watch->project,
                                                .project_unreadable = watch->project_unreadable,
                                                .on_change = watch->on_change,
                                                .on_refused = on_all,
                                                .on_first_sync = on_all,
                                                .arg = cache,
                                                .partial = true};
    return cr_informer_new(cache->options.client, cache->options.loop, &options);
}

struct cr_control_plane_cache *cr_control_plane_cache_new(const struct cr_control_plane_cache_options *options)
{
    struct cr_control_plane_cache *cache = cr_new(struct cr_control_plane_cache);
    cache->options = *options;
    for (size_t i = 0; i < CR_CONTROL_PLANE_WATCHES; i++)
        cache->informers[i] = new_informer(cache, &watches[i]);
    cr_informer_start(cache->informers[CR_WATCH_POLICIES]);
    return cache;
}

void cr_control_plane_cache_free(struct cr_control_plane_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < CR_CONTROL_PLANE_WATCHES; i++)
        cr_informer_free(cache->informers[i]);
    free(cache);
}

/* --- reading --- */

/* What has not said no may yet say yes. */
bool cr_control_plane_cache_ready(struct cr_control_plane_cache *cache, struct cr_error *err)
{
    struct cr_error missing = {0};
    for (size_t i = 0; i < CR_CONTROL_PLANE_WATCHES; i++) {
        struct cr_error failed = {0};
        if (!cr_informer_healthy(cache->informers[i], &failed) &&
            (missing.kind == CR_ERR_NONE || missing.kind == CR_ERR_TRANSIENT))
            missing = failed;
    }
    if (missing.kind != CR_ERR_NONE && err)
        *err = missing;
    return missing.kind == CR_ERR_NONE;
}

static void collect(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct cr_packed_list *list = arg;
    list->items = cr_reallocarray(list->items, list->len + 1, sizeof *list->items);
    list->items[list->len++] = (struct cr_packed_item){cr_strdup(ns), cr_strdup(name), cr_packed_ref(packed)};
}

static int compare(const void *a, const void *b)
{
    const struct cr_packed_item *first = a;
    const struct cr_packed_item *second = b;
    int order = strcmp(first->ns, second->ns);
    return order ? order : strcmp(first->name, second->name);
}

void cr_control_plane_cache_list(struct cr_control_plane_cache *cache, enum cr_control_plane_watch watch,
                                 struct cr_packed_list *out)
{
    *out = (struct cr_packed_list){0};
    cr_store_visit(cr_informer_store(cache->informers[watch]), NULL, collect, out);
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, compare);
}

void cr_packed_list_dispose(struct cr_packed_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        free(list->items[i].ns);
        free(list->items[i].name);
        cr_packed_unref(list->items[i].packed);
    }
    free(list->items);
    *list = (struct cr_packed_list){0};
}

struct cr_packed *cr_packed_list_find(const struct cr_packed_list *list, const char *ns, const char *name)
{
    size_t first = 0;
    size_t end = list->len;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const struct cr_packed_item *item = &list->items[middle];
        int order = strcmp(ns, item->ns);
        order = order ? order : strcmp(name, item->name);
        if (!order)
            return item->packed;
        if (order < 0)
            end = middle;
        else
            first = middle + 1;
    }
    return NULL;
}

struct cr_packed *cr_control_plane_cache_get(struct cr_control_plane_cache *cache, enum cr_control_plane_watch watch,
                                             const char *ns, const char *name)
{
    return cr_store_get_packed(cr_informer_store(cache->informers[watch]), ns, name);
}
