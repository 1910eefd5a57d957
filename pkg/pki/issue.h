/* Leaf certificates, issued by a CA of ours. Thread-safe. */
#ifndef CR_PKI_ISSUE_H
#define CR_PKI_ISSUE_H

#include "pki/authority.h"

enum cr_leaf_usage { CR_LEAF_SERVER = 1, CR_LEAF_CLIENT = 2 };

/* Everything is borrowed; lists may be NULL. */
struct cr_leaf_spec {
    const char *common_name; /* NULL: none. At most 64 characters; verifiers of servers do not look at it (RFC 9525) */
    const struct cr_strvec *organizations; /* a Kubernetes client's groups */
    /* Alternative names; a server needs one that is no e-mail address. Without any of a subject's parts they are
     * critical (RFC 5280, section 4.2.1.6). pki/alt_name.h says what each may be. Duplicates are left out. */
    const struct cr_strvec *dns_names;
    const struct cr_strvec *addresses;
    const struct cr_strvec *uris;
    const struct cr_strvec *emails;
    unsigned usages;     /* CR_LEAF_SERVER, CR_LEAF_CLIENT or both */
    int64_t duration_ms; /* from now; notBefore lies 5 minutes back */
};

enum { CR_ALT_NAMES_MAX = 100 };

struct cr_issued {
    char
        *pem; /* owned. The certificate, then what a peer needs to get from it to a root; the root itself is left out */
    int64_t not_before_ms; /* wall clock */
    int64_t not_after_ms;
    bool clamped; /* it ends with the CA that issued it, and so earlier than was asked for: to be reported */
};

void cr_issued_dispose(struct cr_issued *issued);
CR_DEFINE_DISPOSE(cr_issued, struct cr_issued, cr_issued_dispose)

/* A leaf for the key, with a new serial each time: a caller that must not issue twice remembers the first. It never
 * outlives its CA or one above it. Before it is handed out it is verified against its own chain for each usage. Errors:
 * Invalid, a name, no usage, a CA that has expired by now_ms (wall clock) or that forbids the names or usages. out need
 * not be initialised. */
bool cr_issue_leaf(const struct cr_authority *authority, const struct cr_leaf_spec *spec,
                   const struct cr_private_key *key, int64_t now_ms, struct cr_issued *out,
                   struct cr_error *err) CR_MUST_USE;

#endif
