#include "api/domain_status.h"

#include <string.h>

#include "api/names.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/strings.h"

const char *const cr_domain_condition_types[CR_DOMAIN_CONDITIONS] = {
    "Ready",        "Converged",         "Rotating",   "Held",        "Degraded",
    "ExpiringSoon", "RetirementPending", "Distrusted", "Reconciling", "Stalled",
};

static const char *const parts[] = {[CR_CA_NEXT] = "Next", [CR_CA_CURRENT] = "Current", [CR_CA_PREVIOUS] = "Previous"};
static const char *const arrivals[] = {[CR_ARRIVAL_INFERRED] = "Inferred", [CR_ARRIVAL_VERIFIED] = "Verified"};

const char *cr_arrival_name(enum cr_arrival arrival)
{
    return cr_word_of(arrivals, cr_array_len(arrivals), arrival);
}

enum cr_arrival cr_arrival_parse(const char *text)
{
    unsigned value = CR_ARRIVAL_NOT_YET;
    (void)cr_word_find(arrivals, cr_array_len(arrivals), text, &value);
    return (enum cr_arrival)value;
}

const char *cr_ca_part_name(enum cr_ca_part part)
{
    return cr_word_of(parts, cr_array_len(parts), part);
}

bool cr_ca_part_parse(const char *text, enum cr_ca_part *part)
{
    unsigned value = 0;
    if (!cr_word_find(parts, cr_array_len(parts), text, &value))
        return false;
    *part = (enum cr_ca_part)value;
    return true;
}

const char *cr_domain_leaf_at_name(enum cr_domain_leaf_at at)
{
    static const char *const names[CR_LEAVES_AT] = {"Published", "Source", "Previous"};
    return (size_t)at < cr_array_len(names) ? names[at] : "";
}

/* --- owned parts --- */

void cr_domain_object_status_dispose(struct cr_domain_object_status *object)
{
    free(object->kind);
    free(object->ns);
    free(object->name);
    free(object->written_version);
    free(object->overwritten_by);
    free(object->waits_for);
    free(object->problem_message);
    *object = (struct cr_domain_object_status){0};
}

static void dispose_rotation(struct cr_domain_rotation *rotation)
{
    free(rotation->what);
    free(rotation->outcome);
    *rotation = (struct cr_domain_rotation){0};
}

void cr_domain_status_forget_cas(struct cr_domain_status *status)
{
    for (size_t i = 0; i < status->cas_len; i++) {
        free(status->cas[i].subject);
        free(status->cas[i].needed_by);
    }
    status->cas_len = 0;
}

void cr_domain_status_dispose(struct cr_domain_status *status)
{
    if (!status)
        return;
    free(status->what);
    free(status->last_handled_token);
    cr_domain_status_forget_cas(status);
    for (size_t i = 0; i < status->objects_len; i++)
        cr_domain_object_status_dispose(&status->objects[i]);
    for (size_t i = 0; i < status->rejected_len; i++)
        free(status->rejected[i].leaf);
    for (size_t i = 0; i < status->distrusted_len; i++)
        free(status->distrusted[i].subject);
    for (size_t i = 0; i < status->history_len; i++)
        dispose_rotation(&status->history[i]);
    cr_conditions_dispose(status->conditions, CR_DOMAIN_CONDITIONS);
    free(status->objects);
    free(status->rejected);
    *status = (struct cr_domain_status){0};
}

static void copy_object(struct cr_domain_object_status *to, const struct cr_domain_object_status *from)
{
    *to = *from; /* then everything that is owned is copied */
    to->kind = cr_strdup_or_null(from->kind);
    to->ns = cr_strdup_or_null(from->ns);
    to->name = cr_strdup_or_null(from->name);
    to->written_version = cr_strdup_or_null(from->written_version);
    to->overwritten_by = cr_strdup_or_null(from->overwritten_by);
    to->waits_for = cr_strdup_or_null(from->waits_for);
    to->problem_message = cr_strdup_or_null(from->problem_message);
}

static void copy_rotation(struct cr_domain_rotation *to, const struct cr_domain_rotation *from)
{
    *to = *from;
    to->what = cr_strdup_or_null(from->what);
    to->outcome = cr_strdup_or_null(from->outcome);
}

