/* certroll-operator: flags and wiring only. */
#include <malloc.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "policy/controller/admission_check.h"
#include "controlplane/controller/control_plane_controller.h"
#include "trust/controller/domain_controller.h"
#include "policy/controller/policy_controller.h"
#include "flags.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/own_namespace.h"
#include "metrics/metrics.h"
#include "metrics/process_metrics.h"
#include "metrics_page.h"
#include "runtime/manager.h"
#include "sys/loop.h"
#include "sys/process.h"

#define USER_AGENT "certroll-operator/" CERTROLL_VERSION " (linux/" CERTROLL_ARCH ")"

enum { EXIT_NOT_STARTED = 1, EXIT_USAGE = 2, EXIT_LEASE_LOST = 3 };

/* Threads mostly wait for the API server, so one arena is never fought for; with one each (glibc's habit) what one of
 * them frees is of no use to the others. Measured with 500 policies: 0.3 MB less in sync, 1 to 2 MB after 500 changes
 * at once. Thresholds that are set do not rise with the largest block that was ever freed. Small blocks are joined when
 * they are freed: of the nodes of a JSON tree in glibc's fast bins each large block makes it take them all out again,
 * which cost 6 to 10 % of a restart's CPU. */
static void share_memory(void)
{
    enum { GIVE_BACK = 128 * 1024 };
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MXFAST, 0);
    (void)mallopt(M_MMAP_THRESHOLD, GIVE_BACK);
    (void)mallopt(M_TRIM_THRESHOLD, GIVE_BACK);
}

/* Owned; *ns is NULL when it is not known. */
static bool find_operator_namespace(const struct flags *flags, char **ns, struct cr_error *err)
{
    *ns = cr_strdup_or_null(flags->operator_namespace);
    return *ns || cr_own_namespace(ns, err);
}

/* *election stays NULL when there is to be none. */
static bool make_election(const struct flags *flags, const char *ns, struct cr_client *client,
                          struct cr_metrics *metrics, struct cr_leader_election **election, struct cr_error *err)
{
    if (!flags->leader_elect)
        return true;
    if (!ns)
        return cr_error_set(err, CR_ERR_INVALID,
                            "leader election needs a namespace for its Lease, and outside of a pod nothing tells it: "
                            "give --operator-namespace, or --leader-elect=false when this is the only operator");
    const struct cr_leader_election_options options = {
        .ns = ns, .name = flags->lease_name, .times = flags->times, .exit_status = EXIT_LEASE_LOST};
    *election = cr_leader_election_new(client, metrics, &options, err);
    return *election != NULL;
}

/* *check stays NULL when there is to be none. */
static bool make_admission_check(const struct flags *flags, const char *ns, struct cr_client *client,
                                 struct cr_metrics *metrics, struct cr_admission_check **check, struct cr_error *err)
{
    if (!flags->require_admission_policy)
        return true;
    if (!ns)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the check of the admission policy needs the operator's namespace, and outside of a pod "
                            "nothing tells it: give --operator-namespace, or --require-admission-policy=false");
    *check = cr_admission_check_new(client, metrics, ns, flags->lease_name);
    return true;
}

/* Beside the policies' controller, on the same manager. */
static struct cr_domain_controller *new_domains(struct cr_policy_controller *policies,
                                                const struct cr_policy_controller_options *options)
{
    return cr_domain_controller_new(
        &(struct cr_domain_controller_options){.client = options->client,
                                               .manager = options->manager,
                                               .metrics = options->metrics,
                                               .cache = cr_policy_controller_cache(policies),
                                               .catalogues = cr_policy_controller_catalogues(policies),
                                               .canaries = options->canaries,
                                               .operator_namespace = options->operator_namespace});
}

/* Likewise, but it watches by itself. */
static struct cr_control_plane_controller *new_control_plane(const struct cr_policy_controller_options *options)
{
    return cr_control_plane_controller_new(&(struct cr_control_plane_controller_options){
        .loop = options->loop, .client = options->client, .manager = options->manager, .metrics = options->metrics});
}

