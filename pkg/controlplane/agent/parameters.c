#include "controlplane/agent/parameters.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "catalogue/settings.h"
#include "controlplane/agent/given_flags.h"
#include "controlplane/agent/parameters_internal.h"
#include "controlplane/agent/static_internal.h"

/* --- which files the flags and variables of one program name --- */

static const char from_elsewhere[] = "comes from elsewhere than the manifest";

/* A value in which a variable stays that the manifest does not show is none. */
static const char *known(const char *value)
{
    return strstr(value, "$(") ? NULL : value;
}

static void add_path(const struct cr_node_reader *program, const struct cr_known_parameter *parameter, const char *path)
{
    if (path && !*path)
        return;
    if (path && cr_node_reader_follow(program, parameter, path))
        return;
    cr_node_reader_add_roles(program,
                             &(struct cr_node_claim){.parameter = parameter->name, .path = path, .why = from_elsewhere},
                             parameter->roles);
}

/* "cert,key" or "cert,key:name,name", several by ";" (component-base cli/flag namedcertkey_flag.go). */
static void add_sni(const struct cr_node_reader *program, const struct cr_known_parameter *parameter, const char *value)
{
    for (const char *p = value; *p; p += strspn(p, ";")) {
        size_t len = strcspn(p, ";");
        cr_autofree char *one = cr_strndup(p, len);
        one[strcspn(one, ":")] = '\0';
        char *comma = strchr(one, ',');
        if (comma)
            *comma = '\0';
        add_path(program, parameter, one);
        if (comma)
            add_path(program, parameter, comma + 1);
        p += len;
    }
}

/* Those that may be given several times; of all others the last one counts. */
static bool adds_up(const char *name)
{
    return cr_streq(name, "--tls-sni-cert-key") || cr_streq(name, "--service-account-key-file");
}

static void add_flag(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                     const struct cr_given_flag *flag)
{
    const char *value = known(cr_or_empty(flag->value));
    if (value && cr_streq(parameter->name, "--tls-sni-cert-key"))
        add_sni(program, parameter, value);
    else
        add_path(program, parameter, value);
}

static void add_flags(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                      const struct cr_given_flags *flags)
{
    const char *name = parameter->name + strspn(parameter->name, "-");
    const struct cr_given_flag *last = cr_given_flags_find(flags, name);
    for (size_t i = 0; last && i < flags->len; i++)
        if (&flags->items[i] == last || (adds_up(parameter->name) && cr_streq(flags->items[i].name, name)))
            add_flag(program, parameter, &flags->items[i]);
}

