#include "kube/client.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/client_internal.h"
#include "kube/config_internal.h"
#include "kube/status.h"

enum {
    TIMEOUT_MS = 30 * 1000,
    PAGE = 500,        /* client-go's default for lists in pages */
    MAX_RELISTS = 3,   /* of one list whose continue token expired in between */
    MAX_PAGES = 10000, /* a server that never ends a list is broken */
};

static const char merge_patch[] = "application/merge-patch+json"; /* RFC 7386 */
static const char json_type[] = "application/json";
static const char field_manager[] = "certroll";

struct cr_client {
    struct cr_auth *auth;
    bool owns_auth; /* not when dedicated */
    struct cr_auth_listener listener;
    struct cr_http_client *requests;
    struct cr_http_client *streams; /* NULL: dedicated */
    int timeout_ms;                 /* of a request, with all its tries */
    struct cr_loop *loop;
    char *user_agent;
};

static struct cr_http_tls tls_of(const struct cr_kube_config *config)
{
    return (struct cr_http_tls){
        .ca_pem = config->ca_pem,
        .cert_pem = config->cert_pem,
        .key_pem = config->key_pem,
        .server_name = config->server_name,
        .insecure = config->insecure,
    };
}

static void on_credentials_changed(void *arg, const struct cr_kube_config *config)
{
    struct cr_client *client = arg;
    struct cr_http_tls tls = tls_of(config);
    cr_http_client_set_tls(client->requests, &tls);
    if (client->streams)
        cr_http_client_set_tls(client->streams, &tls);
}

/* Once its pools are there. */
static void listen_to_credentials(struct cr_client *client)
{
    client->listener = (struct cr_auth_listener){.on_changed = on_credentials_changed, .arg = client};
    cr_auth_listen(client->auth, &client->listener);
}

struct cr_client *cr_client_new(struct cr_loop *loop, struct cr_kube_config *config, const char *user_agent)
{
    struct cr_client *client = cr_new(struct cr_client);
    client->loop = loop;
    client->user_agent = cr_strdup_or_null(user_agent);
    client->timeout_ms = TIMEOUT_MS;
    client->requests = cr_http_client_new(loop, NULL, user_agent);
    client->streams = cr_http_client_new(loop, NULL, user_agent);
    client->auth = cr_auth_new(config);
    client->owns_auth = true;
    listen_to_credentials(client);
    return client;
}

struct cr_client *cr_client_new_dedicated(struct cr_client *client, int timeout_ms)
{
    struct cr_client *dedicated = cr_new(struct cr_client);
    dedicated->loop = client->loop;
    dedicated->user_agent = cr_strdup_or_null(client->user_agent);
    dedicated->timeout_ms = timeout_ms;
    dedicated->requests = cr_http_client_new(client->loop, NULL, client->user_agent);
    dedicated->auth = client->auth;
    listen_to_credentials(dedicated);
    return dedicated;
}

void cr_client_free(struct cr_client *client)
{
    if (!client)
        return;
    cr_auth_unlisten(client->auth, &client->listener);
    cr_http_client_free(client->requests);
    cr_http_client_free(client->streams);
    if (client->owns_auth)
        cr_auth_free(client->auth);
    free(client->user_agent);
    free(client);
}

void cr_client_cancel(struct cr_client *client)
{
    cr_http_client_cancel(client->requests);
}

const struct cr_kube_config *cr_client_config(const struct cr_client *client)
{
    return cr_auth_config(client->auth);
}

struct cr_http_client *cr_client_streams(struct cr_client *client)
{
    return client->streams;
}

struct cr_auth *cr_client_auth(struct cr_client *client)
{
    return client->auth;
}

void cr_query_add(struct cr_buf *path, const char *key, const char *value)
{
    if (!value)
        return;
    cr_autofree char *escaped = cr_http_escape(value);
    cr_buf_printf(path, "%c%s=%s", strchr(cr_buf_text(path), '?') ? '&' : '?', key, escaped);
}

bool cr_resource_is_secret(const struct cr_resource *resource)
{
    return !*resource->group && strcmp(resource->plural, cr_res_secrets.plural) == 0;
}

