#include "controlplane/agent/prove.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "net/http_once.h"
#include "controlplane/agent/prove_internal.h"

/* --- which addresses are this machine's --- */

static bool socket_address(const char *literal, struct sockaddr_storage *out, socklen_t *len)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, literal, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        *len = sizeof *four;
        return true;
    }
    six->sin6_family = AF_INET6;
    *len = sizeof *six;
    return inet_pton(AF_INET6, literal, &six->sin6_addr) == 1;
}

/* An address that can be bound to is one of this machine's. */
static bool is_own(const char *literal)
{
    struct sockaddr_storage address;
    socklen_t len = 0;
    if (!socket_address(literal, &address, &len))
        return false;
    cr_autofd int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (const struct sockaddr *)&address, len) == 0;
}

/* --- handshakes --- */

static void note_probe(struct cr_node_proof_port *port, const struct cr_probe_result *result)
{
    port->probe = *result;
    if (result->outcome != CR_PROBE_SERVED)
        snprintf(port->problem, sizeof port->problem, "%s", result->detail);
}

static void shake_hands(struct cr_node_proof *proof, int timeout_ms)
{
    struct cr_probe_target targets[CR_NODE_PORTS_MAX];
    struct cr_probe_result results[CR_NODE_PORTS_MAX];
    struct cr_node_proof_port *ports[CR_NODE_PORTS_MAX];
    size_t len = 0;
    for (size_t i = 0; i < proof->len; i++) {
        struct cr_node_proof_port *port = &proof->ports[i];
        if (!port->port.tls || port->problem[0])
            continue;
        targets[len] = (struct cr_probe_target){.address = port->port.address,
                                                .port = port->port.port,
                                                .server_name = port->port.server_name,
                                                .protocol = CR_PROBE_TLS};
        ports[len++] = port;
    }
    if (!len)
        return;
    cr_tls_probe(targets, len, timeout_ms, results);
    for (size_t i = 0; i < len; i++)
        note_probe(ports[i], &results[i]);
}

/* --- pages --- */

/* The server is not verified: all that is believed is whether it says that it is well. */
static void ask_page(struct cr_node_proof_port *port, int timeout_ms)
{
    static const struct cr_http_tls anybody = {.insecure = true};
    enum { PAGE_MAX = 64 * 1024 };
    bool six = strchr(port->port.address, ':');
    cr_autofree char *url = cr_asprintf("%s://%s%s%s:%d%s", port->port.tls ? "https" : "http", six ? "[" : "",
                                        port->port.address, six ? "]" : "", port->port.port, port->port.health);
    const struct cr_http_request request = {
        .method = "GET", .url = url, .timeout_ms = timeout_ms, .max_body = PAGE_MAX};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    struct cr_error err = {0};
    if (cr_http_once(&anybody, &request, -1, &response, &err))
        port->status = response.status;
    else /* not in the client's words, which have times in them: the same trouble is to be the same report */
        snprintf(port->problem, sizeof port->problem, "%s of %s",
                 err.kind == CR_ERR_TRANSIENT ? "no answer" : "no sound answer", port->port.health);
}

static bool has_page(const struct cr_node_proof_port *port)
{
    return port->port.health && !port->problem[0];
}

/* Those that are left share the time that is left. */
static void ask_pages(struct cr_node_proof *proof, int64_t until_ms)
{
    size_t left = 0;
    for (size_t i = 0; i < proof->len; i++)
        left += has_page(&proof->ports[i]);
    for (size_t i = 0; left && i < proof->len; i++) {
        int64_t time_ms = until_ms - cr_clock_monotonic_ms();
        if (!has_page(&proof->ports[i]))
            continue;
        if (time_ms < (int64_t)left)
            snprintf(proof->ports[i].problem, sizeof proof->ports[i].problem, "no answer of %s",
                     proof->ports[i].port.health);
        else
            ask_page(&proof->ports[i], (int)(time_ms / (int64_t)left));
        left--;
    }
}

/* --- verdict --- */

static void say(struct cr_node_proof *proof, enum cr_node_health health, const char *fmt, ...) CR_PRINTF(3, 4);
static void say(struct cr_node_proof *proof, enum cr_node_health health, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *words = cr_vasprintf(fmt, args);
    va_end(args);
    proof->health = health;
    snprintf(proof->message, sizeof proof->message, "%s", words);
}

