#include "flags.h"

#include <string.h>

#include "base/flags.h"
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
    "      --hosts-in-use               hosts for which an Ingress or a Gateway shows a policy's Secret are names in "
    "use: a\n"
    "                                   leaf that is not for one of them any more is held (default false)\n"
    "      --control-plane              follow the ControlPlanePolicy in kube-system: restart the cluster's own "
    "components, as\n"
    "                                   far as node agents report and allow it (default false)\n"
    "      --require-admission-policy   write nothing before it was seen that an admission policy guards this account\n"
    "                                   (manifests/base/admission.yaml); =false for an install without one (default "
    "true)\n"
    "      --leader-elect               of several operators, one acts: the one that holds the Lease (default true); "
    "=false\n"
    "                                   for an operator that is the only one\n"
    "      --leader-elect-lease-name NAME       the Lease, in the operator's namespace (default certroll-operator)\n"
    "      --leader-elect-lease-duration TIME   how long others wait for a leader that is silent (default 15s)\n"
    "      --leader-elect-renew-deadline TIME   how long a leader goes on that cannot renew (default 12s)\n"
    "      --leader-elect-retry-period TIME     between two tries; up to 2.5 times that after a renewal (default 2s)\n"
    "      --metrics-bind-address ADDR  where /metrics is served, over TLS, such as 127.0.0.1:8080; 0 for nowhere\n"
    "                                   (default \":8080\")\n"
    "      --health-probe-bind-address ADDR  where /healthz and /readyz are served, by plain HTTP; 0 for nowhere, "
    "empty\n"
    "                                   for with the metrics (default \":8081\")\n"
    "      --metrics-auth token|none    token: /metrics wants a bearer token whose user may get the nonResourceURL "
    "/metrics,\n"
    "                                   asked by TokenReview and SubjectAccessReview (default token)\n"
    "      --metrics-tls-cert-file FILE         certificate and chain (PEM) of the metrics' address (default: one that "
    "is\n"
    "                                           made in memory at the start, and that nobody can verify)\n"
    "      --metrics-tls-private-key-file FILE  its key; both are read again as soon as they change\n"
    "      --metrics-client-ca-file FILE        who asks must have a certificate of one of these CAs; also read again\n"
    "      --metrics-open               the metrics by plain HTTP, to whoever asks: for a machine of one's own, and "
    "tests\n"
    "                                   (default false)\n"
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

static bool check_namespace(const char *flag, const char *name, struct cr_error *err)
{
    return cr_is_namespace_name(name) ||
           cr_error_set(err, CR_ERR_INVALID, "%s '%s' is no name of a namespace", flag, name);
}

/* An RFC 1123 subdomain, as Kubernetes demands of the names of most objects. what: "Lease". */
static bool check_name(const char *flag, const char *name, const char *what, struct cr_error *err)
{
    size_t len = strlen(name);
    bool plain = len > 0 && len <= 253 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len &&
                 !strchr("-.", name[0]) && !strchr("-.", name[len - 1]);
    return plain || cr_error_set(err, CR_ERR_INVALID, "%s '%s' is no name of a %s", flag, name, what);
}

static bool check_lease(const char *flag, const char *name, struct cr_error *err)
{
    return check_name(flag, name, "Lease", err);
}

static bool check_configmap(const char *flag, const char *name, struct cr_error *err)
{
    return !*name || check_name(flag, name, "ConfigMap", err);
}

static const char *const scopes[] = {[CR_SECRET_SCOPE_AUTO] = "auto", [CR_SECRET_SCOPE_NAMED] = "named", NULL};

static bool take_metrics_auth(void *field, const char *flag, const char *value, struct cr_error *err)
{
    enum metrics_auth *auth = field;
    *auth = cr_streq(value, "token") ? METRICS_AUTH_TOKEN : METRICS_AUTH_NONE;
    return *auth == METRICS_AUTH_TOKEN || cr_streq(value, "none") ||
           cr_error_set(err, CR_ERR_INVALID, "%s must be none or token, not '%s'", flag, value);
}

