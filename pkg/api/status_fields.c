#include "api/status_fields.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/text.h"

/* --- written --- */

void cr_status_set_text(struct cr_json *object, const char *key, const char *text, size_t max)
{
    if (!text)
        return;
    cr_autofree char *clipped = cr_text_clip(text, max);
    cr_json_set_string(object, key, clipped);
}

void cr_status_set_digest(struct cr_json *object, const char *key, const char *digest)
{
    if (*digest)
        cr_json_set_string(object, key, digest);
}

void cr_status_set_time(struct cr_json *object, const char *key, int64_t wall_ms)
{
    char text[CR_TIME_TEXT];
    if (wall_ms == 0)
        return;
    cr_time_format(wall_ms, text);
    cr_json_set_string(object, key, text);
}

void cr_status_set_time_micro(struct cr_json *object, const char *key, int64_t wall_ms)
{
    char text[CR_TIME_TEXT];
    if (wall_ms == 0)
        return;
    cr_time_format_micro(wall_ms, text);
    cr_json_set_string(object, key, text);
}

void cr_status_add_time_micro(struct cr_json *array, int64_t wall_ms)
{
    char text[CR_TIME_TEXT];
    cr_time_format_micro(wall_ms, text);
    cr_json_add_string(array, text);
}

/* --- read --- */

bool cr_status_is_digest(const char *text)
{
    return strlen(text) == CR_SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == CR_SHA256_HEX - 1;
}

bool cr_status_read_digest(const struct cr_json *object, const char *key, char out[CR_SHA256_HEX])
{
    const struct cr_json *value = cr_json_get(object, key);
    if (!value || cr_json_is_null(value))
        return true;
    const char *text = cr_json_string(value);
    if (!text || !cr_status_is_digest(text))
        return false;
    memcpy(out, text, CR_SHA256_HEX);
    return true;
}

bool cr_status_read_time(const struct cr_json *object, const char *key, int64_t *wall_ms)
{
    const struct cr_json *value = cr_json_get(object, key);
    if (!value || cr_json_is_null(value))
        return true;
    const char *text = cr_json_string(value);
    return text && cr_time_parse(text, wall_ms, NULL);
}

bool cr_status_read_id(const struct cr_json *object, char *out, size_t size)
{
    const char *text = cr_json_string(cr_json_get(object, "id"));
    size_t len = text ? strlen(text) : 0;
    if (len == 0 || len >= size || strspn(text, "0123456789abcdef") != len)
        return false;
    memcpy(out, text, len + 1);
    return true;
}

int64_t cr_status_time_or_0(const struct cr_json *object, const char *key)
{
    int64_t wall_ms = 0;
    return cr_status_read_time(object, key, &wall_ms) ? wall_ms : 0;
}

char *cr_status_text_or_null(const struct cr_json *object, const char *key)
{
    return cr_strdup_or_null(cr_json_string(cr_json_get(object, key)));
}

/* --- conditions --- */

size_t cr_conditions_index(const char *const *types, size_t count, const char *type)
{
    size_t i = 0;
    while (i < count && !cr_streq(types[i], type))
        i++;
    return i;
}

const struct cr_condition *cr_conditions_get(const struct cr_condition *conditions, const char *const *types,
                                             size_t count, const char *type)
{
    size_t i = cr_conditions_index(types, count, type);
    return i < count && conditions[i].reason ? &conditions[i] : NULL;
}

/* What the types mean, whichever kind of object has them; Reconciling and Stalled repeat what the others say. In the
 * order of summing up: what makes the others follow comes first. */
static const struct meaning {
    const char *type;
    enum { TROUBLE_UNLESS_TRUE, TROUBLE_IF_TRUE, NEVER_TROUBLE } is;
    bool sums_up; /* its reason may stand for the whole status */
} meanings[] = {
    {"Ready", TROUBLE_UNLESS_TRUE, true},      {"Degraded", TROUBLE_IF_TRUE, true},
    {"Held", TROUBLE_IF_TRUE, true},           {"ExpiringSoon", TROUBLE_IF_TRUE, true},
    {"Conflict", TROUBLE_IF_TRUE, true},       {"Blocked", TROUBLE_IF_TRUE, true},
    {"Converged", TROUBLE_UNLESS_TRUE, false}, {"Distrusted", TROUBLE_UNLESS_TRUE, false},
    {"Rotating", NEVER_TROUBLE, false},        {"RetirementPending", NEVER_TROUBLE, false},
    {"Reconciling", NEVER_TROUBLE, false},     {"Stalled", NEVER_TROUBLE, false},
};

