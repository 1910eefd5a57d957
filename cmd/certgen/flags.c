#include "flags.h"

#include <getopt.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/strings.h"
#include "certgen/set.h"
#include "kube/own_namespace.h"

const char flags_help[] =
    "certroll-certgen makes the Secrets with which a project's components trust each other, once, and rotates them.\n"
    "\n"
    "Usage: certroll-certgen --profile envoy-gateway|contour [flags]\n"
    "       certroll-certgen --config FILE [flags]\n"
    "\n"
    "It takes the place of `envoy-gateway certgen` and `contour certgen`: the same Secrets, entries and names. "
    "Secrets\n"
    "that are there are left alone; with --overwrite they are rotated: ca.crt becomes the new CA and the previous "
    "one,\n"
    "in all of them, before the first leaf changes. Entries such as an HMAC key are made once and never changed.\n"
    "\n"
    "Flags:\n"
    "      --profile NAME          envoy-gateway or contour\n"
    "      --config FILE           a set of Secrets of your own, in YAML (docs/operations.md)\n"
    "  -n, --namespace NAME        of the Secrets (default: $ENVOY_GATEWAY_NAMESPACE or $CONTOUR_NAMESPACE, then the\n"
    "                              pod's, then envoy-gateway-system or projectcontour)\n"
    "      --cluster-domain NAME   the end of Services' names (default: $KUBERNETES_CLUSTER_DOMAIN, then "
    "cluster.local)\n"
    "      --secrets-name-suffix TEXT  put behind the name of each Secret\n"
    "      --lifetime TIME         of the CA and the leaves, such as 8760h (default: the profile's)\n"
    "      --certificate-lifetime DAYS  the same in days\n"
    "  -o, --overwrite             rotate what is there\n"
    "      --staged                rotate in stages: first the new CA into all bundles, and no leaf before the\n"
    "                              CertRotationPolicies that cover the Secrets say that it has arrived\n"
    "      --settle TIME           with --staged: a Secret that no policy covers counts as arrived so long after the\n"
    "                              last write; without this flag it is refused. Kubelets take up to 95s\n"
    "      --restart NAME          Deployment to restart once its Secrets have been rotated, instead of the "
    "profile's;\n"
    "                              may be given several times\n"
    "      --no-restart            restart none\n"
    "      --no-webhook            leave the webhook of the profile alone (also --disable-topology-injector)\n"
    "  -l, --local DIR             write files: DIR/<Secret>/<entry>; needs no cluster\n"
    "      --kubeconfig FILE       kubeconfig to use (default: $KUBECONFIG, then the pod's service account, then\n"
    "                              ~/.kube/config)\n"
    "      --context NAME          context of the kubeconfig (default: its current one)\n"
    "      --timeout TIME          for all of it (default 5m, with --staged 1h)\n"
    "      --version               print the version\n"
    "  -h, --help                  print this\n"
    "\n"
    "Contour's --kube, --incluster and --secrets-format=compact are understood and are what it does anyway.\n"
    "It says on standard error what it does. Killed at any moment and run again, it comes to a good end.\n"
    "Exit status: 0 done, 1 not done (what is written is consistent: run it again), 2 wrong usage.\n";

/* --timeout by default. */
enum { MINUTES = 5, STAGED_MINUTES = 60 };

enum {
    OPT_PROFILE = 256,
    OPT_CONFIG,
    OPT_CLUSTER_DOMAIN,
    OPT_SUFFIX,
    OPT_LIFETIME,
    OPT_LIFETIME_DAYS,
    OPT_STAGED,
    OPT_SETTLE,
    OPT_RESTART,
    OPT_NO_RESTART,
    OPT_NO_WEBHOOK,
    OPT_KUBECONFIG,
    OPT_CONTEXT,
    OPT_TIMEOUT,
    OPT_IGNORED,
    OPT_FORMAT,
    OPT_ELSEWHERE,
    OPT_VERSION,
};

static const struct option options[] = {
    {"profile", required_argument, NULL, OPT_PROFILE},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"namespace", required_argument, NULL, 'n'},
    {"cluster-domain", required_argument, NULL, OPT_CLUSTER_DOMAIN},
    {"secrets-name-suffix", required_argument, NULL, OPT_SUFFIX},
    {"lifetime", required_argument, NULL, OPT_LIFETIME},
    {"certificate-lifetime", required_argument, NULL, OPT_LIFETIME_DAYS},
    {"overwrite", no_argument, NULL, 'o'},
    {"staged", no_argument, NULL, OPT_STAGED},
    {"settle", required_argument, NULL, OPT_SETTLE},
    {"restart", required_argument, NULL, OPT_RESTART},
    {"no-restart", no_argument, NULL, OPT_NO_RESTART},
    {"no-webhook", no_argument, NULL, OPT_NO_WEBHOOK},
    {"disable-topology-injector", no_argument, NULL, OPT_NO_WEBHOOK},
    {"local", required_argument, NULL, 'l'},
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"kube", no_argument, NULL, OPT_IGNORED},
    {"incluster", no_argument, NULL, OPT_IGNORED},
    {"secrets-format", required_argument, NULL, OPT_FORMAT},
    {"pem", no_argument, NULL, OPT_ELSEWHERE},
    {"yaml", no_argument, NULL, OPT_ELSEWHERE},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_time(const char *flag, const char *value, int64_t *ms, struct cr_error *err)
{
    if (!cr_duration_parse(value, ms, err))
        return cr_error_wrap(err, "%s", flag);
    return *ms > 0 || cr_error_set(err, CR_ERR_INVALID, "%s must be longer than nothing", flag);
}

