/* certroll-node-agent: flags and wiring only. */
#include <malloc.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "flags.h"
#include "inspect.h"
#include "kube/client.h"
#include "kube/config.h"
#include "metrics/metrics.h"
#include "metrics/process_metrics.h"
#include "controlplane/agent/agent.h"
#include "controlplane/agent/survey.h"
#include "catalogue/catalogue.h"
#include "runtime/manager.h"
#include "sys/loop.h"
#include "sys/process.h"

#define USER_AGENT "certroll-node-agent/" CERTROLL_VERSION " (linux/" CERTROLL_ARCH ")"

enum { EXIT_NOT_STARTED = 1, EXIT_USAGE = 2 };

/* It stands on every node: one arena for all threads, and what is free goes back at once. */
static void save_memory(void)
{
    enum { GIVE_BACK = 64 * 1024 };
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, GIVE_BACK);
    (void)mallopt(M_TRIM_THRESHOLD, GIVE_BACK);
}

static struct cr_node_layout layout_of(const struct flags *flags)
{
    return (struct cr_node_layout){.root = flags->root,
                                   .proc = flags->proc,
                                   .manifests = flags->manifests,
                                   .kubelet_version = flags->kubelet_version,
                                   .own_network_only = !flags->any_network};
}

static struct cr_node_allowed allowed_of(const struct flags *flags)
{
    return (struct cr_node_allowed){.components = &flags->allow_restart,
                                    .kubelet_command = &flags->kubelet_command,
                                    .command_timeout_ms = flags->command_timeout_ms};
}

static bool inspect(const struct flags *flags, struct cr_error *err)
{
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(err);
    if (!catalogue)
        return false;
    CR_CLEANUP(cr_node_survey) struct cr_node_survey survey;
    const struct cr_node_survey_options options = {.layout = layout_of(flags),
                                                   .allowed = allowed_of(flags),
                                                   .catalogue = catalogue,
                                                   .agent = CERTROLL_VERSION,
                                                   .count_tokens = flags->count_tokens};
    int64_t now_ms = cr_clock_wall_ms();
    cr_node_survey(&options, NULL, now_ms, &survey);
    if (flags->json)
        inspect_print_json(&survey.report, stdout);
    else
        inspect_print(&survey.report, now_ms, stdout);
    return true;
}

static bool run(const struct flags *flags, struct cr_error *err)
{
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config = cr_kube_config_load(flags->kubeconfig, flags->context, err);
    if (!config)
        return false;
    cr_autofree char *allowed = cr_strvec_join(&flags->allow_restart, ",");
    cr_log(CR_LOG_INFO, "starting", {"version", CERTROLL_VERSION}, {"node", flags->node_name},
           {"server", config->server}, {"credentials", config->source},
           {"may_restart", flags->allow_restart.len ? allowed : "nothing"});

    /* In the order in which they need each other; they go in the opposite one. */
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_process_metrics) struct cr_process_metrics *process = cr_process_metrics_new(metrics);
    cr_metrics_set_build_info(metrics);
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *client = cr_client_new(loop, cr_steal(&config), USER_AGENT);
    cr_client_count_in(client, metrics);
    CR_CLEANUP(cr_manager)
    struct cr_manager *manager = cr_manager_new(loop, client, metrics,
                                                &(struct cr_manager_options){.workers = 1,
                                                                             .name = "node",
                                                                             .metrics_address = flags->metrics_address,
                                                                             .health_address = flags->health_address});
    /* Gone before the manager: its look-out adds to the manager's queue. The workers have ended by then. */
    CR_CLEANUP(cr_node_agent)
    struct cr_node_agent *agent =
        cr_node_agent_new(&(struct cr_node_agent_options){.loop = loop,
                                                          .client = client,
                                                          .manager = manager,
                                                          .metrics = metrics,
                                                          .node = flags->node_name,
                                                          .layout = layout_of(flags),
                                                          .allowed = allowed_of(flags),
                                                          .count_tokens = flags->count_tokens,
                                                          .step_deadline_ms = flags->step_deadline_ms},
                          err);
    return agent && cr_manager_run(manager, err);
}

int main(int argc, char **argv)
{
    save_memory();
    struct cr_error err = {0};
    struct flags flags;
    if (!flags_parse(argc, argv, &flags, &err)) {
        fprintf(stderr, "certroll-node-agent: %s\n", err.text);
        flags_dispose(&flags);
        return EXIT_USAGE;
    }
    if (flags.help || flags.version) {
        fputs(flags.help ? flags_help : "certroll-node-agent " CERTROLL_VERSION "\n", stdout);
        flags_dispose(&flags);
        return 0;
    }
    cr_log_set_level(flags.log_level);
    cr_process_forbid_cores();
    bool done = flags.inspect ? inspect(&flags, &err) : run(&flags, &err);
    if (!done)
        cr_log(CR_LOG_ERROR, "cannot run", {"error", err.text});
    flags_dispose(&flags);
    return done ? 0 : EXIT_NOT_STARTED;
}
