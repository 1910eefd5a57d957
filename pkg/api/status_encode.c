/* Status to JSON, bounded and the same bytes for the same status. Each member of the status itself is always there, if
 * only as null: a merge patch that leaves one out would leave the old value standing. */
#include "api/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "base/text.h"

/* As in the schema (maxItems, maxLength). */
enum {
    CONSUMERS_WHOLE = 100, /* beyond it, only what must be remembered */
    STEPS_BRIEF = 2,       /* and of so many restarts which rotation asked for them */
    PROBLEM_MAX = 864,     /* shorter than the schema's: of 64 Secrets it counts */
    WORD_MAX = CR_STATUS_WORD_MAX,
    SENTENCE_MAX = CR_STATUS_SENTENCE_MAX,
    OPAQUE_KEY_MAX = 272, /* a key's name, at most 253 bytes, and its digest */
};

/* Bytes for the lists of all Secrets: what etcd's 1.5 MiB leave beside the spec, 100 consumers and the managed fields.
 */
enum { LISTS_MAX = 256 * 1024 };

/* The same for the names of all leaves. One name fits always. */
enum { NAMES_MAX = 32 * 1024 };

static void set_changes(struct cr_json *object, unsigned changes)
{
    struct cr_json *array = cr_json_array_in(object, "changes");
    for (unsigned i = 0; i < CR_CHANGE_BITS; i++)
        if (changes & 1u << i)
            cr_json_add_string(array, cr_change_name((enum cr_change_bit)(1u << i)));
}

static void add_strings(struct cr_json *object, const char *key, const struct cr_strvec *strings, size_t most,
                        size_t max)
{
    if (strings->len == 0)
        return;
    struct cr_json *array = cr_json_array_in(object, key);
    for (size_t i = 0; i < strings->len && i < most; i++) {
        cr_autofree char *clipped = cr_text_clip(strings->items[i], max);
        cr_json_add_string(array, clipped);
    }
}

/* Its first digits will do. */
static void set_subject(struct cr_json *object, const struct cr_ca *ca)
{
    char subject[CR_SUBJECT_REMEMBERED + 1];
    snprintf(subject, sizeof subject, "%.*s", CR_SUBJECT_REMEMBERED, ca->subject);
    cr_status_set_digest(object, "subject", subject);
}

static struct cr_json *encode_ca(const struct cr_ca *ca)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "fingerprint", ca->fingerprint);
    cr_status_set_digest(object, "identity", ca->identity);
    set_subject(object, ca);
    cr_status_set_time(object, "notAfter", ca->not_after_ms);
    return object;
}

/* A list that would take more than its share is summarised; what an element takes is known closely enough. */
enum { CA_BYTES = 230, ANCHOR_BYTES = 67, STRING_BYTES = 3 };

static bool trust_fits(const struct cr_material *m, size_t room)
{
    return m->trust_len * CA_BYTES + m->anchors.len * ANCHOR_BYTES <= room / 4 * 3;
}

static bool opaque_keys_fit(const struct cr_material *m, size_t room)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->opaque_keys.len; i++)
        bytes += strlen(m->opaque_keys.items[i]) + STRING_BYTES;
    return bytes <= room / 4;
}

static void encode_trust(struct cr_json *object, const struct cr_material *m, bool whole)
{
    if (!cr_material_has_trust(m))
        return;
    if (whole && m->trust_len) {
        struct cr_json *trust = cr_json_array_in(object, "trust");
        for (size_t i = 0; i < m->trust_len; i++)
            cr_json_add(trust, encode_ca(&m->trust[i]));
        return;
    }
    struct cr_trust_summary summary = cr_material_summarize_trust(m);
    struct cr_json *out = cr_json_object_in(object, "trustSummary");
    cr_json_set_int(out, "count", (int64_t)summary.count);
    cr_json_set_string(out, "digest", summary.digest);
    cr_status_set_time(out, "notAfter", summary.not_after_ms);
}