/* A slip of the unit would be an outage as soon as the certificates are there. */
static bool parse_lifetime(const char *value, int64_t *ms, struct cr_error *err)
{
    if (!parse_time("--lifetime", value, ms, err))
        return false;
    return (*ms >= CR_CERTGEN_LIFETIME_MIN_MS && *ms <= CR_CERTGEN_LIFETIME_MAX_MS) ||
           cr_error_set(err, CR_ERR_INVALID, "--lifetime must be from 1h to 876000h, not '%s'", value);
}

static bool parse_days(const char *value, int64_t *ms, struct cr_error *err)
{
    enum { DAYS_MAX = 36500 };
    char *end = NULL;
    long days = strtol(value, &end, 10);
    *ms = (int64_t)days * 24 * 3600 * 1000;
    return (!*end && end != value && days > 0 && days <= DAYS_MAX) ||
           cr_error_set(err, CR_ERR_INVALID, "--certificate-lifetime must be a number of days from 1 to %d, not '%s'",
                        DAYS_MAX, value);
}

static bool check_namespace(const char *name, struct cr_error *err)
{
    return cr_is_namespace_name(name) ||
           cr_error_set(err, CR_ERR_INVALID, "--namespace '%s' is no name of a namespace", name);
}

/* The other format has the CA in a Secret of its own, for Contour before 1.5. */
static bool check_format(const char *value, struct cr_error *err)
{
    return cr_streq(value, "compact") ||
           cr_error_set(err, CR_ERR_INVALID, "--secrets-format: only compact is made, with ca.crt in each Secret");
}

/* A flag in its place: Envoy Gateway's --local takes no folder. */
static bool check_folder(const char *value, struct cr_error *err)
{
    return (*value && *value != '-') || cr_error_set(err, CR_ERR_INVALID, "--local needs a folder, not '%s'", value);
}

static bool take_set(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case OPT_PROFILE:
        flags->profile = optarg;
        return true;
    case OPT_CONFIG:
        flags->config = optarg;
        return true;
    case 'n':
        flags->ns = optarg;
        return check_namespace(optarg, err);
    case OPT_CLUSTER_DOMAIN:
        flags->cluster_domain = optarg;
        return true;
    case OPT_SUFFIX:
        flags->name_suffix = optarg;
        return true;
    case OPT_LIFETIME:
        return parse_lifetime(optarg, &flags->lifetime_ms, err);
    case OPT_LIFETIME_DAYS:
        return parse_days(optarg, &flags->lifetime_ms, err);
    default:
        /* getopt_long has named the flag already. */
        return cr_error_set(err, CR_ERR_INVALID, "see certroll-certgen --help");
    }
}

static bool take(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case 'o':
        flags->overwrite = true;
        return true;
    case OPT_STAGED:
        flags->staged = true;
        return true;
    case OPT_SETTLE:
        return parse_time("--settle", optarg, &flags->settle_ms, err);
    case OPT_RESTART:
        cr_strvec_add_unique(&flags->restarts, optarg);
        return true;
    case OPT_NO_RESTART:
        flags->no_restart = true;
        return true;
    case OPT_NO_WEBHOOK:
        flags->no_webhook = true;
        return true;
    case 'l':
        flags->local = optarg;
        return check_folder(optarg, err);
    case OPT_KUBECONFIG:
        flags->kubeconfig = optarg;
        return true;
    case OPT_CONTEXT:
        flags->context = optarg;
        return true;
    case OPT_TIMEOUT:
        return parse_time("--timeout", optarg, &flags->timeout_ms, err);
    case OPT_IGNORED:
        return true;
    case OPT_FORMAT:
        return check_format(optarg, err);
    case OPT_ELSEWHERE:
        return cr_error_set(err, CR_ERR_INVALID, "--pem and --yaml are not made: --local DIR writes files");
    case OPT_VERSION:
        flags->version = true;
        return true;
    case 'h':
        flags->help = true;
        return true;
    default:
        return take_set(option, flags, err);
    }
}

static bool check(const struct flags *flags, struct cr_error *err)
{
    if (flags->help || flags->version)
        return true;
    if (!flags->profile == !flags->config)
        return cr_error_set(err, CR_ERR_INVALID, "give either --profile or --config; see certroll-certgen --help");
    if (flags->no_restart && flags->restarts.len)
        return cr_error_set(err, CR_ERR_INVALID, "--restart and --no-restart contradict each other");
    if (flags->staged && flags->local)
        return cr_error_set(err, CR_ERR_INVALID, "--staged needs a cluster: nobody tells who has read files");
    if (flags->settle_ms && !flags->staged)
        return cr_error_set(err, CR_ERR_INVALID, "--settle is of use with --staged only");
    return true;
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    *flags = (struct flags){0};
    for (;;) {
        int option = getopt_long(argc, argv, "n:l:oh", options, NULL);
        if (option < 0)
            break;
        if (!take(option, flags, err))
            return false;
    }
    if (optind < argc)
        return cr_error_set(err, CR_ERR_INVALID, "unexpected argument '%s'; see certroll-certgen --help", argv[optind]);
    if (!flags->timeout_ms)
        flags->timeout_ms = (int64_t)(flags->staged ? STAGED_MINUTES : MINUTES) * 60 * 1000;
    return check(flags, err);
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->restarts);
}
