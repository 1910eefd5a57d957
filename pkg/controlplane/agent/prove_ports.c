/* Where each component of a node can be asked, by what it was started with. */
#include "controlplane/agent/prove_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "catalogue/settings.h"
#include "catalogue/version.h"
#include "controlplane/agent/given_flags.h"

/* --- where etcd can be asked --- */

/* What it was started with: a flag is above its variable (etcd pkg/flags). */
struct given {
    const struct cr_given_flags *flags;
    const struct cr_settings *settings;
    const char *health;
};

static const char *variable(const struct given *given, const char *name)
{
    for (size_t i = given->settings->len; i > 0; i--) {
        const struct cr_setting *setting = &given->settings->items[i - 1];
        if (setting->env && cr_streq(setting->name, name))
            return setting->value && *setting->value ? setting->value : NULL;
    }
    return NULL;
}

static const char *value_of(const struct given *given, const char *flag, const char *name)
{
    const char *text = cr_given_flags_text(given->flags, flag);
    return text ? text : variable(given, name);
}

/* The name that a parameter has in the rows of this etcd. */
static const char *parameter_of(const struct given *given, const char *flag, const char *name)
{
    return !cr_given_flags_find(given->flags, flag + 2) && variable(given, name) ? name : flag;
}

/* "https://192.0.2.11:2379" and what may follow it. */
static struct cr_node_port *add_url(const char *url, struct cr_node_ports *out)
{
    char host[64];
    int64_t port = 0;
    bool tls = cr_starts_with(url, "https://");
    if (!tls && !cr_starts_with(url, "http://"))
        return NULL;
    const char *rest = strstr(url, "//") + 2;
    cr_autofree char *authority = cr_strndup(rest, strcspn(rest, "/?#"));
    struct cr_node_port *added = cr_node_host_port(authority, host, &port) ? cr_node_ports_add(out, host, port) : NULL;
    if (added)
        added->tls = tls;
    return added;
}

/* leaf, ca: of those with TLS. pages: plain ones have a health endpoint without credentials; behind TLS it wants a
 * certificate.
 */
static void add_urls(const struct given *given, const char *urls, const char *leaf, const char *ca, bool pages,
                     struct cr_node_ports *out)
{
    for (const char *p = urls + strspn(urls, ", "); *p; p += strspn(p, ", ")) {
        size_t len = strcspn(p, ", ");
        cr_autofree char *url = cr_strndup(p, len);
        struct cr_node_port *added = add_url(url, out);
        p += len;
        if (!added)
            continue;
        added->parameter = added->tls ? leaf : NULL;
        added->ca_parameter = added->tls ? ca : NULL;
        added->health = !added->tls && pages ? given->health : NULL;
        if (!added->tls && !added->health)
            out->len--;
    }
}

/* /readyz has more to say than /health, but is not everywhere before 3.6 (etcd CHANGELOG-3.5, CHANGELOG-3.6). */
static const char *health_page(const char *version)
{
    struct cr_version_span span;
    struct cr_version_range since;
    bool has = version && cr_version_from_tag(version, &span) && cr_version_range_parse(">=3.6", &since, NULL) &&
               cr_version_in_range(&since, &span) == CR_YES;
    return has ? "/readyz" : "/health";
}

static void add_all(const struct given *given, struct cr_node_ports *out)
{
    const char *clients = value_of(given, "listen-client-urls", "ETCD_LISTEN_CLIENT_URLS");
    const char *peers = value_of(given, "listen-peer-urls", "ETCD_LISTEN_PEER_URLS");
    const char *metrics = value_of(given, "listen-metrics-urls", "ETCD_LISTEN_METRICS_URLS");
    const char *leaf = parameter_of(given, "--cert-file", "ETCD_CERT_FILE");
    const char *ca = parameter_of(given, "--trusted-ca-file", "ETCD_TRUSTED_CA_FILE");
    add_urls(given, clients ? clients : "http://localhost:2379", leaf, ca, true, out);
    add_urls(given, peers ? peers : "http://localhost:2380",
             parameter_of(given, "--peer-cert-file", "ETCD_PEER_CERT_FILE"),
             parameter_of(given, "--peer-trusted-ca-file", "ETCD_PEER_TRUSTED_CA_FILE"), false, out);
    add_urls(given, cr_or_empty(metrics), leaf, ca, true, out);
}

