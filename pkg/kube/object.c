#include "kube/object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

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

/* --- label selectors: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ --- */

static bool labels_match(const struct cr_json *wanted, const struct cr_json *labels)
{
    for (const struct cr_json *w = cr_json_first(wanted); w; w = cr_json_next(w)) {
        const char *value = cr_json_string(cr_json_get(labels, cr_json_key(w)));
        if (!value || !cr_streq(value, cr_json_string(w)))
            return false;
    }
    return true;
}

static bool among(const char *value, const struct cr_json *values)
{
    for (const struct cr_json *v = cr_json_first(values); v; v = cr_json_next(v))
        if (cr_streq(cr_json_string(v), value))
            return true;
    return false;
}

/* An operator that is not known matches nothing: to select too little is the safe mistake. */
static bool expression_matches(const struct cr_json *expression, const struct cr_json *labels)
{
    const char *key = cr_json_string_at(expression, "key");
    const char *op = cr_or_empty(cr_json_string_at(expression, "operator"));
    const struct cr_json *values = cr_json_get(expression, "values");
    const char *value = key ? cr_json_string(cr_json_get(labels, key)) : NULL;
    if (!key)
        return false;
    if (strcmp(op, "In") == 0)
        return value && among(value, values);
    if (strcmp(op, "NotIn") == 0)
        return !value || !among(value, values);
    if (strcmp(op, "Exists") == 0)
        return value != NULL;
    return strcmp(op, "DoesNotExist") == 0 && !value;
}

bool cr_label_selector_matches(const struct cr_json *selector, const struct cr_json *labels)
{
    const struct cr_json *wanted = cr_json_get(selector, "matchLabels");
    const struct cr_json *expressions = cr_json_get(selector, "matchExpressions");
    if (!cr_json_len(wanted) && !cr_json_len(expressions))
        return false;
    if (!labels_match(wanted, labels))
        return false;
    for (const struct cr_json *e = cr_json_first(expressions); e; e = cr_json_next(e))
        if (!expression_matches(e, labels))
            return false;
    return true;
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

static int64_t time_of(const char *text)
{
    int64_t ms = 0;
    return text && cr_time_parse(text, &ms, NULL) ? ms : 0;
}

int64_t cr_pod_started_ms(const struct cr_json *pod)
{
    int64_t latest = 0;
    const struct cr_json *containers = cr_json_at(pod, "status", "containerStatuses");
    for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c)) {
        int64_t started = time_of(cr_json_string_at(c, "state", "running", "startedAt"));
        if (started > latest)
            latest = started;
    }
    return latest ? latest : time_of(cr_json_string_at(pod, "status", "startTime"));
}
