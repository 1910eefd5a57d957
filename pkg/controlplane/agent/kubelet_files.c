#include "controlplane/agent/kubelet_files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"

struct kubelet_layers {
    struct kubelet_layer {
        const char *path; /* borrowed */
        char *folder;     /* that its relative paths are below */
        struct cr_json *doc;
    } * items;
    size_t len;
};

static void layers_dispose(struct kubelet_layers *layers)
{
    for (size_t i = 0; i < layers->len; i++) {
        free(layers->items[i].folder);
        cr_json_free_secret(layers->items[i].doc); /* staticPodURLHeader */
    }
    free(layers->items);
    *layers = (struct kubelet_layers){0};
}

CR_DEFINE_DISPOSE(kubelet_layers, struct kubelet_layers, layers_dispose)

/* What a field ("authentication.x509.clientCAFile") is at last. Borrowed. */
struct kubelet_field {
    const struct cr_json *value; /* NULL: not there, or null */
    const struct kubelet_layer *layer;
    const char *name;
};

/* Takes folder. The kubelet refuses a file that is empty or of another kind, a part as well as the whole. */
static bool add(const struct cr_kubelet_text *text, char *folder, struct kubelet_layers *out, struct cr_error *err)
{
    struct kubelet_layer *layer = &out->items[out->len++];
    *layer =
        (struct kubelet_layer){.path = text->path, .folder = folder, .doc = cr_yaml_parse(text->text, text->len, err)};
    if (!layer->doc)
        return cr_error_wrap(err, "%s", text->path);
    if (!cr_streq(cr_json_string_at(layer->doc, "kind"), "KubeletConfiguration") ||
        !cr_streq(cr_json_string_at(layer->doc, "apiVersion"), "kubelet.config.k8s.io/v1beta1"))
        return cr_error_set(err, CR_ERR_INVALID, "%s is no KubeletConfiguration of kubelet.config.k8s.io/v1beta1",
                            text->path);
    return true;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash != path ? cr_strndup(path, (size_t)(slash - path)) : cr_strdup("/");
}

/* folder: the kubelet's own. */
static bool layers_read(const struct cr_kubelet_texts *texts, const char *folder, struct kubelet_layers *out,
                        struct cr_error *err)
{
    *out = (struct kubelet_layers){0};
    out->items = cr_reallocarray(NULL, texts->parts_len + 1, sizeof *out->items);
    bool read = !texts->config || add(texts->config, folder_of(texts->config->path), out, err);
    for (size_t i = 0; read && i < texts->parts_len; i++)
        read = add(&texts->parts[i], cr_strdup(folder), out, err);
    if (!read)
        layers_dispose(out);
    return read;
}

/* "<path>: <field> <problem>". Always false. */
static bool field_invalid(const struct kubelet_field *field, const char *problem, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "%s: %s %s", field->layer->path, field->name, problem);
}

/* What one layer makes of the field: leaves it alone where it says nothing, takes it away with null, also with a null
 * above it. */
static bool apply(const struct kubelet_layer *layer, struct kubelet_field *field, struct cr_error *err)
{
    const struct cr_json *at = layer->doc;
    for (const char *p = field->name; *p; p += strspn(p, ".")) {
        size_t len = strcspn(p, ".");
        cr_autofree char *key = cr_strndup(p, len);
        if (!cr_json_is_object(at))
            return cr_error_set(err, CR_ERR_INVALID, "%s: what is above %s in %s is no object", layer->path, key,
                                field->name);
        at = cr_json_get(at, key);
        if (!at)
            return true;
        if (cr_json_is_null(at)) {
            field->value = NULL;
            return true;
        }
        p += len;
    }
    field->value = at;
    field->layer = layer;
    return true;
}

static bool layers_find(const struct kubelet_layers *layers, const char *name, struct kubelet_field *out,
                        struct cr_error *err)
{
    *out = (struct kubelet_field){.name = name};
    for (size_t i = 0; i < layers->len; i++)
        if (!apply(&layers->items[i], out, err))
            return false;
    return true;
}

