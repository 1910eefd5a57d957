#include "wire/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/strings.h"

enum { IP_TEXT = INET6_ADDRSTRLEN, PORT_MAX = 65535 };

static bool refuse(const char *text, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID,
                        "'%s' is neither the absolute path of a Unix socket nor an IP address and port, as "
                        "127.0.0.1:6379 or [::1]:6379",
                        text);
}

static bool parse_path(const char *text, struct cr_address *out, struct cr_error *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&out->sockaddr;
    size_t len = strlen(text);
    if (len >= sizeof un->sun_path)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is too long for a Unix socket: %zu bytes at most", text,
                            sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, text, len + 1);
    out->len = sizeof *un;
    return true;
}

static bool parse_port(const char *text, in_port_t *out)
{
    static const char digits[] = "0123456789";
    size_t len = strlen(text);
    if (!len || len > 5 || strspn(text, digits) != len)
        return false;
    long port = strtol(text, NULL, 10);
    *out = htons((uint16_t)port);
    return port > 0 && port <= PORT_MAX;
}

/* The part before the port's colon, without brackets. */
static bool copy_ip(const char *text, size_t len, char out[IP_TEXT])
{
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false; /* which colon is the port's? */
    }
    if (len >= IP_TEXT)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

static bool fill(const char *ip, in_port_t port, struct cr_address *out)
{
    struct sockaddr_in *ip4 = (struct sockaddr_in *)&out->sockaddr;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&out->sockaddr;
    if (inet_pton(AF_INET, ip, &ip4->sin_addr) == 1) {
        ip4->sin_family = AF_INET;
        ip4->sin_port = port;
        out->len = sizeof *ip4;
        return true;
    }
    if (inet_pton(AF_INET6, ip, &ip6->sin6_addr) != 1)
        return false;
    ip6->sin6_family = AF_INET6;
    ip6->sin6_port = port;
    out->len = sizeof *ip6;
    return true;
}

bool cr_address_parse(const char *text, struct cr_address *out, struct cr_error *err)
{
    char ip[IP_TEXT];
    in_port_t port = 0;
    *out = (struct cr_address){0};
    if (cr_starts_with(text, "unix:/"))
        text += strlen("unix:");
    if (text[0] == '/')
        return parse_path(text, out, err);
    const char *colon = strrchr(text, ':');
    if (!colon || !parse_port(colon + 1, &port) || !copy_ip(text, (size_t)(colon - text), ip))
        return refuse(text, err);
    const char *host = *ip && !cr_streq(ip, "localhost") ? ip : "127.0.0.1";
    return fill(host, port, out) || refuse(text, err);
}
