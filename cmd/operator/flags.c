#include "flags.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "kube/own_namespace.h"

const char flags_help[] =
    "certroll-operator rolls TLS certificates through a Kubernetes cluster without an outage.\n"
    "\n"
    "Usage: certroll-operator [flags]\n"
    "\n"
    "It watches CertRotationPolicies, the Secrets and workloads that they name, and pods. In a pod it finds the API\n"
    "server by itself; elsewhere it reads a kubeconfig as kubectl does.\n"
    "\n"
    "Flags:\n"
    "      --kubeconfig FILE            kubeconfig to use (default: $KUBECONFIG, then the pod's service account, then\n"
    "                                   ~/.kube/config)\n"
    "      --context NAME               context of the kubeconfig (default: its current one)\n"
    "  -n, --namespace NAME             watch this namespace only; may be given several times (default: all)\n"
    "      --operator-namespace NAME    namespace of the operator's own objects (default: $POD_NAMESPACE, then that of "
    "the\n"
    "                                   pod's service account)\n"
    "      --catalogue-configmap NAME   ConfigMap in the operator's namespace whose entries are laid over the "
    "catalogue\n"
    "                                   (default certroll-catalogue; empty for none)\n"
    "      --secret-scope auto|named    auto: few Secrets are watched by name, many by one watch of their type; named: "
    "by name\n"
    "                                   only, so that RBAC can be restricted by resourceNames, and secretSelector is "
    "not\n"
    "                                   acted on (default auto)\n"
    "      --leader-elect               of several operators, one acts: the one that holds the Lease (default true); "
    "=false\n"
    "                                   for an operator that is the only one\n"
    "      --leader-elect-lease-name NAME       the Lease, in the operator's namespace (default certroll-operator)\n"
    "      --leader-elect-lease-duration TIME   how long others wait for a leader that is silent (default 15s)\n"
    "      --leader-elect-renew-deadline TIME   how long a leader goes on that cannot renew (default 10s)\n"
    "      --leader-elect-retry-period TIME     between two tries (default 2s)\n"
    "      --metrics-bind-address ADDR  where /metrics, /healthz and /readyz are served, such as 127.0.0.1:8080; 0 "
    "for\n"
    "                                   nowhere (default \":8080\")\n"
    "      --health-probe-bind-address ADDR  where /healthz and /readyz are served instead, such as :8081; 0 for "
    "nowhere\n"
    "                                   (default: with the metrics)\n"
    "      --metrics-auth none|token    token: /metrics wants a bearer token whose user may get the nonResourceURL "
    "/metrics,\n"
    "                                   asked by TokenReview and SubjectAccessReview (default none)\n"
    "      --metrics-tls-cert-file FILE         certificate and chain (PEM) of the metrics' address, which then speaks "
    "TLS\n"
    "      --metrics-tls-private-key-file FILE  its key; both are read again as soon as they change\n"
    "      --metrics-client-ca-file FILE        who asks must have a certificate of one of these CAs; also read again\n"
    "      --max-restarts N             workloads that are restarted at a time, over all policies; 0: no limit "
    "(default "
    "50)\n"
    "      --max-restarts-per-namespace N  the same within a namespace (default 10)\n"
    "      --workers N                  reconciles at the same time, 1 to 64 (default 4)\n"
    "      --log-level LEVEL            debug, info, warn or error (default info)\n"
    "      --version                    print the version\n"
    "  -h, --help                       print this\n"
    "\n"
    "It logs JSON lines on standard error. SIGTERM and SIGINT end it after the work in hand; killing it at any moment\n"
    "loses nothing and does nothing twice.\n"
    "Exit status: 0 ended as asked, 1 could not start, 2 wrong usage, 3 another operator leads now.\n";

enum { WORKERS_MAX = 64, RESTARTS_MAX = 100000 };

enum {
    OPT_KUBECONFIG = 256,
    OPT_CONTEXT,
    OPT_OPERATOR_NAMESPACE,
    OPT_CATALOGUE,
    OPT_SECRET_SCOPE,
    OPT_LEADER_ELECT,
    OPT_LEASE_NAME,
    OPT_LEASE_DURATION,
    OPT_RENEW_DEADLINE,
    OPT_RETRY_PERIOD,
    OPT_HEALTH,
    OPT_METRICS_AUTH,
    OPT_METRICS,
    OPT_METRICS_CERT,
    OPT_METRICS_KEY,
    OPT_METRICS_CLIENT_CA,
    OPT_RESTARTS,
    OPT_NAMESPACE_RESTARTS,
    OPT_WORKERS,
    OPT_LOG_LEVEL,
    OPT_VERSION,
};

