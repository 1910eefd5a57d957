#include "flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/flags.h"
#include "base/strings.h"
#include "controlplane/agent/node_lease.h"
#include "controlplane/agent/shell_words.h"

const char flags_help[] =
    "certroll-node-agent reports which certificates the programs of a node read and whether they have taken them up,\n"
    "and restarts a component of its node when it is asked to and may.\n"
    "\n"
    "Usage: certroll-node-agent [run] [flags]\n"
    "       certroll-node-agent inspect [flags]     print what it would report, and end; no API server is asked\n"
    "\n"
    "It reads the manifests of static pods, the kubelet's configuration, kubeconfigs and the files that all these "
    "name,\n"
    "and asks the ports of the components. Keys are compared, never shown. In a pod it finds the API server by "
    "itself;\n"
    "elsewhere it reads a kubeconfig as kubectl does.\n"
    "\n"
    "Flags:\n"
    "      --node-name NAME           name of its Node (default $NODE_NAME)\n"
    "      --allow-restart NAME,...   what it may restart: kube-apiserver, kube-controller-manager, kube-scheduler,\n"
    "                                 etcd, kube-proxy, kubelet (default: nothing)\n"
    "      --kubelet-restart-command WORDS   how the kubelet is restarted, such as \"nsenter -t 1 -m -- systemctl\n"
    "                                 restart kubelet\"; words are split as a shell does, no shell is run (default: "
    "the\n"
    "                                 kubelet is not restarted)\n"
    "      --kubelet-restart-timeout TIME    for that command, at most 20s (default 20s)\n"
    "      --count-tokens             read the service account tokens of the node's pods, to count them by their keys\n"
    "                                 (default true; false: they are reported as unknown)\n"
    "      --step-deadline TIME       a restart that is not proved by then has failed (default 5m)\n"
    "      --root DIR                 where the host's files are mounted (default: its paths are ours)\n"
    "      --proc DIR                 its processes (default /proc)\n"
    "      --manifests DIR            of static pods, as a path of the host (default: as the kubelet's configuration\n"
    "                                 says)\n"
    "      --any-network              also processes of other network namespaces are the node's\n"
    "      --kubelet-version VERSION  for inspect: what the kubelet is, such as v1.36.3 (default: not known, and so "
    "what\n"
    "                                 is true of all versions)\n"
    "      --json                     for inspect: the report's status\n"
    "      --kubeconfig FILE          kubeconfig to use (default: $KUBECONFIG, then the pod's service account, then\n"
    "                                 ~/.kube/config)\n"
    "      --context NAME             context of the kubeconfig (default: its current one)\n"
    "      --metrics-bind-address ADDR       where /metrics, /healthz and /readyz are served; 0 for nowhere (default\n"
    "                                 \"127.0.0.1:9951\")\n"
    "      --health-probe-bind-address ADDR  where /healthz and /readyz are served instead; 0 for nowhere (default: "
    "with\n"
    "                                 the metrics)\n"
    "      --log-level LEVEL          debug, info, warn or error (default info)\n"
    "      --version                  print the version\n"
    "  -h, --help                     print this\n"
    "\n"
    "It logs JSON lines on standard error. SIGTERM and SIGINT end it; killing it at any moment loses nothing: what "
    "was\n"
    "begun is brought to its end by the next one on the node.\n"
    "Exit status: 0 ended as asked, 1 could not start, 2 wrong usage.\n";

static const char *const components[] = {
    "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kube-proxy", "kubelet"};

static bool is_component(const char *name)
{
    for (size_t i = 0; i < cr_array_len(components); i++)
        if (cr_streq(components[i], name))
            return true;
    return false;
}

/* "a,b", also several times; an empty one allows nothing, so that a manifest can say so. */
static bool take_allowed(void *field, const char *flag, const char *value, struct cr_error *err)
{
    cr_autofree char *copy = cr_strdup(value);
    char *rest = copy;
    for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
        if (*name && !is_component(name))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s '%s': there are kube-apiserver, kube-controller-manager, kube-scheduler, etcd, "
                                "kube-proxy and kubelet",
                                flag, name);
        if (*name)
            cr_strvec_add_unique(field, name);
    }
    return true;
}

