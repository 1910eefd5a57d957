/* The agent carries out an order, step by step as controlplane/agent/order.h says. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "controlplane/agent/agent_internal.h"
#include "controlplane/agent/order.h"

enum {
    STEPS_MAX = 8, /* of one pass: it always comes to an end by itself, this is for a bug */
    TRY_AGAIN_MS = 5000,
};

/* --- what is seen --- */

static const struct cr_node_program *program_of(const struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    const char *component = agent->report.act.component;
    return component ? cr_node_survey_program(survey, component) : NULL;
}

static const char *refusal_of(const struct cr_node_agent *agent)
{
    const struct cr_node_act *act = &agent->report.act;
    const struct cr_node_component *component =
        act->component ? cr_node_report_component(&agent->report, act->component) : NULL;
    if (!component)
        return "there is no such component on this node";
    return component->restart ? NULL : component->restart_refused ? component->restart_refused : "it may not be";
}

static struct cr_node_order_view view_of(const struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    const struct cr_node_act *act = &agent->report.act;
    const struct cr_node_program *program = program_of(agent, survey);
    const char *token = program ? cr_node_survey_token(survey, program) : NULL;
    return (struct cr_node_order_view){
        .recorded = agent->has_known && cr_node_act_equal(&agent->known.act, act),
        .ours = cr_node_lease_is_held(agent->lease),
        .claimed = cr_node_lease_is_claimed(agent->lease),
        .begun = agent->begun || (act->token && cr_streq(token, act->token)),
        .other_process = program && program->running && !cr_streq(program->identity, act->process),
        .refusal = refusal_of(agent),
    };
}

/* --- how it ends --- */

static void log_phase(const struct cr_node_act *act)
{
    bool bad = act->phase == CR_NODE_ACT_FAILED || act->phase == CR_NODE_ACT_REFUSED;
    cr_log(bad ? CR_LOG_WARN : CR_LOG_INFO, "restart", {"component", act->component}, {"token", act->token},
           {"phase", cr_node_act_phase_name(act->phase)}, {"message", act->message});
}

/* An order may name anything; a series for each such name would stay for ever. */
static void count_end(struct cr_node_agent *agent)
{
    const struct cr_node_act *act = &agent->report.act;
    const char *component = cr_node_report_component(&agent->report, act->component) ? act->component : "unknown";
    cr_metric_remove(agent->metrics.under_way, CR_LABELS(act->component));
    cr_metric_add(agent->metrics.restarts, CR_LABELS(component, cr_node_act_phase_name(act->phase)), 1);
}

static void forget_tries(struct cr_node_agent *agent)
{
    agent->begun = false;
    agent->tried_ms = 0;
}

static void end_with(struct cr_node_agent *agent, enum cr_node_act_phase phase, const char *message)
{
    struct cr_node_act *act = &agent->report.act;
    act->phase = phase;
    act->finished_ms = cr_clock_wall_ms();
    cr_strset(&act->message, message);
    forget_tries(agent);
    log_phase(act);
    count_end(agent);
}

/* --- the steps; each says whether another may follow at once --- */

static void clear(struct cr_node_act *act)
{
    free(act->token);
    free(act->component);
    free(act->message);
    free(act->process);
    *act = (struct cr_node_act){0};
}

static bool accept(struct cr_node_agent *agent)
{
    struct cr_node_act *act = &agent->report.act;
    const struct cr_node_order *order = &agent->known.order;
    clear(act);
    *act = (struct cr_node_act){
        .token = cr_strdup(order->token), .component = cr_strdup(order->component), .phase = CR_NODE_ACT_WAITING};
    forget_tries(agent);
    log_phase(act);
    return true;
}

static bool acquire_lease(struct cr_node_agent *agent)
{
    struct cr_error err = {0};
    if (!cr_node_agent_may_ask(agent))
        return false;
    bool ours = cr_node_lease_acquire(agent->lease, &err);
    cr_node_agent_note_answer(agent, "turn", ours || err.kind == CR_ERR_CONFLICT, &err);
    if (!ours && agent->report.act.phase == CR_NODE_ACT_WAITING)
        cr_strset(&agent->report.act.message, err.text);
    return ours;
}

/* Against the order as it is at this moment: what the watch has may have been taken back. */
static bool record(struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    struct cr_node_act *act = &agent->report.act;
    const struct cr_node_program *program = program_of(agent, survey);
    if (!cr_node_agent_may_ask(agent) || !cr_node_agent_refresh(agent) ||
        !cr_streq(agent->known.order.token, act->token))
        return false;
    act->phase = CR_NODE_ACT_RESTARTING;
    act->started_ms = cr_clock_wall_ms();
    cr_strset(&act->message, NULL);
    cr_strset(&act->process, program ? program->identity : NULL);
    if (cr_node_agent_write_exactly(agent)) {
        log_phase(act);
        return true;
    }
    /* Whether it was written is not known when the answer was lost. */
    if (agent->has_known && cr_node_act_equal(&agent->known.act, act))
        return true;
    act->phase = CR_NODE_ACT_WAITING;
    act->started_ms = 0;
    cr_strset(&act->process, NULL);
    return false;
}

/* A command that fails is not run each second; a manifest that was just written is only to be looked at again. */
static void try_again_later(struct cr_node_agent *agent, const struct cr_error *err)
{
    agent->tried_ms = err->kind == CR_ERR_CONFLICT ? 0 : cr_clock_monotonic_ms();
    cr_strset(&agent->report.act.message, err->text);
}

