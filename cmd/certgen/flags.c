#include "flags.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/flags.h"
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
    "      --rotation-id TEXT      with --overwrite: runs with the same TEXT are one rotation, which issues each leaf\n"
    "                              once (default: $JOB_UID, so a Job that is retried goes on)\n"
    "      --staged                rotate in stages: first the new CA into all bundles, and no leaf before the\n"
    "                              CertRotationPolicies that cover the Secrets say that it has arrived\n"
    "      --settle TIME           with --staged: a Secret that no policy with consumers covers counts as arrived so\n"
    "                              long after the last write; without this flag it is refused. Kubelets take up to "
    "95s\n"
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

/* A slip of the unit would be an outage as soon as the certificates are there. */
static bool take_lifetime(void *field, const char *flag, const char *value, struct cr_error *err)
{
    int64_t *ms = field;
    if (!cr_duration_parse(value, ms, err))
        return cr_error_wrap(err, "%s", flag);
    return (*ms >= CR_CERTGEN_LIFETIME_MIN_MS && *ms <= CR_CERTGEN_LIFETIME_MAX_MS) ||
           cr_error_set(err, CR_ERR_INVALID, "%s must be from 1h to 876000h, not '%s'", flag, value);
}

static bool take_days(void *field, const char *flag, const char *value, struct cr_error *err)
{
    enum { DAYS_MAX = 36500 };
    int64_t *ms = field;
    char *end = NULL;
    long days = strtol(value, &end, 10);
    *ms = (int64_t)days * 24 * 3600 * 1000;
    return (!*end && end != value && days > 0 && days <= DAYS_MAX) ||
           cr_error_set(err, CR_ERR_INVALID, "%s must be a number of days from 1 to %d, not '%s'", flag, DAYS_MAX,
                        value);
}

static bool check_namespace(const char *flag, const char *name, struct cr_error *err)
{
    return cr_is_namespace_name(name) ||
           cr_error_set(err, CR_ERR_INVALID, "%s '%s' is no name of a namespace", flag, name);
}

/* The other format has the CA in a Secret of its own, for Contour before 1.5. */
static bool check_format(const char *flag, const char *value, struct cr_error *err)
{
    return cr_streq(value, "compact") ||
           cr_error_set(err, CR_ERR_INVALID, "%s: only compact is made, with ca.crt in each Secret", flag);
}

/* A flag in its place: Envoy Gateway's --local takes no folder. */
static bool check_folder(const char *flag, const char *value, struct cr_error *err)
{
    return (*value && *value != '-') || cr_error_set(err, CR_ERR_INVALID, "%s needs a folder, not '%s'", flag, value);
}

/* value: NULL, it has none. */
static bool refuse_elsewhere(const char *flag, const char *value, struct cr_error *err)
{
    (void)flag;
    (void)value;
    return cr_error_set(err, CR_ERR_INVALID, "--pem and --yaml are not made: --local DIR writes files");
}

static const struct cr_flag table[] = {
    CR_FLAG(TEXT, "profile", struct flags, profile),
    CR_FLAG(TEXT, "config", struct flags, config),
    CR_FLAG(TEXT, "namespace", struct flags, ns, .letter = 'n', .check = check_namespace),
    CR_FLAG(TEXT, "cluster-domain", struct flags, cluster_domain),
    CR_FLAG(TEXT, "secrets-name-suffix", struct flags, name_suffix),
    CR_FLAG(OWN, "lifetime", struct flags, lifetime_ms, .take = take_lifetime),
    CR_FLAG(OWN, "certificate-lifetime", struct flags, lifetime_ms, .take = take_days),
    CR_FLAG(SWITCH, "overwrite", struct flags, overwrite, .letter = 'o'),
    CR_FLAG(TEXT, "rotation-id", struct flags, rotation_id),
    CR_FLAG(SWITCH, "staged", struct flags, staged),
    CR_FLAG(DURATION, "settle", struct flags, settle_ms, .least = 1),
    CR_FLAG(TEXTS, "restart", struct flags, restarts),
    CR_FLAG(SWITCH, "no-restart", struct flags, no_restart),
    CR_FLAG(SWITCH, "no-webhook", struct flags, no_webhook),
    CR_FLAG(SWITCH, "disable-topology-injector", struct flags, no_webhook),
    CR_FLAG(TEXT, "local", struct flags, local, .letter = 'l', .check = check_folder),
    CR_FLAG(TEXT, "kubeconfig", struct flags, kubeconfig),
    CR_FLAG(TEXT, "context", struct flags, context),
    CR_FLAG(DURATION, "timeout", struct flags, timeout_ms, .least = 1),
    {.name = "kube", .kind = CR_FLAG_NOTHING},
    {.name = "incluster", .kind = CR_FLAG_NOTHING},
    {.name = "secrets-format", .kind = CR_FLAG_IGNORED, .check = check_format},
    {.name = "pem", .kind = CR_FLAG_NOTHING, .check = refuse_elsewhere},
    {.name = "yaml", .kind = CR_FLAG_NOTHING, .check = refuse_elsewhere},
    CR_FLAG(SWITCH, "version", struct flags, version),
    CR_FLAG(SWITCH, "help", struct flags, help, .letter = 'h'),
};

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
    if (flags->rotation_id && (!flags->overwrite || flags->staged))
        return cr_error_set(err, CR_ERR_INVALID, "--rotation-id is of use with --overwrite alone");
    if (flags->rotation_id && flags->local)
        return cr_error_set(err, CR_ERR_INVALID, "--rotation-id needs a cluster: files do not say who issued them");
    if (flags->settle_ms && !flags->staged)
        return cr_error_set(err, CR_ERR_INVALID, "--settle is of use with --staged only");
    return true;
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    static const struct cr_flags line = {.program = "certroll-certgen", .table = table, .len = cr_array_len(table)};
    *flags = (struct flags){0};
    if (!cr_flags_parse(&line, argc, argv, flags, NULL, err))
        return false;
    if (!flags->timeout_ms)
        flags->timeout_ms = (int64_t)(flags->staged ? STAGED_MINUTES : MINUTES) * 60 * 1000;
    return check(flags, err);
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->restarts);
}
