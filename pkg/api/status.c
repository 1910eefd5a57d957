#include "api/status.h"

#include <string.h>

#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/strings.h"

static void dispose_pending(struct cr_pending_change *pending)
{
    cr_material_dispose(&pending->target);
    cr_strvec_dispose(&pending->old_leaves);
    cr_strvec_dispose(&pending->opaque_keys);
    *pending = (struct cr_pending_change){0};
}

static void dispose_secret(struct cr_secret_status *secret)
{
    free(secret->name);
    free(secret->observed_resource_version);
    cr_material_dispose(&secret->settled);
    dispose_pending(&secret->pending);
    free(secret->problem_reason);
    free(secret->problem_message);
    *secret = (struct cr_secret_status){0};
}

static void dispose_consumer(struct cr_consumer_status *consumer)
{
    free(consumer->name);
    free(consumer->kind);
    free(consumer->target);
    free(consumer->component);
    free(consumer->reason);
    cr_gate_dispose(&consumer->gate);
    free(consumer->restarted_for);
    free(consumer->evicting);
    cr_strvec_dispose(&consumer->examples);
    *consumer = (struct cr_consumer_status){0};
}

static void dispose_record(struct cr_rotation_record *record)
{
    free(record->secret);
    free(record->outcome);
    *record = (struct cr_rotation_record){0};
}

void cr_policy_status_dispose(struct cr_policy_status *status)
{
    if (!status)
        return;
    for (size_t i = 0; i < status->secrets_len; i++)
        dispose_secret(&status->secrets[i]);
    for (size_t i = 0; i < status->consumers_len; i++)
        dispose_consumer(&status->consumers[i]);
    cr_conditions_dispose(status->conditions, CR_CONDITIONS);
    for (size_t i = 0; i < status->history_len; i++)
        dispose_record(&status->history[i]);
    free(status->secrets);
    free(status->consumers);
    *status = (struct cr_policy_status){0};
}

static void copy_secret(struct cr_secret_status *to, const struct cr_secret_status *from)
{
    *to = *from; /* then everything that is owned is copied */
    to->name = cr_strdup_or_null(from->name);
    to->observed_resource_version = cr_strdup_or_null(from->observed_resource_version);
    to->settled = (struct cr_material){0};
    cr_material_copy(&to->settled, &from->settled);
    to->pending.target = (struct cr_material){0};
    cr_material_copy(&to->pending.target, &from->pending.target);
    to->pending.old_leaves = (struct cr_strvec){0};
    cr_strvec_copy(&to->pending.old_leaves, &from->pending.old_leaves);
    to->pending.opaque_keys = (struct cr_strvec){0};
    cr_strvec_copy(&to->pending.opaque_keys, &from->pending.opaque_keys);
    to->problem_reason = cr_strdup_or_null(from->problem_reason);
    to->problem_message = cr_strdup_or_null(from->problem_message);
}

static void copy_consumer(struct cr_consumer_status *to, const struct cr_consumer_status *from)
{
    *to = *from;
    to->name = cr_strdup_or_null(from->name);
    to->kind = cr_strdup_or_null(from->kind);
    to->target = cr_strdup_or_null(from->target);
    to->component = cr_strdup_or_null(from->component);
    to->reason = cr_strdup_or_null(from->reason);
    to->gate = cr_gate_copy(&from->gate);
    to->restarted_for = cr_strdup_or_null(from->restarted_for);
    to->evicting = cr_strdup_or_null(from->evicting);
    to->examples = (struct cr_strvec){0};
    cr_strvec_copy(&to->examples, &from->examples);
}

static void copy_record(struct cr_rotation_record *to, const struct cr_rotation_record *from)
{
    *to = *from;
    to->secret = cr_strdup_or_null(from->secret);
    to->outcome = cr_strdup_or_null(from->outcome);
}

void cr_policy_status_copy(struct cr_policy_status *to, const struct cr_policy_status *from)
{
    cr_policy_status_dispose(to);
    *to = *from;
    to->secrets = cr_calloc(from->secrets_len + 1, sizeof *to->secrets);
    for (size_t i = 0; i < from->secrets_len; i++)
        copy_secret(&to->secrets[i], &from->secrets[i]);
    to->consumers = cr_calloc(from->consumers_len + 1, sizeof *to->consumers);
    for (size_t i = 0; i < from->consumers_len; i++)
        copy_consumer(&to->consumers[i], &from->consumers[i]);
    cr_conditions_own(to->conditions, CR_CONDITIONS);
    for (size_t i = 0; i < from->history_len; i++)
        copy_record(&to->history[i], &from->history[i]);
}

struct cr_secret_status *cr_status_secret(struct cr_policy_status *status, const char *name)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (cr_streq(status->secrets[i].name, name))
            return &status->secrets[i];
    return NULL;
}

struct cr_consumer_status *cr_status_consumer(struct cr_policy_status *status, const char *name)
{
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_streq(status->consumers[i].name, name))
            return &status->consumers[i];
    return NULL;
}

