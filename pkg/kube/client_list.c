/* Lists in pages
 * (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks).
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "kube/client_internal.h"

enum {
    PAGE = 500,               /* client-go's default for lists in pages */
    PAGE_VALUES = 200 * 1000, /* JSON; a page that has more is asked for again with half as many objects */
    MAX_RELISTS = 3,          /* of one list, when its continue token expired in between */
    MAX_PAGES = 10000,        /* a server that never ends a list is broken */
};

struct list_query {
    const struct cr_resource *resource;
    const char *ns;
    const char *label_selector;
    const char *field_selector;
};

/* *exceeded: it has more values than are read. */
static struct cr_json *ask_for_page(struct cr_client *client, const struct list_query *query,
                                    const char *continue_token, int most, bool *exceeded, struct cr_error *err)
{
    struct cr_json_budget budget = {.values = PAGE_VALUES};
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_autofree char *base = cr_resource_path(query->resource, query->ns, NULL, NULL);
    cr_buf_puts(&path, base);
    char limit[16];
    snprintf(limit, sizeof limit, "%d", most);
    cr_query_add(&path, "limit", limit);
    cr_query_add(&path, "labelSelector", query->label_selector);
    cr_query_add(&path, "fieldSelector", query->field_selector);
    cr_query_add(&path, "continue", continue_token);
    struct cr_call call = {
        .method = "GET", .path = path.data, .secret = cr_resource_is_secret(query->resource), .budget = &budget};
    struct cr_json *page = cr_client_request(client, &call, err);
    *exceeded = budget.exceeded;
    return page;
}

static struct cr_json *list_page(struct cr_client *client, const struct list_query *query, const char *continue_token,
                                 struct cr_error *err)
{
    bool exceeded = true;
    struct cr_json *page = NULL;
    for (int most = PAGE; exceeded && most; most /= 2) {
        struct cr_error problem = {0};
        page = ask_for_page(client, query, continue_token, most, &exceeded, &problem);
        if (!page && err)
            *err = problem;
    }
    return page;
}

static void free_page(const struct list_query *query, struct cr_json *page)
{
    if (cr_resource_is_secret(query->resource))
        cr_json_free_secret(page);
    else
        cr_json_free(page);
}

/* Moves the items of page behind those of list, each complete in itself. */
static void append_items(const struct cr_resource *resource, struct cr_json *list, struct cr_json *page)
{
    struct cr_json *to = cr_json_array_in(list, "items");
    struct cr_json *from = cr_json_edit(page, "items");
    for (struct cr_json *item = cr_json_take_first(from); item; item = cr_json_take_first(from)) {
        cr_resource_stamp(resource, item);
        cr_json_add(to, item);
    }
}

/* A List that has no items yet; metadata is the first page's. */
static struct cr_json *new_list(struct cr_json *page)
{
    struct cr_json *list = cr_json_new_object();
    cr_json_set_string(list, "apiVersion", cr_json_string_at(page, "apiVersion"));
    cr_json_set_string(list, "kind", cr_json_string_at(page, "kind"));
    cr_json_set(list, "metadata", cr_json_take(page, "metadata"));
    cr_json_remove(cr_json_edit(list, "metadata"), "continue");
    cr_json_remove(cr_json_edit(list, "metadata"), "remainingItemCount");
    return list;
}

/* "" and NULL: the list is whole. Owned. */
static char *next_page(const struct cr_json *page)
{
    const char *token = cr_json_string_at(page, "metadata", "continue");
    return token && *token ? cr_strdup(token) : NULL;
}

static bool is_list(const struct cr_json *page, const struct list_query *query, struct cr_error *err)
{
    const struct cr_json *items = cr_json_get(page, "items");
    if (cr_json_is_array(items) || cr_json_is_null(items))
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "the list of %s has no items", query->resource->plural);
}

/* All pages, or nothing: a list that is cut short must never be taken for one with few items. */
static struct cr_json *list_all(struct cr_client *client, const struct list_query *query, struct cr_error *err)
{
    struct cr_json *list = NULL;
    cr_autofree char *token = NULL;
    for (int pages = 0; pages < MAX_PAGES; pages++) {
        struct cr_json *page = list_page(client, query, token, err);
        if (!page || !is_list(page, query, err)) {
            free_page(query, page);
            free_page(query, list);
            return NULL;
        }
        free(token);
        token = next_page(page);
        if (!list)
            list = new_list(page);
        append_items(query->resource, list, page);
        free_page(query, page);
        if (!token)
            return list;
    }
    free_page(query, list);
    cr_error_set(err, CR_ERR_INVALID, "the list of %s does not end", query->resource->plural);
    return NULL;
}

struct cr_json *cr_client_list(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                               const char *label_selector, const char *field_selector, struct cr_error *err)
{
    if (!cr_client_check_target(ns, NULL, err))
        return NULL;
    const struct list_query query = {resource, ns, label_selector, field_selector};
    struct cr_error gone = {0};
    for (int i = 0; i < MAX_RELISTS; i++) {
        struct cr_json *list = list_all(client, &query, &gone);
        if (list)
            return list;
        if (gone.kind != CR_ERR_GONE)
            break;
    }
    if (err)
        *err = gone;
    return NULL;
}
