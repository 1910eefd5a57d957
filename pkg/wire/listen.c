#include "wire/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { BACKLOG = 128 };

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

static int open_one(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0)
        return -1;
    int yes = 1;
    int no = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (at->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* IPv6 first: such a socket takes IPv4, too. A machine without IPv6 falls back. */
static int open_any(const struct addrinfo *list)
{
    static const int families[] = {AF_INET6, AF_INET};
    errno = EADDRNOTAVAIL;
    for (size_t i = 0; i < 2; i++) {
        for (const struct addrinfo *at = list; at; at = at->ai_next) {
            int fd = at->ai_family == families[i] ? open_one(at) : -1;
            if (fd >= 0)
                return fd;
        }
    }
    return -1;
}

static int bound_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    in_port_t port =
        at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port;
    return ntohs(port);
}

int cr_listen(const char *address, int *port, struct cr_error *err)
{
    cr_autofree char *text = cr_strdup(address);
    char *host = NULL;
    char *service = NULL;
    if (!split(text, &host, &service) || strtol(service, NULL, 10) > 65535) {
        cr_error_set(err, CR_ERR_INVALID, "'%s' is not an address to listen on, such as :8080 or 127.0.0.1:8080",
                     address);
        return -1;
    }
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(*host ? host : NULL, service, &hints, &list);
    if (rc != 0) {
        cr_error_set(err, CR_ERR_INVALID, "cannot listen on '%s': %s", address, gai_strerror(rc));
        return -1;
    }
    int fd = open_any(list);
    int error = errno;
    freeaddrinfo(list);
    if (fd < 0)
        cr_error_set(err, error == EACCES ? CR_ERR_FORBIDDEN : CR_ERR_TRANSIENT, "cannot listen on '%s': %s", address,
                     strerror(error));
    else
        *port = bound_port(fd);
    return fd;
}
