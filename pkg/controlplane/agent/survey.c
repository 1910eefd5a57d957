#include "controlplane/agent/survey.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum {
    ASK_MS = 2000,
    SHOWN_MS = 5 * 60 * 1000,
};

void cr_node_survey_dispose(struct cr_node_survey *survey)
{
    if (!survey)
        return;
    cr_node_look_dispose(&survey->look);
    free(survey->proofs);
    cr_node_report_dispose(&survey->report);
    *survey = (struct cr_node_survey){0};
}

/* --- who is asked for what --- */

void cr_node_shown_dispose(struct cr_node_shown *shown)
{
    free(shown->state);
    *shown = (struct cr_node_shown){0};
}

static bool logs_handshakes(const struct cr_node_program *program)
{
    return cr_streq(program->component, "etcd");
}

/* What would have to be another for it to show something else. Owned. */
static char *state_of(const struct cr_node_look *look, const struct cr_node_program *program)
{
    struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text, "%s %s", cr_or_empty(program->manifest), cr_or_empty(program->identity));
    for (size_t i = 0; i < look->parameters.len; i++) {
        const struct cr_node_content *content = &look->contents[i];
        if (cr_streq(look->parameters.items[i].component, program->component))
            cr_buf_printf(&text, "\n%s %d %" PRIu64 " %" PRIu64 " %" PRId64,
                          cr_or_empty(look->parameters.items[i].host), content->exists, content->device, content->inode,
                          content->ctime_ms);
    }
    return cr_buf_steal(&text);
}

static void ask_sparingly(const struct cr_node_look *look, const struct cr_node_program *program,
                          struct cr_node_shown *shown, struct cr_node_proof *proof)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    char *state = state_of(look, program);
    bool fresh = cr_streq(shown->state, state) && now_ms < shown->asked_ms + SHOWN_MS;
    if (fresh && cr_node_prove_pages(look, program, &shown->proof, ASK_MS, proof)) {
        free(state);
        return;
    }
    cr_node_prove(look, program, ASK_MS, proof);
    free(shown->state);
    *shown = (struct cr_node_shown){.state = state, .asked_ms = now_ms, .proof = *proof};
}

static void ask_all(const struct cr_node_survey_options *options, struct cr_node_survey *survey)
{
    const struct cr_node_look *look = &survey->look;
    survey->proofs = cr_calloc(look->programs_len ? look->programs_len : 1, sizeof *survey->proofs);
    for (size_t i = 0; i < look->programs_len; i++)
        if (options->shown && logs_handshakes(&look->programs[i]))
            ask_sparingly(look, &look->programs[i], options->shown, &survey->proofs[i]);
        else
            cr_node_prove(look, &look->programs[i], ASK_MS, &survey->proofs[i]);
}

/* What is not well, or not taken up yet, may show something else the next time. */
static void forget_what_may_change(const struct cr_node_report *report, struct cr_node_shown *shown)
{
    bool may_change = false;
    for (size_t i = 0; i < report->components_len; i++)
        may_change |=
            cr_streq(report->components[i].name, "etcd") && report->components[i].health != CR_NODE_HEALTH_SERVING;
    for (size_t i = 0; i < report->files_len; i++)
        may_change |= cr_streq(report->files[i].component, "etcd") && report->files[i].loaded == CR_NODE_LOADED_SOON;
    if (may_change)
        cr_node_shown_dispose(shown);
}

static void count_tokens(const struct cr_node_survey_options *options, const struct cr_node_look *look,
                         struct cr_node_report *report)
{
    struct cr_error err = {0};
    const char *folder = look->has_kubelet ? look->kubelet.root : CR_NODE_KUBELET_FOLDER;
    for (size_t i = 0; i < report->tokens_len; i++)
        free(report->tokens[i].key);
    free(cr_steal(&report->tokens));
    report->tokens_len = 0;
    report->tokens_known = options->count_tokens &&
                           cr_node_tokens_count(&options->layout, folder, &report->tokens, &report->tokens_len, &err);
}

void cr_node_survey(const struct cr_node_survey_options *options, const struct cr_node_report *before, int64_t now_ms,
                    struct cr_node_survey *out)
{
    *out = (struct cr_node_survey){0};
    cr_node_look(&options->layout, options->catalogue, now_ms, &out->look);
    ask_all(options, out);
    cr_node_report_make(&out->look, out->proofs, &options->allowed, before, now_ms, &out->report);
    if (options->shown)
        forget_what_may_change(&out->report, options->shown);
    count_tokens(options, &out->look, &out->report);
    cr_strset(&out->report.agent, options->agent);
}

static size_t index_of(const struct cr_node_survey *survey, const char *component)
{
    size_t i = 0;
    while (i < survey->look.programs_len && !cr_streq(survey->look.programs[i].component, component))
        i++;
    return i;
}

const struct cr_node_program *cr_node_survey_program(const struct cr_node_survey *survey, const char *component)
{
    size_t i = index_of(survey, component);
    return i < survey->look.programs_len ? &survey->look.programs[i] : NULL;
}

const struct cr_node_proof *cr_node_survey_proof(const struct cr_node_survey *survey, const char *component)
{
    size_t i = index_of(survey, component);
    return i < survey->look.programs_len ? &survey->proofs[i] : NULL;
}

const char *cr_node_survey_token(const struct cr_node_survey *survey, const struct cr_node_program *program)
{
    const struct cr_node_look *look = &survey->look;
    for (size_t i = 0; program->manifest && i < look->pods_len; i++)
        if (cr_streq(look->manifests[i], program->manifest))
            return cr_static_pod_annotation(look->pods[i], CR_NODE_RESTART_ANNOTATION);
    return NULL;
}