/* As many of the first as there is room for. */
static void encode_names(struct cr_json *object, const struct cr_strvec *names, size_t room)
{
    size_t count = 0;
    size_t bytes = 0;
    while (count < names->len && (bytes += strlen(names->items[count]) + STRING_BYTES) <= room)
        count++;
    if (count)
        add_strings(object, "names", names, count, WORD_MAX);
}

/* Bytes that one state of one Secret has for its lists; of the number of Secrets alone, so that no Secret's growth
 * takes another's memory. */
struct room {
    size_t lists, names;
};

static struct room room_for(size_t secrets)
{
    return secrets ? (struct room){LISTS_MAX / 2 / secrets, NAMES_MAX / 2 / secrets} : (struct room){0};
}

static struct cr_json *encode_material(const struct cr_material *m, struct room room)
{
    struct cr_json *object = cr_json_new_object();
    bool whole = trust_fits(m, room.lists);
    if (m->has_leaf) {
        cr_status_set_digest(object, "leaf", m->leaf);
        cr_status_set_digest(object, "chain", m->chain);
        cr_status_set_digest(object, "key", m->key);
        cr_status_set_digest(object, "serial", m->serial);
        if (*m->key_type)
            cr_json_set_string(object, "keyType", m->key_type);
        cr_status_set_digest(object, "issuer", m->issuer);
        if (whole)
            add_strings(object, "anchors", &m->anchors, m->anchors.len, WORD_MAX);
        cr_status_set_time(object, "notAfter", m->not_after_ms);
        encode_names(object, &m->names, room.names);
    }
    encode_trust(object, m, whole);
    cr_status_set_digest(object, "opaque", m->opaque);
    if (opaque_keys_fit(m, room.lists))
        add_strings(object, "opaqueKeys", &m->opaque_keys, m->opaque_keys.len, OPAQUE_KEY_MAX);
    return object;
}

/* Names too many to be listed are any. */
static void encode_changed_keys(struct cr_json *object, const struct cr_strvec *names, size_t room)
{
    size_t bytes = 0;
    for (size_t i = 0; i < names->len; i++)
        bytes += strlen(names->items[i]) + STRING_BYTES;
    if (bytes <= room / 4)
        add_strings(object, "opaqueKeys", names, names->len, WORD_MAX);
}

static struct cr_json *encode_pending(const struct cr_pending_change *pending, struct room room)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "id", pending->id);
    cr_status_set_time_micro(object, "since", pending->since_ms);
    if (pending->first_ms != pending->since_ms)
        cr_status_set_time_micro(object, "first", pending->first_ms);
    if (pending->superseded_ms)
        cr_status_set_time_micro(object, "superseded", pending->superseded_ms);
    set_changes(object, pending->changes);
    cr_json_set(object, "target", encode_material(&pending->target, room));
    add_strings(object, "oldLeaves", &pending->old_leaves, CR_OLD_LEAVES_MAX, WORD_MAX);
    encode_changed_keys(object, &pending->opaque_keys, room.lists);
    if (pending->was_immutable)
        cr_json_set_bool(object, "wasImmutable", true);
    return object;
}

/* The end of the first leaf; for trust alone, of the CA that lasts longest. 0: never. */
static int64_t secret_end(const struct cr_policy_status *status, const struct cr_secret_status *secret)
{
    int64_t leaf_ms = cr_policy_status_leaf_end_ms(status, secret);
    if (leaf_ms)
        return leaf_ms;
    const struct cr_material *now = secret->pending.set ? &secret->pending.target : &secret->settled;
    return cr_material_summarize_trust(now).not_after_ms;
}

/* Only for the parts that the material has. */
static void encode_settled_by(struct cr_json *object, const struct cr_secret_status *secret)
{
    if (cr_material_has_trust(&secret->settled))
        cr_json_set_string(object, "trustBy", cr_settled_by_name(secret->trust_by));
    if (secret->settled.has_leaf)
        cr_json_set_string(object, "leafBy", cr_settled_by_name(secret->leaf_by));
    cr_status_set_time(object, "settledAt", secret->settled_ms);
    cr_status_set_time(object, "changedAt", secret->changed_ms);
}