/* container: its JSON, for the variables. */
static void ports_of_etcd(const struct cr_given_flags *flags, const struct cr_static_container *container,
                          struct cr_node_ports *out)
{
    CR_CLEANUP(cr_settings) struct cr_settings settings;
    cr_settings_collect(container->json, &settings);
    struct given given = {.flags = flags, .settings = &settings, .health = health_page(container->version)};
    if (cr_given_flags_find(flags, "config-file") || variable(&given, "ETCD_CONFIG_FILE"))
        out->why = "where it can be asked is said in its --config-file, which is not followed for that";
    else
        add_all(&given, out);
}

/* --- addresses --- */

static bool is_unicast(const char *literal)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, literal, &four) == 1)
        return !IN_MULTICAST(ntohl(four.s_addr)) && four.s_addr != INADDR_BROADCAST;
    return inet_pton(AF_INET6, literal, &six) == 1 && !IN6_IS_ADDR_MULTICAST(&six);
}

/* What is bound to all addresses is asked at the loopback's. */
static const char *asked_at(const char *bound_to)
{
    static const char *const loopbacks[][2] = {
        {"", "127.0.0.1"}, {"localhost", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}, {"::", "::1"}};
    for (size_t i = 0; i < cr_array_len(loopbacks); i++)
        if (cr_streq(bound_to, loopbacks[i][0]))
            return loopbacks[i][1];
    return is_unicast(bound_to) ? bound_to : NULL;
}

struct cr_node_port *cr_node_ports_add(struct cr_node_ports *ports, const char *bound_to, int64_t port)
{
    char host[64];
    size_t len = strlen(bound_to);
    bool brackets = len > 1 && bound_to[0] == '[' && bound_to[len - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? len - 2 : len), bound_to + brackets);
    const char *address = asked_at(host);
    if (!address || len >= sizeof host || port < 1 || port > 65535 || ports->len == CR_NODE_PORTS_MAX)
        return NULL;
    struct cr_node_port *out = &ports->items[ports->len++];
    *out = (struct cr_node_port){.port = (int)port};
    snprintf(out->address, sizeof out->address, "%s", address);
    return out;
}

static bool read_port(const char *text, int64_t *port)
{
    char *end = NULL;
    *port = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *port <= 65535;
}

bool cr_node_host_port(const char *text, char host[64], int64_t *port)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon - text >= 64 || !read_port(colon + 1, port))
        return false;
    snprintf(host, 64, "%.*s", (int)(colon - text), text);
    return true;
}

/* --- components of Kubernetes --- */

/* A name that no certificate has, so that the pair without a name is served: with --tls-sni-cert-key one that is for
 * the address would be (k8s.io/apiserver dynamiccertificates/tlsconfig.go GetConfigForClient). */
static const char no_name[] = "default.invalid";

static void add_secure(const struct cr_given_flags *flags, int64_t port, const char *health, struct cr_node_ports *out)
{
    const char *given = cr_given_flags_text(flags, "secure-port");
    const char *address = cr_given_flags_text(flags, "bind-address");
    if (given && !read_port(given, &port))
        port = -1;
    if (port == 0)
        out->why = "it serves nothing (--secure-port=0)";
    struct cr_node_port *added = cr_node_ports_add(out, cr_or_empty(address), port);
    if (!added)
        return;
    added->tls = true;
    added->parameter = "--tls-cert-file";
    added->ca_parameter = "--client-ca-file";
    added->health = health;
    if (cr_given_flags_find(flags, "tls-sni-cert-key"))
        snprintf(added->server_name, sizeof added->server_name, "%s", no_name);
}

static void add_apiserver(const struct cr_given_flags *flags, const struct cr_static_container *container,
                          struct cr_node_ports *out)
{
    (void)container;
    add_secure(flags, 6443, "/readyz", out);
}

static void add_controller_manager(const struct cr_given_flags *flags, const struct cr_static_container *container,
                                   struct cr_node_ports *out)
{
    (void)container;
    add_secure(flags, 10257, "/healthz", out);
}

static void add_scheduler(const struct cr_given_flags *flags, const struct cr_static_container *container,
                          struct cr_node_ports *out)
{
    (void)container;
    add_secure(flags, 10259, "/healthz", out);
}

