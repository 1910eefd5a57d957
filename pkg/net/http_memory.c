#include "net/http_memory.h"

#include <curl/curl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void wiping_free(void *p)
{
    if (!p)
        return;
    explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

static void *wiping_realloc(void *p, size_t size)
{
    void *q = cr_malloc(size);
    if (p) {
        size_t old = malloc_usable_size(p);
        memcpy(q, p, old < size ? old : size);
        wiping_free(p);
    }
    return q;
}

static void *plain_malloc(size_t size)
{
    return cr_malloc(size);
}

static void *plain_calloc(size_t count, size_t size)
{
    return cr_calloc(count, size);
}

static char *plain_strdup(const char *s)
{
    return cr_strdup(s);
}

/* GnuTLS is in the process because a protocol of libcurl that is never used here could ask for it. This name, in the
 * program, keeps it from setting itself up when it is loaded (GNUTLS_SKIP_GLOBAL_INIT of gnutls.h, which is not needed
 * for it): over 1 MiB of memory. Code that does ask for it sets it up then. */
int _gnutls_global_init_skip(void);
__attribute__((used, visibility("default"))) int _gnutls_global_init_skip(void)
{
    return 1;
}

static void init(void)
{
    curl_global_init_mem(CURL_GLOBAL_DEFAULT, plain_malloc, wiping_free, wiping_realloc, plain_strdup, plain_calloc);
}

void cr_http_global_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init);
}
