/* Status of a trust domain from JSON, lenient: it may have been written by another version or by a person's hand. What
 * is broken reads as absent. */
#include "api/domain_status.h"

#include <string.h>

#include "api/domain.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

static int64_t span_or_0(const struct cr_json *object, const char *key)
{
    int64_t ms = 0;
    const char *text = cr_json_string(cr_json_get(object, key));
    return text && cr_duration_parse(text, &ms, NULL) ? ms : 0;
}

/* One that cannot be named is none; what is under way then begins again, with what is published as it is. */
static void decode_rotation(const struct cr_json *json, struct cr_domain_status *out)
{
    if (!cr_status_read_id(json, out->rotation, sizeof out->rotation))
        return;
    out->what = cr_status_text_or_null(json, "what");
    out->rotation_since_ms = cr_status_time_or_0(json, "since");
    out->trusting_ms = span_or_0(json, "trusting");
    out->switching_ms = span_or_0(json, "switching");
    out->restarted = cr_json_bool(cr_json_get(json, "restarted"), false);
}

static void decode_needed(const struct cr_json *json, struct cr_domain_ca_status *ca)
{
    const char *leaf = cr_json_string(cr_json_get(json, "leaf"));
    int64_t leaves = cr_json_int(cr_json_get(json, "leaves"), 0);
    for (int at = CR_LEAF_PUBLISHED; at < CR_LEAVES_AT && leaves > 0; at++) {
        if (!cr_streq(cr_domain_leaf_at_name((enum cr_domain_leaf_at)at), leaf))
            continue;
        ca->needed_by = cr_status_text_or_null(json, "object");
        ca->needed_at = (enum cr_domain_leaf_at)at;
        ca->needed_by_leaves = (size_t)leaves;
    }
}

static void decode_ca(const struct cr_json *json, struct cr_domain_status *status)
{
    struct cr_domain_ca_status ca = {0};
    if (status->cas_len == CR_DOMAIN_CAS_MAX || !cr_status_read_digest(json, "fingerprint", ca.fingerprint) ||
        !*ca.fingerprint || !cr_ca_part_parse(cr_json_string(cr_json_get(json, "part")), &ca.part))
        return;
    ca.subject = cr_status_text_or_null(json, "subject");
    ca.not_after_ms = cr_status_time_or_0(json, "notAfter");
    decode_needed(cr_json_get(json, "neededBy"), &ca);
    status->cas[status->cas_len++] = ca;
}

static void digest_or_empty(const struct cr_json *json, const char *key, char out[CR_SHA256_HEX])
{
    if (!cr_status_read_digest(json, key, out))
        *out = '\0';
}

static void decode_overwritten(const struct cr_json *json, struct cr_domain_object_status *out)
{
    int64_t times = cr_json_int(cr_json_get(json, "times"), 0);
    if (times < 1 || times > CR_OVERWRITTEN_MAX)
        return;
    out->overwritten = (int)times;
    out->overwritten_ms = cr_status_time_or_0(json, "last");
    out->overwritten_by = cr_status_text_or_null(json, "by");
}

static void decode_object(const struct cr_json *json, struct cr_domain_status *status)
{
    const char *kind = cr_json_string(cr_json_get(json, "kind"));
    const char *ns = cr_json_string(cr_json_get(json, "namespace"));
    const char *name = cr_json_string(cr_json_get(json, "name"));
    if (!kind || !*kind || !name || !*name || status->objects_len == CR_DOMAIN_OBJECTS_MAX ||
        cr_domain_status_object(status, kind, ns, name))
        return;
    struct cr_domain_object_status *out = cr_domain_status_object_add(status, kind, ns, name);
    const struct cr_json *problem = cr_json_get(json, "problem");
    out->written_version = cr_status_text_or_null(json, "writtenVersion");
    out->written_ms = cr_status_time_or_0(json, "written");
    decode_overwritten(cr_json_get(json, "overwritten"), out);
    digest_or_empty(json, "leaf", out->leaf);
    digest_or_empty(json, "trust", out->trust);
    out->trust_evidence = cr_arrival_parse(cr_json_string(cr_json_get(json, "trustEvidence")));
    out->leaf_evidence = cr_arrival_parse(cr_json_string(cr_json_get(json, "leafEvidence")));
    out->leaf_not_after_ms = cr_status_time_or_0(json, "leafNotAfter");
    out->waits_for = cr_status_text_or_null(json, "waitsFor");
    if (cr_trust_reason_parse(cr_json_string(cr_json_get(problem, "reason")), &out->problem))
        out->problem_message = cr_status_text_or_null(problem, "message");
}