/* "--cert-file" for ETCD_CERT_FILE: a flag is above its variable (etcd pkg/flags). */
static bool has_flag_of(const struct cr_given_flags *flags, const char *variable)
{
    const char *underscore = strchr(variable, '_');
    if (!underscore)
        return false;
    cr_autofree char *name = cr_strdup(underscore + 1);
    for (char *p = name; *p; p++)
        *p = (char)(*p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    return cr_given_flags_find(flags, name) != NULL;
}

static void add_variable(const struct cr_node_reader *program, const struct cr_known_parameter *parameter,
                         const struct cr_given_flags *flags, const struct cr_settings *settings)
{
    if (has_flag_of(flags, parameter->name))
        return;
    for (size_t i = settings->len; i > 0; i--) {
        const struct cr_setting *setting = &settings->items[i - 1];
        if (setting->env && cr_streq(setting->name, parameter->name)) {
            add_path(program, parameter, setting->value);
            return;
        }
    }
}

static void add_all(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                    const struct cr_settings *settings)
{
    struct cr_known_parameter one;
    for (size_t i = 0; cr_component_parameter(program->subject->component, i, &one); i++) {
        if (one.hands_on)
            continue;
        if (one.kind == CR_PARAMETER_FLAG)
            add_flags(program, &one, flags);
        if (one.kind == CR_PARAMETER_VARIABLE)
            add_variable(program, &one, flags, settings);
    }
}

/* What the manifest does not show may name files, too. */
static void add_troubles(const struct cr_node_reader *program, const struct cr_given_flags *flags,
                         const struct cr_settings *settings)
{
    if (!program->container->argv_known || flags->cut || settings->cut)
        cr_node_reader_trouble(program, "not all words that container %s starts it with can be told",
                               program->container->name);
    struct cr_known_parameter one;
    for (size_t i = 0; settings->hidden_env && cr_component_parameter(program->subject->component, i, &one); i++)
        if (one.kind == CR_PARAMETER_VARIABLE) {
            cr_node_reader_trouble(program, "container %s has variables from elsewhere (envFrom)",
                                   program->container->name);
            return;
        }
}

/* --- parameters.c: its flags and variables --- */
static void reader_read(const struct cr_node_reader *program)
{
    const struct cr_static_container *container = program->container;
    const struct cr_strvec *argv = &container->argv;
    size_t first = container->argv_has_name && argv->len ? 1 : 0;
    CR_CLEANUP(cr_given_flags) struct cr_given_flags flags;
    CR_CLEANUP(cr_settings) struct cr_settings settings;
    cr_given_flags_read(argv->len ? argv->items + first : NULL, argv->len - first, &flags);
    cr_settings_collect(container->json, &settings);
    add_troubles(program, &flags, &settings);
    if (!cr_node_reader_follow_config(program, &flags, &settings))
        add_all(program, &flags, &settings);
}

const char *cr_node_place_name(enum cr_node_place place)
{
    static const char *const names[] = {"Host", "Embedded", "Elsewhere", "Unknown"};
    return (size_t)place < cr_array_len(names) ? names[place] : "";
}

void cr_node_parameters_dispose(struct cr_node_parameters *parameters)
{
    for (size_t i = 0; i < parameters->len; i++) {
        struct cr_node_parameter *p = &parameters->items[i];
        char *owned[] = {p->component, p->version, p->pod,  p->container, p->parameter,
                         p->via,       p->path,    p->host, p->why};
        for (size_t k = 0; k < cr_array_len(owned); k++)
            free(owned[k]);
    }
    free(parameters->items);
    cr_strvec_dispose(&parameters->troubles);
    *parameters = (struct cr_node_parameters){0};
}

bool cr_node_parameter_reloads(const struct cr_node_parameter *parameter)
{
    const struct cr_capability *capability = &parameter->capability;
    bool by_itself = capability->method == CR_METHOD_WATCH || capability->method == CR_METHOD_PER_HANDSHAKE ||
                     capability->method == CR_METHOD_POLL;
    return by_itself && capability->verified && parameter->place == CR_NODE_PLACE_HOST && !parameter->alone;
}

/* --- rows --- */

void cr_node_reader_trouble(const struct cr_node_reader *program, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *words = cr_vasprintf(fmt, args);
    va_end(args);
    const char *component = cr_or_empty(cr_component_name(program->subject->component));
    cr_autofree char *text = program->pod ? cr_asprintf("%s of %s: %s", component, program->pod, words)
                                          : cr_asprintf("%s: %s", component, words);
    if (program->out->troubles.len < CR_NODE_PARAMETERS_MAX)
        cr_strvec_add_unique(&program->out->troubles, text);
}

static void place_row(const struct cr_node_reader *program, const struct cr_node_claim *claim,
                      struct cr_node_parameter *row)
{
    CR_CLEANUP(cr_static_file) struct cr_static_file file = {.place = CR_STATIC_PLACE_UNKNOWN, .why = claim->why};
    if (claim->path && program->container)
        cr_static_container_file(program->container, claim->path, &file);
    else if (claim->path)
        file = (struct cr_static_file){.place = CR_STATIC_PLACE_HOST, .path = cr_strdup(claim->path)};
    bool found = file.place == CR_STATIC_PLACE_HOST;
    row->place = found                                   ? CR_NODE_PLACE_HOST
                 : file.place == CR_STATIC_PLACE_UNKNOWN ? CR_NODE_PLACE_UNKNOWN
                                                         : CR_NODE_PLACE_ELSEWHERE;
    if (found && claim->embedded)
        row->place = CR_NODE_PLACE_EMBEDDED;
    row->host = cr_steal(&file.path);
    row->alone = found && file.alone;
    row->why = found ? NULL : cr_strdup_or_null(file.why);
}

struct cr_node_parameter *cr_node_reader_add(const struct cr_node_reader *program, const struct cr_node_claim *claim,
                                             enum cr_role role)
{
    struct cr_node_parameters *out = program->out;
    if (out->len == CR_NODE_PARAMETERS_MAX) {
        cr_node_reader_trouble(program, "there are more than %d files to look at", CR_NODE_PARAMETERS_MAX);
        return NULL;
    }
    struct cr_node_parameter row = {
        .component = cr_strdup(cr_or_empty(cr_component_name(program->subject->component))),
        .version = cr_strdup_or_null(program->version),
        .pod = cr_strdup_or_null(program->pod),
        .container = cr_strdup_or_null(program->container ? program->container->name : NULL),
        .parameter = cr_strdup(claim->parameter),
        .via = cr_strdup_or_null(claim->via),
        .path = cr_strdup_or_null(claim->path),
        .role = role,
        .own = claim->own,
    };
    place_row(program, claim, &row);
    cr_catalogue_capability(program->subject, claim->judge ? claim->judge : claim->parameter, role, &row.capability);
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len] = row;
    return &out->items[out->len++];
}

