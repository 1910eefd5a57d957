/* Triggers, by which a program is notified, in the configuration. */
#include "sidecar/config_read.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "sidecar/address.h"
#include "sidecar/config.h"

/* Texts of the configuration that go elsewhere: into a request, a socket, a command line. */

static const struct variable {
    const char *text;
    unsigned parts;
    bool is_path;
} variables[] = {
    {"${certificate}", CR_PART_CERTIFICATE, false},
    {"${privateKey}", CR_PART_PRIVATE_KEY, false},
    {"${trust}", CR_PART_TRUST, false},
    {"${combined}", CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY, false},
    {"${certificate.json}", CR_PART_CERTIFICATE, false},
    {"${privateKey.json}", CR_PART_PRIVATE_KEY, false},
    {"${trust.json}", CR_PART_TRUST, false},
    {"${combined.json}", CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY, false},
    {"${certificate.path}", CR_PART_CERTIFICATE, true},
    {"${privateKey.path}", CR_PART_PRIVATE_KEY, true},
    {"${trust.path}", CR_PART_TRUST, true},
};

static const struct variable *variable_at(const char *text)
{
    for (size_t i = 0; i < cr_array_len(variables); i++)
        if (cr_starts_with(text, variables[i].text))
            return &variables[i];
    return NULL;
}

static bool check(const struct cr_node *node, const char *key, const char *text, unsigned parts, bool paths_only,
                  struct cr_error *err)
{
    for (const char *at = strstr(text, "${"); at; at = strstr(at + 2, "${")) {
        const struct variable *variable = variable_at(at);
        if (!variable || (paths_only && !variable->is_path))
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s: of ${…} there are %s here", node->path, key,
                                paths_only ? "${certificate.path}, ${privateKey.path}, ${trust.path}"
                                           : "${certificate}, ${privateKey}, ${trust}, ${combined}, the same "
                                             "with .json (inside of a JSON string), and "
                                             "${certificate.path}, ${privateKey.path}, ${trust.path}");
        if (variable->parts & ~parts)
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s: %s is no part of the material", node->path, key,
                                variable->text);
    }
    return true;
}

/* Every ${…} of text is one that config.h names, and the material has what it stands for. Errors: Invalid, with
 * node.key. */
static bool check_text(const struct cr_node *node, const char *key, const char *text,
                       const struct cr_sidecar_material *material, struct cr_error *err)
{
    return check(node, key, text, cr_config_parts(material), false, err);
}

/* The same, of paths alone. */
static bool check_paths(const struct cr_node *node, const char *key, const char *text,
                        const struct cr_sidecar_material *material, struct cr_error *err)
{
    return check(node, key, text, cr_config_parts(material), true, err);
}

/* The private key would be in it. */
static bool text_has_key(const char *text)
{
    for (const char *at = strstr(text, "${"); at; at = strstr(at + 2, "${")) {
        const struct variable *variable = variable_at(at);
        if (variable && !variable->is_path && variable->parts & CR_PART_PRIVATE_KEY)
            return true;
    }
    return false;
}

/* "Name: value" (RFC 9110, section 5). */
static bool is_header(const char *text)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    size_t name = strspn(text, token);
    if (!name || text[name] != ':')
        return false;
    for (const char *c = text + name; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            return false;
    return true;
}

/* The host, with its brackets, and how long it is. */
static const char *host_of(const char *url, size_t *len)
{
    const char *host = strstr(url, "://") + 3;
    *len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
    return host;
}

/* Http or https with a host, of printable ASCII; no user, which would be logged. */
static bool is_url(const char *text)
{
    if (!cr_starts_with(text, "http://") && !cr_starts_with(text, "https://"))
        return false;
    for (const char *c = text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || strchr("#\"<>\\^`{|}", *c))
            return false;
    size_t len = 0;
    const char *host = host_of(text, &len);
    return *host && len > 0 && len <= strlen(host) && !memchr(host, '@', strcspn(host, "/?"));
}

/* No other host can read what is sent there: https, or an IP literal of loopback or localhost. */
static bool url_is_private(const char *url)
{
    char ip[64];
    size_t len = 0;
    if (cr_starts_with(url, "https://"))
        return true;
    const char *host = host_of(url, &len);
    bool brackets = *host == '[';
    snprintf(ip, sizeof ip, "%.*s", (int)(brackets ? len - 2 : len), host + brackets);
    return cr_streq(ip, "localhost") || cr_sidecar_is_loopback(ip);
}

/* One word of a command line. */
static bool is_word(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || strchr(";\\<\"'", *c))
            return false;
    return *text;
}

