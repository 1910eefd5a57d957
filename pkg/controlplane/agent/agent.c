#include "controlplane/agent/agent.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/object.h"
#include "controlplane/agent/agent_internal.h"
#include "controlplane/agent/order.h"

#define KEY "node"

enum {
    REQUEST_MS = 5000,
    PATIENCE_MS = 5000, /* the node is looked at, and shown in the metrics, without the API server, too */
    UNDER_WAY_MS = 1000,
    PENDING_MS = 5000,
    LOOK_MS = 20 * 1000, /* processes are restarted, and nothing notifies of that */
};

/* --- one pass --- */

/* Nothing is remembered before it is known what the agent before us had said. */
static const struct cr_node_report *memory_of(const struct cr_node_agent *agent)
{
    if (agent->has_report)
        return &agent->report;
    return agent->has_known ? &agent->known : NULL;
}

static const char *kubelet_process(const struct cr_node_report *report)
{
    const struct cr_node_component *kubelet = cr_node_report_component(report, "kubelet");
    return kubelet ? kubelet->process : NULL;
}

static void look(struct cr_node_agent *agent, struct cr_node_survey *survey)
{
    int64_t began_ms = cr_clock_monotonic_ms();
    struct cr_node_survey_options options = {.layout = agent->options.layout,
                                             .allowed = agent->options.allowed,
                                             .catalogue = agent->catalogue,
                                             .agent = CERTROLL_VERSION,
                                             .count_tokens = agent->options.count_tokens,
                                             .shown = &agent->shown};
    options.layout.kubelet_version = agent->kubelet_version;
    cr_node_survey(&options, memory_of(agent), cr_clock_wall_ms(), survey);
    cr_file_watcher_set(agent->watcher, &survey->look.paths, &survey->look.folders);
    cr_metric_observe(agent->metrics.look, NULL, (double)(cr_clock_monotonic_ms() - began_ms) / 1000);
}

/* The survey keeps what was seen, the agent what is said of it. */
static void take_report(struct cr_node_agent *agent, struct cr_node_survey *survey)
{
    struct cr_node_report before = agent->report;
    agent->report = survey->report;
    survey->report = (struct cr_node_report){0};
    cr_strset(&agent->report.node, agent->options.node);
    cr_node_agent_metrics_show(&agent->metrics, &before, &agent->report);
    cr_node_report_dispose(&before);
    agent->has_report |= agent->has_known;
}

/* What needs a restart may need it for days. */
static bool is_pending(const struct cr_node_report *report)
{
    for (size_t i = 0; i < report->files_len; i++)
        if (report->files[i].loaded == CR_NODE_LOADED_SOON)
            return true;
    return report->act.phase == CR_NODE_ACT_WAITING;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When to look again if no change is notified. */
static int64_t pause_of(const struct cr_node_agent *agent)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    int64_t overdue_ms = cr_contact_wait_ms(&agent->contact, now_ms);
    int64_t pause_ms = agent->renew_ms > now_ms ? agent->renew_ms - now_ms : overdue_ms ? overdue_ms : UNDER_WAY_MS;
    pause_ms = least(pause_ms, LOOK_MS);
    if (is_pending(&agent->report) || !agent->has_report)
        pause_ms = least(pause_ms, PENDING_MS);
    if (cr_node_act_is_under_way(&agent->report.act) || cr_node_lease_is_claimed(agent->lease))
        pause_ms = least(pause_ms, UNDER_WAY_MS);
    return pause_ms;
}

static bool pass(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_node_agent *agent = arg;
    (void)key;
    (void)err;
    CR_CLEANUP(cr_node_survey) struct cr_node_survey survey = {0};
    cr_node_agent_learn(agent, kubelet_process(&agent->report));
    look(agent, &survey);
    take_report(agent, &survey);
    cr_node_agent_obey(agent, &survey);
    cr_node_agent_write(agent);
    result->requeue_after_ms = pause_of(agent);
    return true;
}

/* --- what leads to one --- */

static void on_files_changed(void *arg)
{
    struct cr_node_agent *agent = arg;
    cr_queue_add(agent->queue, KEY);
}

/* Loop thread. The echo of our own status is no news; an order is a new generation. */
static void on_report_changed(void *arg, const struct cr_change *change)
{
    struct cr_node_agent *agent = arg;
    int64_t generation = change->after ? cr_obj_generation(change->after->json) : 0;
    if (atomic_exchange(&agent->seen_generation, generation) != generation)
        cr_queue_add(agent->queue, KEY);
}

static void add_informer(struct cr_node_agent *agent)
{
    cr_autofree char *selector = cr_asprintf("metadata.name=%s", agent->options.node);
    const struct cr_informer_options options = {
        .watch = {.resource = &cr_res_node_reports, .field_selector = selector},
        .on_change = on_report_changed,
        .arg = agent,
        .patience_ms = PATIENCE_MS,
    };
    agent->informer = cr_informer_new(agent->options.client, agent->options.loop, &options);
    cr_manager_add_informer(agent->options.manager, agent->informer);
}

/* --- from start to end --- */

static bool start(struct cr_node_agent *agent, struct cr_error *err)
{
    const struct cr_node_agent_options *options = &agent->options;
    if (!cr_node_instance_lock_take(cr_or_empty(options->layout.root), options->layout.proc, &agent->instance_lock,
                                    err))
        return false;
    agent->catalogue = cr_catalogue_builtin(err);
    if (!agent->catalogue)
        return false;
    cr_node_agent_metrics_init(&agent->metrics, options->metrics);
    agent->client = cr_client_new_dedicated(options->client, REQUEST_MS);
    agent->lease = cr_node_lease_new(agent->client, options->node, NULL);
    agent->queue = cr_manager_queue(options->manager);
    add_informer(agent);
    agent->watcher = cr_file_watcher_start(on_files_changed, agent, err);
    if (!agent->watcher)
        return false;
    cr_manager_set_reconciler(options->manager, pass, agent);
    cr_queue_add(agent->queue, KEY);
    return true;
}

struct cr_node_agent *cr_node_agent_new(const struct cr_node_agent_options *options, struct cr_error *err)
{
    struct cr_node_agent *agent = cr_new(struct cr_node_agent);
    agent->options = *options;
    agent->instance_lock = (struct cr_node_instance_lock){.root_only = -1, .shared = -1};
    if (start(agent, err))
        return agent;
    cr_node_agent_free(agent);
    return NULL;
}

void cr_node_agent_free(struct cr_node_agent *agent)
{
    if (!agent)
        return;
    cr_file_watcher_free(agent->watcher);
    cr_node_lease_free(agent->lease);
    cr_client_free(agent->client);
    cr_catalogue_free(agent->catalogue);
    cr_node_report_dispose(&agent->known);
    cr_node_report_dispose(&agent->report);
    cr_node_shown_dispose(&agent->shown);
    free(agent->node_uid);
    free(agent->kubelet_version);
    free(agent->asked_for);
    free(agent->written);
    cr_node_instance_lock_dispose(&agent->instance_lock);
    free(agent);
}