static struct cr_json *encode_secret(const struct cr_policy_status *status, const struct cr_secret_status *secret,
                                     struct room room)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "name", secret->name);
    if (secret->selected)
        cr_json_set_bool(object, "selected", true);
    cr_status_set_text(object, "observedResourceVersion", secret->observed_resource_version, WORD_MAX);
    if (secret->immutable)
        cr_json_set_bool(object, "immutable", true);
    cr_status_set_time(object, "notAfter", secret_end(status, secret));
    if (secret->has_settled) {
        cr_json_set(object, "settled", encode_material(&secret->settled, room));
        encode_settled_by(object, secret);
    }
    if (secret->pending.set)
        cr_json_set(object, "pending", encode_pending(&secret->pending, room));
    if (secret->unknown_readers)
        cr_json_set_string(object, "unknownReaders", cr_unknown_readers_name(secret->unknown_readers));
    if (secret->problem_reason) {
        struct cr_json *problem = cr_json_object_in(object, "problem");
        cr_status_set_text(problem, "reason", secret->problem_reason, WORD_MAX);
        cr_status_set_text(problem, "message", cr_or_empty(secret->problem_message), PROBLEM_MAX);
        cr_status_set_time(problem, "notAfter", secret->problem_not_after_ms);
    }
    return object;
}

static void encode_counts(struct cr_json *object, const struct cr_pod_counts *pods)
{
    cr_json_set_int(object, "verified", pods->verified);
    cr_json_set_int(object, "inferred", pods->inferred);
    cr_json_set_int(object, "stale", pods->stale);
    cr_json_set_int(object, "unknown", pods->unknown);
}

static void encode_target(struct cr_json *object, const struct cr_consumer_status *consumer)
{
    if (!consumer->kind && !consumer->target)
        return;
    struct cr_json *target = cr_json_object_in(object, "targetRef");
    cr_status_set_text(target, "kind", consumer->kind, WORD_MAX);
    cr_status_set_text(target, "name", consumer->target, WORD_MAX);
}

/* "id/2": two restarts for that rotation; "" where no rotation asked for the restart. */
static void add_step(struct cr_json *array, const struct cr_restart_step *step)
{
    char text[sizeof step->rotation + 16] = "";
    if (*step->rotation)
        snprintf(text, sizeof text, "%s/%d", step->rotation, step->restarts);
    cr_json_add_string(array, text);
}

/* A restart that is left out is then not known to be of a rotation: it counts by itself. */
static void encode_steps(struct cr_json *object, const struct cr_restart_times *restarts, size_t most)
{
    size_t len = restarts->len < most ? restarts->len : most;
    while (len && !*restarts->steps[len - 1].rotation)
        len--;
    struct cr_json *array = len ? cr_json_array_in(object, "restartSteps") : NULL;
    for (size_t i = 0; i < len; i++)
        add_step(array, &restarts->steps[i]);
}

/* steps: of so many of the newest restarts. */
static void encode_restart(struct cr_json *object, const struct cr_consumer_status *consumer, size_t steps)
{
    cr_status_set_text(object, "restartedFor", consumer->restarted_for, SENTENCE_MAX);
    if (consumer->restarted_for)
        cr_json_set_int(object, "restartedGeneration", consumer->restarted_generation);
    cr_status_set_time(object, "evictedUntil", consumer->evicted_until_ms);
    cr_status_set_text(object, "evicting", consumer->evicting, WORD_MAX);
    struct cr_json *restarts = consumer->restarts.len ? cr_json_array_in(object, "restarts") : NULL;
    for (size_t i = 0; i < consumer->restarts.len; i++)
        cr_status_add_time_micro(restarts, consumer->restarts.at_ms[i]);
    encode_steps(object, &consumer->restarts, steps);
}