enum { SECOND = 1000, MINUTE = 60 * SECOND, HEADERS_MAX = 16, ARGS_MAX = 32, FILES_MAX = 16 };

static const struct cr_node_range timeout_range = {SECOND, 5 * MINUTE, 10 * SECOND};

const char *const cr_trigger_type_names[CR_TRIGGERS] = {
    [CR_TRIGGER_SIGNAL] = "Signal",   [CR_TRIGGER_HTTP] = "HTTP",       [CR_TRIGGER_SOCKET] = "Socket",
    [CR_TRIGGER_COMMAND] = "Command", [CR_TRIGGER_HAPROXY] = "HAProxy", [CR_TRIGGER_REDIS] = "Redis"};

/* What is being read. */
struct place {
    const struct cr_node *node; /* the member */
    const struct cr_sidecar_material *material;
    struct cr_trigger_spec *out;
};

void cr_config_trigger_dispose(struct cr_trigger_spec *trigger)
{
    free(trigger->signal.process);
    free(trigger->signal.pid_file);
    free(trigger->http.method);
    free(trigger->http.url);
    cr_strvec_dispose(&trigger->http.headers);
    free(trigger->http.body_file);
    free(trigger->http.body);
    free(trigger->http.ca_file);
    free(trigger->http.certificate_file);
    free(trigger->http.private_key_file);
    free(trigger->http.server_name);
    free(trigger->socket.address);
    for (size_t i = 0; i < trigger->socket.exchanges_len; i++) {
        free(trigger->socket.exchanges[i].send);
        free(trigger->socket.exchanges[i].expect);
    }
    free(trigger->socket.exchanges);
    cr_strvec_dispose(&trigger->command.argv);
    free(trigger->haproxy.address);
    cr_strvec_dispose(&trigger->haproxy.certificates);
    cr_strvec_dispose(&trigger->haproxy.ca_files);
    free(trigger->redis.address);
    free(trigger->redis.user);
    free(trigger->redis.password_file);
}

static bool read_address(const struct cr_node *node, char **slot, struct cr_error *err)
{
    struct cr_address ignored;
    return cr_node_required(node, "address", slot, err) &&
           (cr_sidecar_address_parse(*slot, &ignored, err) || cr_error_wrap(err, "%s.address", node->path));
}

/* --- Signal --- */

