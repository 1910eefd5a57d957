/* A command line over the strategies for tests: single attempts, in the order given, each as one JSON line on stdout.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "drain/flags.h"

static bool attempt(const struct cr_drain_flags *flags, const char *operation, struct cr_drain_count *count,
                    struct cr_error *err)
{
    const struct cr_drain_attempt bounds = {.deadline_ms = cr_clock_monotonic_ms() + flags->attempt_ms,
                                            .cancel_fd = -1};
    if (cr_streq(operation, "begin"))
        return flags->strategy->begin(&flags->target, &bounds, err);
    return flags->strategy->count(&flags->target, &bounds, count, err);
}

static void try_once(const struct cr_drain_flags *flags, const char *operation)
{
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    struct cr_drain_count count = {0};
    struct cr_error err = {0};
    int64_t began_ms = cr_clock_monotonic_ms();
    cr_json_set_bool(line, "ok", attempt(flags, operation, &count, &err));
    cr_json_set_int(line, "open", (int64_t)count.open);
    cr_json_set_bool(line, "ended", count.ended);
    cr_json_set_int(line, "ms", cr_clock_monotonic_ms() - began_ms);
    cr_json_set_string(line, "kind", cr_error_kind_name(err.kind));
    cr_json_set_string(line, "words", err.text);
    cr_autofree char *text = cr_json_print(line);
    puts(text);
}

/* drain_driver begin,count,count --proxy envoy --admin-address 127.0.0.1:9901: flags as of `serve`. */
int main(int argc, char **argv)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec memory = {0};
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags = {0};
    struct cr_error err = {0};
    char *save = NULL;
    if (argc < 2) {
        fputs("usage: drain_driver OPERATION,… FLAGS\n", stderr);
        return 2;
    }
    char *operations = argv[1];
    argv[1] = (char[]){"serve"};
    if (!cr_drain_flags_parse(argc, argv, &flags, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    flags.target.memory = &memory;
    for (char *each = strtok_r(operations, ",", &save); each; each = strtok_r(NULL, ",", &save))
        try_once(&flags, each);
    return 0;
}