static void decode_rejected(const struct cr_json *json, struct cr_domain_status *status)
{
    struct cr_domain_rejected rejected = {0};
    const char *leaf = cr_json_string(cr_json_get(json, "leaf"));
    if (!leaf || !*leaf || status->rejected_len == CR_DOMAIN_LEAVES_MAX ||
        !cr_status_read_digest(json, "fingerprint", rejected.fingerprint) || !*rejected.fingerprint)
        return;
    rejected.leaf = cr_strdup(leaf);
    status->rejected = cr_reallocarray(status->rejected, status->rejected_len + 1, sizeof *status->rejected);
    status->rejected[status->rejected_len++] = rejected;
}

static void decode_distrusted(const struct cr_json *json, struct cr_domain_status *status)
{
    struct cr_domain_distrusted ca = {.since_ms = cr_status_time_or_0(json, "since"),
                                      .stray_ms = cr_status_time_or_0(json, "stray"),
                                      .gone_ms = cr_status_time_or_0(json, "gone")};
    if (status->distrusted_len == CR_DOMAIN_DISTRUST_MAX || !ca.since_ms ||
        !cr_status_read_digest(json, "fingerprint", ca.fingerprint) || !*ca.fingerprint)
        return;
    ca.subject = cr_status_text_or_null(json, "subject");
    status->distrusted[status->distrusted_len++] = ca;
}

static void decode_forecast(const struct cr_json *json, struct cr_domain_forecast *out)
{
    out->workloads = (int)cr_json_int(cr_json_get(json, "workloads"), 0);
    out->restarts = (int)cr_json_int(cr_json_get(json, "restarts"), 0);
    out->expected_ms = span_or_0(json, "expected");
    out->at_most_ms = span_or_0(json, "atMost");
}

static void decode_record(const struct cr_json *json, struct cr_domain_status *status)
{
    struct cr_domain_rotation record = {0};
    if (status->history_len == CR_HISTORY_MAX || !cr_status_read_id(json, record.id, sizeof record.id))
        return;
    record.what = cr_status_text_or_null(json, "what");
    record.started_ms = cr_status_time_or_0(json, "started");
    record.finished_ms = cr_status_time_or_0(json, "finished");
    record.trusting_ms = span_or_0(json, "trusting");
    record.switching_ms = span_or_0(json, "switching");
    record.retiring_ms = span_or_0(json, "retiring");
    record.restarted = cr_json_bool(cr_json_get(json, "restarted"), false);
    record.outcome = cr_status_text_or_null(json, "outcome");
    status->history[status->history_len++] = record;
}

static void decode_each(const struct cr_json *array, struct cr_domain_status *status,
                        void (*decode)(const struct cr_json *, struct cr_domain_status *))
{
    if (!cr_json_is_array(array))
        return;
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        decode(c, status);
}

void cr_domain_status_decode(const struct cr_json *status, struct cr_domain_status *out)
{
    *out = (struct cr_domain_status){0};
    out->observed_generation = cr_json_int(cr_json_get(status, "observedGeneration"), 0);
    cr_stage_parse(cr_json_string(cr_json_get(status, "stage")), &out->stage);
    if (out->stage == CR_STAGE_HELD)
        cr_stage_parse(cr_json_string(cr_json_get(status, "heldStage")), &out->held_stage);
    out->stage_since_ms = cr_status_time_or_0(status, "stageSince");
    decode_rotation(cr_json_get(status, "rotation"), out);
    out->last_handled_token = cr_status_text_or_null(status, "lastHandledToken");
    decode_each(cr_json_get(status, "cas"), out, decode_ca);
    decode_each(cr_json_get(status, "objects"), out, decode_object);
    decode_each(cr_json_get(status, "rejected"), out, decode_rejected);
    decode_each(cr_json_get(status, "distrusted"), out, decode_distrusted);
    decode_forecast(cr_json_get(status, "forecast"), &out->forecast);
    cr_conditions_decode(cr_json_get(status, "conditions"), out->conditions, cr_domain_condition_types,
                         CR_DOMAIN_CONDITIONS);
    decode_each(cr_json_get(status, "history"), out, decode_record);
}