void cr_node_reader_add_roles(const struct cr_node_reader *program, const struct cr_node_claim *claim, unsigned roles)
{
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++)
        if (roles & CR_ROLE_BIT(role))
            cr_node_reader_add(program, claim, (enum cr_role)role);
}

/* --- one file for signing and trust --- */

/* The same file by its name: slashes may be doubled. */
static bool same_path(const char *a, const char *b)
{
    while (*a && *a == *b) {
        bool slash = *a == '/';
        a += slash ? strspn(a, "/") : 1;
        b += slash ? strspn(b, "/") : 1;
    }
    return *a == *b;
}

bool cr_node_parameter_signs(const struct cr_node_parameter *row)
{
    return cr_starts_with(row->parameter, "--cluster-signing") && cr_ends_with(row->parameter, "cert-file");
}

static bool trusts(const struct cr_node_parameter *row)
{
    return row->role == CR_ROLE_CLIENT_CA || row->role == CR_ROLE_SERVER_CA;
}

bool cr_node_parameter_is_bundle(const struct cr_node_parameter *row)
{
    return trusts(row) && !cr_ends_with(row->parameter, "kubeconfig");
}

static void mark_shared_files(struct cr_node_parameters *out)
{
    for (size_t i = 0; i < out->len; i++) {
        struct cr_node_parameter *signing = &out->items[i];
        for (size_t k = 0; cr_node_parameter_signs(signing) && k < out->len; k++) {
            struct cr_node_parameter *other = &out->items[k];
            if (!cr_node_parameter_is_bundle(other) || signing->place != CR_NODE_PLACE_HOST ||
                other->place != CR_NODE_PLACE_HOST || !same_path(signing->host, other->host))
                continue;
            signing->signs_and_trusts = true;
            other->signs_and_trusts = true;
        }
    }
}

/* --- programs --- */

/* A container, or what one of its probes starts. */
static void add_container(struct cr_node_parameters *out, const struct cr_catalogue *catalogue,
                          const struct cr_static_pod *pod, const struct cr_static_container *container,
                          const struct cr_node_source *source)
{
    struct cr_program subject = {.component = cr_static_container_component(container, catalogue),
                                 .pod_spec = cr_json_get(pod->json, "spec"),
                                 .container = container->json};
    if (!subject.component)
        return;
    reader_read(&(struct cr_node_reader){.out = out,
                                         .subject = &subject,
                                         .version = container->version,
                                         .pod = pod->name,
                                         .container = container,
                                         .source = source});
}

/* A probe of type exec starts a program in the container each time: etcdctl with --cacert, --cert and --key. */
static void add_probe(struct cr_node_parameters *out, const struct cr_catalogue *catalogue,
                      const struct cr_static_pod *pod, const struct cr_static_container *container, const char *name,
                      const struct cr_node_source *source)
{
    const struct cr_json *command = cr_json_at(container->json, name, "exec", "command");
    if (!cr_json_is_array(command))
        return;
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_copy(container->json);
    cr_json_remove(json, "args");
    cr_json_set(json, "command", cr_json_copy(command));
    struct cr_static_container probe = *container;
    probe.json = json;
    probe.argv = (struct cr_strvec){0};
    cr_static_command(&probe);
    /* It reads all of it again each time, so that nothing waits for what it may be given besides. */
    probe.argv_known = true;
    /* Without a name of the program, the container's image would be taken for it. */
    if (cr_static_container_process(&probe) && cr_catalogue_by_name(catalogue, cr_static_container_process(&probe)))
        add_container(out, catalogue, pod, &probe, source);
    cr_strvec_dispose(&probe.argv);
}

