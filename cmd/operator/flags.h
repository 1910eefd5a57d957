/* The operator's command line. */
#ifndef CERTROLL_OPERATOR_FLAGS_H
#define CERTROLL_OPERATOR_FLAGS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strvec.h"
#include "policy/controller/reservations.h"
#include "cluster/watch_scope.h"
#include "net/tls_serving.h"
#include "runtime/leader_election.h"

enum metrics_auth { METRICS_AUTH_DEFAULT, METRICS_AUTH_NONE, METRICS_AUTH_TOKEN }; /* not given: as TOKEN */

struct flags {
    const char *kubeconfig; /* borrowed from argv; NULL: as kubectl finds it, or in-cluster */
    const char *context;
    struct cr_strvec namespaces;     /* empty: all */
    const char *operator_namespace;  /* NULL: the pod's */
    const char *catalogue_configmap; /* NULL: by its usual name; "": none */
    enum cr_secret_scope secret_scope;
    bool hosts_in_use;
    bool control_plane;
    bool require_admission_policy;
    bool leader_elect;
    const char *lease_name;
    struct cr_election_times times;
    const char *metrics_address;
    enum metrics_auth metrics_auth;
    struct cr_tls_files metrics_files; /* without any, a certificate is made in memory */
    bool metrics_open;                 /* plain HTTP, and no client is asked for a token */
    const char *health_address;        /* "": with the metrics */
    enum cr_log_level log_level;
    int workers;
    struct cr_restart_limits limits;
    bool help;
    bool version;
};

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err) CR_MUST_USE;
void flags_dispose(struct flags *flags);
extern const char flags_help[];

#endif
