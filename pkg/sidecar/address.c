#include "sidecar/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { LOOPBACK_NET = 127 };

static bool is_loopback4(const struct in_addr *ip)
{
    return ntohl(ip->s_addr) >> 24 == LOOPBACK_NET;
}

bool cr_sidecar_is_loopback(const char *ip)
{
    struct in_addr ip4;
    struct in6_addr ip6;
    if (!ip)
        return false;
    if (inet_pton(AF_INET, ip, &ip4) == 1)
        return is_loopback4(&ip4);
    return inet_pton(AF_INET6, ip, &ip6) == 1 && IN6_IS_ADDR_LOOPBACK(&ip6);
}

static bool is_of_this_pod(const struct cr_address *address)
{
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address->sockaddr;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address->sockaddr;
    switch (address->sockaddr.ss_family) {
    case AF_INET:
        return is_loopback4(&ip4->sin_addr);
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr);
    default:
        return true;
    }
}

bool cr_sidecar_address_parse(const char *text, struct cr_address *out, struct cr_error *err)
{
    struct cr_error why = {0};
    if (cr_address_parse(text, out, &why) && is_of_this_pod(out))
        return true;
    if (text[0] == '/')
        return cr_error_set(err, why.kind, "%s", why.text);
    return cr_error_set(err, CR_ERR_INVALID,
                        "'%s' is neither the absolute path of a Unix socket nor a port of loopback, as 127.0.0.1:6379 "
                        "or [::1]:6379",
                        text);
}

bool cr_sidecar_connection_open(const char *address, int cancel_fd, int64_t deadline_ms, struct cr_connection *out,
                                struct cr_error *err)
{
    struct cr_address ignored;
    *out = (struct cr_connection){.fd = -1};
    return cr_sidecar_address_parse(address, &ignored, err) &&
           cr_connection_open(address, cancel_fd, deadline_ms, out, err);
}
