#include "kube/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/client_internal.h"
#include "kube/config_internal.h"
#include "kube/object.h"
#include "kube/status.h"
#include "net/http_requests.h"
#include "net/tls_probe.h"

enum { TIMEOUT_MS = 30 * 1000 };

struct cr_client {
    struct cr_loop *loop;
    struct cr_auth *auth;
    bool owns_auth;           /* not when dedicated */
    struct cr_auth_user user; /* of auth */
    struct cr_http_requests *requests;
    struct cr_http_client *streams; /* NULL: dedicated */
    int timeout_ms;                 /* of a request, with all its tries */
    cr_write_gate_fn gate;          /* NULL: always open */
    void *gate_arg;
    char *user_agent;
    struct cr_client_metrics *metrics; /* NULL: none */
    bool owns_metrics;                 /* not when dedicated */
};

static struct cr_http_tls tls_of(const struct cr_kube_config *config)
{
    return (struct cr_http_tls){
        .ca_pem = config->ca_pem,
        .cert_pem = config->cert_pem,
        .key_pem = config->key_pem,
        .server_name = config->server_name,
        .insecure = config->insecure,
        .proxy = config->proxy_url,
    };
}

static void on_credentials_changed(void *arg, const struct cr_kube_config *config)
{
    struct cr_client *client = arg;
    struct cr_http_tls tls = tls_of(config);
    cr_http_requests_set_tls(client->requests, &tls);
    if (client->streams)
        cr_http_client_set_tls(client->streams, &tls);
}

/* Once its pools are there. */
static void join_credentials(struct cr_client *client)
{
    client->user = (struct cr_auth_user){.on_changed = on_credentials_changed, .arg = client};
    cr_auth_join(client->auth, &client->user);
}

struct cr_client *cr_client_new(struct cr_loop *loop, struct cr_kube_config *config, const char *user_agent)
{
    struct cr_client *client = cr_new(struct cr_client);
    client->loop = loop;
    client->user_agent = cr_strdup_or_null(user_agent);
    client->timeout_ms = TIMEOUT_MS;
    client->requests = cr_http_requests_new(NULL, user_agent);
    client->streams = cr_http_client_new(loop, NULL, user_agent);
    client->auth = cr_auth_new(config);
    client->owns_auth = true;
    join_credentials(client);
    return client;
}

struct cr_client *cr_client_new_dedicated(struct cr_client *client, int timeout_ms)
{
    struct cr_client *dedicated = cr_new(struct cr_client);
    dedicated->loop = client->loop;
    dedicated->user_agent = cr_strdup_or_null(client->user_agent);
    dedicated->timeout_ms = timeout_ms;
    dedicated->requests = cr_http_requests_new(NULL, client->user_agent);
    dedicated->auth = client->auth;
    dedicated->metrics = client->metrics;
    join_credentials(dedicated);
    return dedicated;
}

void cr_client_free(struct cr_client *client)
{
    if (!client)
        return;
    cr_auth_leave(client->auth, &client->user);
    cr_http_requests_free(client->requests);
    cr_http_client_free(client->streams);
    if (client->owns_auth)
        cr_auth_free(client->auth);
    if (client->owns_metrics)
        cr_client_metrics_free(client->metrics);
    free(client->user_agent);
    free(client);
}

void cr_client_cancel(struct cr_client *client)
{
    cr_auth_cancel(client->auth, &client->user);
    cr_http_requests_cancel(client->requests);
}

void cr_client_set_write_gate(struct cr_client *client, cr_write_gate_fn gate, void *arg)
{
    client->gate = gate;
    client->gate_arg = arg;
}

void cr_client_count_in(struct cr_client *client, struct cr_metrics *metrics)
{
    client->metrics = cr_client_metrics_new(metrics, cr_client_config(client)->server);
    client->owns_metrics = true;
}

const struct cr_client_metrics *cr_client_metrics(const struct cr_client *client)
{
    return client->metrics;
}

const struct cr_kube_config *cr_client_config(const struct cr_client *client)
{
    return cr_auth_config(client->auth);
}

struct cr_http_client *cr_client_streams(struct cr_client *client)
{
    return client->streams;
}