static bool is_well(int status)
{
    return status >= 200 && status < 300;
}

/* It wants to know who asks, which is no sign of anything. */
static bool is_closed_to_us(int status)
{
    return status == 401 || status == 403;
}

/* Says what is wrong with a port. False: nothing is. */
static bool is_failing(struct cr_node_proof *proof, const struct cr_node_proof_port *port)
{
    if (port->problem[0])
        say(proof, CR_NODE_HEALTH_FAILING, "port %d at %s: %s", port->port.port, port->port.address, port->problem);
    else if (port->status && !is_well(port->status) && !is_closed_to_us(port->status))
        say(proof, CR_NODE_HEALTH_FAILING, "%s answers %d at port %d", port->port.health, port->status,
            port->port.port);
    else
        return false;
    return true;
}

void cr_node_proof_judge(const struct cr_node_program *program, const char *why, struct cr_node_proof *proof)
{
    size_t healthy = 0;
    size_t closed = 0;
    for (size_t i = 0; i < proof->len; i++) {
        if (is_failing(proof, &proof->ports[i]))
            return;
        healthy += is_well(proof->ports[i].status);
        closed += is_closed_to_us(proof->ports[i].status);
    }
    if (!program->running)
        say(proof, proof->len ? CR_NODE_HEALTH_UNKNOWN : CR_NODE_HEALTH_FAILING,
            proof->len ? "its ports answer, though no process of it is seen" : "it does not run");
    else if (!proof->len)
        say(proof, CR_NODE_HEALTH_UNKNOWN, "%s", why ? why : "it has no port to be asked at");
    else if (healthy)
        say(proof, CR_NODE_HEALTH_SERVING, "%s", "");
    else
        say(proof, CR_NODE_HEALTH_SERVING, "it answers handshakes; %s",
            closed ? "its page does not say whether it is well without knowing who asks"
                   : "there is no page that says whether it is well");
}

/* Why not: as of cr_node_ports. */
static const char *find_ports(const struct cr_node_look *look, const struct cr_node_program *program,
                              struct cr_node_proof *out)
{
    struct cr_node_port ports[CR_NODE_PORTS_MAX];
    const char *why = NULL;
    *out = (struct cr_node_proof){0};
    out->len = cr_node_ports(look, program, ports, &why);
    for (size_t i = 0; i < out->len; i++) {
        struct cr_node_proof_port *port = &out->ports[i];
        *port = (struct cr_node_proof_port){.port = ports[i], .probe = {.outcome = CR_PROBE_REFUSED}};
        if (!is_own(ports[i].address))
            snprintf(port->problem, sizeof port->problem, "it is no address of this node");
    }
    return why;
}

void cr_node_prove(const struct cr_node_look *look, const struct cr_node_program *program, int timeout_ms,
                   struct cr_node_proof *out)
{
    int64_t until_ms = cr_clock_monotonic_ms() + timeout_ms;
    const char *why = find_ports(look, program, out);
    shake_hands(out, timeout_ms * 3 / 4 > 0 ? timeout_ms * 3 / 4 : 1);
    ask_pages(out, until_ms);
    cr_node_proof_judge(program, why, out);
}

/* --- without handshakes --- */

/* Words of the one are not those of the other: they may be of a look that has gone. */
static bool is_same_port(const struct cr_node_port *a, const struct cr_node_port *b)
{
    return cr_streq(a->address, b->address) && a->port == b->port && a->tls == b->tls &&
           cr_streq(a->server_name, b->server_name);
}

static bool take_over(struct cr_node_proof_port *port, const struct cr_node_proof_port *before)
{
    if (!is_same_port(&port->port, &before->port) || port->problem[0])
        return false;
    port->probe = before->probe;
    return !port->port.tls || port->probe.outcome == CR_PROBE_SERVED;
}

bool cr_node_prove_pages(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_proof *before, int timeout_ms, struct cr_node_proof *out)
{
    const char *why = find_ports(look, program, out);
    size_t pages = 0;
    if (out->len != before->len)
        return false;
    for (size_t i = 0; i < out->len; i++) {
        if (!take_over(&out->ports[i], &before->ports[i]))
            return false;
        pages += has_page(&out->ports[i]);
    }
    if (!pages)
        return false;
    ask_pages(out, cr_clock_monotonic_ms() + timeout_ms);
    cr_node_proof_judge(program, why, out);
    return true;
}
