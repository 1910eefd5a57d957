#include "sidecar/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "sidecar/address.h"
#include "sidecar/config_read.h"
#include "sys/file.h"

/* Where a program is asked what it serves, in the configuration. */

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static const struct cr_node_range port_range = {1, 65535, 0};
static const struct cr_node_range timeout_range = {SECOND, 10 * MINUTE, 10 * SECOND};

static void proof_dispose(struct cr_sidecar_material *material)
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
    return cr_sidecar_is_loopback(address) ||
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

static bool read_endpoints(const struct cr_node *proof, struct cr_sidecar_material *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_must_have(proof, "endpoints", err) ||
        !cr_node_array(proof, "endpoints", CR_SIDECAR_ENDPOINTS_MAX, &list, err))
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

static bool config_proof(const struct cr_node *material, struct cr_sidecar_material *out, struct cr_error *err)
{
    struct cr_node node;
    out->proof.timeout_ms = timeout_range.fallback;
    if (!cr_node_object(material, "proof", &node, err))
        return false;
    return !node.json || (CR_CONFIG_ONLY(&node, err, "endpoints", "timeout") && read_endpoints(&node, out, err) &&
                          cr_node_duration(&node, "timeout", timeout_range, &out->proof.timeout_ms, err));
}

/* --- the files that are made of a material, in the configuration --- */

enum { MODE_OTHERS = 0007, MODE_MOST = 0666, PARTS = 3 };

static const char *const types[] = {
    [CR_OUTPUT_PEM] = "PEM", [CR_OUTPUT_KEYSTORE] = "Keystore", [CR_OUTPUT_TRUSTSTORE] = "Truststore"};

/* In the order in which they are written. */
static const struct {
    const char *word;
    unsigned part;
} parts[PARTS] = {{"certificate", CR_PART_CERTIFICATE}, {"privateKey", CR_PART_PRIVATE_KEY}, {"trust", CR_PART_TRUST}};

static void output_dispose(struct cr_output_spec *output)
{
    free(output->path);
    free(output->password_file);
}

static bool read_parts(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    if (!cr_node_must_have(node, "parts", err) || !cr_node_strings(node, "parts", PARTS, &words, err))
        return false;
    for (size_t i = 0; i < words.len; i++) {
        size_t p = 0;
        while (p < PARTS && !cr_streq(parts[p].word, words.items[i]))
            p++;
        if (p == PARTS)
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.parts: '%s' is none of certificate, privateKey, trust (in this order in the file)",
                                node->path, words.items[i]);
        out->parts |= parts[p].part;
    }
    return out->parts || cr_error_set(err, CR_ERR_INVALID, "%s.parts: there is none", node->path);
}

/* What goes into the file. */
static unsigned needed(const struct cr_output_spec *output)
{
    if (output->type == CR_OUTPUT_PEM)
        return output->parts;
    return output->type == CR_OUTPUT_KEYSTORE ? CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY : CR_PART_TRUST;
}

static bool check_parts(const struct cr_node *node, const struct cr_sidecar_material *material,
                        const struct cr_output_spec *output, struct cr_error *err)
{
    for (size_t i = 0; i < PARTS; i++)
        if (needed(output) & parts[i].part & ~cr_config_parts(material))
            return cr_error_set(err, CR_ERR_INVALID, "%s: the material has no %s", node->path, parts[i].word);
    return true;
}

static bool read_form(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    if (out->type == CR_OUTPUT_PEM)
        return CR_CONFIG_ONLY(node, err, "type", "path", "parts", "mode", "owner", "group") &&
               read_parts(node, out, err);
    return CR_CONFIG_ONLY(node, err, "type", "path", "passwordFile", "mode", "owner", "group") &&
           cr_node_must_have(node, "passwordFile", err) &&
           cr_config_path(node, "passwordFile", &out->password_file, err);
}

/* In quotes: what a bare 0400 means differs between versions of YAML. */
static bool read_mode(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    bool key = needed(out) & CR_PART_PRIVATE_KEY;
    cr_autofree char *text = NULL;
    if (!cr_node_string(node, "mode", key ? "0400" : "0444", &text, err))
        return false;
    char *end = NULL;
    unsigned long mode = strtoul(text, &end, 8);
    if (strspn(text, "01234567") != strlen(text) || *end || mode & ~(unsigned long)MODE_MOST || !mode)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.mode must be octal digits in quotes, as \"0400\" or \"0440\", without the right to "
                            "execute",
                            node->path);
    if (key && mode & MODE_OTHERS)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.mode: %s would let everybody at the key: give it an owner or a group, and a mode as "
                            "\"0440\"",
                            node->path, text);
    out->mode = (mode_t)mode;
    return true;
}

static bool read_id(const struct cr_node *node, const char *key, int64_t *out, struct cr_error *err)
{
    int id = 0;
    if (!cr_node_int(node, key, (struct cr_node_range){0, INT32_MAX, 0}, &id, err))
        return false;
    *out = cr_node_has(node, key) ? id : -1;
    return true;
}

