#include "support/ownnet.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

static void set_up(int fd, const char *device, const char *address)
{
    struct ifreq request = {.ifr_flags = 0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    if (address) {
        struct sockaddr_in in = {.sin_family = AF_INET};
        must(inet_pton(AF_INET, address, &in.sin_addr) == 1, address);
        memcpy(&request.ifr_addr, &in, sizeof in);
        must(ioctl(fd, SIOCSIFADDR, &request) == 0, "SIOCSIFADDR");
        return;
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
    must(ioctl(fd, SIOCSIFFLAGS, &request) == 0, "SIOCSIFFLAGS");
}

bool test_own_network(const char *address)
{
    /* Root needs no user namespace; others may be allowed one. */
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    cr_autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    set_up(fd, "lo", NULL);
    set_up(fd, "lo:1", address);
    return true;
}