bool cr_condition_is_trouble(const struct cr_condition *condition)
{
    for (size_t i = 0; condition->reason && i < cr_array_len(meanings); i++)
        if (cr_streq(meanings[i].type, condition->type))
            return meanings[i].is != NEVER_TROUBLE && condition->status == (meanings[i].is == TROUBLE_IF_TRUE);
    return false;
}

const char *cr_conditions_problem(const struct cr_condition *conditions, const char *const *types, size_t count)
{
    for (size_t i = 0; i < cr_array_len(meanings); i++) {
        const struct cr_condition *condition = cr_conditions_get(conditions, types, count, meanings[i].type);
        if (condition && meanings[i].sums_up && cr_condition_is_trouble(condition))
            return condition->reason;
    }
    return NULL;
}

void cr_conditions_set(struct cr_condition *conditions, const char *const *types, size_t count,
                       const struct cr_condition *value)
{
    size_t i = cr_conditions_index(types, count, value->type);
    if (i == count)
        return;
    struct cr_condition *condition = &conditions[i];
    if (!condition->reason || condition->status != value->status || condition->unknown != value->unknown)
        condition->transition_ms = value->transition_ms;
    condition->type = types[i];
    condition->status = value->status;
    condition->unknown = value->unknown;
    condition->observed_generation = value->observed_generation;
    cr_strset(&condition->reason, cr_or_empty(value->reason));
    cr_strset(&condition->message, cr_or_empty(value->message));
}

void cr_conditions_update(struct cr_condition *conditions, const char *const *types, size_t count,
                          const struct cr_condition_text *text, int64_t generation, int64_t now_ms)
{
    cr_autofree char *reason = cr_strdup_or_null(text->reason);
    cr_autofree char *message = cr_strdup_or_null(text->message);
    const struct cr_condition condition = {.type = text->type,
                                           .status = text->status,
                                           .unknown = text->unknown,
                                           .reason = reason,
                                           .message = message,
                                           .transition_ms = now_ms,
                                           .observed_generation = generation};
    cr_conditions_set(conditions, types, count, &condition);
}

void cr_conditions_dispose(struct cr_condition *conditions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(conditions[i].reason);
        free(conditions[i].message);
    }
}

void cr_conditions_own(struct cr_condition *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i].reason = cr_strdup_or_null(to[i].reason);
        to[i].message = cr_strdup_or_null(to[i].message);
    }
}

static const char *word_of(const struct cr_condition *condition)
{
    if (condition->unknown)
        return "Unknown";
    return condition->status ? "True" : "False";
}

/* metav1.Condition requires every member but observedGeneration. */
struct cr_json *cr_conditions_encode(const struct cr_condition *conditions, size_t count)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < count; i++) {
        const struct cr_condition *condition = &conditions[i];
        if (!condition->reason)
            continue;
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        char time[CR_TIME_TEXT];
        cr_time_format(condition->transition_ms, time);
        cr_json_set_string(object, "type", condition->type);
        cr_json_set_string(object, "status", word_of(condition));
        cr_json_set_int(object, "observedGeneration", condition->observed_generation);
        cr_json_set_string(object, "lastTransitionTime", time);
        cr_status_set_text(object, "reason", condition->reason, CR_STATUS_WORD_MAX);
        cr_status_set_text(object, "message", cr_or_empty(condition->message), CR_STATUS_MESSAGE_MAX);
    }
    return array;
}

static void decode_condition(const struct cr_json *json, struct cr_condition *conditions, const char *const *types,
                             size_t count)
{
    const char *value = cr_json_string(cr_json_get(json, "status"));
    const char *reason = cr_json_string(cr_json_get(json, "reason"));
    bool is_true = cr_streq(value, "True");
    bool is_unknown = cr_streq(value, "Unknown");
    int64_t transition_ms = 0;
    if (!reason || (!is_true && !is_unknown && !cr_streq(value, "False")) ||
        !cr_status_read_time(json, "lastTransitionTime", &transition_ms))
        return;
    cr_autofree char *its_reason = cr_strdup(reason);
    cr_autofree char *message = cr_status_text_or_null(json, "message");
    struct cr_condition condition = {.type = cr_json_string(cr_json_get(json, "type")),
                                     .status = is_true,
                                     .unknown = is_unknown,
                                     .reason = its_reason,
                                     .message = message,
                                     .transition_ms = transition_ms,
                                     .observed_generation = cr_json_int(cr_json_get(json, "observedGeneration"), 0)};
    cr_conditions_set(conditions, types, count, &condition);
}

void cr_conditions_decode(const struct cr_json *array, struct cr_condition *conditions, const char *const *types,
                          size_t count)
{
    if (!cr_json_is_array(array))
        return;
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        decode_condition(c, conditions, types, count);
}