static bool config_output(const struct cr_node *node, const struct cr_sidecar_material *material,
                          struct cr_output_spec *out, struct cr_error *err)
{
    if (!cr_node_must_have(node, "type", err) || !CR_NODE_ENUM(node, "type", types, CR_OUTPUT_PEM, &out->type, err) ||
        !cr_node_must_have(node, "path", err) || !cr_config_path(node, "path", &out->path, err))
        return false;
    if (cr_ends_with(out->path, "/"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.path must be that of a file", node->path);
    return read_form(node, out, err) && check_parts(node, material, out, err) && read_mode(node, out, err) &&
           read_id(node, "owner", &out->owner, err) && read_id(node, "group", &out->group, err);
}

enum { NAME_MAX_LEN = 63 }; /* a DNS label: RFC 1123 */

static void dispose_material(struct cr_sidecar_material *material)
{
    for (size_t i = 0; i < material->outputs_len; i++)
        output_dispose(&material->outputs[i]);
    for (size_t i = 0; i < material->triggers_len; i++)
        cr_config_trigger_dispose(&material->triggers[i]);
    proof_dispose(material);
    free(material->outputs);
    free(material->triggers);
    free(material->name);
    free(material->certificate);
    free(material->private_key);
    free(material->trust);
}

void cr_sidecar_config_dispose(struct cr_sidecar_config *config)
{
    for (size_t i = 0; i < config->materials_len; i++)
        dispose_material(&config->materials[i]);
    free(config->materials);
    free(config->envoy_admin);
    *config = (struct cr_sidecar_config){0};
}

/* --- what the readers share --- */

bool cr_config_only(const struct cr_node *node, const char *const *known, size_t len, struct cr_error *err)
{
    for (const struct cr_json *c = cr_json_first(node->json); c; c = cr_json_next(c)) {
        size_t i = 0;
        while (i < len && !cr_streq(cr_json_key(c), known[i]))
            i++;
        if (i == len)
            return cr_error_set(err, CR_ERR_INVALID, "%s%s%s: there is no such field", node->path,
                                *node->path ? "." : "", cr_json_key(c));
    }
    return true;
}

bool cr_config_path(const struct cr_node *node, const char *key, char **slot, struct cr_error *err)
{
    if (!cr_node_string(node, key, NULL, slot, err))
        return false;
    return !*slot || (*slot)[0] == '/' ||
           cr_error_set(err, CR_ERR_INVALID, "%s.%s must be an absolute path", node->path, key);
}

unsigned cr_config_parts(const struct cr_sidecar_material *material)
{
    return (material->certificate ? CR_PART_CERTIFICATE : 0u) | (material->private_key ? CR_PART_PRIVATE_KEY : 0u) |
           (material->trust ? CR_PART_TRUST : 0u);
}

/* --- a material --- */

static bool is_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= NAME_MAX_LEN && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
           name[0] != '-' && name[len - 1] != '-';
}

static bool read_name(const struct cr_node *node, struct cr_sidecar_material *out, struct cr_error *err)
{
    return cr_node_required(node, "name", &out->name, err) &&
           (is_name(out->name) ||
            cr_error_set(err, CR_ERR_INVALID, "%s.name: '%s' must be lower-case letters, digits and -", node->path,
                         out->name));
}

static bool read_files(const struct cr_node *node, struct cr_sidecar_material *out, struct cr_error *err)
{
    if (!cr_config_path(node, "certificate", &out->certificate, err) ||
        !cr_config_path(node, "privateKey", &out->private_key, err) || !cr_config_path(node, "trust", &out->trust, err))
        return false;
    if (!out->certificate != !out->private_key)
        return cr_error_set(err, CR_ERR_INVALID, "%s: certificate and privateKey go together", node->path);
    return out->certificate || out->trust ||
           cr_error_set(err, CR_ERR_INVALID, "%s: give certificate and privateKey, or trust, or all three", node->path);
}

static bool read_outputs(const struct cr_node *node, struct cr_sidecar_material *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_array(node, "outputs", CR_SIDECAR_OUTPUTS_MAX, &list, err))
        return false;
    out->outputs = cr_calloc(cr_json_len(list.json) + 1, sizeof *out->outputs);
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        size_t index = out->outputs_len;
        if (!cr_node_item(&list, c, index, &item, err))
            return false;
        out->outputs_len++; /* before it is complete, so that it is disposed of */
        if (!config_output(&item, out, &out->outputs[index], err))
            return false;
    }
    return true;
}

static bool read_triggers(const struct cr_node *node, struct cr_sidecar_material *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_array(node, "triggers", CR_SIDECAR_TRIGGERS_MAX, &list, err))
        return false;
    out->triggers = cr_calloc(cr_json_len(list.json) + 1, sizeof *out->triggers);
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        size_t index = out->triggers_len;
        if (!cr_node_item(&list, c, index, &item, err))
            return false;
        out->triggers_len++;
        if (!cr_config_trigger(&item, out, &out->triggers[index], err))
            return false;
    }
    return true;
}