static bool take_command(void *field, const char *flag, const char *value, struct cr_error *err)
{
    struct cr_strvec *words = field;
    cr_strvec_dispose(words);
    return !*value || (cr_shell_words(value, words) && words->len) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s '%s' is more than one command with plain words: no shell runs it; give a script's path",
                        flag, value);
}

static bool check_absolute(const char *flag, const char *value, struct cr_error *err)
{
    return *value == '/' || cr_error_set(err, CR_ERR_INVALID, "%s must be an absolute path", flag);
}

/* "" is the host's own root. */
static bool check_root(const char *flag, const char *value, struct cr_error *err)
{
    return !*value || check_absolute(flag, value, err);
}

static const struct cr_flag table[] = {
    CR_FLAG(TEXT, "node-name", struct flags, node_name),
    CR_FLAG(OWN, "allow-restart", struct flags, allow_restart, .take = take_allowed),
    CR_FLAG(OWN, "kubelet-restart-command", struct flags, kubelet_command, .take = take_command),
    CR_FLAG(DURATION, "kubelet-restart-timeout", struct flags, command_timeout_ms, .least = 1000),
    CR_FLAG(BOOL, "count-tokens", struct flags, count_tokens),
    CR_FLAG(DURATION, "step-deadline", struct flags, step_deadline_ms, .least = 1000),
    CR_FLAG(TEXT, "root", struct flags, root, .check = check_root),
    CR_FLAG(TEXT, "proc", struct flags, proc, .check = check_absolute),
    CR_FLAG(TEXT, "manifests", struct flags, manifests, .check = check_absolute),
    CR_FLAG(SWITCH, "any-network", struct flags, any_network),
    CR_FLAG(TEXT, "kubelet-version", struct flags, kubelet_version),
    CR_FLAG(SWITCH, "json", struct flags, json),
    CR_FLAG(TEXT, "kubeconfig", struct flags, kubeconfig),
    CR_FLAG(TEXT, "context", struct flags, context),
    CR_FLAG(TEXT, "metrics-bind-address", struct flags, metrics_address),
    CR_FLAG(TEXT, "health-probe-bind-address", struct flags, health_address),
    CR_FLAG(LOG_LEVEL, "log-level", struct flags, log_level),
    CR_FLAG(SWITCH, "version", struct flags, version),
    CR_FLAG(SWITCH, "help", struct flags, help, .letter = 'h'),
};

static bool take_word(void *out, const char *word, struct cr_error *err)
{
    struct flags *flags = out;
    flags->inspect = cr_streq(word, "inspect");
    return flags->inspect || cr_streq(word, "run") ||
           cr_error_set(err, CR_ERR_INVALID, "there is no command '%s': there are run and inspect", word);
}

static bool check_use(struct flags *flags, struct cr_error *err)
{
    const char *name = getenv("NODE_NAME");
    if (!flags->node_name && name && *name)
        flags->node_name = name;
    if (flags->help || flags->version)
        return true;
    if (!flags->inspect && (flags->json || flags->kubelet_version))
        return cr_error_set(err, CR_ERR_INVALID, "--json and --kubelet-version are inspect's");
    if (flags->command_timeout_ms > cr_node_lease_times.renew_ms)
        return cr_error_set(
            err, CR_ERR_INVALID,
            "--kubelet-restart-timeout must be at most %d s: the Lease that holds other nodes back is not "
            "renewed while the command runs",
            (int)(cr_node_lease_times.renew_ms / 1000));
    return flags->inspect || (flags->node_name && *flags->node_name) ||
           cr_error_set(err, CR_ERR_INVALID, "give --node-name, or $NODE_NAME: the Node whose report this is");
}

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err)
{
    static const struct cr_flags line = {
        .program = "certroll-node-agent", .table = table, .len = cr_array_len(table), .word = take_word};
    *flags = (struct flags){
        .root = "",
        .proc = "/proc",
        .count_tokens = true,
        .command_timeout_ms = cr_node_lease_times.renew_ms,
        .step_deadline_ms = 5 * 60 * 1000,
        .metrics_address = "127.0.0.1:9951",
        .log_level = CR_LOG_INFO,
    };
    return cr_flags_parse(&line, argc, argv, flags, NULL, err) && check_use(flags, err);
}

void flags_dispose(struct flags *flags)
{
    cr_strvec_dispose(&flags->allow_restart);
    cr_strvec_dispose(&flags->kubelet_command);
}
