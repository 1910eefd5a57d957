/* What has become of a restart. */
#include "controlplane/agent/node_restart.h"

#include "base/alloc.h"
#include "base/strings.h"

static bool is_another(const struct cr_node_program *program, const struct cr_node_act *act)
{
    return program && program->running && program->identity && !cr_streq(program->identity, act->process);
}

/* --- what is missing --- */

/* Only files that were there when the process began are held against it. */
static bool is_held_against(const struct cr_node_program *program, const struct cr_node_file *row)
{
    if (!cr_streq(row->component, program->component) || row->loaded == CR_NODE_LOADED_YES)
        return false;
    if (row->evidence == CR_NODE_EVIDENCE_VERIFIED)
        return row->changed_ms <= program->started_ms || row->loaded == CR_NODE_LOADED_UNKNOWN;
    return row->loaded == CR_NODE_LOADED_NO && row->changed_ms < program->started_ms;
}

/* Owned; NULL: nothing. */
static char *lack(const struct cr_node_program *program, const struct cr_node_proof *proof,
                  const struct cr_node_file *rows, size_t len)
{
    if (!proof)
        return cr_strdup("nobody has asked it yet whether it is well");
    if (proof->health != CR_NODE_HEALTH_SERVING)
        return cr_strdup(proof->message[0] ? proof->message : "it is not well");
    for (size_t i = 0; i < len; i++)
        if (is_held_against(program, &rows[i]))
            return cr_asprintf("%s: %s", rows[i].parameter, cr_or_empty(rows[i].why));
    return NULL;
}

static char *lack_of_process(const struct cr_node_program *program)
{
    if (!program)
        return cr_strdup("there is no such component on the node any more");
    return cr_strdup(program->running ? "the process of before still runs" : "it does not run");
}

/* --- what it means --- */

static void end(struct cr_node_act *act, enum cr_node_act_phase phase, int64_t now_ms)
{
    act->phase = phase;
    act->finished_ms = now_ms;
}

static bool is_over(struct cr_node_act *act, int64_t deadline_ms, int64_t now_ms)
{
    if (now_ms < act->started_ms)
        act->started_ms = now_ms;
    return now_ms - act->started_ms >= deadline_ms;
}

void cr_node_restart_follow(const struct cr_node_program *program, const struct cr_node_proof *proof,
                            const struct cr_node_file *rows, size_t rows_len, int64_t deadline_ms, int64_t now_ms,
                            struct cr_node_act *act)
{
    if (act->phase != CR_NODE_ACT_RESTARTING && act->phase != CR_NODE_ACT_PROVING)
        return;
    bool another = is_another(program, act);
    cr_autofree char *missing = another ? lack(program, proof, rows, rows_len) : lack_of_process(program);
    if (another)
        act->phase = CR_NODE_ACT_PROVING;
    if (!missing)
        end(act, CR_NODE_ACT_DONE, now_ms);
    else if (is_over(act, deadline_ms, now_ms))
        end(act, CR_NODE_ACT_FAILED, now_ms);
    cr_strset(&act->message, missing);
}