static const struct option options[] = {
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"namespace", required_argument, NULL, 'n'},
    {"operator-namespace", required_argument, NULL, OPT_OPERATOR_NAMESPACE},
    {"catalogue-configmap", required_argument, NULL, OPT_CATALOGUE},
    {"secret-scope", required_argument, NULL, OPT_SECRET_SCOPE},
    {"leader-elect", optional_argument, NULL, OPT_LEADER_ELECT},
    {"leader-elect-lease-name", required_argument, NULL, OPT_LEASE_NAME},
    {"leader-elect-lease-duration", required_argument, NULL, OPT_LEASE_DURATION},
    {"leader-elect-renew-deadline", required_argument, NULL, OPT_RENEW_DEADLINE},
    {"leader-elect-retry-period", required_argument, NULL, OPT_RETRY_PERIOD},
    {"health-probe-bind-address", required_argument, NULL, OPT_HEALTH},
    {"metrics-auth", required_argument, NULL, OPT_METRICS_AUTH},
    {"metrics-bind-address", required_argument, NULL, OPT_METRICS},
    {"metrics-client-ca-file", required_argument, NULL, OPT_METRICS_CLIENT_CA},
    {"metrics-tls-cert-file", required_argument, NULL, OPT_METRICS_CERT},
    {"metrics-tls-private-key-file", required_argument, NULL, OPT_METRICS_KEY},
    {"max-restarts", required_argument, NULL, OPT_RESTARTS},
    {"max-restarts-per-namespace", required_argument, NULL, OPT_NAMESPACE_RESTARTS},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_number(const char *flag, const char *text, int least, int most, int *out, struct cr_error *err)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (*end || end == text || n < least || n > most)
        return cr_error_set(err, CR_ERR_INVALID, "%s must be a number from %d to %d, not '%s'", flag, least, most,
                            text);
    *out = (int)n;
    return true;
}

static bool check_namespace(const char *flag, const char *name, struct cr_error *err)
{
    return cr_is_namespace_name(name) ||
           cr_error_set(err, CR_ERR_INVALID, "%s '%s' is no name of a namespace", flag, name);
}

static bool add_namespace(const char *name, struct cr_strvec *namespaces, struct cr_error *err)
{
    if (!check_namespace("--namespace", name, err))
        return false;
    cr_strvec_add_unique(namespaces, name);
    return true;
}

static bool parse_bool(const char *flag, const char *value, bool *out, struct cr_error *err)
{
    *out = !cr_streq(value, "false");
    return !value || cr_streq(value, "true") || cr_streq(value, "false") ||
           cr_error_set(err, CR_ERR_INVALID, "%s must be true or false, not '%s'", flag, value);
}

static bool parse_secret_scope(const char *value, enum cr_secret_scope *scope, struct cr_error *err)
{
    *scope = cr_streq(value, "named") ? CR_SECRET_SCOPE_NAMED : CR_SECRET_SCOPE_AUTO;
    return *scope == CR_SECRET_SCOPE_NAMED || cr_streq(value, "auto") ||
           cr_error_set(err, CR_ERR_INVALID, "--secret-scope must be auto or named, not '%s'", value);
}

static bool parse_metrics_auth(const char *value, bool *token, struct cr_error *err)
{
    *token = cr_streq(value, "token");
    return *token || cr_streq(value, "none") ||
           cr_error_set(err, CR_ERR_INVALID, "--metrics-auth must be none or token, not '%s'", value);
}

static bool parse_time(const char *flag, const char *value, int64_t *ms, struct cr_error *err)
{
    return cr_duration_parse(value, ms, err) || cr_error_wrap(err, "%s", flag);
}

/* An RFC 1123 subdomain, as Kubernetes demands of the names of most objects. what: "Lease". */
static bool check_name(const char *flag, const char *name, const char *what, struct cr_error *err)
{
    size_t len = strlen(name);
    bool plain = len > 0 && len <= 253 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len &&
                 !strchr("-.", name[0]) && !strchr("-.", name[len - 1]);
    return plain || cr_error_set(err, CR_ERR_INVALID, "%s '%s' is no name of a %s", flag, name, what);
}

