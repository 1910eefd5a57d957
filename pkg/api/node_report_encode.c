/* Status of a node's report to JSON, bounded and the same bytes for the same report. Each member of the status and of
 * the objects in it is always there, if only as null: a merge patch that leaves one out would leave the old value
 * standing. */
#include "api/node_report.h"

#include "api/status_fields.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/text.h"

/* Together so that a report with as many rows as there may be, each with all of it, is below what etcd takes (1.5 MiB).
 */
enum { TEXT_MAX = 128, PATH_LONGEST = 512, SENTENCE_MAX = 512, PROBLEM_MAX = 256 };

static void set_nulls(struct cr_json *object, const char *const *keys)
{
    for (; *keys; keys++)
        cr_json_set(object, *keys, cr_json_new_null());
}

/* Most rows have none of them set: what is false is left out. */
static void set_flag(struct cr_json *object, const char *key, bool value)
{
    if (value)
        cr_json_set_bool(object, key, true);
}

static struct cr_json *encode_texts(const struct cr_strvec *texts, size_t most, size_t max)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < texts->len && i < most; i++) {
        cr_autofree char *clipped = cr_text_clip(texts->items[i], max);
        cr_json_add_string(array, clipped);
    }
    return array;
}

static void set_prints(struct cr_json *object, const char *key, const struct cr_strvec *prints)
{
    if (prints->len)
        cr_json_set(object, key, encode_texts(prints, CR_NODE_REPORT_PRINTS_MAX, CR_SHA256_HEX));
}

/* --- parts --- */

static struct cr_json *encode_component(const struct cr_node_component *component)
{
    struct cr_json *out = cr_json_new_object();
    cr_status_set_text(out, "name", component->name, TEXT_MAX);
    cr_status_set_text(out, "version", component->version, TEXT_MAX);
    cr_status_set_text(out, "pod", component->pod, TEXT_MAX);
    cr_json_set_bool(out, "running", component->running);
    cr_status_set_time_micro(out, "started", component->started_ms);
    cr_status_set_text(out, "process", component->process, TEXT_MAX);
    cr_status_set_text(out, "restart", component->restart, TEXT_MAX);
    cr_status_set_text(out, "restartRefused", component->restart_refused, SENTENCE_MAX);
    cr_json_set_string(out, "health", cr_node_health_name(component->health));
    cr_status_set_text(out, "healthMessage", component->health_message, SENTENCE_MAX);
    cr_status_set_time_micro(out, "healthTime", component->health_ms);
    return out;
}

static void encode_place(const struct cr_node_file *file, struct cr_json *out)
{
    cr_status_set_text(out, "place", file->place, TEXT_MAX);
    cr_status_set_text(out, "path", file->path, PATH_LONGEST);
    set_flag(out, "alone", file->alone);
    set_flag(out, "own", file->own);
    set_flag(out, "signsAndTrusts", file->signs_and_trusts);
    cr_json_set_string(out, "method", cr_method_name(file->method));
    if (file->max_delay_ms > 0) {
        char text[CR_TIME_TEXT];
        cr_duration_format(file->max_delay_ms, text);
        cr_json_set_string(out, "maxDelay", text);
    }
}

static void encode_material(const struct cr_node_file *file, struct cr_json *out)
{
    cr_json_set_string(out, "kind", cr_node_file_kind_name(file->kind));
    cr_status_set_text(out, "problem", file->problem, PROBLEM_MAX);
    set_flag(out, "kept", file->kept);
    set_prints(out, "fingerprints", &file->prints);
    set_flag(out, "more", file->more || file->prints.len > CR_NODE_REPORT_PRINTS_MAX);
    set_prints(out, "issuers", &file->issuers);
    cr_status_set_time(out, "notAfter", file->not_after_ms);
    cr_status_set_time_micro(out, "changed", file->changed_ms);
}

static void encode_loaded(const struct cr_node_file *file, struct cr_json *out)
{
    cr_json_set_string(out, "loaded", cr_node_loaded_name(file->loaded));
    set_flag(out, "hasKnown", file->has_known);
    if (file->loaded != CR_NODE_LOADED_YES || !cr_strvec_equal(&file->has, &file->prints))
        cr_json_set(out, "has", encode_texts(&file->has, CR_NODE_REPORT_PRINTS_MAX, CR_SHA256_HEX));
    cr_status_set_time_micro(out, "due", file->due_ms);
    cr_json_set_string(out, "evidence", cr_node_evidence_name(file->evidence));
    cr_status_set_text(out, "why", file->why, SENTENCE_MAX);
}

static struct cr_json *encode_file(const struct cr_node_file *file)
{
    struct cr_json *out = cr_json_new_object();
    cr_status_set_text(out, "component", file->component, TEXT_MAX);
    cr_status_set_text(out, "parameter", file->parameter, TEXT_MAX);
    cr_status_set_text(out, "via", file->via, TEXT_MAX);
    cr_json_set_string(out, "role", cr_role_name(file->role));
    encode_place(file, out);
    encode_material(file, out);
    encode_loaded(file, out);
    return out;
}