static bool read_material(const struct cr_node *node, struct cr_sidecar_material *out, struct cr_error *err)
{
    return CR_CONFIG_ONLY(node, err, "name", "certificate", "privateKey", "trust", "outputs", "triggers", "proof") &&
           read_name(node, out, err) && read_files(node, out, err) && read_outputs(node, out, err) &&
           read_triggers(node, out, err) && config_proof(node, out, err);
}

static bool read_materials(const struct cr_node *root, struct cr_sidecar_config *out, struct cr_error *err)
{
    struct cr_node list;
    if (!cr_node_must_have(root, "materials", err) ||
        !cr_node_array(root, "materials", CR_SIDECAR_MATERIALS_MAX, &list, err))
        return false;
    if (!cr_json_len(list.json))
        return cr_error_set(err, CR_ERR_INVALID, "materials: there is none");
    out->materials = cr_calloc(cr_json_len(list.json), sizeof *out->materials);
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        size_t index = out->materials_len;
        if (!cr_node_item(&list, c, index, &item, err))
            return false;
        out->materials_len++;
        if (!read_material(&item, &out->materials[index], err))
            return false;
    }
    return true;
}

/* --- all of them --- */

static bool check_names(const struct cr_sidecar_config *config, struct cr_error *err)
{
    for (size_t i = 0; i < config->materials_len; i++)
        for (size_t k = 0; k < i; k++)
            if (cr_streq(config->materials[i].name, config->materials[k].name))
                return cr_error_set(err, CR_ERR_INVALID, "materials[%zu].name: '%s' stands twice", i,
                                    config->materials[i].name);
    return true;
}

static bool is_read(const struct cr_sidecar_config *config, const char *path)
{
    for (size_t i = 0; i < config->materials_len; i++) {
        const struct cr_sidecar_material *material = &config->materials[i];
        if (cr_streq(path, material->certificate) || cr_streq(path, material->private_key) ||
            cr_streq(path, material->trust))
            return true;
    }
    return false;
}

/* How many outputs have this path. */
static size_t count_writers(const struct cr_sidecar_config *config, const char *path)
{
    size_t count = 0;
    for (size_t i = 0; i < config->materials_len; i++)
        for (size_t k = 0; k < config->materials[i].outputs_len; k++)
            count += cr_streq(path, config->materials[i].outputs[k].path);
    return count;
}

static bool check_outputs(const struct cr_sidecar_config *config, struct cr_error *err)
{
    for (size_t i = 0; i < config->materials_len; i++) {
        for (size_t k = 0; k < config->materials[i].outputs_len; k++) {
            const char *path = config->materials[i].outputs[k].path;
            if (is_read(config, path))
                return cr_error_set(err, CR_ERR_INVALID,
                                    "materials[%zu].outputs[%zu].path: '%s' is read as material; it must not be "
                                    "written",
                                    i, k, path);
            if (count_writers(config, path) > 1)
                return cr_error_set(err, CR_ERR_INVALID,
                                    "materials[%zu].outputs[%zu].path: '%s' is written by two outputs", i, k, path);
        }
    }
    return true;
}

static bool read_envoy(const struct cr_node *root, struct cr_sidecar_config *out, struct cr_error *err)
{
    struct cr_address ignored;
    return cr_node_string(root, "envoyAdmin", NULL, &out->envoy_admin, err) &&
           (!out->envoy_admin || cr_sidecar_address_parse(out->envoy_admin, &ignored, err) ||
            cr_error_wrap(err, "envoyAdmin"));
}

static bool read_config(const struct cr_node *root, struct cr_sidecar_config *out, struct cr_error *err)
{
    return CR_CONFIG_ONLY(root, err, "materials", "envoyAdmin") && read_materials(root, out, err) &&
           read_envoy(root, out, err) && check_names(out, err) && check_outputs(out, err);
}

bool cr_sidecar_config_parse(const char *text, size_t len, struct cr_sidecar_config *out, struct cr_error *err)
{
    *out = (struct cr_sidecar_config){0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_yaml_parse(text, len, err);
    if (!json)
        return false;
    if (!cr_json_is_object(json))
        return cr_error_set(err, CR_ERR_INVALID, "it must be a mapping with materials");
    const struct cr_node root = {.json = json};
    if (read_config(&root, out, err))
        return true;
    cr_sidecar_config_dispose(out);
    return false;
}

bool cr_sidecar_config_load(const char *path, struct cr_sidecar_config *out, struct cr_error *err)
{
    *out = (struct cr_sidecar_config){0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!cr_file_read(path, CR_YAML_MAX_BYTES, &text, err))
        return false;
    return cr_sidecar_config_parse(cr_buf_text(&text), text.len, out, err) || cr_error_wrap(err, "%s", path);
}
