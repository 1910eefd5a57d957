/* Status of a trust domain to JSON, bounded and the same bytes for the same status. Each member of the status and of
 * its rotation is always there, if only as null: a merge patch that leaves one out would leave the old value standing.
 */
#include "api/domain_status.h"

#include "api/domain.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

/* How long a stage took; nothing when it was none. */
static void set_span(struct cr_json *object, const char *key, int64_t ms)
{
    char text[CR_TIME_TEXT];
    if (ms <= 0)
        return;
    cr_duration_format(ms, text);
    cr_json_set_string(object, key, text);
}

static void set_nulls(struct cr_json *object, const char *const *keys)
{
    for (; *keys; keys++)
        cr_json_set(object, *keys, cr_json_new_null());
}

static void encode_rotation(const struct cr_domain_status *status, struct cr_json *out)
{
    static const char *const members[] = {"id", "what", "since", "trusting", "switching", "restarted", NULL};
    if (!*status->rotation) {
        cr_json_set(out, "rotation", cr_json_new_null());
        return;
    }
    struct cr_json *object = cr_json_object_in(out, "rotation");
    set_nulls(object, members);
    cr_json_set_string(object, "id", status->rotation);
    cr_status_set_text(object, "what", status->what, CR_STATUS_WORD_MAX);
    cr_status_set_time_micro(object, "since", status->rotation_since_ms);
    set_span(object, "trusting", status->trusting_ms);
    set_span(object, "switching", status->switching_ms);
    cr_json_set_bool(object, "restarted", status->restarted);
}

static void encode_needed(const struct cr_domain_ca_status *ca, struct cr_json *out)
{
    if (!ca->needed_by)
        return;
    struct cr_json *needed = cr_json_object_in(out, "neededBy");
    cr_status_set_text(needed, "object", ca->needed_by, CR_STATUS_SENTENCE_MAX);
    cr_json_set_string(needed, "leaf", cr_domain_leaf_at_name(ca->needed_at));
    cr_json_set_int(needed, "leaves", (int64_t)ca->needed_by_leaves);
}

static struct cr_json *encode_cas(const struct cr_domain_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->cas_len; i++) {
        const struct cr_domain_ca_status *ca = &status->cas[i];
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_json_set_string(object, "fingerprint", ca->fingerprint);
        cr_status_set_text(object, "subject", ca->subject, CR_STATUS_WORD_MAX);
        cr_json_set_string(object, "part", cr_ca_part_name(ca->part));
        cr_status_set_time(object, "notAfter", ca->not_after_ms);
        encode_needed(ca, object);
    }
    return array;
}

static void encode_overwritten(struct cr_json *out, const struct cr_domain_object_status *object)
{
    if (!object->overwritten)
        return;
    struct cr_json *overwritten = cr_json_object_in(out, "overwritten");
    cr_json_set_int(overwritten, "times", object->overwritten);
    cr_status_set_time(overwritten, "last", object->overwritten_ms);
    cr_status_set_text(overwritten, "by", object->overwritten_by, CR_STATUS_WORD_MAX);
}

/* What it is, and what must be remembered of it. */
static struct cr_json *encode_brief(const struct cr_domain_object_status *object)
{
    struct cr_json *out = cr_json_new_object();
    cr_json_set_string(out, "kind", object->kind);
    cr_json_set_string(out, "namespace", object->ns);
    cr_json_set_string(out, "name", object->name);
    cr_status_set_text(out, "writtenVersion", object->written_version, CR_STATUS_WORD_MAX);
    cr_status_set_time_micro(out, "written", object->written_ms);
    encode_overwritten(out, object);
    cr_status_set_digest(out, "leaf", object->leaf);
    cr_status_set_digest(out, "trust", object->trust);
    cr_json_set_string(out, "trustEvidence", cr_arrival_name(object->trust_evidence));
    cr_json_set_string(out, "leafEvidence", cr_arrival_name(object->leaf_evidence));
    return out;
}

static struct cr_json *encode_object(const struct cr_domain_object_status *object)
{
    struct cr_json *out = encode_brief(object);
    cr_status_set_time(out, "leafNotAfter", object->leaf_not_after_ms);
    cr_status_set_text(out, "waitsFor", object->waits_for, CR_STATUS_SENTENCE_MAX);
    if (object->problem) {
        struct cr_json *problem = cr_json_object_in(out, "problem");
        cr_json_set_string(problem, "reason", cr_trust_reason_name(object->problem));
        cr_status_set_text(problem, "message", cr_or_empty(object->problem_message), CR_STATUS_SENTENCE_MAX);
    }
    return out;
}

/* A bundle that another program overwrites is put right each time: that alone keeps nobody from having it. */
static bool is_only_contested(const struct cr_domain_object_status *object)
{
    return object->problem == CR_TRUST_OTHER_WRITER && object->overwritten >= 2 && !*object->leaf;
}

/* It has what is published there, wherever it is read. */
static bool has_converged(const struct cr_domain_object_status *object)
{
    bool leaf = *object->leaf != '\0';
    bool trust = *object->trust != '\0';
    return (!object->problem || is_only_contested(object)) && (leaf || trust) && (!leaf || object->leaf_evidence) &&
           (!trust || object->trust_evidence);
}

/* What a person has to look at comes before what only needs time; what nothing is known of comes last. */
static int urgency(const struct cr_domain_object_status *object)
{
    if (object->problem)
        return 0;
    if (has_converged(object))
        return 2;
    return *object->leaf || *object->trust || object->waits_for ? 1 : 3;
}

/* All with everything when they fit, in their order; else the most urgent first, and of those beyond only what must be
 * remembered. */