void cr_node_parameters_add_pod(struct cr_node_parameters *parameters, const struct cr_catalogue *catalogue,
                                const struct cr_static_pod *pod, const struct cr_node_source *source)
{
    static const char *const probes[] = {"startupProbe", "livenessProbe", "readinessProbe"};
    for (size_t i = 0; i < pod->len; i++) {
        add_container(parameters, catalogue, pod, &pod->containers[i], source);
        for (size_t k = 0; k < cr_array_len(probes); k++)
            add_probe(parameters, catalogue, pod, &pod->containers[i], probes[k], source);
    }
    mark_shared_files(parameters);
}

/* --- the kubelet --- */

static void add_kubelet_file(const struct cr_node_reader *program, const struct cr_kubelet_file *file,
                             const char *without, enum cr_role role)
{
    if (file->path)
        cr_node_reader_add(
            program,
            &(struct cr_node_claim){.parameter = file->parameter ? file->parameter : without, .path = file->path},
            role);
}

/* The certificate that it asks for: in memory, whatever others write (certificate_manager.go Current). */
static void add_server_pair(const struct cr_node_reader *program, const char *path)
{
    if (!path)
        return;
    struct cr_node_parameter *row = cr_node_reader_add(
        program, &(struct cr_node_claim){.parameter = "serverTLSBootstrap", .path = path, .own = true},
        CR_ROLE_SERVER_LEAF);
    if (row)
        row->capability = (struct cr_capability){
            .method = CR_METHOD_RESTART,
            .verified = true,
            .confidence = "verified",
            .source = "kubernetes pkg/kubelet/certificate/kubelet.go NewKubeletServerCertificateManager",
            .why = "kubelet asks for its server leaf itself, and keeps it in memory",
        };
}

static bool is_there(const struct cr_node_reader *program, const char *path)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    return program->source->read(program->source->ctx, path, &text, &err) || err.kind != CR_ERR_NOT_FOUND;
}

static bool has_row(const struct cr_node_reader *program, const char *path)
{
    for (size_t i = 0; i < program->out->len; i++)
        if (program->out->items[i].own && program->out->items[i].host && same_path(program->out->items[i].host, path))
            return true;
    return false;
}

/* What it presents, whatever its kubeconfig has: that is only where it begins (kubeadm's has the first pair embedded
 * until the node has joined; bootstrap.go LoadClientConfig). */
static void add_client_pair(const struct cr_node_reader *program, const char *path)
{
    if (!path || has_row(program, path) || !is_there(program, path))
        return;
    struct cr_node_parameter *row = cr_node_reader_add(
        program, &(struct cr_node_claim){.parameter = "rotateCertificates", .path = path, .own = true},
        CR_ROLE_CLIENT_LEAF);
    if (row)
        row->capability = (struct cr_capability){
            .method = CR_METHOD_RESTART,
            .verified = true,
            .confidence = "verified",
            .source = "kubernetes pkg/kubelet/certificate/kubelet.go NewKubeletClientCertificateManager",
            .why = "kubelet asks for its client leaf itself, and keeps it in memory",
        };
}

static void add_kubelet_kubeconfig(const struct cr_node_reader *program, const struct cr_kubelet_file *file)
{
    if (file->path)
        cr_node_reader_follow_kubeconfig(program, file->parameter, file->path);
}

void cr_node_parameters_add_kubelet(struct cr_node_parameters *parameters, const struct cr_catalogue *catalogue,
                                    const struct cr_kubelet_files *files, const char *version,
                                    const struct cr_node_source *source)
{
    struct cr_program subject = {
        .component = cr_catalogue_by_name(catalogue, "kubelet"), .container = files->settings, .version = version};
    struct cr_node_reader program = {.out = parameters,
                                     .subject = &subject,
                                     .version = version,
                                     .source = source,
                                     .rotates_client = files->rotates_client};
    add_kubelet_file(&program, &files->client_ca, "--client-ca-file", CR_ROLE_CLIENT_CA);
    add_kubelet_file(&program, &files->certificate, "tlsCertFile", CR_ROLE_SERVER_LEAF);
    add_kubelet_file(&program, &files->key, "tlsPrivateKeyFile", CR_ROLE_SERVER_LEAF);
    add_server_pair(&program, files->server_pair);
    add_kubelet_kubeconfig(&program, &files->kubeconfig);
    add_kubelet_kubeconfig(&program, &files->bootstrap_kubeconfig);
    add_client_pair(&program, files->client_pair);
    mark_shared_files(parameters);
}