struct cr_loop *cr_client_loop(struct cr_client *client)
{
    return client->loop;
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

/* "GET /api/v1/pods": the query says nothing that a person needs and may be long. Owned. */
static char *describe(const struct cr_call *call)
{
    return cr_asprintf("%s %.*s", call->method, (int)strcspn(call->path, "?"), call->path);
}

/* *begin_by_ms: when the request must have been begun, 0 for one that only reads. */
static bool pass_gate(const struct cr_client *client, const struct cr_call *call, int64_t *begin_by_ms,
                      struct cr_error *err)
{
    *begin_by_ms = 0;
    if (!client->gate || cr_streq(call->method, "GET"))
        return true;
    int64_t now_ms = cr_clock_boot_ms();
    int64_t left_ms = client->gate(client->gate_arg);
    *begin_by_ms = now_ms + left_ms;
    return left_ms > 0 || cr_error_set(err, CR_ERR_CANCELLED, "not sent: this process does not lead (any more)");
}

static bool measure(struct cr_client *client, const struct cr_call *call, const struct cr_http_request *request,
                    struct cr_http_response *response, struct cr_error *err)
{
    if (!cr_streq(call->method, "GET"))
        cr_client_metrics_write(client->metrics, call->resource);
    int64_t begun_ns = cr_clock_monotonic_ns();
    bool sent = cr_http_do(client->requests, request, response, err);
    const struct cr_exchange_size size = {.took_ns = cr_clock_monotonic_ns() - begun_ns,
                                          .sent = request->body_len,
                                          .received = sent ? response->body.len : 0};
    cr_client_metrics_answered(client->metrics, request->method, sent ? response->status : 0);
    cr_client_metrics_exchanged(client->metrics, request->method, &size);
    return sent;
}

/* One try. *generation: of the credentials that it was sent with. */
static bool send_once(struct cr_client *client, const struct cr_call *call, int64_t deadline_ms, uint64_t *generation,
                      struct cr_http_response *response, struct cr_error *err)
{
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    if (!cr_auth_get(client->auth, &client->user, deadline_ms, &credential, err))
        return false;
    *generation = credential.generation;
    int64_t begin_by_ms = 0;
    if (!pass_gate(client, call, &begin_by_ms, err)) /* asked last: credentials may have taken their time */
        return false;
    int64_t left_ms = deadline_ms - cr_clock_monotonic_ms();
    cr_autofree char *url = cr_asprintf("%s%s", cr_client_config(client)->server, call->path);
    struct cr_http_request request = {
        .method = call->method,
        .url = url,
        .bearer = credential.token,
        .content_type = call->content_type,
        .accept = "application/json",
        .body = call->body,
        .body_len = call->body ? strlen(call->body) : 0,
        .timeout_ms = left_ms > 1 ? (int)left_ms : 1, /* 0 would be none */
        .begin_by_ms = begin_by_ms,
        .secret = call->secret,
    };
    return measure(client, call, &request, response, err);
}

static bool answered(const struct cr_call *call, const struct cr_http_response *response, struct cr_error *err)
{
    if (response->status >= 200 && response->status <= 299)
        return true;
    cr_autofree char *what = describe(call);
    return cr_status_from_response(what, response->status, response->retry_after_ms, response->body.data,
                                   response->body.len, err);
}

static bool exchange(struct cr_client *client, const struct cr_call *call, struct cr_http_response *response,
                     struct cr_error *err)
{
    int64_t deadline_ms = cr_clock_monotonic_ms() + client->timeout_ms;
    uint64_t generation = 0;
    bool sent = send_once(client, call, deadline_ms, &generation, response, err);
    /* There may be other credentials: once more with them. A refused request did nothing. */
    if (sent && response->status == 401 && cr_auth_refused(client->auth, generation)) {
        cr_client_metrics_retried(client->metrics, call->method, response->status);
        cr_http_response_dispose(response);
        sent = send_once(client, call, deadline_ms, &generation, response, err);
    }
    if (sent)
        return answered(call, response, err);
    cr_autofree char *what = describe(call);
    return cr_error_wrap(err, "%s", what);
}

/* What blocks the loop holds up all watches. */
static bool check_thread(const struct cr_client *client, struct cr_error *err)
{
    return !client->loop || !cr_loop_in_thread(client->loop) ||
           cr_error_set(err, CR_ERR_INTERNAL, "a request that blocks, in the loop's thread");
}

struct cr_json *cr_client_request(struct cr_client *client, const struct cr_call *call, struct cr_error *err)
{
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    if (!check_thread(client, err) || !exchange(client, call, &response, err))
        return NULL;
    static const char *const managers[] = {"metadata", "managedFields", NULL}; /* big, and seldom read */
    const char *const apart[] = {call->apart, NULL};
    struct cr_json_budget of_object = {.values = CR_OBJECT_VALUES_MAX};
    struct cr_json_budget *budget = call->budget ? call->budget : &of_object;
    const struct cr_json_parts parts = {
        .apart = call->apart ? apart : NULL, .without = call->managed_fields ? NULL : managers, .budget = budget};
    struct cr_json *object = cr_json_parse_parts(cr_buf_text(&response.body), response.body.len, &parts, err);
    if (!object && budget->exceeded) {
        cr_autofree char *what = describe(call);
        cr_error_wrap(err, "%s", what);
    } else if (!object) {
        cr_autofree char *what = describe(call);
        cr_error_wrap(err, "%s: the answer (HTTP %d) is no JSON; is %s a Kubernetes API server?", what, response.status,
                      cr_client_config(client)->server);
    } else if (call->answer) {
        *call->answer = response.body;
        response.body = (struct cr_buf){0};
    }
    return object;
}

bool cr_client_check_target(const char *ns, const char *name, struct cr_error *err)
{
    return (!ns || cr_resource_check_segment(ns, "namespace", err)) &&
           (!name || cr_resource_check_segment(name, "name", err));
}

struct cr_json *cr_client_raw(struct cr_client *client, const char *method, const char *path, const char *content_type,
                              const char *body, struct cr_error *err)
{
    struct cr_call call = {.method = method, .path = path, .content_type = content_type, .body = body, .secret = true};
    return cr_client_request(client, &call, err);
}

/* --- reading --- */

struct cr_json *cr_client_get(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                              const char *name, struct cr_error *err)
{
    return cr_client_get_apart(client, resource, ns, name, NULL, NULL, err);
}

struct cr_json *cr_client_get_apart(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                    const char *name, const char *apart, struct cr_buf *answer, struct cr_error *err)
{
    if (!cr_client_check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, name, NULL);
    struct cr_call call = {
        .method = "GET", .path = path, .secret = cr_resource_is_secret(resource), .apart = apart, .answer = answer};
    return cr_client_request(client, &call, err);
}

struct cr_json *cr_client_get_with_managed_fields(struct cr_client *client, const struct cr_resource *resource,
                                                  const char *ns, const char *name, struct cr_error *err)
{
    if (!cr_client_check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, name, NULL);
    const struct cr_call call = {
        .method = "GET", .path = path, .secret = cr_resource_is_secret(resource), .managed_fields = true};
    return cr_client_request(client, &call, err);
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

/* Splits "host:port", "[::1]:port", or a host alone, and what may follow. len: of the host, without brackets. Returns
 * the port, 0 without one. */
static long split_authority(const char *authority, const char **host, size_t *len)
{
    bool brackets = authority[0] == '[';
    *host = authority + brackets;
    *len = strcspn(*host, brackets ? "]" : ":/");
    const char *rest = *host + *len + (brackets && (*host)[*len]);
    return rest[0] == ':' ? strtol(rest + 1, NULL, 10) : 0;
}

bool cr_client_is_server(const struct cr_client *client, const char *address, int port)
{
    const char *server = cr_client_config(client)->server;
    const char *authority = strstr(server, "://");
    const char *host = NULL;
    size_t len = 0;
    long given = split_authority(authority ? authority + 3 : server, &host, &len);
    cr_autofree char *literal = cr_strndup(host, len);
    long server_port = given ? given : cr_starts_with(server, "http://") ? 80 : 443;
    return port == server_port && cr_probe_address_equal(literal, address);
}