static struct cr_json *encode_objects(const struct cr_domain_status *status)
{
    struct cr_json *array = cr_json_new_array();
    size_t listed = 0;
    bool bounded = status->objects_len > CR_DOMAIN_STATUS_OBJECTS_MAX;
    for (int pass = 0; pass < (bounded ? 4 : 1); pass++) {
        for (size_t i = 0; i < status->objects_len && listed < CR_DOMAIN_OBJECTS_MAX; i++) {
            const struct cr_domain_object_status *object = &status->objects[i];
            if (bounded && urgency(object) != pass)
                continue;
            cr_json_add(array, listed < CR_DOMAIN_STATUS_OBJECTS_MAX ? encode_object(object) : encode_brief(object));
            listed++;
        }
    }
    return array;
}

static void encode_converged(const struct cr_domain_status *status, struct cr_json *out)
{
    size_t converged = 0;
    for (size_t i = 0; i < status->objects_len; i++)
        converged += has_converged(&status->objects[i]);
    cr_autofree char *text = cr_asprintf("%zu/%zu", converged, status->objects_len);
    cr_json_set_string(out, "converged", text);
}

static void encode_problem(const struct cr_domain_status *status, struct cr_json *out)
{
    const char *problem = cr_conditions_problem(status->conditions, cr_domain_condition_types, CR_DOMAIN_CONDITIONS);
    if (problem)
        cr_json_set_string(out, "problem", problem);
}

static void encode_expires(const struct cr_domain_status *status, struct cr_json *out)
{
    int64_t first = 0;
    for (size_t i = 0; i < status->objects_len; i++) {
        int64_t end = status->objects[i].leaf_not_after_ms;
        first = end && (!first || end < first) ? end : first;
    }
    for (size_t i = 0; i < status->cas_len; i++) {
        int64_t end = status->cas[i].part == CR_CA_CURRENT ? status->cas[i].not_after_ms : 0;
        first = end && (!first || end < first) ? end : first;
    }
    cr_status_set_time(out, "expires", first);
}

static struct cr_json *encode_rejected(const struct cr_domain_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->rejected_len && i < CR_DOMAIN_LEAVES_MAX; i++) {
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_json_set_string(object, "leaf", status->rejected[i].leaf);
        cr_status_set_digest(object, "fingerprint", status->rejected[i].fingerprint);
    }
    return array;
}

static struct cr_json *encode_distrusted(const struct cr_domain_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->distrusted_len; i++) {
        const struct cr_domain_distrusted *ca = &status->distrusted[i];
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_json_set_string(object, "fingerprint", ca->fingerprint);
        cr_status_set_text(object, "subject", ca->subject, CR_STATUS_WORD_MAX);
        cr_status_set_time_micro(object, "since", ca->since_ms);
        cr_status_set_time_micro(object, "stray", ca->stray_ms);
        cr_status_set_time_micro(object, "gone", ca->gone_ms);
    }
    return array;
}

static void encode_forecast(const struct cr_domain_status *status, struct cr_json *out)
{
    static const char *const members[] = {"workloads", "restarts", "expected", "atMost", NULL};
    struct cr_json *object = cr_json_object_in(out, "forecast");
    set_nulls(object, members);
    cr_json_set_int(object, "workloads", status->forecast.workloads);
    cr_json_set_int(object, "restarts", status->forecast.restarts);
    set_span(object, "expected", status->forecast.expected_ms);
    set_span(object, "atMost", status->forecast.at_most_ms);
}

static struct cr_json *encode_history(const struct cr_domain_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->history_len; i++) {
        const struct cr_domain_rotation *record = &status->history[i];
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_json_set_string(object, "id", record->id);
        cr_status_set_text(object, "what", cr_or_empty(record->what), CR_STATUS_WORD_MAX);
        cr_status_set_time_micro(object, "started", record->started_ms);
        cr_status_set_time_micro(object, "finished", record->finished_ms);
        set_span(object, "trusting", record->trusting_ms);
        set_span(object, "switching", record->switching_ms);
        set_span(object, "retiring", record->retiring_ms);
        cr_json_set_bool(object, "restarted", record->restarted);
        cr_status_set_text(object, "outcome", cr_or_empty(record->outcome), CR_STATUS_WORD_MAX);
    }
    return array;
}

struct cr_json *cr_domain_status_encode(const struct cr_domain_status *status)
{
    static const char *const optional[] = {"heldStage", "stageSince", "lastHandledToken", "expires", "problem", NULL};
    struct cr_json *out = cr_json_new_object();
    set_nulls(out, optional);
    cr_json_set_int(out, "observedGeneration", status->observed_generation);
    cr_json_set_string(out, "stage", cr_stage_name(status->stage));
    if (status->stage == CR_STAGE_HELD)
        cr_json_set_string(out, "heldStage", cr_stage_name(status->held_stage));
    cr_status_set_time_micro(out, "stageSince", status->stage_since_ms);
    encode_rotation(status, out);
    cr_status_set_text(out, "lastHandledToken", status->last_handled_token, CR_STATUS_WORD_MAX);
    encode_converged(status, out);
    encode_expires(status, out);
    encode_problem(status, out);
    cr_json_set(out, "cas", encode_cas(status));
    cr_json_set(out, "objects", encode_objects(status));
    cr_json_set(out, "rejected", encode_rejected(status));
    cr_json_set(out, "distrusted", encode_distrusted(status));
    encode_forecast(status, out);
    cr_json_set(out, "conditions", cr_conditions_encode(status->conditions, CR_DOMAIN_CONDITIONS));
    cr_json_set(out, "history", encode_history(status));
    return out;
}
