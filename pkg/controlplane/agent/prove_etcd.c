/* Where etcd can be asked. */
#include "controlplane/agent/prove_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/given_flags.h"
#include "catalogue/settings.h"
#include "catalogue/version.h"

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

void cr_node_ports_of_etcd(const struct cr_given_flags *flags, const struct cr_static_container *container,
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
