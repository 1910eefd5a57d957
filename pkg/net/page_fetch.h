/* HTTP endpoints of pods, in plain text: GET, no redirects, no proxy, nothing of ours is sent along. Like the TLS probe
 * it has no policy about where it may go: cr_probe_address_allowed first. */
#ifndef CR_NET_PAGE_FETCH_H
#define CR_NET_PAGE_FETCH_H

#include <stddef.h>

#include "base/buffer.h"

/* What is in memory of pages: of one call at most CR_PAGES_AT_ONCE small ones and CR_PAGES_LARGE large ones (4.5 MiB),
 * and in the whole process one page at a time is with its reader, who may make a tree of it. */
enum {
    CR_PAGES_AT_ONCE = 8,
    CR_PAGES_LARGE = 2,            /* at once of one call; others that grow large wait within their time */
    CR_PAGE_SMALL = 64 * 1024,     /* bytes; what is longer is large */
    CR_PAGE_MAX = 2 * 1024 * 1024, /* bytes; Envoy says some 500 of each certificate */
    CR_PAGE_WORDS = 96,
};

/* Borrowed. */
struct cr_page_target {
    const char *address; /* an IP literal, from a pod's status */
    int port;
    const char *path;        /* "/certs": of printable ASCII, without spaces; a query may follow */
    const char *unix_socket; /* an absolute path: asked there, and address and port are not read; NULL: none */
    size_t max;              /* bytes of the longest page that is taken; 0: CR_PAGE_MAX */
};

struct cr_page {
    struct cr_buf body;          /* with a status of 200 only; empty else */
    char problem[CR_PAGE_WORDS]; /* why there is none, for a person; "". The same for the same trouble */
};

/* Fetches all, CR_PAGES_AT_ONCE at a time, which share the time fairly; blocks the calling thread for at most
 * timeout_ms, and while on_page works in other threads. on_page is called for each target once, in that thread, in the
 * order in which they end, and in one thread of the process at a time, so it must not wait for long and not fetch; the
 * page is gone when it returns. Any thread. Returns the most bytes of pages that were in memory at a time. */
size_t cr_page_fetch(const struct cr_page_target *targets, size_t count, int timeout_ms,
                     void (*on_page)(void *arg, size_t index, const struct cr_page *page), void *arg);

#endif