void cr_domain_status_copy(struct cr_domain_status *to, const struct cr_domain_status *from)
{
    cr_domain_status_dispose(to);
    *to = *from;
    to->what = cr_strdup_or_null(from->what);
    to->last_handled_token = cr_strdup_or_null(from->last_handled_token);
    for (size_t i = 0; i < from->cas_len; i++) {
        to->cas[i].subject = cr_strdup_or_null(from->cas[i].subject);
        to->cas[i].needed_by = cr_strdup_or_null(from->cas[i].needed_by);
    }
    to->objects = cr_calloc(from->objects_len + 1, sizeof *to->objects);
    for (size_t i = 0; i < from->objects_len; i++)
        copy_object(&to->objects[i], &from->objects[i]);
    to->rejected = cr_calloc(from->rejected_len + 1, sizeof *to->rejected);
    for (size_t i = 0; i < from->rejected_len; i++) {
        to->rejected[i] = from->rejected[i];
        to->rejected[i].leaf = cr_strdup_or_null(from->rejected[i].leaf);
    }
    for (size_t i = 0; i < from->distrusted_len; i++)
        to->distrusted[i].subject = cr_strdup_or_null(from->distrusted[i].subject);
    cr_conditions_own(to->conditions, CR_DOMAIN_CONDITIONS);
    for (size_t i = 0; i < from->history_len; i++)
        copy_rotation(&to->history[i], &from->history[i]);
}

/* --- looked up and set --- */

struct cr_domain_object_status *cr_domain_status_object(struct cr_domain_status *status, const char *kind,
                                                        const char *ns, const char *name)
{
    for (size_t i = 0; i < status->objects_len; i++) {
        struct cr_domain_object_status *object = &status->objects[i];
        if (cr_streq(object->name, name) && cr_streq(object->ns, ns) && cr_streq(object->kind, kind))
            return object;
    }
    return NULL;
}

int64_t cr_domain_status_distrusts_since_ms(const struct cr_domain_status *status)
{
    int64_t since_ms = 0;
    for (size_t i = 0; i < status->distrusted_len; i++) {
        const struct cr_domain_distrusted *ca = &status->distrusted[i];
        if (!ca->gone_ms && (!since_ms || ca->since_ms < since_ms))
            since_ms = ca->since_ms;
    }
    return since_ms;
}

struct cr_domain_step cr_domain_status_step(struct cr_domain_status *status, const char *kind, const char *ns,
                                            const char *name, const char *version)
{
    struct cr_domain_step step = {0};
    const struct cr_domain_object_status *object = cr_domain_status_object(status, kind, ns, name);
    step.awaits_record = object && !cr_streq(object->written_version, version);
    if (!object || step.awaits_record || !*status->rotation)
        return step;
    memcpy(step.restart.rotation, status->rotation, sizeof step.restart.rotation);
    step.distrusts = cr_domain_status_distrusts_since_ms(status) != 0;
    step.restart.restarts = 1;
    return step;
}

struct cr_domain_object_status *cr_domain_status_object_add(struct cr_domain_status *status, const char *kind,
                                                            const char *ns, const char *name)
{
    struct cr_domain_object_status *found = cr_domain_status_object(status, kind, ns, name);
    if (found)
        return found;
    status->objects = cr_reallocarray(status->objects, status->objects_len + 1, sizeof *status->objects);
    struct cr_domain_object_status *added = &status->objects[status->objects_len++];
    *added =
        (struct cr_domain_object_status){.kind = cr_strdup(kind), .ns = cr_strdup_or_null(ns), .name = cr_strdup(name)};
    return added;
}

void cr_domain_status_condition(struct cr_domain_status *status, const char *type, bool value, const char *reason,
                                const char *message, int64_t generation, int64_t now_ms)
{
    cr_conditions_update(status->conditions, cr_domain_condition_types, CR_DOMAIN_CONDITIONS,
                         &(struct cr_condition_text){type, value, reason, message, false}, generation, now_ms);
}

void cr_domain_status_drop_condition(struct cr_domain_status *status, const char *type)
{
    size_t i = cr_conditions_index(cr_domain_condition_types, CR_DOMAIN_CONDITIONS, type);
    if (i == CR_DOMAIN_CONDITIONS)
        return;
    cr_conditions_dispose(&status->conditions[i], 1);
    status->conditions[i] = (struct cr_condition){0};
}

const struct cr_condition *cr_domain_status_condition_get(const struct cr_domain_status *status, const char *type)
{
    return cr_conditions_get(status->conditions, cr_domain_condition_types, CR_DOMAIN_CONDITIONS, type);
}

void cr_domain_status_history_add(struct cr_domain_status *status, const struct cr_domain_rotation *record)
{
    struct cr_domain_rotation added; /* a copy first: record may be one of status's own */
    copy_rotation(&added, record);
    if (status->history_len == CR_HISTORY_MAX)
        dispose_rotation(&status->history[--status->history_len]);
    memmove(&status->history[1], &status->history[0], status->history_len * sizeof status->history[0]);
    status->history[0] = added;
    status->history_len++;
}
