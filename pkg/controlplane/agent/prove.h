/* Proof by asking: what a component serves on its node, and whether it is well. Handshakes without a client certificate
 * and health endpoints that need no credential; nothing of the peer is trusted, and no credential is sent.
 *
 * etcd logs each handshake without a client certificate as a rejected connection, so it is asked after a change and now
 * and then, not with each look (controlplane/agent/survey.h). A client without a certificate of etcd cannot learn how
 * many of its members answer; the operator counts the etcd components of all reports instead. */
#ifndef CR_CONTROLPLANE_AGENT_PROVE_H
#define CR_CONTROLPLANE_AGENT_PROVE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/node_report.h"
#include "base/cleanup.h"
#include "net/tls_probe.h"
#include "controlplane/agent/node_reading.h"

/* Where a component can be asked, by its flags: pure. */
struct cr_node_port {
    char address[64]; /* an IP literal to ask at: 0.0.0.0 becomes 127.0.0.1, and :: is ::1 */
    int port;
    bool tls;
    char server_name[256]; /* SNI; "": none */
    /* The parameter of the leaf that is served there: "--tls-cert-file", "--cert-file", "--peer-cert-file"; NULL with
     * plain HTTP. Static, or the catalogue's and the look's. */
    const char *parameter;
    const char *ca_parameter; /* the parameter of the CAs that are announced; static; NULL: none known */
    const char *health;       /* path of an endpoint that needs no credential: "/readyz"; NULL: none. static */
};
enum { CR_NODE_PORTS_MAX = 16 };
/* The ports of a program: kube-apiserver --secure-port and --bind-address, /readyz; controller manager and scheduler
 * 10257, 10259, /healthz; etcd --listen-client-urls, --listen-peer-urls, --listen-metrics-urls with /readyz (3.6) or
 * /health, and their variables; kube-proxy's --healthz-bind-address; the kubelet's port, and /healthz at its healthz
 * port. None for a pod that is not in the node's network, for a command line that is not known
 * (cr_static_container.argv_known), and for a configuration file that is not followed (etcd's --config-file); *why says
 * so in words then (static), and is NULL when there are some. Names and Unix sockets are left out. Returns how many. */
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
/* Serving: each port answers, and each health endpoint says that it is well. An endpoint that wants a credential (401,
 * 403) says nothing. Only addresses of this machine are asked. Blocks for timeout_ms at most. Any thread. */
void cr_node_prove(const struct cr_node_look *look, const struct cr_node_program *program, int timeout_ms,
                   struct cr_node_proof *out);

/* As cr_node_prove, but the handshakes are not made again: what the earlier ones showed is taken over, and health
 * endpoints are asked. False, and nothing was asked: an earlier handshake has failed, the ports are others, or no
 * endpoint says whether the program is well. */
bool cr_node_prove_pages(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_proof *before, int timeout_ms, struct cr_node_proof *out) CR_MUST_USE;

/* The verdict of what the ports have shown: health and message. why: as of cr_node_ports. Pure. */
void cr_node_proof_judge(const struct cr_node_program *program, const char *why, struct cr_node_proof *proof);

#endif
