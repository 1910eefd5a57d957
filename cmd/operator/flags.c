#include "flags.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

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
    "      --leader-elect=false         run without leader election. This version has none yet, so run one operator at "
    "a\n"
    "                                   time; =true is refused rather than pretended\n"
    "      --metrics-bind-address ADDR  where /metrics, /healthz and /readyz are served, such as 127.0.0.1:8080; 0 "
    "for\n"
    "                                   nowhere (default \":8080\")\n"
    "      --workers N                  reconciles at the same time, 1 to 64 (default 4)\n"
    "      --log-level LEVEL            debug, info, warn or error (default info)\n"
    "      --version                    print the version\n"
    "  -h, --help                       print this\n"
    "\n"
    "It logs JSON lines on standard error. SIGTERM and SIGINT end it after the work in hand; killing it at any moment\n"
    "loses nothing and does nothing twice.\n"
    "Exit status: 0 ended as asked, 1 could not start, 2 wrong usage.\n";

enum {
    OPT_KUBECONFIG = 256,
    OPT_CONTEXT,
    OPT_OPERATOR_NAMESPACE,
    OPT_LEADER_ELECT,
    OPT_METRICS,
    OPT_WORKERS,
    OPT_LOG_LEVEL,
    OPT_VERSION,
};

static const struct option options[] = {
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"namespace", required_argument, NULL, 'n'},
    {"operator-namespace", required_argument, NULL, OPT_OPERATOR_NAMESPACE},
    {"leader-elect", optional_argument, NULL, OPT_LEADER_ELECT},
    {"metrics-bind-address", required_argument, NULL, OPT_METRICS},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_workers(const char *text, int *workers, struct cr_error *err)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (*end || end == text || n < 1 || n > 64)
        return cr_error_set(err, CR_ERR_INVALID, "--workers must be a number from 1 to 64, not '%s'", text);
    *workers = (int)n;
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

static bool check_leader_elect(const char *value, struct cr_error *err)
{
    if (cr_streq(value, "false"))
        return true;
    if (!value || cr_streq(value, "true"))
        return cr_error_set(
            err, CR_ERR_INVALID,
            "this version has no leader election yet: give --leader-elect=false and run one operator at a time");
    return cr_error_set(err, CR_ERR_INVALID, "--leader-elect must be true or false, not '%s'", value);
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
    case OPT_LEADER_ELECT:
        return check_leader_elect(optarg, err);
    case OPT_METRICS:
        flags->metrics_address = optarg;
        return true;
    case OPT_WORKERS:
        return parse_workers(optarg, &flags->workers, err);
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

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    *flags = (struct flags){.metrics_address = ":8080", .log_level = CR_LOG_INFO, .workers = 4};
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
    return true;
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->namespaces);
}