/* --- one request --- */

struct call {
    const char *method;
    const char *path; /* with the query */
    const char *content_type;
    const char *body;
    bool secret;
};

/* "GET /api/v1/pods": the query says nothing that a person needs and may be long. Owned. */
static char *describe(const struct call *call)
{
    return cr_asprintf("%s %.*s", call->method, (int)strcspn(call->path, "?"), call->path);
}

static bool send_once(struct cr_client *client, const struct call *call, int64_t deadline_ms,
                      struct cr_http_response *response, struct cr_error *err)
{
    int64_t left_ms = deadline_ms - cr_clock_monotonic_ms();
    CR_CLEANUP(cr_secret) char *token = cr_auth_token(client->auth);
    cr_autofree char *url = cr_asprintf("%s%s", cr_client_config(client)->server, call->path);
    struct cr_http_request request = {
        .method = call->method,
        .url = url,
        .bearer = token,
        .content_type = call->content_type,
        .accept = json_type,
        .body = call->body,
        .body_len = call->body ? strlen(call->body) : 0,
        .timeout_ms = left_ms > 1 ? (int)left_ms : 1, /* 0 would be none */
        .secret = call->secret,
    };
    return cr_http_do(client->requests, &request, response, err);
}

static bool answered(const struct call *call, const struct cr_http_response *response, struct cr_error *err)
{
    if (response->status >= 200 && response->status <= 299)
        return true;
    cr_autofree char *what = describe(call);
    return cr_status_from_response(what, response->status, response->retry_after_ms, response->body.data,
                                   response->body.len, err);
}

static bool exchange(struct cr_client *client, const struct call *call, struct cr_http_response *response,
                     struct cr_error *err)
{
    int64_t deadline_ms = cr_clock_monotonic_ms() + client->timeout_ms;
    if (!send_once(client, call, deadline_ms, response, err)) {
        cr_autofree char *what = describe(call);
        return cr_error_wrap(err, "%s", what);
    }
    if (response->status != 401 || !cr_auth_reread(client->auth))
        return answered(call, response, err);
    /* The token may have been replaced a moment ago: once more with the new one. A refused request did nothing. */
    cr_http_response_dispose(response);
    *response = (struct cr_http_response){0};
    if (!send_once(client, call, deadline_ms, response, err)) {
        cr_autofree char *what = describe(call);
        return cr_error_wrap(err, "%s", what);
    }
    return answered(call, response, err);
}

static struct cr_json *request(struct cr_client *client, const struct call *call, struct cr_error *err)
{
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    if (!exchange(client, call, &response, err))
        return NULL;
    struct cr_json *object = cr_json_parse(cr_buf_text(&response.body), response.body.len, err);
    if (!object) {
        cr_autofree char *what = describe(call);
        cr_error_wrap(err, "%s: the answer (HTTP %d) is no JSON; is %s a Kubernetes API server?", what, response.status,
                      cr_client_config(client)->server);
    }
    return object;
}

static bool check_target(const char *ns, const char *name, struct cr_error *err)
{
    return (!ns || cr_resource_check_segment(ns, "namespace", err)) &&
           (!name || cr_resource_check_segment(name, "name", err));
}

struct cr_json *cr_client_raw(struct cr_client *client, const char *method, const char *path, const char *content_type,
                              const char *body, struct cr_error *err)
{
    struct call call = {.method = method, .path = path, .content_type = content_type, .body = body, .secret = true};
    return request(client, &call, err);
}

/* --- reading --- */

struct cr_json *cr_client_get(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                              const char *name, struct cr_error *err)
{
    if (!check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, name, NULL);
    struct call call = {.method = "GET", .path = path, .secret = cr_resource_is_secret(resource)};
    return request(client, &call, err);
}

char *cr_client_server_version(struct cr_client *client, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *version = cr_client_raw(client, "GET", "/version", NULL, NULL, err);
    if (!version)
        return NULL;
    const char *text = cr_json_string_at(version, "gitVersion");
    if (!text) {
        cr_error_set(err, CR_ERR_INVALID,
                     "GET /version: %s answers without a gitVersion; is it a Kubernetes API server?",
                     cr_client_config(client)->server);
        return NULL;
    }
    return cr_strdup(text);
}

