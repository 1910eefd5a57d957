#include "flags.h"

#include <stddef.h>

#include "base/flags.h"
#include "base/strings.h"

const char flags_help[] =
    "certroll-sidecar makes a program in its pod take up TLS material that has changed, without a restart.\n"
    "\n"
    "Usage: certroll-sidecar [flags]\n"
    "\n"
    "It follows mounted Secrets, checks what comes, makes files of it in the form that the program reads, tells the\n"
    "program by a signal, a request, a socket or a command, and looks on loopback whether the program serves it.\n"
    "\n"
    "Flags:\n"
    "      --config FILE         what to do (default /etc/certroll/sidecar.yaml)\n"
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

static bool check_absolute(const char *flag, const char *value, struct cr_error *err)
{
    return *value == '/' || cr_error_set(err, CR_ERR_INVALID, "%s must be an absolute path", flag);
}

static const struct cr_flag table[] = {
    CR_FLAG(TEXT, "config", struct flags, config),
    CR_FLAG(TEXT, "address", struct flags, address),
    CR_FLAG(TEXT, "tls-cert-file", struct flags, files.certificate),
    CR_FLAG(TEXT, "tls-private-key-file", struct flags, files.private_key),
    CR_FLAG(TEXT, "client-ca-file", struct flags, files.client_ca),
    CR_FLAG(TEXT, "health-address", struct flags, health_address),
    CR_FLAG(TEXT, "state-folder", struct flags, state_folder, .check = check_absolute),
    CR_FLAG(SWITCH, "once", struct flags, once),
    CR_FLAG(SWITCH, "check", struct flags, check),
    CR_FLAG(LOG_LEVEL, "log-level", struct flags, log_level),
    CR_FLAG(SWITCH, "version", struct flags, version),
    CR_FLAG(SWITCH, "help", struct flags, help, .letter = 'h'),
};

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
    static const struct cr_flags line = {.program = "certroll-sidecar", .table = table, .len = cr_array_len(table)};
    *flags = (struct flags){.config = "/etc/certroll/sidecar.yaml", .address = ":9950", .log_level = CR_LOG_INFO};
    if (!cr_flags_parse(&line, argc, argv, flags, NULL, err))
        return false;
    if (flags->once && flags->check)
        return cr_error_set(err, CR_ERR_INVALID, "give either --once or --check");
    return check_page(flags, err);
}
