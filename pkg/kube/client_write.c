/* Requests that change something. Each has a precondition or is harmless when it is repeated. */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "kube/client_internal.h"
#include "kube/managed_fields.h"

static const char merge_patch[] = "application/merge-patch+json"; /* RFC 7386 */
/* Whatever its name says, JSON is YAML, and the API server takes it as such. */
static const char apply_patch[] = "application/apply-patch+yaml";
static const char json_type[] = "application/json";

static struct cr_json *send_object(struct cr_client *client, const struct cr_call *call, const struct cr_json *object,
                                   struct cr_error *err)
{
    cr_autofree char *body = cr_json_print(object);
    struct cr_call with_body = *call;
    with_body.body = body;
    struct cr_json *result = cr_client_request(client, &with_body, err);
    if (call->secret)
        explicit_bzero(body, strlen(body));
    return result;
}

static struct cr_json *write_object(struct cr_client *client, const char *method, const char *path,
                                    const char *content_type, const struct cr_resource *resource,
                                    const struct cr_json *object, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf query = CR_BUF_INIT(0);
    cr_buf_puts(&query, path);
    cr_query_add(&query, "fieldManager", CR_FIELD_MANAGER);
    const struct cr_call call = {.method = method,
                                 .path = query.data,
                                 .resource = resource,
                                 .content_type = content_type,
                                 .secret = cr_resource_is_secret(resource)};
    return send_object(client, &call, object, err);
}

struct cr_json *cr_client_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                 const struct cr_json *object, struct cr_error *err)
{
    if (!cr_client_check_target(ns, NULL, err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, NULL, NULL);
    return write_object(client, "POST", path, json_type, resource, object, err);
}

bool cr_client_try_create(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                          const struct cr_json *object, struct cr_error *err)
{
    if (!cr_client_check_target(ns, NULL, err))
        return false;
    cr_autofree char *base = cr_resource_path(resource, ns, NULL, NULL);
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_buf_puts(&path, base);
    cr_query_add(&path, "dryRun", "All");
    CR_CLEANUP(cr_json)
    struct cr_json *answer = write_object(client, "POST", path.data, json_type, resource, object, err);
    return answer != NULL;
}

struct cr_json *cr_client_merge_patch(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                      const char *name, const char *subresource, const struct cr_json *patch,
                                      struct cr_error *err)
{
    if (!cr_client_check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *path = cr_resource_path(resource, ns, name, subresource);
    return write_object(client, "PATCH", path, merge_patch, resource, patch, err);
}

struct cr_json *cr_client_apply(struct cr_client *client, const struct cr_resource *resource, const char *ns,
                                const char *name, const char *subresource, const struct cr_json *object, bool force,
                                struct cr_error *err)
{
    if (!cr_client_check_target(ns, cr_or_empty(name), err))
        return NULL;
    cr_autofree char *base = cr_resource_path(resource, ns, name, subresource);
    CR_CLEANUP(cr_buf) struct cr_buf path = CR_BUF_INIT(0);
    cr_buf_puts(&path, base);
    cr_query_add(&path, "force", force ? "true" : "false");
    return write_object(client, "PATCH", path.data, apply_patch, resource, object, err);
}

/* metav1.DeleteOptions. Owned. */
static struct cr_json *delete_options(const struct cr_delete_options *options)
{
    struct cr_json *body = cr_json_new_object();
    cr_json_set_string(body, "apiVersion", "v1");
    cr_json_set_string(body, "kind", "DeleteOptions");
    if (options->uid || options->resource_version) {
        struct cr_json *preconditions = cr_json_object_in(body, "preconditions");
        cr_json_set_string(preconditions, "uid", options->uid);
        cr_json_set_string(preconditions, "resourceVersion", options->resource_version);
    }
    cr_json_set_string(body, "propagationPolicy", options->propagation);
    return body;
}

bool cr_client_delete(struct cr_client *client, const struct cr_resource *resource, const char *ns, const char *name,
                      const struct cr_delete_options *options, struct cr_error *err)
{
    static const struct cr_delete_options none = {0};
    if (!cr_client_check_target(ns, cr_or_empty(name), err))
        return false;
    cr_autofree char *path = cr_resource_path(resource, ns, name, NULL);
    CR_CLEANUP(cr_json) struct cr_json *body = delete_options(options ? options : &none);
    const struct cr_call call = {.method = "DELETE",
                                 .path = path,
                                 .resource = resource,
                                 .content_type = json_type,
                                 .secret = cr_resource_is_secret(resource)};
    struct cr_json *answer = send_object(client, &call, body, err);
    bool ok = answer != NULL;
    if (call.secret)
        cr_json_free_secret(answer); /* one that finalizers keep comes back with its data */
    else
        cr_json_free(answer);
    return ok;
}

bool cr_client_evict(struct cr_client *client, const char *ns, const char *pod, const char *uid, struct cr_error *err)
{
    if (!cr_client_check_target(cr_or_empty(ns), cr_or_empty(pod), err))
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
    CR_CLEANUP(cr_json)
    struct cr_json *answer = write_object(client, "POST", path, json_type, &cr_res_pods, eviction, err);
    return answer != NULL;
}
