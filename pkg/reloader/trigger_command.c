#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "reloader/trigger_internal.h"
#include "sys/process.h"

enum { OUTPUT_MAX = 1024 * 1024 /* which is not kept */ };

static bool expand(const struct cr_trigger_job *job, struct cr_strvec *argv, struct cr_error *err)
{
    const struct cr_strvec *words = &job->spec->command.argv;
    for (size_t i = 0; i < words->len; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
        if (!cr_trigger_text(job, words->items[i], CR_TRIGGER_SEEN, &text, err))
            return false;
        cr_strvec_add(argv, cr_buf_text(&text));
    }
    return true;
}

static bool judge(const struct cr_trigger_job *job, const struct cr_process_end *end, struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    char how[48];
    if (end->status == 0)
        return true;
    cr_trigger_words(job, end->last_words, strlen(end->last_words), words);
    snprintf(how, sizeof how, end->signal ? "was ended by signal %d" : "ended with status %d",
             end->signal ? end->signal : end->status);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s %s%s%s", job->spec->command.argv.items[0], how, words[0] ? ": " : "",
                        words);
}

bool cr_trigger_command(const struct cr_trigger_job *job, struct cr_error *err)
{
    static const struct cr_strvec as_it_is = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec argv = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    CR_CLEANUP(cr_buf) struct cr_buf output = {.secret = true};
    struct cr_process_end end;
    if (!expand(job, &argv, err))
        return false;
    const char *program = argv.len ? argv.items[0] : "";
    cr_autofree char *path = cr_process_find(program, err);
    if (!path)
        return false;
    cr_process_environment(&as_it_is, &environment);
    const struct cr_process process = {.path = path,
                                       .argv = &argv,
                                       .environment = &environment,
                                       .timeout_ms = cr_trigger_left_ms(job),
                                       .max_output = OUTPUT_MAX,
                                       .cancel_fd = job->cancel_fd};
    if (!cr_process_run(&process, &output, &end, err))
        return cr_error_wrap(err, "%s", program);
    return judge(job, &end, err);
}