/* Those that mean "read your files again"; one that ends a program would be a restart without a budget. */
static const struct {
    const char *name;
    int number;
} signals[] = {{"SIGHUP", SIGHUP}, {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGWINCH", SIGWINCH}};

static bool read_signal_name(const struct cr_node *node, int *out, struct cr_error *err)
{
    cr_autofree char *name = NULL;
    if (!cr_node_string(node, "name", "SIGHUP", &name, err))
        return false;
    for (size_t i = 0; i < cr_array_len(signals); i++) {
        if (cr_streq(name, signals[i].name)) {
            *out = signals[i].number;
            return true;
        }
    }
    return cr_error_set(err, CR_ERR_INVALID, "%s.name must be one of SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH", node->path);
}

static bool read_signal(const struct place *place, struct cr_error *err)
{
    const struct cr_node *node = place->node;
    struct cr_trigger_spec *out = place->out;
    if (!CR_CONFIG_ONLY(node, err, "name", "process", "pidFile") || !read_signal_name(node, &out->signal.number, err) ||
        !cr_node_string(node, "process", NULL, &out->signal.process, err) ||
        !cr_config_path(node, "pidFile", &out->signal.pid_file, err))
        return false;
    if (!out->signal.process == !out->signal.pid_file)
        return cr_error_set(err, CR_ERR_INVALID, "%s: give either process or pidFile", node->path);
    return !out->signal.process || !strchr(out->signal.process, '/') ||
           cr_error_set(err, CR_ERR_INVALID, "%s.process is the name of a program, without its folder", node->path);
}

/* --- HTTP --- */

static bool read_headers(const struct cr_node *node, struct cr_strvec *out, struct cr_error *err)
{
    if (!cr_node_list(node, "headers", HEADERS_MAX, out, err))
        return false;
    for (size_t i = 0; i < out->len; i++)
        if (!is_header(out->items[i]))
            return cr_error_set(err, CR_ERR_INVALID, "%s.headers[%zu] must be as \"Name: value\", on one line",
                                node->path, i);
    return true;
}

static bool read_status(const struct cr_node *http, struct cr_trigger_spec *out, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(http, "status", &node, err) || !CR_CONFIG_ONLY(&node, err, "from", "to") ||
        !cr_node_int(&node, "from", (struct cr_node_range){100, 599, 200}, &out->http.status_from, err) ||
        !cr_node_int(&node, "to", (struct cr_node_range){100, 599, 299}, &out->http.status_to, err))
        return false;
    return out->http.status_from <= out->http.status_to ||
           cr_error_set(err, CR_ERR_INVALID, "%s: from is above to", node.path);
}

static bool read_http_tls(const struct cr_node *node, struct cr_trigger_spec *out, struct cr_error *err)
{
    if (!cr_config_path(node, "caFile", &out->http.ca_file, err) ||
        !cr_config_path(node, "certificateFile", &out->http.certificate_file, err) ||
        !cr_config_path(node, "privateKeyFile", &out->http.private_key_file, err) ||
        !cr_node_string(node, "serverName", NULL, &out->http.server_name, err))
        return false;
    if (!out->http.certificate_file != !out->http.private_key_file)
        return cr_error_set(err, CR_ERR_INVALID, "%s: certificateFile and privateKeyFile go together", node->path);
    bool any = out->http.ca_file || out->http.certificate_file || out->http.server_name;
    return !any || cr_starts_with(out->http.url, "https://") ||
           cr_error_set(err, CR_ERR_INVALID, "%s: caFile, certificateFile and serverName are for https", node->path);
}

static bool read_body(const struct place *place, struct cr_error *err)
{
    const struct cr_node *node = place->node;
    struct cr_trigger_spec *out = place->out;
    if (!cr_config_path(node, "bodyFile", &out->http.body_file, err) ||
        !cr_node_string(node, "body", NULL, &out->http.body, err))
        return false;
    if (out->http.body && out->http.body_file)
        return cr_error_set(err, CR_ERR_INVALID, "%s: give either body or bodyFile", node->path);
    if (!out->http.body)
        return true;
    if (text_has_key(out->http.body) && !url_is_private(out->http.url))
        return cr_error_set(err, CR_ERR_INVALID, "%s.body: the key goes by https, or to loopback, only", node->path);
    return check_text(node, "body", out->http.body, place->material, err);
}

static bool read_http(const struct place *place, struct cr_error *err)
{
    const struct cr_node *node = place->node;
    struct cr_trigger_spec *out = place->out;
    if (!CR_CONFIG_ONLY(node, err, "method", "url", "headers", "bodyFile", "body", "caFile", "certificateFile",
                        "privateKeyFile", "serverName", "status") ||
        !cr_node_string(node, "method", "POST", &out->http.method, err) ||
        !cr_node_required(node, "url", &out->http.url, err))
        return false;
    if (strspn(out->http.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(out->http.method))
        return cr_error_set(err, CR_ERR_INVALID, "%s.method must be of capital letters, as POST", node->path);
    if (!is_url(out->http.url))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.url must be http:// or https:// with a host, without user, spaces or #", node->path);
    return read_headers(node, &out->http.headers, err) && read_http_tls(node, out, err) && read_body(place, err) &&
           read_status(node, out, err);
}

/* --- Socket --- */

static bool read_exchange(const struct cr_node *node, const struct cr_sidecar_material *material,
                          struct cr_exchange *out, struct cr_error *err)
{
    return CR_CONFIG_ONLY(node, err, "send", "expect") && cr_node_required(node, "send", &out->send, err) &&
           cr_node_string(node, "expect", NULL, &out->expect, err) &&
           check_text(node, "send", out->send, material, err);
}

static bool read_exchanges(const struct place *place, struct cr_error *err)
{
    struct cr_trigger_spec *out = place->out;
    struct cr_node list;
    if (!cr_node_must_have(place->node, "exchanges", err) ||
        !cr_node_array(place->node, "exchanges", CR_SIDECAR_EXCHANGES_MAX, &list, err))
        return false;
    if (!cr_json_len(list.json))
        return cr_error_set(err, CR_ERR_INVALID, "%s: there is none", list.path);
    out->socket.exchanges = cr_calloc(cr_json_len(list.json), sizeof *out->socket.exchanges);
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        size_t index = out->socket.exchanges_len;
        if (!cr_node_item(&list, c, index, &item, err))
            return false;
        out->socket.exchanges_len++; /* before it is complete, so that it is disposed of */
        if (!read_exchange(&item, place->material, &out->socket.exchanges[index], err))
            return false;
    }
    return true;
}

static bool read_socket(const struct place *place, struct cr_error *err)
{
    return CR_CONFIG_ONLY(place->node, err, "address", "eachAnew", "exchanges") &&
           read_address(place->node, &place->out->socket.address, err) &&
           cr_node_bool(place->node, "eachAnew", false, &place->out->socket.reconnect_each, err) &&
           read_exchanges(place, err);
}

/* --- Command --- */

/* What stands in a command line is seen by every process of the pod, so it has paths, never content. */
static bool read_command(const struct place *place, struct cr_error *err)
{
    struct cr_strvec *argv = &place->out->command.argv;
    if (!CR_CONFIG_ONLY(place->node, err, "argv") || !cr_node_must_have(place->node, "argv", err) ||
        !cr_node_list(place->node, "argv", ARGS_MAX, argv, err))
        return false;
    if (!argv->len)
        return cr_error_set(err, CR_ERR_INVALID, "%s.argv: there is none", place->node->path);
    for (size_t i = 0; i < argv->len; i++)
        if (!check_paths(place->node, "argv", argv->items[i], place->material, err))
            return false;
    return true;
}

/* --- HAProxy --- */

/* They become words of a command line of its runtime API. */
static bool read_names(const struct cr_node *node, const char *key, struct cr_strvec *out, struct cr_error *err)
{
    if (!cr_node_strings(node, key, FILES_MAX, out, err))
        return false;
    for (size_t i = 0; i < out->len; i++)
        if (!is_word(out->items[i]))
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s: '%s' must be without spaces, ; and backslashes",
                                node->path, key, out->items[i]);
    return true;
}

