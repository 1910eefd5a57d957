/* Status from JSON, lenient: it may have been written by another version or by a person's hand. What is broken reads as
 * absent. For remembered material that is all or nothing: one CA lost in reading would look like a change. */
#include "api/status.h"

#include <string.h>

#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/leaf_names.h"

static bool read_changes(const struct cr_json *object, unsigned *changes)
{
    const struct cr_json *array = cr_json_get(object, "changes");
    if (!cr_json_is_array(array))
        return false;
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c)) {
        enum cr_change_bit bit;
        if (!cr_change_parse(cr_json_string(c), &bit))
            return false;
        *changes |= (unsigned)bit;
    }
    return true;
}

/* Short words that only help to name what is seen: broken, they are not known. */
static void read_hex(const struct cr_json *object, const char *key, char *out, size_t size)
{
    const char *text = cr_or_empty(cr_json_string(cr_json_get(object, key)));
    size_t len = strlen(text);
    if (len < size && strspn(text, "0123456789abcdef") == len)
        memcpy(out, text, len + 1);
}

static bool decode_ca(const struct cr_json *json, struct cr_ca *ca)
{
    read_hex(json, "subject", ca->subject, CR_SUBJECT_REMEMBERED + 1);
    return cr_json_is_object(json) && cr_status_read_digest(json, "fingerprint", ca->fingerprint) && *ca->fingerprint &&
           cr_status_read_digest(json, "identity", ca->identity) &&
           cr_status_read_time(json, "notAfter", &ca->not_after_ms);
}

static bool decode_trust(const struct cr_json *json, struct cr_material *out)
{
    const struct cr_json *array = cr_json_get(json, "trust");
    if (!array || cr_json_is_null(array))
        return true;
    if (!cr_json_is_array(array))
        return false;
    out->trust = cr_calloc(cr_json_len(array) + 1, sizeof *out->trust);
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        if (!decode_ca(c, &out->trust[out->trust_len++]))
            return false;
    return true;
}

/* In place of the list. */
static bool decode_trust_summary(const struct cr_json *json, struct cr_material *out)
{
    struct cr_trust_summary *summary = &out->trust_summary;
    const struct cr_json *object = cr_json_get(json, "trustSummary");
    if (!object || cr_json_is_null(object))
        return true;
    int64_t count = cr_json_int(cr_json_get(object, "count"), 0);
    if (out->trust_len || count < 1 || !cr_status_read_digest(object, "digest", summary->digest) || !*summary->digest ||
        !cr_status_read_time(object, "notAfter", &summary->not_after_ms))
        return false;
    summary->count = (size_t)count;
    return true;
}

static bool decode_opaque(const struct cr_json *json, struct cr_material *out)
{
    const struct cr_json *value = cr_json_get(json, "opaque");
    if (!value || cr_json_is_null(value))
        return true;
    const char *text = cr_json_string(value);
    if (!text || !cr_opaque_is_valid(text))
        return false;
    memcpy(out->opaque, text, strlen(text) + 1);
    return true;
}

/* Only a help to determine which entry changed: if it is broken, that is not known. */
static void decode_opaque_keys(const struct cr_json *json, struct cr_strvec *keys)
{
    const struct cr_json *array = cr_json_get(json, "opaqueKeys");
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c)) {
        const char *text = cr_json_string(c);
        if (!text || !*text || keys->len == CR_OPAQUE_KEYS_MAX) {
            cr_strvec_dispose(keys);
            return;
        }
        cr_strvec_add(keys, text);
    }
}

static bool decode_anchors(const struct cr_json *json, struct cr_strvec *anchors)
{
    const struct cr_json *array = cr_json_get(json, "anchors");
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c)) {
        const char *text = cr_json_string(c);
        if (!text || !cr_status_is_digest(text))
            return false;
        cr_strvec_add(anchors, text);
    }
    return true;
}

static bool decode_key_type(const struct cr_json *json, struct cr_material *out)
{
    const char *text = cr_json_string(cr_json_get(json, "keyType"));
    if (text && strlen(text) >= sizeof out->key_type)
        return false;
    if (text)
        memcpy(out->key_type, text, strlen(text) + 1);
    return true;
}

static void decode_names(const struct cr_json *json, struct cr_strvec *out)
{
    const struct cr_json *array = cr_json_get(json, "names");
    for (const struct cr_json *c = cr_json_first(array); c && out->len < CR_LEAF_NAMES_MAX; c = cr_json_next(c))
        if (cr_json_string(c))
            cr_strvec_add(out, cr_json_string(c));
}

/* out is empty when it fails. */
static bool decode_material(const struct cr_json *json, struct cr_material *out)
{
    bool ok = cr_json_is_object(json) && cr_status_read_digest(json, "leaf", out->leaf) &&
              cr_status_read_digest(json, "chain", out->chain) && cr_status_read_digest(json, "key", out->key) &&
              decode_key_type(json, out) && cr_status_read_digest(json, "issuer", out->issuer) &&
              decode_anchors(json, &out->anchors) && cr_status_read_time(json, "notAfter", &out->not_after_ms) &&
              decode_trust(json, out) && decode_trust_summary(json, out) && decode_opaque(json, out);
    decode_opaque_keys(json, &out->opaque_keys);
    decode_names(json, &out->names);
    read_hex(json, "serial", out->serial, sizeof out->serial);
    out->has_leaf = *out->leaf != '\0';
    if (!ok) {
        cr_material_dispose(out);
        *out = (struct cr_material){0};
    }
    return ok;
}

