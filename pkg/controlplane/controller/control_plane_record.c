#include "controlplane/controller/control_plane_record.h"

#include <stdlib.h>

#include "api/policy.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "controlplane/controller/control_plane_events.h"
#include "kube/object.h"

void cr_control_plane_record_dispose(struct cr_control_plane_record *record)
{
    free(record->name);
    free(record->uid);
    free(record->resource_version);
    cr_control_plane_status_dispose(&record->status);
    *record = (struct cr_control_plane_record){0};
}

void cr_control_plane_record_read(const struct cr_json *policy, struct cr_control_plane_record *out)
{
    *out = (struct cr_control_plane_record){.name = cr_strdup(cr_or_empty(cr_obj_name(policy))),
                                            .uid = cr_strdup_or_null(cr_obj_uid(policy)),
                                            .resource_version = cr_strdup_or_null(cr_obj_resource_version(policy)),
                                            .generation = cr_obj_generation(policy),
                                            .created_ms = cr_obj_created_ms(policy)};
    cr_control_plane_status_decode(cr_json_get(policy, "status"), &out->status);
}

void cr_control_plane_record_status(const struct cr_control_plane_record *record, struct cr_control_plane_status *out)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_control_plane_status_encode(&record->status);
    cr_control_plane_status_decode(json, out);
}

/* --- said --- */

static void say(const struct cr_control_plane_status_writer *writer, const struct cr_control_plane_record *record,
                const struct cr_control_plane_event *said)
{
    const struct cr_event event = {.api_version = CR_API_GROUP "/" CR_API_VERSION,
                                   .kind = CR_CONTROL_PLANE_KIND,
                                   .ns = CR_CONTROL_PLANE_NAMESPACE,
                                   .name = record->name,
                                   .uid = record->uid,
                                   .warning = said->warning,
                                   .reason = said->reason,
                                   .message = said->message};
    cr_recorder_emit(writer->recorder, &event);
    cr_log(said->warning ? CR_LOG_WARN : CR_LOG_INFO, said->message, {"controlplanepolicy", record->name},
           {"reason", said->reason});
}

static void say_changes(const struct cr_control_plane_status_writer *writer,
                        const struct cr_control_plane_record *record, const struct cr_control_plane_status *after)
{
    CR_CLEANUP(cr_control_plane_events) struct cr_control_plane_events events;
    cr_control_plane_events_of(&record->status, after, &events);
    for (size_t i = 0; i < events.len; i++)
        say(writer, record, &events.items[i]);
}

/* --- written --- */

/* Owned; NULL: it is so already. */
static struct cr_json *patch_of(const struct cr_control_plane_record *record,
                                const struct cr_control_plane_status *after)
{
    CR_CLEANUP(cr_json) struct cr_json *is = cr_control_plane_status_encode(&record->status);
    CR_CLEANUP(cr_json) struct cr_json *shall = cr_control_plane_status_encode(after);
    if (cr_json_equal(is, shall))
        return NULL;
    struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", record->uid);
    cr_json_set_string(metadata, "resourceVersion", record->resource_version);
    cr_json_set(patch, "status", cr_steal(&shall));
    return patch;
}

bool cr_control_plane_record_write(const struct cr_control_plane_status_writer *writer,
                                   struct cr_control_plane_record *record, const struct cr_control_plane_status *after,
                                   bool *wrote, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *patch = patch_of(record, after);
    *wrote = patch != NULL;
    if (!patch)
        return true;
    CR_CLEANUP(cr_json)
    struct cr_json *written = cr_client_merge_patch(writer->client, &cr_res_control_planes, CR_CONTROL_PLANE_NAMESPACE,
                                                    record->name, "status", patch, err);
    if (!written)
        return cr_error_wrap(err, "status of " CR_CONTROL_PLANE_KIND " %s", record->name);
    cr_own_writes_add(writer->own_writes, writer->key, CR_CONTROL_PLANE_KIND, written, cr_clock_monotonic_ms());
    say_changes(writer, record, after);
    cr_control_plane_record_dispose(record);
    cr_control_plane_record_read(written, record);
    return true;
}

/* --- what no plan makes --- */

static void forget_authority(struct cr_control_plane_authority *authority)
{
    cr_strset(&authority->trusted, "");
    cr_strset(&authority->known, "");
    cr_strset(&authority->removable, "");
}

/* A person may act on it, and it may not be true any more. */
static void forget_what_is_safe(struct cr_control_plane_status *status)
{
    forget_authority(&status->cluster);
    forget_authority(&status->etcd);
    forget_authority(&status->front_proxy);
    cr_strset(&status->service_accounts.verifying, "");
    cr_strset(&status->service_accounts.known, "");
    cr_strset(&status->service_accounts.removable, "");
}

static void set_condition(struct cr_control_plane_status *status, const struct cr_control_plane_record *record,
                          const char *type, bool value, const char *reason, const char *message, int64_t now_ms)
{
    cr_autofree char *its_reason = cr_strdup(reason);
    cr_autofree char *its_message = cr_strdup(message);
    const struct cr_condition condition = {.type = type,
                                           .status = value,
                                           .reason = its_reason,
                                           .message = its_message,
                                           .transition_ms = now_ms,
                                           .observed_generation = record->generation};
    cr_conditions_set(status->conditions, cr_control_plane_condition_types, CR_CONTROL_PLANE_CONDITIONS, &condition);
}

void cr_control_plane_status_problem(const struct cr_control_plane_record *record, const char *reason,
                                     const char *message, int64_t now_ms, struct cr_control_plane_status *out)
{
    cr_control_plane_record_status(record, out);
    out->observed_generation = record->generation;
    forget_what_is_safe(out);
    cr_strset(&out->next, message);
    set_condition(out, record, "Ready", false, reason, message, now_ms);
    set_condition(out, record, "Converged", false, reason, "it is not known", now_ms);
}

void cr_control_plane_status_refused(const struct cr_control_plane_record *record, const char *message, int64_t now_ms,
                                     struct cr_control_plane_status *status)
{
    cr_strset(&status->next, message);
    set_condition(status, record, "Blocked", true, "Refused", message, now_ms);
}

void cr_control_plane_status_conflict(const struct cr_control_plane_record *record, const char *older, int64_t now_ms,
                                      struct cr_control_plane_status *out)
{
    cr_autofree char *message = cr_asprintf(
        CR_CONTROL_PLANE_KIND " %s is older, and one counts for the whole cluster: delete one of them", older);
    cr_control_plane_status_problem(record, "Conflict", message, now_ms, out);
    set_condition(out, record, "Conflict", true, "NotTheOldest", message, now_ms);
}