static bool merge_gates(const struct kubelet_layer *layer, const struct cr_json *gates, struct cr_json *out,
                        struct cr_error *err)
{
    const struct kubelet_field field = {.layer = layer, .name = "featureGates"};
    if (!cr_json_is_object(gates))
        return field_invalid(&field, "is no object", err);
    for (const struct cr_json *gate = cr_json_first(gates); gate; gate = cr_json_next(gate)) {
        if (cr_json_is_null(gate))
            cr_json_remove(out, cr_json_key(gate));
        else if (cr_json_is_bool(gate))
            cr_json_set_bool(out, cr_json_key(gate), cr_json_bool(gate, false));
        else
            return field_invalid(&field, "has a gate that is neither true nor false", err);
    }
    return true;
}

/* The gates of all of them, as an object of booleans; out is an object. */
static bool layers_gates(const struct kubelet_layers *layers, struct cr_json *out, struct cr_error *err)
{
    for (size_t i = 0; i < layers->len; i++) {
        const struct cr_json *gates = cr_json_get(layers->items[i].doc, "featureGates");
        if (cr_json_is_null(gates))
            while (cr_json_first(out))
                cr_json_remove(out, cr_json_key(cr_json_first(out)));
        else if (gates && !merge_gates(&layers->items[i], gates, out, err))
            return false;
    }
    return true;
}

/* pkg/kubelet/apis/config/v1beta1/defaults.go, cmd/kubelet/app/options/options.go NewKubeletFlags. */
static const char default_cert_dir[] = "/var/lib/kubelet/pki";
static const char default_root[] = "/var/lib/kubelet";
static const char default_address[] = "0.0.0.0";
static const char default_healthz_address[] = "127.0.0.1";
enum { DEFAULT_PORT = 10250, DEFAULT_HEALTHZ_PORT = 10248 };

struct reading {
    const struct cr_kubelet_command *command;
    struct kubelet_layers layers;
    struct cr_kubelet_files *out;
    struct cr_error *err;
};

void cr_kubelet_files_dispose(struct cr_kubelet_files *files)
{
    struct cr_kubelet_file *all[] = {&files->client_ca,  &files->certificate,          &files->key,
                                     &files->kubeconfig, &files->bootstrap_kubeconfig, &files->static_pods};
    for (size_t i = 0; i < cr_array_len(all); i++)
        free(all[i]->path);
    free(files->client_pair);
    free(files->server_pair);
    free(files->root);
    free(files->address);
    free(files->healthz_address);
    cr_json_free(files->settings);
    *files = (struct cr_kubelet_files){0};
}

static char *below(const char *folder, const char *path)
{
    const char *slash = cr_ends_with(folder, "/") ? "" : "/";
    return path[0] == '/' ? cr_strdup(path) : cr_asprintf("%s%s%s", folder, slash, path);
}

/* --- one value, by its flag or its field --- */

/* flag: with its dashes. *text: borrowed; *folder: that it is below when it is a relative path. False: not given. */
static bool flag_text(struct reading *r, const char *flag, const char **text, bool *given)
{
    const struct cr_given_flag *found = cr_given_flags_find(&r->command->flags, flag + strspn(flag, "-"));
    *given = found != NULL;
    *text = found ? found->value : NULL;
    if (found && !found->value)
        return cr_error_set(r->err, CR_ERR_INVALID, "the kubelet's %s has no value", flag);
    return true;
}

static bool field_text(struct reading *r, const char *name, const char **text, struct kubelet_field *field)
{
    if (!layers_find(&r->layers, name, field, r->err))
        return false;
    *text = cr_json_string(field->value);
    return !field->value || *text || field_invalid(field, "is no text", r->err);
}

/* A flag that is given empty takes the field's value away. field: NULL when there is none of it. */
static bool read_path(struct reading *r, const char *flag, const char *name, struct cr_kubelet_file *out)
{
    const char *text = NULL;
    const char *folder = r->command->folder;
    struct kubelet_field field = {0};
    bool given = false;
    if (!flag_text(r, flag, &text, &given) || (!given && name && !field_text(r, name, &text, &field)))
        return false;
    if (!text || !*text)
        return true;
    *out = (struct cr_kubelet_file){.path = below(given || !field.layer ? folder : field.layer->folder, text),
                                    .parameter = given ? flag : name};
    return true;
}