struct list_query {
    const struct cr_resource *resource;
    const char *ns;
    const char *label_selector;
    const char *field_selector;
};

static struct cr_json *list_page(struct cr_client *client, const struct list_query *query, const char *continue_token,
                                 struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_autofree char *base = cr_resource_path(query->resource, query->ns, NULL, NULL);
    cr_buf_puts(&path, base);
    char limit[16];
    snprintf(limit, sizeof limit, "%d", PAGE);
    cr_query_add(&path, "limit", limit);
    cr_query_add(&path, "labelSelector", query->label_selector);
    cr_query_add(&path, "fieldSelector", query->field_selector);
    cr_query_add(&path, "continue", continue_token);
    struct call call = {.method = "GET", .path = path.data, .secret = cr_resource_is_secret(query->resource)};
    return request(client, &call, err);
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
    if (!check_target(ns, NULL, err))
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

/* --- writing --- */

static struct cr_json *write_object(struct cr_client *client, const char *method, const char *path,
                                    const char *content_type, const struct cr_json *object, bool secret,
                                    struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf query = CR_BUF_INIT(0);
    cr_buf_puts(&query, path);
    cr_query_add(&query, "fieldManager", field_manager);
    cr_autofree char *body = cr_json_print(object);
    struct call call = {
        .method = method, .path = query.data, .content_type = content_type, .body = body, .secret = secret};
    struct cr_json *result = request(client, &call, err);
    if (secret)
        explicit_bzero(body, strlen(body));
    return result;
}

struct cr_json *cr_client_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                 const struct cr_json *object, struct cr_error *err)
{
    if (!check_target(ns, NULL, err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, NULL, NULL);
    return write_object(client, "POST", path, json_type, object, cr_resource_is_secret(resource), err);
}

struct cr_json *cr_client_merge_patch(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                      const char *name, const char *subresource, const struct cr_json *patch,
                                      struct cr_error *err)
{
    if (!check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, name, subresource);
    return write_object(client, "PATCH", path, merge_patch, patch, cr_resource_is_secret(resource), err);
}

bool cr_client_evict(struct cr_client *client, const char *ns, const char *pod, const char *uid, struct cr_error *err)
{
    if (!check_target(cr_or_empty(ns), cr_or_empty(pod), err))
        return false;
    CR_CLEANUP(cr_json) struct cr_json *eviction = cr_json_new_object();
    cr_json_set_string(eviction, "apiVersion", "policy/v1");
    cr_json_set_string(eviction, "kind", "Eviction");
    struct cr_json *meta = cr_json_object_in(eviction, "metadata");
    cr_json_set_string(meta, "name", pod);
    cr_json_set_string(meta, "namespace", ns);
    struct cr_json *options = cr_json_object_in(eviction, "deleteOptions");
    cr_json_set_string(cr_json_object_in(options, "preconditions"), "uid", uid);
    cr_autofree char *path = cr_resource_path(&cr_res_pods, ns, pod, "eviction");
    CR_CLEANUP(cr_json) struct cr_json *answer = write_object(client, "POST", path, json_type, eviction, false, err);
    return answer != NULL;
}

bool cr_client_is_server(const struct cr_client *client, const char *address, int port)
{
    const char *server = cr_client_config(client)->server;
    const char *authority = strstr(server, "://");
    authority = authority ? authority + 3 : server;
    bool ipv6 = strchr(address, ':') != NULL;
    cr_autofree char *with_port = cr_asprintf(ipv6 ? "[%s]:%d" : "%s:%d", address, port);
    cr_autofree char *alone = cr_asprintf(ipv6 ? "[%s]" : "%s", address);
    size_t len = strcspn(authority, "/");
    bool default_port = port == (cr_starts_with(server, "http://") ? 80 : 443);
    return (strlen(with_port) == len && strncmp(authority, with_port, len) == 0) ||
           (default_port && strlen(alone) == len && strncmp(authority, alone, len) == 0);
}