static const struct cr_flag table[] = {
    CR_FLAG(TEXT, "kubeconfig", struct flags, kubeconfig),
    CR_FLAG(TEXT, "context", struct flags, context),
    CR_FLAG(TEXTS, "namespace", struct flags, namespaces, .letter = 'n', .check = check_namespace),
    CR_FLAG(TEXT, "operator-namespace", struct flags, operator_namespace, .check = check_namespace),
    CR_FLAG(TEXT, "catalogue-configmap", struct flags, catalogue_configmap, .check = check_configmap),
    CR_FLAG(CHOICE, "secret-scope", struct flags, secret_scope, .choices = scopes),
    CR_FLAG(BOOL, "hosts-in-use", struct flags, hosts_in_use),
    CR_FLAG(BOOL, "control-plane", struct flags, control_plane),
    CR_FLAG(BOOL, "require-admission-policy", struct flags, require_admission_policy),
    CR_FLAG(BOOL, "leader-elect", struct flags, leader_elect),
    CR_FLAG(TEXT, "leader-elect-lease-name", struct flags, lease_name, .check = check_lease),
    CR_FLAG(DURATION, "leader-elect-lease-duration", struct flags, times.lease_ms),
    CR_FLAG(DURATION, "leader-elect-renew-deadline", struct flags, times.renew_ms),
    CR_FLAG(DURATION, "leader-elect-retry-period", struct flags, times.retry_ms),
    CR_FLAG(TEXT, "metrics-bind-address", struct flags, metrics_address),
    CR_FLAG(TEXT, "health-probe-bind-address", struct flags, health_address),
    CR_FLAG(OWN, "metrics-auth", struct flags, metrics_auth, .take = take_metrics_auth),
    CR_FLAG(TEXT, "metrics-tls-cert-file", struct flags, metrics_files.certificate),
    CR_FLAG(TEXT, "metrics-tls-private-key-file", struct flags, metrics_files.private_key),
    CR_FLAG(TEXT, "metrics-client-ca-file", struct flags, metrics_files.client_ca),
    CR_FLAG(BOOL, "metrics-open", struct flags, metrics_open),
    CR_FLAG(NUMBER, "max-restarts", struct flags, limits.total, .most = RESTARTS_MAX),
    CR_FLAG(NUMBER, "max-restarts-per-namespace", struct flags, limits.per_namespace, .most = RESTARTS_MAX),
    CR_FLAG(NUMBER, "workers", struct flags, workers, .least = 1, .most = WORKERS_MAX),
    CR_FLAG(LOG_LEVEL, "log-level", struct flags, log_level),
    CR_FLAG(SWITCH, "version", struct flags, version),
    CR_FLAG(SWITCH, "help", struct flags, help, .letter = 'h'),
};

/* A user who asks for TLS or a token in one flag must not be served openly because of another. */
static bool check_open(const struct flags *flags, struct cr_error *err)
{
    const char *other = flags->metrics_files.certificate            ? "--metrics-tls-cert-file"
                        : flags->metrics_auth == METRICS_AUTH_TOKEN ? "--metrics-auth=token"
                                                                    : NULL;
    return !flags->metrics_open || !other ||
           cr_error_set(err, CR_ERR_INVALID, "--metrics-open is plain HTTP for whoever asks: it excludes %s", other);
}

/* Kubelets have no certificate to show. */
static bool check_metrics(const struct flags *flags, struct cr_error *err)
{
    if (!cr_tls_files_check(&flags->metrics_files, "--metrics-", err) || !check_open(flags, err))
        return false;
    return !flags->metrics_files.client_ca || *flags->health_address ||
           cr_error_set(
               err, CR_ERR_INVALID,
               "--metrics-client-ca-file would shut the kubelet's probes out of /healthz and /readyz, which are "
               "served with the metrics: give --health-probe-bind-address");
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    static const struct cr_flags line = {.program = "certroll-operator", .table = table, .len = cr_array_len(table)};
    *flags = (struct flags){
        .require_admission_policy = true,
        .leader_elect = true,
        .lease_name = "certroll-operator",
        .times = cr_election_default_times,
        .metrics_address = ":8080",
        .health_address = ":8081",
        .log_level = CR_LOG_INFO,
        .workers = 4,
        .limits = {.per_namespace = 10, .total = 50},
    };
    if (!cr_flags_parse(&line, argc, argv, flags, NULL, err))
        return false;
    if (!check_metrics(flags, err))
        return false;
    return cr_election_check_times(&flags->times, err) || cr_error_wrap(err, "leader election");
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->namespaces);
}