static bool read_switch(struct reading *r, const char *flag, const char *name, bool fallback, bool *out)
{
    *out = fallback;
    const struct cr_given_flag *given = cr_given_flags_find(&r->command->flags, flag + strspn(flag, "-"));
    if (given)
        return cr_given_flag_bool(given, out) ||
               cr_error_set(r->err, CR_ERR_INVALID, "the kubelet's %s is neither true nor false", flag);
    struct kubelet_field field;
    if (!layers_find(&r->layers, name, &field, r->err))
        return false;
    if (field.value && !cr_json_is_bool(field.value))
        return field_invalid(&field, "is neither true nor false", r->err);
    *out = cr_json_bool(field.value, fallback);
    return true;
}

/* --- where it serves --- */

static bool port_of(const char *text, int64_t *out)
{
    char *end = NULL;
    *out = strtol(text, &end, 10);
    return *text && !*end;
}

/* *given: by the flag or the field. */
static bool read_number(struct reading *r, const char *flag, const char *name, int *out, bool *given)
{
    const char *text = NULL;
    struct kubelet_field field;
    int64_t port = 0;
    if (!flag_text(r, flag, &text, given) || !layers_find(&r->layers, name, &field, r->err))
        return false;
    bool valid = *given ? port_of(text, &port) : !field.value || cr_json_is_number(field.value);
    port = *given ? port : cr_json_int(field.value, 0);
    *given = *given || field.value;
    *out = (int)port;
    return (valid && port >= 0 && port <= 65535) ||
           cr_error_set(r->err, CR_ERR_INVALID, "the kubelet's %s is none", name);
}

static bool read_port(struct reading *r)
{
    int port = 0;
    bool given = false;
    bool serves = true;
    if (!read_number(r, "--port", "port", &port, &given) ||
        !read_switch(r, "--enable-server", "enableServer", true, &serves))
        return false;
    r->out->port = serves ? port ? port : DEFAULT_PORT : 0;
    return true;
}

/* Other than with the port, 0 takes it away (defaults.go SetDefaults_KubeletConfiguration). */
static bool read_healthz_port(struct reading *r)
{
    int port = 0;
    bool given = false;
    if (!read_number(r, "--healthz-port", "healthzPort", &port, &given))
        return false;
    r->out->healthz_port = given ? port : DEFAULT_HEALTHZ_PORT;
    return true;
}

static bool read_address(struct reading *r, const char *flag, const char *name, const char *fallback, char **out)
{
    const char *text = NULL;
    bool given = false;
    struct kubelet_field field;
    if (!flag_text(r, flag, &text, &given) || (!given && !field_text(r, name, &text, &field)))
        return false;
    *out = cr_strdup(text && *text ? text : fallback);
    return true;
}

static bool read_addresses(struct reading *r)
{
    return read_port(r) && read_healthz_port(r) &&
           read_address(r, "--address", "address", default_address, &r->out->address) &&
           read_address(r, "--healthz-bind-address", "healthzBindAddress", default_healthz_address,
                        &r->out->healthz_address);
}

/* --- gates and what the catalogue asks for --- */

/* "A=true,B=false"; each flag counts, since they add up (component-base cli/flag MapStringBool). */
static bool add_gates(struct reading *r, const char *text, struct cr_json *gates)
{
    for (const char *p = text + strspn(text, ", "); *p; p += strspn(p, ", ")) {
        size_t len = strcspn(p, ", ");
        cr_autofree char *pair = cr_strndup(p, len);
        char *equals = strchr(pair, '=');
        bool on = false;
        if (equals)
            *equals = '\0';
        if (!equals || !cr_given_flag_bool(&(struct cr_given_flag){.value = equals + 1}, &on))
            return cr_error_set(r->err, CR_ERR_INVALID, "the kubelet's --feature-gates: '%s' is neither true nor false",
                                pair);
        cr_json_set_bool(gates, pair, on);
        p += len;
    }
    return true;
}

static bool read_gates(struct reading *r, struct cr_json *gates)
{
    if (!layers_gates(&r->layers, gates, r->err))
        return false;
    const struct cr_given_flags *flags = &r->command->flags;
    for (size_t i = 0; i < flags->len; i++)
        if (cr_streq(flags->items[i].name, "feature-gates") && flags->items[i].value &&
            !add_gates(r, flags->items[i].value, gates))
            return false;
    return true;
}

