#include "kube/object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

enum { SECOND_MS = 1000 };

static int64_t time_of(const char *text)
{
    int64_t ms = 0;
    return text && cr_time_parse(text, &ms, NULL) ? ms : 0;
}

const char *cr_obj_name(const struct cr_json *object)
{
    return cr_json_string_at(object, "metadata", "name");
}

const char *cr_obj_namespace(const struct cr_json *object)
{
    return cr_json_string_at(object, "metadata", "namespace");
}

const char *cr_obj_uid(const struct cr_json *object)
{
    return cr_json_string_at(object, "metadata", "uid");
}

const char *cr_obj_resource_version(const struct cr_json *object)
{
    return cr_json_string_at(object, "metadata", "resourceVersion");
}

int64_t cr_obj_generation(const struct cr_json *object)
{
    return cr_json_int_at(object, 0, "metadata", "generation");
}

int64_t cr_obj_created_ms(const struct cr_json *object)
{
    return time_of(cr_json_string_at(object, "metadata", "creationTimestamp"));
}

bool cr_obj_deleting(const struct cr_json *object)
{
    return cr_json_string_at(object, "metadata", "deletionTimestamp") != NULL;
}

const char *cr_obj_annotation(const struct cr_json *object, const char *name)
{
    return cr_json_string_at(object, "metadata", "annotations", name);
}

const struct cr_json *cr_obj_controller(const struct cr_json *object)
{
    const struct cr_json *owners = cr_json_at(object, "metadata", "ownerReferences");
    for (const struct cr_json *owner = cr_json_first(owners); owner; owner = cr_json_next(owner))
        if (cr_json_bool_at(owner, false, "controller"))
            return owner;
    return NULL;
}

char *cr_obj_key(const struct cr_json *object)
{
    return cr_asprintf("%s/%s", cr_or_empty(cr_obj_namespace(object)), cr_or_empty(cr_obj_name(object)));
}

/* --- pods --- */

const char *cr_pod_ip(const struct cr_json *pod)
{
    const char *ip = cr_json_string_at(pod, "status", "podIP");
    return ip && *ip ? ip : NULL;
}

const char *cr_pod_phase(const struct cr_json *pod)
{
    return cr_json_string_at(pod, "status", "phase");
}

bool cr_pod_ready(const struct cr_json *pod)
{
    const struct cr_json *conditions = cr_json_at(pod, "status", "conditions");
    for (const struct cr_json *c = cr_json_first(conditions); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, "type"), "Ready"))
            return cr_streq(cr_json_string_at(c, "status"), "True");
    return false;
}

bool cr_pod_active(const struct cr_json *pod)
{
    const char *phase = cr_pod_phase(pod);
    return pod && !cr_obj_deleting(pod) && !cr_streq(phase, "Succeeded") && !cr_streq(phase, "Failed");
}

int64_t cr_pod_started_ms(const struct cr_json *pod)
{
    int64_t latest = 0;
    int64_t restarts = 0;
    const struct cr_json *containers = cr_json_at(pod, "status", "containerStatuses");
    for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c)) {
        int64_t started = time_of(cr_json_string_at(c, "state", "running", "startedAt"));
        if (!started)
            continue;
        if (started > latest)
            latest = started;
        restarts += cr_json_int_at(c, 0, "restartCount") % SECOND_MS;
    }
    return latest ? latest + restarts % SECOND_MS : time_of(cr_json_string_at(pod, "status", "startTime"));
}
