/* How the operator's /metrics is served: over what, and for whom. */
#ifndef CERTROLL_OPERATOR_METRICS_PAGE_H
#define CERTROLL_OPERATOR_METRICS_PAGE_H

#include "flags.h"
#include "kube/access_guard.h"

struct metrics_page {
    struct cr_access_guard *guard; /* owned; NULL: no client is asked for a token */
    struct cr_tls_serving *files;  /* owned; TLS with the files of the flags; NULL: none are given */
    struct cr_tlsreload *made;     /* owned; TLS with a certificate made in memory; NULL: none is needed */
};

/* loop, client and metrics outlive page, which need not be initialised. Errors: those of cr_tls_serving_new. */
bool metrics_page_init(struct metrics_page *page, const struct flags *flags, struct cr_loop *loop,
                       struct cr_client *client, struct cr_metrics *metrics, struct cr_error *err) CR_MUST_USE;
/* After the manager that serves it, before the loop. */
void metrics_page_dispose(struct metrics_page *page);
CR_DEFINE_DISPOSE(metrics_page, struct metrics_page, metrics_page_dispose)

/* Borrowed; NULL for plain HTTP. */
struct cr_tlsreload *metrics_page_tls(const struct metrics_page *page);

#endif
