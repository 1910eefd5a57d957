/* A static program has no name service: glibc would load the libraries of whatever version is in the container.
 * libevent can look names up, and refers to these functions; no code here asks it to. In place of glibc's they keep the
 * resolver, and the linker's warnings about it, out of the program. */
#ifdef CERTROLL_STATIC

#include <netdb.h>
#include <stddef.h>

int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    (void)node;
    (void)service;
    (void)hints;
    *result = NULL;
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *result)
{
    (void)result;
}

struct servent *getservbyname(const char *name, const char *protocol)
{
    (void)name;
    (void)protocol;
    return NULL;
}

struct protoent *getprotobynumber(int number)
{
    (void)number;
    return NULL;
}

#else
extern int no_resolver_is_for_static_programs; /* C has no empty files */
#endif
