/* Files that name files: kubeconfigs, and configuration that takes the place of flags. */
#include "controlplane/agent/parameters_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "controlplane/agent/given_flags.h"
#include "controlplane/agent/kubeconfig_file.h"
#include "catalogue/settings.h"

/* The text of the file that the program sees at path. */
static bool read_file(const struct cr_node_reader *program, const char *path, struct cr_buf *out, struct cr_error *err)
{
    if (!program->container)
        return program->source->read(program->source->ctx, path, out, err);
    CR_CLEANUP(cr_static_file) struct cr_static_file file;
    cr_static_container_file(program->container, path, &file);
    if (file.place != CR_STATIC_PLACE_HOST)
        return cr_error_set(err, CR_ERR_INVALID, "%s %s", path, cr_or_empty(file.why));
    return program->source->read(program->source->ctx, file.path, out, err);
}

/* --- kubeconfigs --- */

static const char kubeconfig_ca[] = "kubeconfig certificate-authority";
static const char kubeconfig_certificate[] = "kubeconfig client-certificate";
static const char kubeconfig_key[] = "kubeconfig client-key";

struct kubeconfig {
    const struct cr_node_reader *program;
    const char *via;
    const char *path;
};

/* again: whether client-go reads the file again at all. */
static void add_item(const struct kubeconfig *in, const char *parameter, enum cr_role role,
                     const struct cr_kubeconfig_item *item, bool again)
{
    bool embedded = item->source == CR_KUBECONFIG_EMBEDDED;
    if (item->source == CR_KUBECONFIG_NONE)
        return;
    cr_node_reader_add(in->program,
                       &(struct cr_node_claim){.parameter = parameter,
                                               .via = in->via,
                                               .path = embedded ? in->path : item->path,
                                               .judge = embedded || !again ? in->via : NULL,
                                               .embedded = embedded,
                                               .own = role == CR_ROLE_CLIENT_LEAF && in->program->rotates_client},
                       role);
}

static void add_unknown(const struct kubeconfig *in, const char *parameter, enum cr_role role)
{
    cr_node_reader_add(in->program,
                       &(struct cr_node_claim){.parameter = parameter,
                                               .via = in->via,
                                               .why = "the kubeconfig that says it could not be read",
                                               .judge = in->via},
                       role);
}

static void add_kubeconfig(const struct kubeconfig *in)
{
    struct cr_node_claim claim = {.parameter = in->via, .path = in->path};
    cr_node_reader_add(in->program, &claim, CR_ROLE_CLIENT_LEAF);
    cr_node_reader_add(in->program, &claim, CR_ROLE_SERVER_CA);
}

static void add_items(const struct kubeconfig *in, const struct cr_kubeconfig_file *file)
{
    if (!file->insecure)
        add_item(in, kubeconfig_ca, CR_ROLE_SERVER_CA, &file->ca, true);
    add_item(in, kubeconfig_certificate, CR_ROLE_CLIENT_LEAF, &file->certificate, file->leaf_reloads);
    add_item(in, kubeconfig_key, CR_ROLE_CLIENT_LEAF, &file->key, file->leaf_reloads);
}

void cr_node_reader_follow_kubeconfig(const struct cr_node_reader *program, const char *via, const char *path)
{
    const struct kubeconfig in = {.program = program, .via = via, .path = path};
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = {.max = CR_YAML_MAX_BYTES, .secret = true};
    CR_CLEANUP(cr_kubeconfig_file) struct cr_kubeconfig_file file = {0};
    bool read = read_file(program, path, &text, &err);
    /* kubeadm takes it away once the kubelet has joined. */
    if (!read && err.kind == CR_ERR_NOT_FOUND && cr_streq(via, "--bootstrap-kubeconfig"))
        return;
    add_kubeconfig(&in);
    if (read && cr_kubeconfig_file_read(path, cr_buf_text(&text), text.len, &file, &err)) {
        add_items(&in, &file);
        return;
    }
    cr_node_reader_trouble(program, "%s: %s", via, err.text);
    add_unknown(&in, kubeconfig_ca, CR_ROLE_SERVER_CA);
    add_unknown(&in, kubeconfig_certificate, CR_ROLE_CLIENT_LEAF);
    add_unknown(&in, kubeconfig_key, CR_ROLE_CLIENT_LEAF);
}