static struct cr_json *encode_ca(const struct cr_node_ca *ca)
{
    struct cr_json *out = cr_json_new_object();
    cr_json_set_string(out, "fingerprint", ca->fingerprint);
    cr_status_set_text(out, "subject", ca->subject, TEXT_MAX);
    cr_status_set_time(out, "notAfter", ca->not_after_ms);
    return out;
}

static void encode_tokens(const struct cr_node_report *report, struct cr_json *out)
{
    struct cr_json *tokens = cr_json_object_in(out, "tokens");
    bool known = report->tokens_known && report->tokens_len <= CR_NODE_REPORT_TOKENS_MAX;
    cr_json_set_bool(tokens, "known", known);
    struct cr_json *keys = cr_json_array_in(tokens, "keys");
    for (size_t i = 0; known && i < report->tokens_len; i++) {
        struct cr_json *key = cr_json_add(keys, cr_json_new_object());
        cr_json_set_string(key, "key", report->tokens[i].key);
        cr_json_set_int(key, "tokens", report->tokens[i].tokens);
    }
}

static void encode_act(const struct cr_node_act *act, struct cr_json *out)
{
    static const char *const members[] = {"token",   "component", "phase",   "message",
                                          "started", "finished",  "process", NULL};
    struct cr_json *object = cr_json_object_in(out, "restart");
    set_nulls(object, members);
    cr_json_set_string(object, "phase", cr_node_act_phase_name(act->phase));
    cr_status_set_text(object, "token", act->token, TEXT_MAX);
    cr_status_set_text(object, "component", act->component, TEXT_MAX);
    cr_status_set_text(object, "message", act->message, SENTENCE_MAX);
    cr_status_set_time_micro(object, "started", act->started_ms);
    cr_status_set_time_micro(object, "finished", act->finished_ms);
    cr_status_set_text(object, "process", act->process, TEXT_MAX);
}

/* --- for people only, read by no program --- */

static void encode_summary(const struct cr_node_report *report, struct cr_json *out)
{
    int64_t pending = 0;
    int64_t first = 0;
    for (size_t i = 0; i < report->files_len; i++) {
        const struct cr_node_file *file = &report->files[i];
        bool leaf = file->kind == CR_NODE_FILE_LEAF || file->kind == CR_NODE_FILE_SIGNER;
        pending += file->loaded == CR_NODE_LOADED_SOON || file->loaded == CR_NODE_LOADED_NO;
        if (leaf && file->not_after_ms && (!first || file->not_after_ms < first))
            first = file->not_after_ms;
    }
    cr_json_set_int(out, "pending", pending);
    cr_status_set_time(out, "expires", first);
}

/* A list that is not whole must not look so. */
static struct cr_json *encode_troubles(const struct cr_node_report *report)
{
    struct cr_json *array = encode_texts(&report->troubles, CR_NODE_REPORT_TROUBLES_MAX - 1, SENTENCE_MAX);
    if (report->files_len > CR_NODE_REPORT_FILES_MAX || report->components_len > CR_NODE_REPORT_COMPONENTS_MAX)
        cr_json_add_string(array, "report: the node has more files than a report can list");
    else if (report->troubles.len >= CR_NODE_REPORT_TROUBLES_MAX)
        cr_json_add_string(array, "report: there are more troubles than a report can list");
    return array;
}

struct cr_json *cr_node_report_encode_status(const struct cr_node_report *report)
{
    static const char *const optional[] = {"seen", "agent", "expires", NULL};
    struct cr_json *out = cr_json_new_object();
    set_nulls(out, optional);
    cr_status_set_time_micro(out, "seen", report->seen_ms);
    cr_status_set_text(out, "agent", report->agent, TEXT_MAX);
    encode_summary(report, out);
    encode_act(&report->act, out);
    struct cr_json *components = cr_json_array_in(out, "components");
    for (size_t i = 0; i < report->components_len && i < CR_NODE_REPORT_COMPONENTS_MAX; i++)
        cr_json_add(components, encode_component(&report->components[i]));
    struct cr_json *files = cr_json_array_in(out, "files");
    for (size_t i = 0; i < report->files_len && i < CR_NODE_REPORT_FILES_MAX; i++)
        cr_json_add(files, encode_file(&report->files[i]));
    struct cr_json *cas = cr_json_array_in(out, "cas");
    for (size_t i = 0; i < report->cas_len && i < CR_NODE_REPORT_CAS_MAX; i++)
        cr_json_add(cas, encode_ca(&report->cas[i]));
    encode_tokens(report, out);
    cr_json_set(out, "troubles", encode_troubles(report));
    return out;
}