/* A configuration file takes the flag's place (cmd/kube-proxy/app/options.go). */
static void add_proxy(const struct cr_given_flags *flags, const struct cr_static_container *container,
                      struct cr_node_ports *out)
{
    (void)container;
    const char *given = cr_given_flags_text(flags, "healthz-bind-address");
    char host[64] = "";
    int64_t port = 10256;
    if (cr_given_flags_find(flags, "config")) {
        out->why = "where it can be asked is said in its --config, which is not followed for that";
        return;
    }
    if (given && !cr_node_host_port(given, host, &port))
        snprintf(host, sizeof host, "%.63s", given);
    struct cr_node_port *added = cr_node_ports_add(out, host, port);
    if (added)
        added->health = "/healthz";
}

static void add_kubelet(const struct cr_kubelet_files *kubelet, struct cr_node_ports *out)
{
    struct cr_node_port *serving = cr_node_ports_add(out, cr_or_empty(kubelet->address), kubelet->port);
    if (serving) {
        serving->tls = true;
        serving->parameter = kubelet->certificate.path ? kubelet->certificate.parameter
                             : kubelet->server_pair    ? "serverTLSBootstrap"
                                                       : NULL;
        if (kubelet->certificate.path && !serving->parameter)
            serving->parameter = "tlsCertFile";
        serving->ca_parameter = kubelet->client_ca.parameter ? kubelet->client_ca.parameter : "--client-ca-file";
    }
    struct cr_node_port *page = cr_node_ports_add(out, cr_or_empty(kubelet->healthz_address), kubelet->healthz_port);
    if (page)
        page->health = "/healthz";
}

/* --- which of them it is --- */

static const struct component {
    const char *name;
    void (*add)(const struct cr_given_flags *flags, const struct cr_static_container *container,
                struct cr_node_ports *out);
} components[] = {
    {"kube-apiserver", add_apiserver}, {"kube-controller-manager", add_controller_manager},
    {"kube-scheduler", add_scheduler}, {"etcd", ports_of_etcd},
    {"kube-proxy", add_proxy},
};

static const struct cr_static_pod *pod_of(const struct cr_node_look *look, const struct cr_node_program *program)
{
    for (size_t i = 0; program->manifest && i < look->pods_len; i++)
        if (cr_streq(look->manifests[i], program->manifest) && cr_streq(look->pods[i]->name, program->pod))
            return look->pods[i];
    return NULL;
}

static const struct cr_static_container *container_of(const struct cr_static_pod *pod, const char *name)
{
    for (size_t i = 0; pod && i < pod->len; i++)
        if (cr_streq(pod->containers[i].name, name))
            return &pod->containers[i];
    return NULL;
}

static void add_static(const struct cr_static_pod *pod, const struct cr_static_container *container,
                       const struct component *component, struct cr_node_ports *out)
{
    const struct cr_strvec *argv = &container->argv;
    size_t first = container->argv_has_name && argv->len ? 1 : 0;
    CR_CLEANUP(cr_given_flags) struct cr_given_flags flags = {0};
    if (!pod->host_network) {
        out->why = "its pod is not in the node's network";
        return;
    }
    if (!container->argv_known) {
        out->why = "not all words that it is started with can be told";
        return;
    }
    cr_given_flags_read(argv->len ? argv->items + first : NULL, argv->len - first, &flags);
    component->add(&flags, container, out);
}

static void add_program(const struct cr_node_look *look, const struct cr_node_program *program,
                        struct cr_node_ports *out)
{
    const struct cr_static_pod *pod = pod_of(look, program);
    const struct cr_static_container *container = container_of(pod, program->container);
    for (size_t i = 0; container && i < cr_array_len(components); i++)
        if (cr_streq(components[i].name, program->component))
            add_static(pod, container, &components[i], out);
    if (!program->manifest && look->has_kubelet && cr_streq(program->component, "kubelet"))
        add_kubelet(&look->kubelet, out);
}

size_t cr_node_ports(const struct cr_node_look *look, const struct cr_node_program *program,
                     struct cr_node_port ports[CR_NODE_PORTS_MAX], const char **why)
{
    struct cr_node_ports out = {.items = ports};
    add_program(look, program, &out);
    *why = out.len ? NULL : out.why ? out.why : "nothing is known of where it can be asked";
    return out.len;
}

bool cr_node_port_announces(const struct cr_node_port *port, const char *parameter)
{
    bool front_proxies =
        cr_streq(port->ca_parameter, "--client-ca-file") && cr_streq(parameter, "--requestheader-client-ca-file");
    return port->ca_parameter && (cr_streq(port->ca_parameter, parameter) || front_proxies);
}
