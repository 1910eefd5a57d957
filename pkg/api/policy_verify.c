#include "api/policy_verify.h"

#include <string.h>

#include "api/missing_name.h"
#include "api/names.h"
#include "base/alloc.h"
#include "base/strings.h"

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static const struct cr_node_range port_range = {1, 65535, 0};
static const struct cr_node_range timeout_range = {SECOND, HOUR, 60 * SECOND};

static const char *const timeouts[] = {[CR_ON_TIMEOUT_RESTART] = "Restart", [CR_ON_TIMEOUT_REPORT] = "Report"};
static const char *const unreachables[] = {[CR_ON_UNREACHABLE_WAIT] = "Wait", [CR_ON_UNREACHABLE_INFER] = "Infer"};
static const char *const missing_names[] = {[CR_ON_MISSING_NAME_HOLD] = "Hold", [CR_ON_MISSING_NAME_REPORT] = "Report"};

bool cr_on_missing_name_parse(const char *text, enum cr_on_missing_name *value)
{
    unsigned found = 0;
    if (!cr_word_find(missing_names, cr_array_len(missing_names), text, &found))
        return false;
    *value = (enum cr_on_missing_name)found;
    return true;
}

void cr_policy_verify_dispose(struct cr_policy_verify *verify)
{
    for (size_t i = 0; i < verify->endpoints_len; i++) {
        free(verify->endpoints[i].server_name);
        free(verify->endpoints[i].secret_name);
    }
    free(verify->endpoints);
    free(verify->client_secret_name);
    free(verify->certs_path);
    *verify = (struct cr_policy_verify){0};
}

static bool decode_endpoint(const struct cr_node *node, struct cr_verify_endpoint *out, struct cr_error *err)
{
    return CR_NODE_ENUM(node, "protocol", cr_probe_protocol_names, CR_PROBE_TLS, &out->protocol, err) &&
           cr_node_int(node, "port", port_range, &out->port, err) &&
           cr_node_string(node, "serverName", NULL, &out->server_name, err);
}

/* One endpoint twice, for two Secrets, could never be satisfied. */
static bool endpoint_is_new(const struct cr_policy_verify *verify, const char *path, struct cr_error *err)
{
    const struct cr_verify_endpoint *added = &verify->endpoints[verify->endpoints_len - 1];
    for (size_t i = 0; i + 1 < verify->endpoints_len; i++)
        if (verify->endpoints[i].port == added->port && cr_streq(verify->endpoints[i].server_name, added->server_name))
            return cr_error_set(err, CR_ERR_INVALID, "%s: port %d with this serverName is listed twice", path,
                                added->port);
    return true;
}

static bool decode_list(const struct cr_node *array, struct cr_policy_verify *out, struct cr_error *err)
{
    out->endpoints = cr_calloc(cr_json_len(array->json), sizeof *out->endpoints);
    for (const struct cr_json *item = cr_json_first(array->json); item; item = cr_json_next(item)) {
        struct cr_node node;
        size_t index = out->endpoints_len;
        if (!cr_node_item(array, item, index, &node, err))
            return false;
        out->endpoints_len++; /* before it is complete, so that it is disposed of */
        if (!decode_endpoint(&node, &out->endpoints[index], err) ||
            !cr_node_string(&node, "secretName", NULL, &out->endpoints[index].secret_name, err) ||
            !endpoint_is_new(out, node.path, err))
            return false;
    }
    return true;
}

static bool decode_short_form(const struct cr_node *verify, struct cr_policy_verify *out, struct cr_error *err)
{
    out->endpoints = cr_new(struct cr_verify_endpoint);
    out->endpoints_len = 1;
    return decode_endpoint(verify, out->endpoints, err);
}

/* A client that listens nowhere has its page alone. */
static bool is_page_alone(const struct cr_node *verify)
{
    return cr_node_has(verify, "certsPage") && !cr_node_has(verify, "port") && !cr_node_has(verify, "serverName");
}

/* The schema sets the default of protocol also beside a list. */
static bool decode_endpoints(const struct cr_node *verify, struct cr_policy_verify *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(verify, "endpoints", CR_VERIFY_ENDPOINTS_MAX, &array, err))
        return false;
    if (!cr_json_len(array.json))
        return is_page_alone(verify) || decode_short_form(verify, out, err);
    if (cr_node_has(verify, "port") || cr_node_has(verify, "serverName"))
        return cr_error_set(err, CR_ERR_INVALID, "%s: give either a port or endpoints, not both", verify->path);
    return decode_list(&array, out, err);
}

/* A path alone, so that the address stays the pod's. */
static bool check_path(const struct cr_node *page, const char *path, struct cr_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%?=&";
    return (path[0] == '/' && strspn(path, allowed) == strlen(path)) ||
           cr_error_set(err, CR_ERR_INVALID, "%s.path must be a path as in a URL, beginning with /", page->path);
}

static bool decode_certs_page(const struct cr_node *verify, struct cr_policy_verify *out, struct cr_error *err)
{
    struct cr_node page;
    if (!cr_node_object(verify, "certsPage", &page, err))
        return false;
    if (!page.json)
        return true;
    return cr_node_int(&page, "port", port_range, &out->certs_port, err) &&
           cr_node_string(&page, "path", "/certs", &out->certs_path, err) && check_path(&page, out->certs_path, err);
}

bool cr_policy_verify_decode(const struct cr_node *consumer, struct cr_policy_verify *out, struct cr_error *err)
{
    struct cr_node verify;
    unsigned on_timeout = CR_ON_TIMEOUT_RESTART;
    unsigned on_unreachable = CR_ON_UNREACHABLE_WAIT;
    unsigned on_missing_name = CR_ON_MISSING_NAME_HOLD;
    out->timeout_ms = timeout_range.fallback;
    if (!cr_node_object(consumer, "verify", &verify, err))
        return false;
    if (!verify.json)
        return true;
    if (!decode_endpoints(&verify, out, err) || !decode_certs_page(&verify, out, err) ||
        !cr_node_string(&verify, "clientSecretName", NULL, &out->client_secret_name, err) ||
        !cr_node_duration(&verify, "timeout", timeout_range, &out->timeout_ms, err) ||
        !cr_node_enum(&verify, "onTimeout", timeouts, cr_array_len(timeouts), on_timeout, &on_timeout, err) ||
        !cr_node_enum(&verify, "onUnreachable", unreachables, cr_array_len(unreachables), on_unreachable,
                      &on_unreachable, err) ||
        !cr_node_enum(&verify, "onMissingName", missing_names, cr_array_len(missing_names), on_missing_name,
                      &on_missing_name, err))
        return false;
    out->on_missing_name = (enum cr_on_missing_name)on_missing_name;
    out->on_unreachable = (enum cr_on_unreachable)on_unreachable;
    out->on_timeout = (enum cr_on_timeout)on_timeout;
    return true;
}

bool cr_policy_verify_check(const struct cr_node *spec, const struct cr_policy *policy, struct cr_error *err)
{
    if (cr_node_has(spec, "secretSelector"))
        return true;
    for (size_t i = 0; i < policy->consumers_len; i++) {
        const struct cr_policy_verify *verify = &policy->consumers[i].verify;
        for (size_t e = 0; e < verify->endpoints_len; e++)
            if (verify->endpoints[e].secret_name && !cr_policy_secret_of(policy, verify->endpoints[e].secret_name))
                return cr_error_set(err, CR_ERR_INVALID,
                                    "consumer '%s': verify.endpoints[%zu].secretName: '%s' is none of spec.secrets",
                                    policy->consumers[i].name, e, verify->endpoints[e].secret_name);
    }
    return true;
}