struct cr_secret_status *cr_status_secret_add(struct cr_policy_status *status, const char *name)
{
    struct cr_secret_status *found = cr_status_secret(status, name);
    if (found)
        return found;
    status->secrets = cr_reallocarray(status->secrets, status->secrets_len + 1, sizeof *status->secrets);
    struct cr_secret_status *added = &status->secrets[status->secrets_len++];
    *added = (struct cr_secret_status){.name = cr_strdup(name)};
    return added;
}

struct cr_consumer_status *cr_status_consumer_add(struct cr_policy_status *status, const char *name)
{
    struct cr_consumer_status *found = cr_status_consumer(status, name);
    if (found)
        return found;
    status->consumers = cr_reallocarray(status->consumers, status->consumers_len + 1, sizeof *status->consumers);
    struct cr_consumer_status *added = &status->consumers[status->consumers_len++];
    *added = (struct cr_consumer_status){.name = cr_strdup(name)};
    return added;
}

void cr_status_keep_secrets(struct cr_policy_status *status, const struct cr_strvec *keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < status->secrets_len; i++) {
        if (cr_strvec_has(keep, status->secrets[i].name))
            status->secrets[kept++] = status->secrets[i];
        else
            dispose_secret(&status->secrets[i]);
    }
    status->secrets_len = kept;
}

void cr_status_move_secret(struct cr_policy_status *to, struct cr_policy_status *from, const char *name)
{
    struct cr_secret_status *moved = cr_status_secret(from, name);
    if (!moved)
        return;
    to->secrets = cr_reallocarray(to->secrets, to->secrets_len + 1, sizeof *to->secrets);
    to->secrets[to->secrets_len++] = *moved;
    *moved = from->secrets[--from->secrets_len];
}

void cr_status_keep_consumers(struct cr_policy_status *status, const struct cr_strvec *keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < status->consumers_len; i++) {
        if (cr_strvec_has(keep, status->consumers[i].name))
            status->consumers[kept++] = status->consumers[i];
        else
            dispose_consumer(&status->consumers[i]);
    }
    status->consumers_len = kept;
}

void cr_status_condition(struct cr_policy_status *status, const char *type, bool value, const char *reason,
                         const char *message, int64_t generation, int64_t now_ms)
{
    cr_conditions_update(status->conditions, cr_condition_types, CR_CONDITIONS,
                         &(struct cr_condition_text){type, value, reason, message, false}, generation, now_ms);
}

void cr_status_condition_unknown(struct cr_policy_status *status, const char *type, const char *reason,
                                 const char *message, int64_t generation, int64_t now_ms)
{
    cr_conditions_update(status->conditions, cr_condition_types, CR_CONDITIONS,
                         &(struct cr_condition_text){type, false, reason, message, true}, generation, now_ms);
}

const struct cr_condition *cr_status_condition_get(const struct cr_policy_status *status, const char *type)
{
    return cr_conditions_get(status->conditions, cr_condition_types, CR_CONDITIONS, type);
}

const char *cr_policy_status_problem(const struct cr_policy_status *status)
{
    return cr_conditions_problem(status->conditions, cr_condition_types, CR_CONDITIONS);
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms && (!b_ms || a_ms < b_ms) ? a_ms : b_ms;
}

/* In mode Plan, and while suspended, a change stays pending though all have been seen to have it. */
static bool all_have_it(const struct cr_policy_status *status)
{
    bool any = false;
    for (size_t i = 0; i < status->consumers_len; i++) {
        enum cr_consumer_state state = status->consumers[i].state;
        if (state != CR_CONSUMER_CONVERGED && state != CR_CONSUMER_ABSENT && state != CR_CONSUMER_IDLE)
            return false;
        any |= state == CR_CONSUMER_CONVERGED;
    }
    return any;
}

int64_t cr_policy_status_leaf_end_ms(const struct cr_policy_status *status, const struct cr_secret_status *secret)
{
    int64_t end_ms = secret->problem_reason ? secret->problem_not_after_ms : 0;
    bool pending = secret->pending.set;
    if (pending && secret->pending.target.has_leaf)
        end_ms = earlier(end_ms, secret->pending.target.not_after_ms);
    if (secret->has_settled && secret->settled.has_leaf && !(pending && all_have_it(status)))
        end_ms = earlier(end_ms, secret->settled.not_after_ms);
    return end_ms;
}

void cr_status_history_add(struct cr_policy_status *status, const struct cr_rotation_record *record)
{
    struct cr_rotation_record added; /* a copy first: record may be one of status's own */
    copy_record(&added, record);
    if (status->history_len == CR_HISTORY_MAX)
        dispose_record(&status->history[--status->history_len]);
    memmove(&status->history[1], &status->history[0], status->history_len * sizeof status->history[0]);
    status->history[0] = added;
    status->history_len++;
}