static bool read_haproxy(const struct place *place, struct cr_error *err)
{
    const struct cr_node *node = place->node;
    struct cr_trigger_spec *out = place->out;
    if (!CR_CONFIG_ONLY(node, err, "address", "certificates", "caFiles") ||
        !read_address(node, &out->haproxy.address, err) ||
        !read_names(node, "certificates", &out->haproxy.certificates, err) ||
        !read_names(node, "caFiles", &out->haproxy.ca_files, err))
        return false;
    if (!out->haproxy.certificates.len && !out->haproxy.ca_files.len)
        return cr_error_set(err, CR_ERR_INVALID, "%s: give certificates, caFiles or both", node->path);
    if (out->haproxy.certificates.len && !place->material->certificate)
        return cr_error_set(err, CR_ERR_INVALID, "%s.certificates: the material has no certificate", node->path);
    return !out->haproxy.ca_files.len || place->material->trust ||
           cr_error_set(err, CR_ERR_INVALID, "%s.caFiles: the material has no trust", node->path);
}

/* --- Redis --- */

static bool read_redis(const struct place *place, struct cr_error *err)
{
    const struct cr_node *node = place->node;
    struct cr_trigger_spec *out = place->out;
    if (!CR_CONFIG_ONLY(node, err, "address", "user", "passwordFile") ||
        !read_address(node, &out->redis.address, err) || !cr_node_string(node, "user", NULL, &out->redis.user, err) ||
        !cr_config_path(node, "passwordFile", &out->redis.password_file, err))
        return false;
    return !out->redis.user || out->redis.password_file ||
           cr_error_set(err, CR_ERR_INVALID, "%s.user needs a passwordFile", node->path);
}

/* --- all of them --- */

/* The member that an element of this type has, and what is in it. */
static const struct {
    const char *name;
    bool (*read)(const struct place *place, struct cr_error *err);
} members[CR_TRIGGERS] = {
    [CR_TRIGGER_SIGNAL] = {"signal", read_signal},    [CR_TRIGGER_HTTP] = {"http", read_http},
    [CR_TRIGGER_SOCKET] = {"socket", read_socket},    [CR_TRIGGER_COMMAND] = {"command", read_command},
    [CR_TRIGGER_HAPROXY] = {"haproxy", read_haproxy}, [CR_TRIGGER_REDIS] = {"redis", read_redis},
};

bool cr_config_trigger(const struct cr_node *node, const struct cr_sidecar_material *material,
                       struct cr_trigger_spec *out, struct cr_error *err)
{
    struct cr_node member;
    const struct place place = {.node = &member, .material = material, .out = out};
    if (!cr_node_must_have(node, "type", err) ||
        !CR_NODE_ENUM(node, "type", cr_trigger_type_names, CR_TRIGGER_SIGNAL, &out->type, err))
        return false;
    const char *name = members[out->type].name;
    return CR_CONFIG_ONLY(node, err, "type", "timeout", name) &&
           cr_node_duration(node, "timeout", timeout_range, &out->timeout_ms, err) &&
           cr_node_must_have(node, name, err) && cr_node_object(node, name, &member, err) &&
           members[out->type].read(&place, err);
}