static void decode_old_leaves(const struct cr_json *json, struct cr_strvec *out)
{
    const struct cr_json *array = cr_json_get(json, "oldLeaves");
    for (const struct cr_json *c = cr_json_first(array); c && out->len < CR_OLD_LEAVES_MAX; c = cr_json_next(c))
        if (cr_status_is_digest(cr_or_empty(cr_json_string(c))))
            cr_strvec_add_unique(out, cr_json_string(c));
}

/* A pending change that cannot be read is forgotten; it is seen again by comparing with what is settled. */
static void decode_pending(const struct cr_json *json, struct cr_pending_change *out)
{
    if (!cr_json_is_object(json) || !cr_status_read_id(json, out->id, sizeof out->id) ||
        !cr_status_read_time(json, "since", &out->since_ms) || out->since_ms == 0 ||
        !read_changes(json, &out->changes) || !decode_material(cr_json_get(json, "target"), &out->target)) {
        *out = (struct cr_pending_change){0};
        return;
    }
    out->set = true;
    out->first_ms = cr_status_time_or_0(json, "first");
    if (!out->first_ms || out->first_ms > out->since_ms)
        out->first_ms = out->since_ms;
    out->superseded_ms = cr_status_time_or_0(json, "superseded");
    if (out->superseded_ms > out->since_ms)
        out->superseded_ms = out->since_ms;
    out->was_immutable = cr_json_bool(cr_json_get(json, "wasImmutable"), false);
    decode_old_leaves(json, &out->old_leaves);
    decode_opaque_keys(json, &out->opaque_keys);
}

static void decode_settled_by(const struct cr_json *json, struct cr_secret_status *out)
{
    cr_settled_by_parse(cr_or_empty(cr_json_string(cr_json_get(json, "trustBy"))), &out->trust_by);
    cr_settled_by_parse(cr_or_empty(cr_json_string(cr_json_get(json, "leafBy"))), &out->leaf_by);
    out->settled_ms = cr_status_time_or_0(json, "settledAt");
    out->changed_ms = cr_status_time_or_0(json, "changedAt");
}

static void decode_secret(const struct cr_json *json, struct cr_policy_status *status)
{
    const char *name = cr_json_string(cr_json_get(json, "name"));
    if (!name || !*name || cr_status_secret(status, name))
        return;
    struct cr_secret_status *out = cr_status_secret_add(status, name);
    const struct cr_json *problem = cr_json_get(json, "problem");
    out->selected = cr_json_bool(cr_json_get(json, "selected"), false);
    out->observed_resource_version = cr_status_text_or_null(json, "observedResourceVersion");
    out->immutable = cr_json_bool(cr_json_get(json, "immutable"), false);
    out->has_settled = decode_material(cr_json_get(json, "settled"), &out->settled);
    if (out->has_settled)
        decode_settled_by(json, out);
    /* Without what was settled nothing says what the change was from: first sight. */
    if (out->has_settled)
        decode_pending(cr_json_get(json, "pending"), &out->pending);
    cr_unknown_readers_parse(cr_or_empty(cr_json_string(cr_json_get(json, "unknownReaders"))), &out->unknown_readers);
    out->problem_reason = cr_status_text_or_null(problem, "reason");
    if (!out->problem_reason)
        return;
    out->problem_message = cr_status_text_or_null(problem, "message");
    out->problem_not_after_ms = cr_status_time_or_0(problem, "notAfter");
}

static int count_at(const struct cr_json *pods, const char *key)
{
    int64_t n = cr_json_int(cr_json_get(pods, key), 0);
    return n >= 0 && n <= 1000000 ? (int)n : 0;
}

static void decode_pods(const struct cr_json *json, struct cr_pod_counts *out)
{
    out->total = count_at(json, "total");
    out->verified = count_at(json, "verified");
    out->inferred = count_at(json, "inferred");
    out->stale = count_at(json, "stale");
    out->unknown = count_at(json, "unknown");
}

/* "id/2". Any other form: no rotation asked for the restart, so it counts by itself. */
static void decode_step(const char *text, struct cr_restart_step *out)
{
    size_t len = strcspn(text, "/");
    if (!len || len >= sizeof out->rotation || strspn(text, "0123456789abcdef") != len || strlen(text) != len + 2)
        return;
    int restarts = text[len + 1] - '0';
    if (restarts < 1 || restarts > CR_RESTARTS_OF_ROTATION_MAX)
        return;
    memcpy(out->rotation, text, len);
    out->restarts = restarts;
}