static bool take_leader_election(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case OPT_LEASE_NAME:
        flags->lease_name = optarg;
        return check_name("--leader-elect-lease-name", optarg, "Lease", err);
    case OPT_LEASE_DURATION:
        return parse_time("--leader-elect-lease-duration", optarg, &flags->times.lease_ms, err);
    case OPT_RENEW_DEADLINE:
        return parse_time("--leader-elect-renew-deadline", optarg, &flags->times.renew_ms, err);
    case OPT_RETRY_PERIOD:
        return parse_time("--leader-elect-retry-period", optarg, &flags->times.retry_ms, err);
    default:
        return parse_bool("--leader-elect", optarg, &flags->leader_elect, err);
    }
}

static bool take_metrics(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case OPT_METRICS_AUTH:
        return parse_metrics_auth(optarg, &flags->metrics_token, err);
    case OPT_METRICS_CERT:
        flags->metrics_files.certificate = optarg;
        return true;
    case OPT_METRICS_KEY:
        flags->metrics_files.private_key = optarg;
        return true;
    case OPT_METRICS_CLIENT_CA:
        flags->metrics_files.client_ca = optarg;
        return true;
    default:
        flags->metrics_address = optarg;
        return true;
    }
}

static bool take(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case OPT_KUBECONFIG:
        flags->kubeconfig = optarg;
        return true;
    case OPT_CONTEXT:
        flags->context = optarg;
        return true;
    case 'n':
        return add_namespace(optarg, &flags->namespaces, err);
    case OPT_OPERATOR_NAMESPACE:
        flags->operator_namespace = optarg;
        return check_namespace("--operator-namespace", optarg, err);
    case OPT_CATALOGUE:
        flags->catalogue_configmap = optarg;
        return !*optarg || check_name("--catalogue-configmap", optarg, "ConfigMap", err);
    case OPT_SECRET_SCOPE:
        return parse_secret_scope(optarg, &flags->secret_scope, err);
    case OPT_LEADER_ELECT:
    case OPT_LEASE_NAME:
    case OPT_LEASE_DURATION:
    case OPT_RENEW_DEADLINE:
    case OPT_RETRY_PERIOD:
        return take_leader_election(option, flags, err);
    case OPT_METRICS:
    case OPT_METRICS_AUTH:
    case OPT_METRICS_CERT:
    case OPT_METRICS_KEY:
    case OPT_METRICS_CLIENT_CA:
        return take_metrics(option, flags, err);
    case OPT_HEALTH:
        flags->health_address = optarg;
        return true;
    case OPT_RESTARTS:
        return parse_number("--max-restarts", optarg, 0, RESTARTS_MAX, &flags->limits.total, err);
    case OPT_NAMESPACE_RESTARTS:
        return parse_number("--max-restarts-per-namespace", optarg, 0, RESTARTS_MAX, &flags->limits.per_namespace, err);
    case OPT_WORKERS:
        return parse_number("--workers", optarg, 1, WORKERS_MAX, &flags->workers, err);
    case OPT_LOG_LEVEL:
        return cr_log_level_parse(optarg, &flags->log_level, err);
    case OPT_VERSION:
        flags->version = true;
        return true;
    case 'h':
        flags->help = true;
        return true;
    default:
        /* getopt_long has named the flag already. */
        return cr_error_set(err, CR_ERR_INVALID, "see certroll-operator --help");
    }
}

/* Kubelets have no certificate to show. */
static bool check_metrics_files(const struct flags *flags, struct cr_error *err)
{
    if (!cr_tls_files_check(&flags->metrics_files, "--metrics-", err))
        return false;
    bool health_too = !flags->health_address || !*flags->health_address;
    return !flags->metrics_files.client_ca || !health_too ||
           cr_error_set(
               err, CR_ERR_INVALID,
               "--metrics-client-ca-file would shut the kubelet's probes out of /healthz and /readyz, which are "
               "served with the metrics: give --health-probe-bind-address");
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    *flags = (struct flags){
        .leader_elect = true,
        .lease_name = "certroll-operator",
        .times = {.lease_ms = 15000, .renew_ms = 10000, .retry_ms = 2000},
        .metrics_address = ":8080",
        .log_level = CR_LOG_INFO,
        .workers = 4,
        .limits = {.per_namespace = 10, .total = 50},
    };
    for (;;) {
        int option = getopt_long(argc, argv, "n:h", options, NULL);
        if (option < 0)
            break;
        if (!take(option, flags, err))
            return false;
    }
    if (optind < argc)
        return cr_error_set(err, CR_ERR_INVALID, "unexpected argument '%s'; see certroll-operator --help",
                            argv[optind]);
    if (!check_metrics_files(flags, err))
        return false;
    return cr_election_check_times(&flags->times, err) || cr_error_wrap(err, "leader election");
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->namespaces);
}
