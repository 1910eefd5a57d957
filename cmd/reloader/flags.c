#include "flags.h"

#include <getopt.h>
#include <stddef.h>

const char flags_help[] =
    "certroll-reloader makes a program in its pod take up TLS material that has changed, without a restart.\n"
    "\n"
    "Usage: certroll-reloader [flags]\n"
    "\n"
    "It follows mounted Secrets, checks what comes, makes files of it in the form that the program reads, tells the\n"
    "program by a signal, a request, a socket or a command, and looks on loopback whether the program serves it.\n"
    "\n"
    "Flags:\n"
    "      --config FILE         what to do (default /etc/certroll/reloader.yaml)\n"
    "      --address ADDR        where /status, /metrics, /healthz and, with envoyAdmin, /certs are served; 0 for "
    "nowhere\n"
    "                            (default \":9950\")\n"
    "      --tls-cert-file FILE         certificate and chain (PEM) of that address, which then speaks TLS; the "
    "operator\n"
    "                            reads /status by plain HTTP only\n"
    "      --tls-private-key-file FILE  its key; both are read again as soon as they change\n"
    "      --client-ca-file FILE        who asks must have a certificate of one of these CAs; also read again\n"
    "      --health-address ADDR where /healthz is served instead, by plain HTTP; 0 for nowhere (default: with the "
    "rest)\n"
    "      --state-folder DIR    remembers there what was delivered, for its next start in the pod: an emptyDir\n"
    "      --once                makes the outputs, tells nobody, and ends: for an init container\n"
    "      --check               reads the configuration, says what it would do, and ends\n"
    "      --log-level LEVEL     debug, info, warn or error (default info)\n"
    "      --version             print the version\n"
    "  -h, --help                print this\n"
    "\n"
    "It logs JSON lines on standard error. SIGTERM and SIGINT end it; killing it at any moment leaves no half file.\n"
    "Exit status: 0 ended as asked, 1 could not start or, with --once, not make all outputs, 2 wrong usage or\n"
    "configuration.\n";

enum {
    OPT_CONFIG = 256,
    OPT_ADDRESS,
    OPT_CERT,
    OPT_KEY,
    OPT_CLIENT_CA,
    OPT_HEALTH,
    OPT_STATE_FOLDER,
    OPT_ONCE,
    OPT_CHECK,
    OPT_LOG_LEVEL,
    OPT_VERSION,
};

static const struct option options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"address", required_argument, NULL, OPT_ADDRESS},
    {"tls-cert-file", required_argument, NULL, OPT_CERT},
    {"tls-private-key-file", required_argument, NULL, OPT_KEY},
    {"client-ca-file", required_argument, NULL, OPT_CLIENT_CA},
    {"health-address", required_argument, NULL, OPT_HEALTH},
    {"state-folder", required_argument, NULL, OPT_STATE_FOLDER},
    {"once", no_argument, NULL, OPT_ONCE},
    {"check", no_argument, NULL, OPT_CHECK},
    {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void take_page(int option, struct flags *flags)
{
    switch (option) {
    case OPT_CERT:
        flags->files.certificate = optarg;
        break;
    case OPT_KEY:
        flags->files.private_key = optarg;
        break;
    case OPT_CLIENT_CA:
        flags->files.client_ca = optarg;
        break;
    case OPT_HEALTH:
        flags->health_address = optarg;
        break;
    default:
        flags->address = optarg;
        break;
    }
}

static bool take(int option, struct flags *flags, struct cr_error *err)
{
    switch (option) {
    case OPT_CONFIG:
        flags->config = optarg;
        return true;
    case OPT_ADDRESS:
    case OPT_CERT:
    case OPT_KEY:
    case OPT_CLIENT_CA:
    case OPT_HEALTH:
        take_page(option, flags);
        return true;
    case OPT_STATE_FOLDER:
        flags->state_folder = optarg;
        return *optarg == '/' || cr_error_set(err, CR_ERR_INVALID, "--state-folder must be an absolute path");
    case OPT_ONCE:
        flags->once = true;
        return true;
    case OPT_CHECK:
        flags->check = true;
        return true;
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
        return cr_error_set(err, CR_ERR_INVALID, "see certroll-reloader --help");
    }
}

/* Kubelets have no certificate to show. */
static bool check_page(const struct flags *flags, struct cr_error *err)
{
    if (!cr_tls_files_check(&flags->files, "--", err))
        return false;
    return !flags->files.client_ca || flags->health_address ||
           cr_error_set(err, CR_ERR_INVALID,
                        "--client-ca-file would shut the kubelet's probes out of /healthz: give --health-address");
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    *flags = (struct flags){.config = "/etc/certroll/reloader.yaml", .address = ":9950", .log_level = CR_LOG_INFO};
    for (;;) {
        int option = getopt_long(argc, argv, "h", options, NULL);
        if (option < 0)
            break;
        if (!take(option, flags, err))
            return false;
    }
    if (optind < argc)
        return cr_error_set(err, CR_ERR_INVALID, "unexpected argument '%s'; see certroll-reloader --help",
                            argv[optind]);
    if (flags->once && flags->check)
        return cr_error_set(err, CR_ERR_INVALID, "give either --once or --check");
    return check_page(flags, err);
}