/* Since when they are asked counts as long as they are. In brief, when they were seen is left out: it was after
 * `until`.
 */
static void encode_verification(struct cr_json *object, const struct cr_verification *verification, bool brief)
{
    if (!*verification->of)
        return;
    struct cr_json *out = cr_json_object_in(object, "verification");
    cr_json_set_string(out, "of", verification->of);
    if (!verification->at_ms)
        cr_status_set_time(out, "since", verification->since_ms);
    if (!brief || !verification->until_ms)
        cr_status_set_time(out, "at", verification->at_ms);
    cr_status_set_time(out, "until", verification->until_ms);
}

/* What programs read of it. */
static void encode_reasons(struct cr_json *object, const struct cr_consumer_status *consumer)
{
    if (consumer->gate.hold)
        cr_json_set_string(object, "blockedReason", cr_hold_name(consumer->gate.hold));
    struct cr_json *array = consumer->warnings ? cr_json_array_in(object, "warnings") : NULL;
    for (unsigned i = 0; i < CR_WARNING_BITS; i++)
        if (consumer->warnings & 1u << i)
            cr_json_add_string(array, cr_warning_name((enum cr_warning_bit)(1u << i)));
}

static struct cr_json *encode_consumer(const struct cr_consumer_status *consumer)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "name", consumer->name);
    encode_target(object, consumer);
    if (consumer->found)
        cr_json_set_bool(object, "discovered", true);
    cr_status_set_text(object, "component", consumer->component, WORD_MAX);
    cr_json_set_string(object, "decision", cr_decision_name(consumer->decision));
    cr_status_set_text(object, "reason", consumer->reason, SENTENCE_MAX);
    cr_json_set_string(object, "state", cr_consumer_state_name(consumer->state));
    struct cr_json *pods = cr_json_object_in(object, "pods");
    cr_json_set_int(pods, "total", consumer->pods.total);
    encode_counts(pods, &consumer->pods);
    encode_reasons(object, consumer);
    cr_status_set_text(object, "blockedBy", consumer->gate.text, SENTENCE_MAX);
    cr_status_set_time(object, "lastRestart", consumer->last_restart_ms);
    cr_status_set_time_micro(object, "since", consumer->since_ms);
    encode_restart(object, consumer, CR_RESTART_TIMES_MAX);
    encode_verification(object, &consumer->verification, false);
    add_strings(object, "examples", &consumer->examples, CR_EXAMPLES_MAX, WORD_MAX);
    return object;
}

static bool has_converged(const struct cr_consumer_status *consumer)
{
    return (consumer->state == CR_CONSUMER_IDLE || consumer->state == CR_CONSUMER_CONVERGED) &&
           !cr_hold_is_unmet(consumer->gate.hold);
}

/* What is remembered of it, and no more. */
static struct cr_json *encode_brief(const struct cr_consumer_status *consumer)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "name", consumer->name);
    encode_target(object, consumer);
    cr_json_set_string(object, "state", cr_consumer_state_name(consumer->state));
    encode_reasons(object, consumer);
    cr_status_set_time_micro(object, "since", consumer->since_ms); /* evictions are counted by it */
    /* Its next pod is given its time from there. */
    if (consumer->evicting && !has_converged(consumer))
        cr_status_set_time(object, "lastRestart", consumer->last_restart_ms);
    encode_restart(object, consumer, STEPS_BRIEF);
    encode_verification(object, &consumer->verification, true);
    return object;
}

static bool has_memory(const struct cr_consumer_status *consumer)
{
    return consumer->restarted_for || consumer->restarts.len;
}

/* A consumer that a person must look at comes before one that only needs time. */
static int urgency(const struct cr_consumer_status *consumer)
{
    if (consumer->state == CR_CONSUMER_FAILED || consumer->state == CR_CONSUMER_BLOCKED)
        return 0;
    return has_converged(consumer) ? 2 : 1;
}

/* All when they fit; else first those that a person has to look at, and of the others only those with something to
 * remember. */
