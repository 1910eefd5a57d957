#include "api/node_report.h"

#include <stdlib.h>

#include "api/names.h"
#include "base/strings.h"

/* --- words --- */

static const char *const kinds[] = {
    [CR_NODE_FILE_UNREAD] = "Unread", [CR_NODE_FILE_LEAF] = "Leaf", [CR_NODE_FILE_TRUST] = "Trust",
    [CR_NODE_FILE_SIGNER] = "Signer", [CR_NODE_FILE_KEYS] = "Keys",
};

static const char *const loadeds[] = {
    [CR_NODE_LOADED_UNKNOWN] = "Unknown",
    [CR_NODE_LOADED_YES] = "Loaded",
    [CR_NODE_LOADED_SOON] = "Soon",
    [CR_NODE_LOADED_NO] = "RestartNeeded",
};

static const char *const evidences[] = {
    [CR_NODE_EVIDENCE_NONE] = "None",
    [CR_NODE_EVIDENCE_INFERRED] = "Inferred",
    [CR_NODE_EVIDENCE_VERIFIED] = "Verified",
};

static const char *const phases[] = {
    [CR_NODE_ACT_NONE] = "None",       [CR_NODE_ACT_WAITING] = "Waiting", [CR_NODE_ACT_RESTARTING] = "Restarting",
    [CR_NODE_ACT_PROVING] = "Proving", [CR_NODE_ACT_DONE] = "Done",       [CR_NODE_ACT_FAILED] = "Failed",
    [CR_NODE_ACT_REFUSED] = "Refused",
};

static const char *const healths[] = {
    [CR_NODE_HEALTH_UNKNOWN] = "Unknown",
    [CR_NODE_HEALTH_SERVING] = "Serving",
    [CR_NODE_HEALTH_FAILING] = "Failing",
};

/* A pair of functions for an enumeration, so that each word is written once. */
#define DEFINE_WORDS(what, type, table)                                                                                \
    const char *cr_node_##what##_name(type value)                                                                      \
    {                                                                                                                  \
        return cr_word_of(table, cr_array_len(table), value);                                                          \
    }                                                                                                                  \
    bool cr_node_##what##_parse(const char *text, type *value)                                                         \
    {                                                                                                                  \
        unsigned found = 0;                                                                                            \
        if (!cr_word_find(table, cr_array_len(table), text, &found))                                                   \
            return false;                                                                                              \
        *value = (type)found;                                                                                          \
        return true;                                                                                                   \
    }

DEFINE_WORDS(file_kind, enum cr_node_file_kind, kinds)
DEFINE_WORDS(loaded, enum cr_node_loaded, loadeds)
DEFINE_WORDS(evidence, enum cr_node_evidence, evidences)
DEFINE_WORDS(act_phase, enum cr_node_act_phase, phases)
DEFINE_WORDS(health, enum cr_node_health, healths)

/* --- owned parts --- */

static void dispose_component(struct cr_node_component *component)
{
    free(component->name);
    free(component->version);
    free(component->pod);
    free(component->restart);
    free(component->restart_refused);
    free(component->health_message);
    free(component->process);
}

static void dispose_file(struct cr_node_file *file)
{
    free(file->component);
    free(file->parameter);
    free(file->via);
    free(file->place);
    free(file->path);
    free(file->problem);
    cr_strvec_dispose(&file->prints);
    cr_strvec_dispose(&file->issuers);
    cr_strvec_dispose(&file->has);
    free(file->why);
}

static void dispose_status(struct cr_node_report *report)
{
    free(report->agent);
    for (size_t i = 0; i < report->components_len; i++)
        dispose_component(&report->components[i]);
    free(report->components);
    for (size_t i = 0; i < report->files_len; i++)
        dispose_file(&report->files[i]);
    free(report->files);
    for (size_t i = 0; i < report->cas_len; i++)
        free(report->cas[i].subject);
    free(report->cas);
    for (size_t i = 0; i < report->tokens_len; i++)
        free(report->tokens[i].key);
    free(report->tokens);
    free(report->act.token);
    free(report->act.component);
    free(report->act.message);
    free(report->act.process);
    cr_strvec_dispose(&report->troubles);
}

void cr_node_report_dispose(struct cr_node_report *report)
{
    if (!report)
        return;
    free(report->node);
    free(report->uid);
    free(report->resource_version);
    free(report->order.token);
    free(report->order.component);
    dispose_status(report);
    *report = (struct cr_node_report){0};
}

/* Every other reported component is a static pod's. A report without any component may be of any node. */
static bool has_kubelet_alone(const struct cr_node_report *report)
{
    for (size_t i = 0; i < report->components_len; i++)
        if (!cr_streq(report->components[i].name, "kubelet"))
            return false;
    return report->components_len > 0;
}

static bool is_quiet(const struct cr_node_report *report)
{
    enum cr_node_act_phase phase = report->act.phase;
    bool is_awaited = phase == CR_NODE_ACT_WAITING || phase == CR_NODE_ACT_RESTARTING || phase == CR_NODE_ACT_PROVING;
    return !is_awaited && has_kubelet_alone(report);
}

int64_t cr_node_report_renew_ms(const struct cr_node_report *report)
{
    return is_quiet(report) ? CR_NODE_QUIET_RENEW_MS : CR_NODE_RENEW_MS;
}

int64_t cr_node_report_stale_ms(const struct cr_node_report *report)
{
    return is_quiet(report) ? CR_NODE_QUIET_STALE_MS : CR_NODE_STALE_MS;
}

const struct cr_node_component *cr_node_report_component(const struct cr_node_report *report, const char *name)
{
    for (size_t i = 0; i < report->components_len; i++)
        if (cr_streq(report->components[i].name, name))
            return &report->components[i];
    return NULL;
}
