#include "policy/controller/pod_guard.h"

#include "base/strings.h"
#include "net/tls_probe.h"

/* Shares its address with its node. */
static bool on_host(const struct cr_world_pod *pod)
{
    if (cr_json_bool_at(pod->pod, false, "spec", "hostNetwork") ||
        cr_probe_address_equal(cr_json_string_at(pod->pod, "status", "hostIP"), pod->ip))
        return true;
    const struct cr_json *hosts = cr_json_at(pod->pod, "status", "hostIPs");
    for (const struct cr_json *host = cr_json_first(hosts); host; host = cr_json_next(host))
        if (cr_probe_address_equal(cr_json_string_at(host, "ip"), pod->ip))
            return true;
    return false;
}

bool cr_pod_may_be_asked(const struct cr_client *client, const struct cr_world_pod *pod, int port)
{
    static const int node_ports[] = {2379, 2380, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10259};
    if (!cr_probe_address_allowed(pod->ip) || cr_client_is_server(client, pod->ip, port))
        return false;
    for (size_t i = 0; i < cr_array_len(node_ports); i++)
        if (port == node_ports[i])
            return !on_host(pod);
    return true;
}
