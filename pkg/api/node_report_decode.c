/* A node's report from JSON, lenient: it may have been written by another version or by a person's hand. What is broken
 * reads as absent, and the troubles report a broken row: code that needs all rows must not take what is left for all.
 */
#include "api/node_report.h"

#include <stdlib.h>

#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

static const char broken_row[] = "report: it has a row that cannot be read";

static int64_t duration_or_0(const struct cr_json *object, const char *key)
{
    int64_t ms = 0;
    const char *text = cr_json_string(cr_json_get(object, key));
    return text && cr_duration_parse(text, &ms, NULL) ? ms : 0;
}

static bool flag(const struct cr_json *object, const char *key)
{
    return cr_json_bool(cr_json_get(object, key), false);
}

/* False: one of them is no digest, and then there are none. */
static bool read_digests(const struct cr_json *array, struct cr_strvec *out)
{
    for (const struct cr_json *c = cr_json_is_array(array) ? cr_json_first(array) : NULL; c; c = cr_json_next(c)) {
        const char *text = cr_json_string(c);
        if (!text || !cr_status_is_digest(text) || out->len == CR_NODE_REPORT_PRINTS_MAX) {
            cr_strvec_dispose(out);
            return false;
        }
        cr_strvec_add(out, text);
    }
    return true;
}

/* --- parts --- */

static void decode_component(const struct cr_json *json, struct cr_node_report *out)
{
    const char *name = cr_json_string(cr_json_get(json, "name"));
    if (!name || !*name || out->components_len == CR_NODE_REPORT_COMPONENTS_MAX) {
        cr_strvec_add_unique(&out->troubles, broken_row);
        return;
    }
    struct cr_node_component *component = &out->components[out->components_len++];
    *component = (struct cr_node_component){
        .name = cr_strdup(name),
        .version = cr_status_text_or_null(json, "version"),
        .pod = cr_status_text_or_null(json, "pod"),
        .running = flag(json, "running"),
        .started_ms = cr_status_time_or_0(json, "started"),
        .process = cr_status_text_or_null(json, "process"),
        .restart = cr_status_text_or_null(json, "restart"),
        .restart_refused = cr_status_text_or_null(json, "restartRefused"),
        .health_message = cr_status_text_or_null(json, "healthMessage"),
        .health_ms = cr_status_time_or_0(json, "healthTime"),
    };
    cr_node_health_parse(cr_json_string(cr_json_get(json, "health")), &component->health);
}

/* What the process has; it stands there only where it differs from what the file has. */
static void decode_has(const struct cr_json *json, struct cr_node_file *file)
{
    file->has_known = flag(json, "hasKnown");
    const struct cr_json *has = cr_json_get(json, "has");
    if (!cr_json_is_array(has) && file->loaded == CR_NODE_LOADED_YES)
        cr_strvec_copy(&file->has, &file->prints);
    else if (!read_digests(has, &file->has))
        file->has_known = false;
}

static void decode_material(const struct cr_json *json, struct cr_node_file *file)
{
    cr_node_file_kind_parse(cr_json_string(cr_json_get(json, "kind")), &file->kind);
    cr_node_loaded_parse(cr_json_string(cr_json_get(json, "loaded")), &file->loaded);
    cr_node_evidence_parse(cr_json_string(cr_json_get(json, "evidence")), &file->evidence);
    if (!read_digests(cr_json_get(json, "fingerprints"), &file->prints)) {
        file->kind = CR_NODE_FILE_UNREAD;
        file->loaded = CR_NODE_LOADED_UNKNOWN;
    }
    file->more = flag(json, "more");
    (void)!read_digests(cr_json_get(json, "issuers"), &file->issuers);
    decode_has(json, file);
}

static void decode_file(const struct cr_json *json, struct cr_node_report *out)
{
    enum cr_role role;
    const char *component = cr_json_string(cr_json_get(json, "component"));
    const char *parameter = cr_json_string(cr_json_get(json, "parameter"));
    if (!component || !*component || !parameter || !*parameter || out->files_len == CR_NODE_REPORT_FILES_MAX ||
        !cr_role_parse(cr_json_string(cr_json_get(json, "role")), &role)) {
        cr_strvec_add_unique(&out->troubles, broken_row);
        return;
    }
    struct cr_node_file *file = &out->files[out->files_len++];
    *file = (struct cr_node_file){
        .component = cr_strdup(component),
        .parameter = cr_strdup(parameter),
        .via = cr_status_text_or_null(json, "via"),
        .role = role,
        .place = cr_status_text_or_null(json, "place"),
        .path = cr_status_text_or_null(json, "path"),
        .alone = flag(json, "alone"),
        .own = flag(json, "own"),
        .signs_and_trusts = flag(json, "signsAndTrusts"),
        .max_delay_ms = duration_or_0(json, "maxDelay"),
        .problem = cr_status_text_or_null(json, "problem"),
        .kept = flag(json, "kept"),
        .not_after_ms = cr_status_time_or_0(json, "notAfter"),
        .changed_ms = cr_status_time_or_0(json, "changed"),
        .due_ms = cr_status_time_or_0(json, "due"),
        .why = cr_status_text_or_null(json, "why"),
    };
    cr_method_parse(cr_json_string(cr_json_get(json, "method")), &file->method);
    decode_material(json, file);
}