static struct cr_json *encode_consumers(const struct cr_policy_status *status)
{
    struct cr_json *array = cr_json_new_array();
    size_t count = status->consumers_len;
    bool bounded = count > CONSUMERS_WHOLE;
    cr_autofree bool *listed = cr_calloc(count + 1, sizeof *listed);
    size_t whole = 0;
    for (int pass = 0; pass < (bounded ? 3 : 1); pass++) {
        for (size_t i = 0; i < count && whole < CONSUMERS_WHOLE; i++) {
            if (bounded && urgency(&status->consumers[i]) != pass)
                continue;
            cr_json_add(array, encode_consumer(&status->consumers[i]));
            listed[i] = true;
            whole++;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (!listed[i] && (!has_converged(&status->consumers[i]) || has_memory(&status->consumers[i])))
            cr_json_add(array, encode_brief(&status->consumers[i]));
    return array;
}

static void encode_totals(const struct cr_policy_status *status, struct cr_json *out)
{
    struct cr_pod_counts pods = {0};
    int converged = 0;
    int present = 0;
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &status->consumers[i];
        converged += has_converged(consumer);
        present += consumer->state != CR_CONSUMER_ABSENT;
        pods.total += consumer->pods.total;
        pods.verified += consumer->pods.verified;
        pods.inferred += consumer->pods.inferred;
        pods.stale += consumer->pods.stale;
        pods.unknown += consumer->pods.unknown;
    }
    struct cr_json *totals = cr_json_object_in(out, "totals");
    cr_json_set_int(totals, "secrets", (int64_t)status->secrets_len);
    cr_json_set_int(totals, "consumers", (int64_t)status->consumers_len);
    cr_json_set_int(totals, "converged", converged);
    cr_json_set_int(totals, "pods", pods.total);
    encode_counts(totals, &pods);
    cr_autofree char *text = cr_asprintf("%d/%d", converged, present);
    cr_json_set_string(out, "converged", text);
}

static void encode_expires(const struct cr_policy_status *status, struct cr_json *out)
{
    int64_t first = 0;
    for (size_t i = 0; i < status->secrets_len; i++) {
        int64_t end = secret_end(status, &status->secrets[i]);
        if (end && (!first || end < first))
            first = end;
    }
    cr_json_set(out, "expires", cr_json_new_null());
    cr_status_set_time(out, "expires", first);
}

static struct cr_json *encode_history(const struct cr_policy_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->history_len; i++) {
        const struct cr_rotation_record *record = &status->history[i];
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_json_set_string(object, "id", record->id);
        cr_status_set_text(object, "secret", cr_or_empty(record->secret), WORD_MAX);
        set_changes(object, record->changes);
        cr_status_set_time(object, "started", record->started_ms);
        cr_status_set_time(object, "finished", record->finished_ms);
        cr_status_set_text(object, "outcome", cr_or_empty(record->outcome), WORD_MAX);
    }
    return array;
}

struct cr_json *cr_policy_status_encode(const struct cr_policy_status *status)
{
    struct cr_json *out = cr_json_new_object();
    struct cr_json *secrets = NULL;
    cr_json_set_int(out, "observedGeneration", status->observed_generation);
    cr_json_set_string(out, "stage", cr_stage_name(status->stage));
    secrets = cr_json_array_in(out, "secrets");
    struct room room = room_for(status->secrets_len);
    for (size_t i = 0; i < status->secrets_len; i++)
        cr_json_add(secrets, encode_secret(status, &status->secrets[i], room));
    cr_json_set(out, "consumers", encode_consumers(status));
    encode_totals(status, out);
    encode_expires(status, out);
    const char *problem = cr_policy_status_problem(status);
    cr_json_set(out, "problem", problem ? cr_json_new_string(problem) : cr_json_new_null());
    cr_json_set(out, "conditions", cr_conditions_encode(status->conditions, CR_CONDITIONS));
    cr_json_set(out, "history", encode_history(status));
    return out;
}
