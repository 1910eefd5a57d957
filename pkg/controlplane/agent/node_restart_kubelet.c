/* The kubelet is restarted by a command of the agent's configuration. */
#include "controlplane/agent/node_restart_internal.h"

#include <limits.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "sys/process.h"

enum { OUTPUT_MAX = 1024 * 1024 /* which is not kept */ };

static bool judge(const char *command, const struct cr_process_end *end, struct cr_error *err)
{
    if (end->status == 0)
        return true;
    const char *colon = end->last_words[0] ? ": " : "";
    if (end->signal)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s was ended by signal %d%s%s", command, end->signal, colon,
                            end->last_words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s ended with status %d%s%s", command, end->status, colon,
                        end->last_words);
}

static bool run(const struct cr_node_allowed *allowed, struct cr_error *err)
{
    static const struct cr_strvec as_it_is = {0};
    const struct cr_strvec *argv = allowed->kubelet_command;
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    CR_CLEANUP(cr_buf) struct cr_buf output = CR_BUF_INIT(0);
    struct cr_process_end end = {0};
    cr_autofree char *path = cr_process_find(argv->items[0], err);
    if (!path)
        return false;
    cr_process_environment(&as_it_is, &environment);
    int64_t timeout_ms = allowed->command_timeout_ms;
    const struct cr_process process = {.path = path,
                                       .argv = argv,
                                       .environment = &environment,
                                       .timeout_ms = timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX,
                                       .max_output = OUTPUT_MAX,
                                       .cancel_fd = -1};
    if (!cr_process_run(&process, &output, &end, err))
        return cr_error_wrap(err, "%s", argv->items[0]);
    return judge(argv->items[0], &end, err);
}

/* Another process than the one that was to go is its successor: it is not restarted twice for one token. */
bool cr_node_restart_kubelet(const struct cr_node_program *program, const struct cr_node_act *act,
                             const struct cr_node_allowed *allowed, struct cr_error *err)
{
    const char *now = program->running ? program->identity : NULL;
    if (now && !cr_streq(now, act->process))
        return true;
    return run(allowed, err) || cr_error_wrap(err, "the kubelet's restart");
}
