#include "wire/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

/* What Linux allows (net.core.somaxconn): a connection that finds no place here is tried again after a second, which is
 * too late for a probe. */
enum { BACKLOG = 4096 };

/* Cuts "host:port" in place; the host is without brackets, "" for all addresses. */
static bool split(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    *colon = '\0';
    *port = colon + 1;
    *host = text;
    size_t len = strlen(text);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text[len - 1] = '\0';
        *host = text + 1;
        return true;
    }
    return strchr(text, ':') == NULL; /* an IPv6 literal needs its brackets */
}

static int open_at(const struct sockaddr *at, socklen_t len)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int yes = 1;
    int no = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, at, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int open_ip6(const char *ip, in_port_t port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = port};
    errno = EADDRNOTAVAIL;
    return inet_pton(AF_INET6, ip, &at.sin6_addr) == 1 ? open_at((const struct sockaddr *)&at, sizeof at) : -1;
}

static int open_ip4(const char *ip, in_port_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = port};
    errno = EADDRNOTAVAIL;
    return inet_pton(AF_INET, ip, &at.sin_addr) == 1 ? open_at((const struct sockaddr *)&at, sizeof at) : -1;
}

/* IPv6 first: such a socket takes IPv4, too. A machine without IPv6 falls back. */
static int open_host(const char *host, in_port_t port)
{
    bool any = !*host;
    bool local = cr_streq(host, "localhost");
    int fd = open_ip6(any ? "::" : local ? "::1" : host, port);
    return fd < 0 && !strchr(host, ':') ? open_ip4(any ? "0.0.0.0" : local ? "127.0.0.1" : host, port) : fd;
}

/* Names of hosts are not looked up: a static program cannot (glibc's resolver is loaded at run time), and it would be
 * odd to serve somewhere else when a name server says so. */
static bool is_host(const char *host)
{
    struct in6_addr ip;
    return !*host || cr_streq(host, "localhost") || inet_pton(AF_INET, host, &ip) == 1 ||
           inet_pton(AF_INET6, host, &ip) == 1;
}

static int bound_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    memcpy(&ip4, &at, sizeof ip4);
    memcpy(&ip6, &at, sizeof ip6);
    return ntohs(at.ss_family == AF_INET6 ? ip6.sin6_port : ip4.sin_port);
}

int cr_listen(const char *address, int *port, struct cr_error *err)
{
    enum { PORT_MAX = 65535 };
    cr_autofree char *text = cr_strdup(address);
    char *host = NULL;
    char *service = NULL;
    if (!split(text, &host, &service) || !is_host(host) || strtol(service, NULL, 10) > PORT_MAX) {
        cr_error_set(err, CR_ERR_INVALID, "'%s' is not an address to listen on, such as :8080 or 127.0.0.1:8080",
                     address);
        return -1;
    }
    int fd = open_host(host, htons((uint16_t)strtol(service, NULL, 10)));
    if (fd < 0)
        cr_error_set(err, errno == EACCES ? CR_ERR_FORBIDDEN : CR_ERR_TRANSIENT, "cannot listen on '%s': %s", address,
                     strerror(errno));
    else
        *port = bound_port(fd);
    return fd;
}