/* Nobody renews the Lease while the kubelet's command runs, so it is written just before; cmd/node-agent/flags.c bounds
 * the command by what that gives. A manifest is put in place at once. */
static bool has_time_for(struct cr_node_agent *agent, const struct cr_node_program *program)
{
    struct cr_error err = {0};
    if (program->manifest)
        return true;
    if (!cr_node_agent_may_ask(agent))
        return false;
    bool ours = cr_node_lease_renew(agent->lease, &err);
    cr_node_agent_note_answer(agent, "turn", ours || err.kind == CR_ERR_CONFLICT, &err);
    return ours;
}

static bool begin(struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    struct cr_error err = {0};
    struct cr_node_act *act = &agent->report.act;
    const struct cr_node_program *program = program_of(agent, survey);
    if (!program) {
        end_with(agent, CR_NODE_ACT_REFUSED, "there is no such component on this node");
        return false;
    }
    if (agent->tried_ms && cr_clock_monotonic_ms() < agent->tried_ms + TRY_AGAIN_MS)
        return false;
    if (!has_time_for(agent, program))
        return false;
    if (cr_node_restart_begin(&agent->options.layout, &survey->look, program, act, &agent->options.allowed, &err)) {
        agent->begun = true;
        act->started_ms = cr_clock_wall_ms(); /* it may have waited long for this */
        return false;
    }
    if (err.kind == CR_ERR_FORBIDDEN)
        end_with(agent, CR_NODE_ACT_REFUSED, err.text);
    else if (err.kind == CR_ERR_NOT_FOUND || err.kind == CR_ERR_INVALID ||
             cr_clock_wall_ms() - act->started_ms >= agent->options.step_deadline_ms)
        end_with(agent, CR_NODE_ACT_FAILED, err.text);
    else
        try_again_later(agent, &err);
    return false;
}

static bool follow(struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    struct cr_node_act *act = &agent->report.act;
    const struct cr_node_program *program = program_of(agent, survey);
    enum cr_node_act_phase before = act->phase;
    cr_node_restart_follow(program, program ? cr_node_survey_proof(survey, act->component) : NULL, agent->report.files,
                           agent->report.files_len, agent->options.step_deadline_ms, cr_clock_wall_ms(), act);
    if (act->phase == before)
        return false;
    if (cr_node_act_is_under_way(act)) {
        log_phase(act);
        return false;
    }
    cr_autofree char *message = cr_strdup_or_null(act->message);
    end_with(agent, act->phase, message);
    return false;
}

static bool release_lease(struct cr_node_agent *agent)
{
    struct cr_error err = {0};
    if (!cr_node_agent_may_ask(agent))
        return false;
    bool gone = cr_node_lease_release(agent->lease, &err);
    cr_node_agent_note_answer(agent, "turn", gone, &err);
    return false;
}

static bool do_step(struct cr_node_agent *agent, const struct cr_node_survey *survey, enum cr_node_next next,
                    const char *refusal)
{
    switch (next) {
    case CR_NODE_NEXT_ACCEPT:
        return accept(agent);
    case CR_NODE_NEXT_REFUSE:
        end_with(agent, CR_NODE_ACT_REFUSED, refusal);
        return false;
    case CR_NODE_NEXT_FORGET:
        if (cr_node_act_is_under_way(&agent->report.act))
            cr_metric_remove(agent->metrics.under_way, CR_LABELS(agent->report.act.component));
        clear(&agent->report.act);
        forget_tries(agent);
        return true;
    case CR_NODE_NEXT_ACQUIRE:
        return acquire_lease(agent);
    case CR_NODE_NEXT_RECORD:
        return record(agent, survey);
    case CR_NODE_NEXT_BEGIN:
        return begin(agent, survey);
    case CR_NODE_NEXT_FOLLOW:
        return follow(agent, survey);
    case CR_NODE_NEXT_RELEASE:
        return release_lease(agent);
    case CR_NODE_NEXT_NOTHING:
        return false;
    }
    return false;
}

/* No other agent may begin a restart while one of ours is under way, also one that an agent before us has begun; when
 * the Lease cannot be had, the restart goes on all the same. */
static void renew_lease(struct cr_node_agent *agent)
{
    struct cr_error err = {0};
    if (!cr_node_act_is_under_way(&agent->report.act) || !cr_node_agent_may_ask(agent))
        return;
    bool ours = cr_node_lease_acquire(agent->lease, &err);
    cr_node_agent_note_answer(agent, "turn", ours || err.kind == CR_ERR_CONFLICT, &err);
}

void cr_node_agent_obey(struct cr_node_agent *agent, const struct cr_node_survey *survey)
{
    static const struct cr_node_order none = {0};
    if (!agent->has_report)
        return;
    renew_lease(agent);
    for (int i = 0; i < STEPS_MAX; i++) {
        const struct cr_node_order_view view = view_of(agent, survey);
        const struct cr_node_order *order = agent->has_known ? &agent->known.order : &none;
        enum cr_node_next next = cr_node_order_next(order, &agent->report.act, &view);
        if (!do_step(agent, survey, next, view.refusal))
            break;
        /* What was accepted is written before anything follows from it. */
        cr_node_agent_write(agent);
    }
    if (cr_node_act_is_under_way(&agent->report.act)) /* also what an agent before this one has begun */
        cr_metric_set(agent->metrics.under_way, CR_LABELS(agent->report.act.component), 1);
}