static void decode_ca(const struct cr_json *json, struct cr_node_report *out)
{
    struct cr_node_ca ca = {0};
    if (out->cas_len == CR_NODE_REPORT_CAS_MAX || !cr_status_read_digest(json, "fingerprint", ca.fingerprint) ||
        !*ca.fingerprint)
        return;
    ca.subject = cr_status_text_or_null(json, "subject");
    ca.not_after_ms = cr_status_time_or_0(json, "notAfter");
    out->cas[out->cas_len++] = ca;
}

static void decode_token(const struct cr_json *json, struct cr_node_report *out)
{
    const char *key = cr_json_string(cr_json_get(json, "key"));
    int64_t tokens = cr_json_int(cr_json_get(json, "tokens"), -1);
    if (out->tokens_len == CR_NODE_REPORT_TOKENS_MAX || tokens < 0 || (key && !cr_status_is_digest(key))) {
        out->tokens_known = false; /* else tokens of a key that is in use could be taken for gone */
        return;
    }
    out->tokens[out->tokens_len++] = (struct cr_node_token_count){.key = cr_strdup_or_null(key), .tokens = tokens};
}

static void decode_act(const struct cr_json *json, struct cr_node_act *out)
{
    cr_node_act_phase_parse(cr_json_string(cr_json_get(json, "phase")), &out->phase);
    out->token = cr_status_text_or_null(json, "token");
    out->component = cr_status_text_or_null(json, "component");
    out->message = cr_status_text_or_null(json, "message");
    out->started_ms = cr_status_time_or_0(json, "started");
    out->finished_ms = cr_status_time_or_0(json, "finished");
    out->process = cr_status_text_or_null(json, "process");
    if (!out->token || !out->component)
        out->phase = CR_NODE_ACT_NONE;
}

static void decode_trouble(const struct cr_json *json, struct cr_node_report *out)
{
    const char *text = cr_json_string(json);
    cr_strvec_add_unique(&out->troubles, text ? text : broken_row);
}

static void decode_each(const struct cr_json *array, struct cr_node_report *out,
                        void (*decode)(const struct cr_json *, struct cr_node_report *))
{
    if (!cr_json_is_array(array))
        return;
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        decode(c, out);
}

static void decode_status(const struct cr_json *status, struct cr_node_report *out)
{
    const struct cr_json *tokens = cr_json_get(status, "tokens");
    out->seen_ms = cr_status_time_or_0(status, "seen");
    out->agent = cr_status_text_or_null(status, "agent");
    decode_each(cr_json_get(status, "troubles"), out, decode_trouble);
    out->components = cr_calloc(CR_NODE_REPORT_COMPONENTS_MAX, sizeof *out->components);
    decode_each(cr_json_get(status, "components"), out, decode_component);
    out->files = cr_calloc(CR_NODE_REPORT_FILES_MAX, sizeof *out->files);
    decode_each(cr_json_get(status, "files"), out, decode_file);
    out->cas = cr_calloc(CR_NODE_REPORT_CAS_MAX, sizeof *out->cas);
    decode_each(cr_json_get(status, "cas"), out, decode_ca);
    out->tokens_known = flag(tokens, "known");
    out->tokens = cr_calloc(CR_NODE_REPORT_TOKENS_MAX, sizeof *out->tokens);
    decode_each(cr_json_get(tokens, "keys"), out, decode_token);
    decode_act(cr_json_get(status, "restart"), &out->act);
}

/* Half an order is none. */
static void decode_order(const struct cr_json *json, struct cr_node_order *out)
{
    const char *token = cr_json_string(cr_json_get(json, "token"));
    const char *component = cr_json_string(cr_json_get(json, "component"));
    if (!token || !*token || !component || !*component)
        return;
    *out = (struct cr_node_order){.token = cr_strdup(token), .component = cr_strdup(component)};
}

bool cr_node_report_decode(const struct cr_json *object, struct cr_node_report *out, struct cr_error *err)
{
    const struct cr_json *metadata = cr_json_get(object, "metadata");
    const char *name = cr_json_string(cr_json_get(metadata, "name"));
    *out = (struct cr_node_report){0};
    if (!cr_streq(cr_json_string(cr_json_get(object, "kind")), CR_NODE_REPORT_KIND) || !name || !*name)
        return cr_error_set(err, CR_ERR_INVALID, "this is no " CR_NODE_REPORT_KIND " with a name");
    out->node = cr_strdup(name);
    out->uid = cr_status_text_or_null(metadata, "uid");
    out->resource_version = cr_status_text_or_null(metadata, "resourceVersion");
    out->generation = cr_json_int(cr_json_get(metadata, "generation"), 0);
    decode_order(cr_json_at(object, "spec", "restart"), &out->order);
    decode_status(cr_json_get(object, "status"), out);
    return true;
}