bool cr_node_reader_follow(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                           const char *path)
{
    if (parameter->kind != CR_PARAMETER_FLAG || !cr_ends_with(parameter->name, "kubeconfig"))
        return false;
    cr_node_reader_follow_kubeconfig(program, parameter->name, path);
    return true;
}

/* --- configuration files --- */

static struct cr_json *read_yaml(const struct cr_node_reader *program, const char *path, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.max = CR_YAML_MAX_BYTES, .secret = true};
    if (!read_file(program, path, &text, err))
        return NULL;
    struct cr_json *json = cr_yaml_parse(cr_buf_text(&text), text.len, err);
    if (!json)
        cr_error_wrap(err, "%s", path);
    return json;
}

/* clientConnection.kubeconfig takes the place of --kubeconfig
 * (kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1, kube-proxy-config.v1alpha1). */
static bool follow_client_connection(const struct cr_node_reader *program, const struct cr_json *config)
{
    const char *path = cr_json_string_at(config, "clientConnection", "kubeconfig");
    if (path && *path)
        cr_node_reader_follow_kubeconfig(program, "--kubeconfig", path);
    return false;
}

/* The fields of server/embed/config.go securityConfig are named as the flags are. */
static bool follow_etcd(const struct cr_node_reader *program, const struct cr_json *config)
{
    static const struct {
        const char *section;
        const char *flag;
    } sections[] = {{"client-transport-security", "--"}, {"peer-transport-security", "--peer-"}};
    struct cr_known_parameter one;
    for (size_t i = 0; cr_component_parameter(program->subject->component, i, &one); i++)
        for (size_t k = 0; one.kind == CR_PARAMETER_FLAG && k < cr_array_len(sections); k++) {
            const struct cr_json *section = cr_json_get(config, sections[k].section);
            for (const struct cr_json *field = cr_json_first(section); field; field = cr_json_next(field)) {
                cr_autofree char *flag = cr_asprintf("%s%s", sections[k].flag, cr_or_empty(cr_json_key(field)));
                const char *path = cr_json_string(field);
                if (path && *path && cr_streq(flag, one.name))
                    cr_node_reader_add_roles(
                        program, &(struct cr_node_claim){.parameter = one.name, .via = "--config-file", .path = path},
                        one.roles);
            }
        }
    return true;
}

/* follow returns whether flags and variables do not count beside it. */
static const struct config {
    const char *component;
    const char *flag;
    const char *variable; /* NULL: none */
    bool (*follow)(const struct cr_node_reader *program, const struct cr_json *config);
} configs[] = {
    {"etcd", "config-file", "ETCD_CONFIG_FILE", follow_etcd},
    {"kube-scheduler", "config", NULL, follow_client_connection},
    {"kube-proxy", "config", NULL, follow_client_connection},
};

static const char *config_path(const struct config *config, const struct cr_given_flags *flags,
                               const struct cr_settings *settings)
{
    const char *path = cr_given_flags_text(flags, config->flag);
    for (size_t i = settings->len; !path && config->variable && i > 0; i--)
        if (settings->items[i - 1].env && cr_streq(settings->items[i - 1].name, config->variable))
            path = settings->items[i - 1].value;
    return path && *path ? path : NULL;
}

bool cr_node_reader_follow_config(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                                  const struct cr_settings *settings)
{
    for (size_t i = 0; i < cr_array_len(configs); i++) {
        if (!cr_streq(configs[i].component, cr_component_name(program->subject->component)))
            continue;
        const char *path = config_path(&configs[i], flags, settings);
        struct cr_error err = {0};
        CR_CLEANUP(cr_json_secret) struct cr_json *config = path ? read_yaml(program, path, &err) : NULL;
        if (config)
            return configs[i].follow(program, config);
        if (path)
            cr_node_reader_trouble(program, "--%s: %s", configs[i].flag, err.text);
    }
    return false;
}