static void decode_restarts(const struct cr_json *json, struct cr_restart_times *out)
{
    const struct cr_json *step = cr_json_first(cr_json_get(json, "restartSteps"));
    for (const struct cr_json *c = cr_json_first(cr_json_get(json, "restarts")); c && out->len < CR_RESTART_TIMES_MAX;
         c = cr_json_next(c)) {
        const char *text = cr_json_string(c);
        if (text && cr_time_parse(text, &out->at_ms[out->len], NULL))
            decode_step(cr_or_empty(cr_json_string(step)), &out->steps[out->len++]);
        step = step ? cr_json_next(step) : NULL;
    }
}

static void decode_verification(const struct cr_json *json, struct cr_verification *out)
{
    read_hex(json, "of", out->of, sizeof out->of);
    if (!*out->of)
        return;
    out->since_ms = cr_status_time_or_0(json, "since");
    out->until_ms = cr_status_time_or_0(json, "until");
    out->at_ms = cr_status_time_or_0(json, "at");
    if (!out->at_ms)
        out->at_ms = out->until_ms;
}

/* Those of another version are passed over. */
static void decode_warnings(const struct cr_json *json, unsigned *out)
{
    const struct cr_json *array = cr_json_get(json, "warnings");
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c)) {
        enum cr_warning_bit bit;
        if (cr_warning_parse(cr_json_string(c), &bit))
            *out |= (unsigned)bit;
    }
}

static void decode_consumer(const struct cr_json *json, struct cr_policy_status *status)
{
    const char *name = cr_json_string(cr_json_get(json, "name"));
    if (!name || !*name || cr_status_consumer(status, name))
        return;
    struct cr_consumer_status *out = cr_status_consumer_add(status, name);
    const struct cr_json *target = cr_json_get(json, "targetRef");
    out->kind = cr_status_text_or_null(target, "kind");
    out->target = cr_status_text_or_null(target, "name");
    out->found = cr_json_bool(cr_json_get(json, "discovered"), false);
    out->component = cr_status_text_or_null(json, "component");
    cr_decision_parse(cr_json_string(cr_json_get(json, "decision")), &out->decision);
    out->reason = cr_status_text_or_null(json, "reason");
    cr_consumer_state_parse(cr_json_string(cr_json_get(json, "state")), &out->state);
    decode_pods(cr_json_get(json, "pods"), &out->pods);
    cr_hold_parse(cr_json_string(cr_json_get(json, "blockedReason")), &out->gate.hold);
    out->gate.text = cr_status_text_or_null(json, "blockedBy");
    out->last_restart_ms = cr_status_time_or_0(json, "lastRestart");
    out->since_ms = cr_status_time_or_0(json, "since");
    out->restarted_for = cr_status_text_or_null(json, "restartedFor");
    out->restarted_generation = cr_json_int(cr_json_get(json, "restartedGeneration"), 0);
    out->evicted_until_ms = cr_status_time_or_0(json, "evictedUntil");
    out->evicting = cr_status_text_or_null(json, "evicting");
    decode_restarts(json, &out->restarts);
    decode_warnings(json, &out->warnings);
    decode_verification(cr_json_get(json, "verification"), &out->verification);
    const struct cr_json *examples = cr_json_get(json, "examples");
    for (const struct cr_json *c = cr_json_first(examples); c && out->examples.len < CR_EXAMPLES_MAX;
         c = cr_json_next(c))
        if (cr_json_string(c))
            cr_strvec_add(&out->examples, cr_json_string(c));
}

static void decode_record(const struct cr_json *json, struct cr_policy_status *status)
{
    if (status->history_len == CR_HISTORY_MAX)
        return;
    struct cr_rotation_record *out = &status->history[status->history_len];
    const char *secret = cr_json_string(cr_json_get(json, "secret"));
    if (!secret || !cr_status_read_id(json, out->id, sizeof out->id) || !read_changes(json, &out->changes)) {
        *out = (struct cr_rotation_record){0};
        return;
    }
    out->secret = cr_strdup(secret);
    out->started_ms = cr_status_time_or_0(json, "started");
    out->finished_ms = cr_status_time_or_0(json, "finished");
    out->outcome = cr_status_text_or_null(json, "outcome");
    status->history_len++;
}

static void decode_each(const struct cr_json *array, struct cr_policy_status *status,
                        void (*decode)(const struct cr_json *, struct cr_policy_status *))
{
    if (!cr_json_is_array(array))
        return;
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        decode(c, status);
}

void cr_policy_status_decode(const struct cr_json *status, struct cr_policy_status *out)
{
    *out = (struct cr_policy_status){0};
    out->observed_generation = cr_json_int(cr_json_get(status, "observedGeneration"), 0);
    cr_stage_parse(cr_json_string(cr_json_get(status, "stage")), &out->stage);
    decode_each(cr_json_get(status, "secrets"), out, decode_secret);
    decode_each(cr_json_get(status, "consumers"), out, decode_consumer);
    cr_conditions_decode(cr_json_get(status, "conditions"), out->conditions, cr_condition_types, CR_CONDITIONS);
    decode_each(cr_json_get(status, "history"), out, decode_record);
}
