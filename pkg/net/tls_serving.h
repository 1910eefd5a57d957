/* TLS for an HTTP endpoint of certroll: certificate, key and client CAs by paths, followed as tlsreload/tlsreload.h has
 * it. The outcome of each change is logged, with its event (tlsreload/event.h) in the field "ocsf", and in
 * metrics: certroll_tls_reloads_total{result}, certroll_tls_last_reload_successful,
 * certroll_tls_not_after_timestamp_seconds. */
#ifndef CR_NET_TLS_SERVING_H
#define CR_NET_TLS_SERVING_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "metrics/metrics.h"
#include "tlsreload/tlsreload.h"

/* Paths, as flags have them; borrowed. */
struct cr_tls_files {
    const char *certificate; /* NULL: plain HTTP */
    const char *private_key;
    const char *client_ca; /* a client must have a certificate of one of these CAs; NULL: none is asked for */
};
/* Whether they go together. flags: how their flags begin: "--metrics-" of --metrics-tls-cert-file,
 * --metrics-tls-private-key-file and --metrics-client-ca-file; "--" of --tls-cert-file. Errors: Invalid. */
bool cr_tls_files_check(const struct cr_tls_files *files, const char *flags, struct cr_error *err) CR_MUST_USE;

struct cr_tls_serving;
/* Reads files, which must have a certificate, and follows them from here on. product: the program, in events
 * ("certroll-operator"); copied. metrics may be NULL, and is not written any more once the result is freed. Errors:
 * those of cr_tlsreload_new and cr_tlsreload_start: nothing is served that would not be kept up to date. Owned. */
struct cr_tls_serving *cr_tls_serving_new(const struct cr_tls_files *files, const char *product,
                                          struct cr_metrics *metrics, struct cr_error *err) CR_MUST_USE;
/* After the servers that use it. */
void cr_tls_serving_free(struct cr_tls_serving *serving);
CR_DEFINE_CLEANUP(cr_tls_serving, struct cr_tls_serving, cr_tls_serving_free)

/* For cr_http_server_use_tls. Borrowed. */
struct cr_tlsreload *cr_tls_serving_reload(struct cr_tls_serving *serving);

#endif