static bool read_settings(struct reading *r)
{
    CR_CLEANUP(cr_json) struct cr_json *gates = cr_json_new_object();
    if (!read_gates(r, gates))
        return false;
    r->out->settings = cr_json_new_object();
    struct cr_json *command = cr_json_array_in(r->out->settings, "command");
    cr_json_add_string(command, "kubelet");
    cr_json_add_string(command, r->out->rotates_client ? "--rotate-certificates=true" : "--rotate-certificates=false");
    if (!cr_json_len(gates))
        return true;
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    cr_buf_puts(&buf, "--feature-gates=");
    for (const struct cr_json *gate = cr_json_first(gates); gate; gate = cr_json_next(gate))
        cr_buf_printf(&buf, "%s%s=%s", gate == cr_json_first(gates) ? "" : ",", cr_json_key(gate),
                      cr_json_bool(gate, false) ? "true" : "false");
    cr_json_add_string(command, cr_buf_text(&buf));
    return true;
}

/* --- all together --- */

/* InitializeTLS of cmd/kubelet/app/server.go, and the names of its certificate manager's stores. */
static bool read_pairs(struct reading *r)
{
    const char *text = NULL;
    bool given = false;
    if (!flag_text(r, "--cert-dir", &text, &given))
        return false;
    cr_autofree char *folder = below(r->command->folder, text && *text ? text : default_cert_dir);
    struct cr_kubelet_files *out = r->out;
    if (out->rotates_client)
        out->client_pair = below(folder, "kubelet-client-current.pem");
    if (out->rotates_server)
        out->server_pair = below(folder, "kubelet-server-current.pem");
    if (out->rotates_server || out->certificate.path || out->key.path)
        return true;
    out->certificate.path = below(folder, "kubelet.crt");
    out->key.path = below(folder, "kubelet.key");
    return true;
}

/* A flag alone (cmd/kubelet/app/options/options.go); it does not move --cert-dir. */
static bool read_root(struct reading *r)
{
    const char *text = NULL;
    bool given = false;
    if (!flag_text(r, "--root-dir", &text, &given))
        return false;
    r->out->root = below(r->command->folder, text && *text ? text : default_root);
    return true;
}

static bool read_all(struct reading *r)
{
    struct cr_kubelet_files *out = r->out;
    return read_path(r, "--client-ca-file", "authentication.x509.clientCAFile", &out->client_ca) &&
           read_path(r, "--tls-cert-file", "tlsCertFile", &out->certificate) &&
           read_path(r, "--tls-private-key-file", "tlsPrivateKeyFile", &out->key) &&
           read_path(r, "--pod-manifest-path", "staticPodPath", &out->static_pods) &&
           read_path(r, "--kubeconfig", NULL, &out->kubeconfig) &&
           read_path(r, "--bootstrap-kubeconfig", NULL, &out->bootstrap_kubeconfig) &&
           read_switch(r, "--rotate-certificates", "rotateCertificates", false, &out->rotates_client) &&
           read_switch(r, "--rotate-server-certificates", "serverTLSBootstrap", false, &out->rotates_server) &&
           read_pairs(r) && read_root(r) && read_addresses(r) && read_settings(r);
}

static bool texts_are_those_named(const struct cr_kubelet_command *command, const struct cr_kubelet_texts *texts,
                                  struct cr_error *err)
{
    if (command->config && !texts->config)
        return cr_error_set(err, CR_ERR_INVALID, "%s, the kubelet's configuration, was not read", command->config);
    if ((!command->config && texts->config) || (!command->config_dir && texts->parts_len))
        return cr_error_set(err, CR_ERR_INVALID, "the kubelet was not started with %s",
                            texts->config && !command->config ? "--config" : "--config-dir");
    return true;
}

bool cr_kubelet_files_read(const struct cr_kubelet_command *command, const struct cr_kubelet_texts *texts,
                           struct cr_kubelet_files *out, struct cr_error *err)
{
    *out = (struct cr_kubelet_files){0};
    struct reading r = {.command = command, .out = out, .err = err};
    if (!texts_are_those_named(command, texts, err) || !layers_read(texts, command->folder, &r.layers, err))
        return false;
    bool read = read_all(&r);
    layers_dispose(&r.layers);
    if (!read)
        cr_kubelet_files_dispose(out);
    return read;
}
