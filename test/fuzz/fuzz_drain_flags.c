/* Whatever stands in somebody's hook: serve refuses it with a reason or takes it; shutdown takes it, with times that
 * can hold, and says what it did not take. One argument a line. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "drain/flags.h"

enum { ARGS_MAX = 64 };

static void check_times(const struct cr_drain_flags *flags)
{
    const struct cr_drain_rules *rules = &flags->rules;
    require(rules->timeout_ms > 0 && rules->interval_ms > 0 && flags->attempt_ms > 0);
    require(rules->delay_ms >= 0 && rules->min_duration_ms >= 0);
    require(rules->delay_ms + rules->min_duration_ms < rules->timeout_ms);
    require(flags->grace_ms < 0 || rules->timeout_ms < flags->grace_ms);
    require(flags->strategy);
}

static void read_as(const char *command, char *const *args, int argc)
{
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    struct cr_error err = {0};
    cr_autofree char *word = cr_strdup(command);
    char *argv[ARGS_MAX + 3] = {word, word};
    memcpy(argv + 2, args, (size_t)argc * sizeof *args);
    bool ok = cr_drain_flags_parse(argc + 2, argv, &flags, &err);
    require(ok || (err.kind == CR_ERR_INVALID && err.text[0]));
    require(ok || strcmp(command, "shutdown") != 0);
    if (ok && !flags.help && !flags.version && flags.command != CR_DRAIN_COMMAND_INSTALL)
        check_times(&flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    char *args[ARGS_MAX];
    int argc = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line && argc < ARGS_MAX;
         line = strtok_r(NULL, "\n", &rest))
        args[argc++] = line;
    read_as("shutdown", args, argc);
    read_as("serve", args, argc);
    read_as("envoy", args, argc);
    read_as("install", args, argc);
    return 0;
}
