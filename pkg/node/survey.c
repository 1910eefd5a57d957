#include "node/survey.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { ASK_MS = 2000 };

void cr_node_survey_dispose(struct cr_node_survey *survey)
{
    if (!survey)
        return;
    cr_node_look_dispose(&survey->look);
    free(survey->proofs);
    cr_node_report_dispose(&survey->report);
    *survey = (struct cr_node_survey){0};
}

static void ask_all(struct cr_node_survey *survey)
{
    const struct cr_node_look *look = &survey->look;
    survey->proofs = cr_calloc(look->programs_len ? look->programs_len : 1, sizeof *survey->proofs);
    for (size_t i = 0; i < look->programs_len; i++)
        cr_node_prove(look, &look->programs[i], ASK_MS, &survey->proofs[i]);
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
    report->tokens_known = cr_node_tokens_count(&options->layout, folder, &report->tokens, &report->tokens_len, &err);
}

void cr_node_survey(const struct cr_node_survey_options *options, const struct cr_node_report *before, int64_t now_ms,
                    struct cr_node_survey *out)
{
    *out = (struct cr_node_survey){0};
    cr_node_look(&options->layout, options->catalogue, now_ms, &out->look);
    ask_all(out);
    cr_node_report_make(&out->look, out->proofs, &options->allowed, before, now_ms, &out->report);
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
