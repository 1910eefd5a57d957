/* Proof by asking: what a component serves on its node, and whether it is well. Handshakes without a client certificate
 * and health pages that anybody may ask; nothing of the peer is trusted, and no credential is sent.
 *
 * etcd logs each handshake without a client certificate as a rejected connection, so it is asked after a change and now
 * and then, not with each look (node/survey.h). How many of its members answer is told by nobody who has no certificate
 * of it; the operator counts the etcd components of all reports instead. */
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
    char address[64]; /* an IP literal to ask at: 0.0.0.0 becomes 127.0.0.1, and :: is ::1 */
    int port;
    bool tls;
    char server_name[256]; /* SNI; "": none */
    /* Whose leaf is served there: "--tls-cert-file", "--cert-file", "--peer-cert-file"; NULL with plain HTTP. Static,
     * or the catalogue's and the look's. */
    const char *parameter;
    const char *ca_parameter; /* whose CAs are announced; static; NULL: none known */
    const char *health;       /* path of a page that anybody may ask: "/readyz"; NULL: none. static */
};
enum { CR_NODE_PORTS_MAX = 16 };
/* Of kube-apiserver --secure-port and --bind-address, /readyz; controller manager and scheduler 10257, 10259, /healthz;
 * etcd --listen-client-urls, --listen-peer-urls, --listen-metrics-urls with /readyz (3.6) or /health, and their
 * variables; kube-proxy's --healthz-bind-address; the kubelet's port, and /healthz at its healthz port. None for a pod
 * that is not in the node's network, for words that cannot be told (cr_static_container.argv_known), and for what a
 * configuration file says that is not followed (etcd's --config-file); *why says so in words then (static), and is NULL
 * when there are some. Names and Unix sockets are left out. Returns how many. */
size_t cr_node_ports(const struct cr_node_look *look, const struct cr_node_program *program,
                     struct cr_node_port ports[CR_NODE_PORTS_MAX], const char **why);

/* Whether the CAs of this parameter are among those that are announced there: a port announces those of clients and of
 * front proxies together (k8s.io/apiserver pkg/server/options/authentication.go). */
bool cr_node_port_announces(const struct cr_node_port *port, const char *parameter);

struct cr_node_proof_port {
    struct cr_node_port port;
    struct cr_probe_result probe; /* with tls */
    int status;                   /* of the health page; 0: there is none, or no answer */
    char problem[96];             /* why there was none, or what is wrong with the port; "": nothing */
};
struct cr_node_proof {
    struct cr_node_proof_port ports[CR_NODE_PORTS_MAX];
    size_t len;
    enum cr_node_health health;
    char message[200]; /* of Failing and Unknown; of Serving what it rests on when that is a handshake alone; else "" */
};
/* Serving: each port answers, and each page that tells. A page that wants to know who asks (401, 403) tells nothing.
 * Asked are addresses of this machine alone. Blocks for timeout_ms at most. Any thread. */
void cr_node_prove(const struct cr_node_look *look, const struct cr_node_program *program, int timeout_ms,
                   struct cr_node_proof *out);

/* As cr_node_prove, but the handshakes are not made anew: what was seen in those of before is taken over, and pages are
 * asked. False, and nothing was asked: a handshake of before has failed, the ports are others, or no page would tell
 * whether it is well. */
bool cr_node_prove_pages(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_proof *before, int timeout_ms, struct cr_node_proof *out) CR_MUST_USE;

/* The verdict of what the ports have shown: health and message. why: as of cr_node_ports. Pure. */
void cr_node_proof_judge(const struct cr_node_program *program, const char *why, struct cr_node_proof *proof);

#endif
