/* Where something listens, of anybody's flags or configuration: refused with words, or an address that needs no name
 * server; the sidecar goes no further than loopback. */
#include "fuzz.h"

#include <netinet/in.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sidecar/address.h"

static void check_address(const char *text)
{
    struct cr_error err = {0};
    struct cr_address address;
    if (!cr_address_parse(text, &address, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0]);
        return;
    }
    int family = address.sockaddr.ss_family;
    require(family == AF_UNIX || family == AF_INET || family == AF_INET6);
    require(address.len <= sizeof address.sockaddr);
    require(family != AF_UNIX || ((const struct sockaddr_un *)(const void *)&address.sockaddr)->sun_path[0] == '/');
}

static void check_loopback(const char *text)
{
    struct cr_error err = {0};
    struct cr_address address;
    if (!cr_sidecar_address_parse(text, &address, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0]);
        return;
    }
    const void *any = &address.sockaddr;
    if (address.sockaddr.ss_family == AF_INET)
        require(ntohl(((const struct sockaddr_in *)any)->sin_addr.s_addr) >> 24 == 127);
    if (address.sockaddr.ss_family == AF_INET6)
        require(IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)any)->sin6_addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    check_address(text);
    check_loopback(text);
    return 0;
}
