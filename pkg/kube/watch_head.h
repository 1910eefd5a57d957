/* What a frame of a watch is about, read from its first bytes: the API server writes metadata before the rest, so that
 * the frame of an object that is not wanted need be neither kept nor parsed. Private to pkg/kube.
 *
 * Only the compact form that API servers write is read. Whatever is not exactly as expected (white space, an escape in
 * a key or a name, a type that is not of an object) is not reported at all, and the frame has to be parsed: for a frame
 * that is JSON, what is reported here is what the parser would find. */
#ifndef CR_KUBE_WATCH_HEAD_H
#define CR_KUBE_WATCH_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct cr_watch_head {
    bool deleted;
    char ns[64]; /* "": none. A namespace is a DNS label (RFC 1123) */
    char name[254];
    char resource_version[65];
};

enum cr_watch_head_found {
    CR_WATCH_HEAD_MORE,   /* the text ends too early */
    CR_WATCH_HEAD_OBJECT, /* ADDED, MODIFIED or DELETED, of this object */
    CR_WATCH_HEAD_OTHER,  /* anything else: to be parsed */
};

/* text: a frame from its start, as much of it as there is. head is filled for CR_WATCH_HEAD_OBJECT only. */
enum cr_watch_head_found cr_watch_head_read(const char *text, size_t len, struct cr_watch_head *head);

#endif
