/* Proof by asking: what a component serves on its node, and whether it is well. Handshakes without a client certificate
 * and health pages that anybody may ask; nothing of the peer is trusted, and no credential is sent. */
#ifndef CR_NODE_PROVE_H
#define CR_NODE_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/node_report.h"
#include "base/cleanup.h"
#include "net/tls_probe.h"
#include "node/reading.h"

/* Where a component can be asked, by its flags: pure. */
struct cr_node_port {
    char address[64]; /* an IP literal to ask at: 0.0.0.0 becomes 127.0.0.1, and so on */
    int port;
    bool tls;
    char server_name[256]; /* SNI; "": none */
    const char
        *parameter; /* whose leaf is served there: "--tls-cert-file", "--cert-file", "--peer-cert-file"; static */
    const char *ca_parameter; /* whose CAs are announced; static; NULL: none known */
    const char *health;       /* path of a page that anybody may ask: "/readyz"; NULL: none. static */
};
enum { CR_NODE_PORTS_MAX = 16 };
/* Of kube-apiserver --secure-port and --bind-address, /readyz; controller manager and scheduler 10257, 10259, /healthz;
 * etcd
 * --listen-client-urls, --listen-peer-urls, --listen-metrics-urls /readyz (3.6) or /health; kubelet its port, and
 * /healthz at its healthz port. Returns how many. */
size_t cr_node_ports(const struct cr_node_look *look, const struct cr_node_program *program,
                     struct cr_node_port ports[CR_NODE_PORTS_MAX]);

struct cr_node_proof_port {
    struct cr_node_port port;
    struct cr_probe_result probe; /* with tls */
};
struct cr_node_proof {
    struct cr_node_proof_port ports[CR_NODE_PORTS_MAX];
    size_t len;
    enum cr_node_health health;
    char message[200]; /* of Failing and Unknown */
};
/* Blocks for timeout_ms at most. Any thread. */
void cr_node_prove(const struct cr_node_look *look, const struct cr_node_program *program, int timeout_ms,
                   struct cr_node_proof *out);

#endif
