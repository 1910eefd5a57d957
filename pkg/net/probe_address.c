/* Which addresses a probe may go to: a pod says its own address, so it could point us at anything. */
#include "net/tls_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/* IANA special-purpose registries (RFC 6890): what is not a host of its own elsewhere. */
static bool ip4_allowed(uint32_t ip)
{
    uint32_t first = ip >> 24;
    bool this_network = first == 0;
    bool loopback = first == 127;
    bool link_local = ip >> 16 == (169u << 8 | 254u);
    bool multicast_or_reserved = first >= 224;
    return !this_network && !loopback && !link_local && !multicast_or_reserved;
}

static bool ip6_allowed(const struct in6_addr *ip)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t compatible[12] = {0};                 /* also :: and ::1 */
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b}; /* RFC 6052 */
    const uint8_t *bytes = ip->s6_addr;
    if (memcmp(bytes, compatible, sizeof compatible) == 0)
        return false;
    /* An IPv4 address in another form: no pod has one, and a comparison of addresses would miss it. */
    static const uint8_t nat64_local[6] = {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}; /* RFC 8215 */
    static const uint8_t teredo[4] = {0x20, 0x01, 0x00, 0x00};                  /* RFC 4380 */
    bool sixtofour = bytes[0] == 0x20 && bytes[1] == 0x02;                      /* RFC 3056 */
    if (sixtofour || memcmp(bytes, nat64_local, sizeof nat64_local) == 0 || memcmp(bytes, teredo, sizeof teredo) == 0 ||
        memcmp(bytes, mapped, sizeof mapped) == 0 || memcmp(bytes, nat64, sizeof nat64) == 0)
        return false;
    bool link_local = bytes[0] == 0xfe && (bytes[1] & 0x80) == 0x80; /* and site-local, RFC 3879 */
    bool multicast = bytes[0] == 0xff;
    return !link_local && !multicast;
}

bool cr_probe_address_allowed(const char *address)
{
    struct in_addr ip4;
    struct in6_addr ip6;
    if (!address)
        return false;
    if (inet_pton(AF_INET, address, &ip4) == 1)
        return ip4_allowed(ntohl(ip4.s_addr));
    return inet_pton(AF_INET6, address, &ip6) == 1 && ip6_allowed(&ip6);
}

bool cr_probe_address_equal(const char *a, const char *b)
{
    struct in6_addr ip_a;
    struct in6_addr ip_b;
    if (!a || !b)
        return false;
    for (int i = 0; i < 2; i++) {
        int family = i ? AF_INET6 : AF_INET;
        size_t len = i ? sizeof(struct in6_addr) : sizeof(struct in_addr);
        if (inet_pton(family, a, &ip_a) == 1 && inet_pton(family, b, &ip_b) == 1)
            return memcmp(&ip_a, &ip_b, len) == 0;
    }
    return false;
}