/* The exit status; err is set unless it is 0. */
static int run(const struct flags *flags, struct cr_error *err)
{
    cr_autofree char *operator_namespace = NULL;
    if (!find_operator_namespace(flags, &operator_namespace, err))
        return EXIT_NOT_STARTED;
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config = cr_kube_config_load(flags->kubeconfig, flags->context, err);
    if (!config)
        return EXIT_NOT_STARTED;
    cr_autofree char *namespaces = cr_strvec_join(&flags->namespaces, ",");
    cr_log(CR_LOG_INFO, "starting", {"version", CERTROLL_VERSION}, {"server", config->server},
           {"credentials", config->source}, {"namespaces", flags->namespaces.len ? namespaces : "all"},
           {"operator_namespace", operator_namespace});

    /* In the order in which they need each other; they go in the opposite one. */
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_process_metrics) struct cr_process_metrics *process = cr_process_metrics_new(metrics);
    cr_metrics_set_build_info(metrics);
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = cr_client_new(loop, cr_steal(&config), USER_AGENT);
    cr_client_count_in(client, metrics);
    CR_CLEANUP(cr_leader_election) struct cr_leader_election *election = NULL;
    if (!make_election(flags, operator_namespace, client, metrics, &election, err))
        return EXIT_NOT_STARTED;
    CR_CLEANUP(cr_admission_check) struct cr_admission_check *admission = NULL;
    if (!make_admission_check(flags, operator_namespace, client, metrics, &admission, err))
        return EXIT_NOT_STARTED;
    CR_CLEANUP(metrics_page) struct metrics_page page;
    if (!metrics_page_init(&page, flags, loop, client, metrics, err))
        return EXIT_NOT_STARTED;
    CR_CLEANUP(cr_canaries) struct cr_canaries *canaries = cr_canaries_new();
    CR_CLEANUP(cr_policy_controller) struct cr_policy_controller *controller = NULL;
    CR_CLEANUP(cr_domain_controller) struct cr_domain_controller *domains = NULL;
    CR_CLEANUP(cr_control_plane_controller) struct cr_control_plane_controller *control_plane = NULL;
    struct cr_manager_options manager_options = {
        .workers = flags->workers,
        .name = "certrotationpolicy",
        .metrics_address = flags->metrics_address,
        .health_address = flags->health_address,
        .metrics_guard = page.guard,
        .metrics_tls = metrics_page_tls(&page),
        .election = election,
        .start_check = admission ? cr_admission_check_start_check(admission) : NULL,
    };
    CR_CLEANUP(cr_manager) struct cr_manager *manager = cr_manager_new(loop, client, metrics, &manager_options);
    struct cr_policy_controller_options options = {
        .loop = loop,
        .client = client,
        .manager = manager,
        .metrics = metrics,
        .namespaces = &flags->namespaces,
        .secret_scope = flags->secret_scope,
        .hosts_in_use = flags->hosts_in_use,
        .limits = flags->limits,
        .operator_namespace = operator_namespace,
        .canaries = canaries,
        .catalogue_configmap = flags->catalogue_configmap,
    };
    controller = cr_policy_controller_new(&options, err);
    if (controller)
        /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the cleanup reads it */
        domains = new_domains(controller, &options);
    if (controller && flags->control_plane)
        /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the cleanup reads it */
        control_plane = new_control_plane(&options);
    if (controller && cr_manager_run(manager, err))
        return 0;
    return election && cr_leader_election_lost(election) ? EXIT_LEASE_LOST : EXIT_NOT_STARTED;
}

int main(int argc, char **argv)
{
    share_memory();
    struct cr_error err = {0};
    struct flags flags;
    if (!flags_parse(argc, argv, &flags, &err)) {
        fprintf(stderr, "certroll-operator: %s\n", err.text);
        flags_dispose(&flags);
        return EXIT_USAGE;
    }
    if (flags.help || flags.version) {
        fputs(flags.help ? flags_help : "certroll-operator " CERTROLL_VERSION "\n", stdout);
        flags_dispose(&flags);
        return 0;
    }
    cr_log_set_level(flags.log_level);
    cr_process_forbid_cores();
    int status = run(&flags, &err);
    if (status == 0)
        cr_log(CR_LOG_INFO, "ended");
    else
        cr_log(CR_LOG_ERROR, status == EXIT_LEASE_LOST ? "ended" : "cannot run", {"error", err.text});
    flags_dispose(&flags);
    return status;
}
