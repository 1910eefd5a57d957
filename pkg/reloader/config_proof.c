/* Where a program is asked what it serves, in the configuration. */
#include "reloader/config_read.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "reloader/address.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static const struct cr_node_range port_range = {1, 65535, 0};
static const struct cr_node_range timeout_range = {SECOND, 10 * MINUTE, 10 * SECOND};

void cr_config_proof_dispose(struct cr_reloader_material *material)
{
    for (size_t i = 0; i < material->proof.endpoints_len; i++) {
        free(material->proof.endpoints[i].address);
        free(material->proof.endpoints[i].server_name);
    }
    free(material->proof.endpoints);
}

/* Another pod's certificate proves nothing of the program beside. */
static bool check_address(const struct cr_node *node, const char *address, struct cr_error *err)
{
    return cr_reloader_is_loopback(address) ||
           cr_error_set(err, CR_ERR_INVALID, "%s.address: '%s' is not loopback (127.0.0.1, ::1)", node->path, address);
}

static bool read_endpoint(const struct cr_node *node, struct cr_proof_endpoint *out, struct cr_error *err)
{
    return CR_CONFIG_ONLY(node, err, "address", "port", "serverName", "protocol") &&
           cr_node_string(node, "address", "127.0.0.1", &out->address, err) && check_address(node, out->address, err) &&
           cr_node_int(node, "port", port_range, &out->port, err) &&
           cr_node_string(node, "serverName", NULL, &out->server_name, err) &&
           CR_NODE_ENUM(node, "protocol", cr_probe_protocol_names, CR_PROBE_TLS, &out->protocol, err);
}

static bool read_endpoints(const struct cr_node *proof, struct cr_reloader_material *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_must_have(proof, "endpoints", err) ||
        !cr_node_array(proof, "endpoints", CR_RELOADER_ENDPOINTS_MAX, &list, err))
        return false;
    if (!cr_json_len(list.json))
        return cr_error_set(err, CR_ERR_INVALID, "%s: there is none; leave proof out for none", list.path);
    out->proof.endpoints = cr_calloc(cr_json_len(list.json), sizeof *out->proof.endpoints);
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        size_t index = out->proof.endpoints_len;
        if (!cr_node_item(&list, c, index, &item, err))
            return false;
        out->proof.endpoints_len++; /* before it is complete, so that it is disposed of */
        if (!read_endpoint(&item, &out->proof.endpoints[index], err))
            return false;
    }
    return true;
}

bool cr_config_proof(const struct cr_node *material, struct cr_reloader_material *out, struct cr_error *err)
{
    struct cr_node node;
    out->proof.timeout_ms = timeout_range.fallback;
    if (!cr_node_object(material, "proof", &node, err))
        return false;
    return !node.json || (CR_CONFIG_ONLY(&node, err, "endpoints", "timeout") && read_endpoints(&node, out, err) &&
                          cr_node_duration(&node, "timeout", timeout_range, &out->proof.timeout_ms, err));
}
