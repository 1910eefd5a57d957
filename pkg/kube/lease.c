#include "kube/lease.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/object.h"

const struct cr_resource cr_res_leases = {"coordination.k8s.io", "v1", "leases", "Lease"};

void cr_lease_dispose(struct cr_lease *lease)
{
    free(lease->holder);
    free(lease->acquired);
    free(lease->record);
    free(lease->uid);
    free(lease->resource_version);
    *lease = (struct cr_lease){0};
}

/* The seconds are an int32 in the API; what does not fit says nothing. */
static int64_t duration_of(const struct cr_json *spec)
{
    int64_t seconds = cr_json_int_at(spec, 0, "leaseDurationSeconds");
    return seconds > 0 && seconds <= INT32_MAX ? seconds * 1000 : 0;
}

bool cr_lease_read(const struct cr_json *object, struct cr_lease *lease, struct cr_error *err)
{
    const struct cr_json *spec = cr_json_get(object, "spec");
    const char *resource_version = cr_obj_resource_version(object);
    if (!resource_version || !*resource_version)
        return cr_error_set(err, CR_ERR_INVALID, "a Lease without a resourceVersion");
    cr_lease_dispose(lease);
    *lease = (struct cr_lease){
        .holder = cr_strdup(cr_or_empty(cr_json_string_at(spec, "holderIdentity"))),
        .duration_ms = duration_of(spec),
        .transitions = cr_json_int_at(spec, 0, "leaseTransitions"),
        .acquired = cr_strdup_or_null(cr_json_string_at(spec, "acquireTime")),
        .record = cr_json_print(spec),
        .uid = cr_strdup_or_null(cr_obj_uid(object)),
        .resource_version = cr_strdup(resource_version),
    };
    return true;
}

/* Owned: a whole Lease but for its name, and at the same time a merge patch of one. */
static struct cr_json *claimed(const struct cr_lease_claim *claim)
{
    char now[CR_TIME_TEXT];
    cr_time_format_micro(cr_clock_wall_ms(), now);
    struct cr_json *object = cr_json_new_object();
    struct cr_json *spec = cr_json_object_in(object, "spec");
    cr_json_set_string(spec, "holderIdentity", claim->holder);
    cr_json_set_int(spec, "leaseDurationSeconds", claim->duration_ms / 1000);
    cr_json_set_string(spec, "acquireTime", claim->acquired ? claim->acquired : now);
    cr_json_set_string(spec, "renewTime", now);
    cr_json_set_int(spec, "leaseTransitions", claim->transitions);
    return object;
}

bool cr_lease_get(const struct cr_lease_place *place, struct cr_lease *lease, struct cr_error *err)
{
    CR_CLEANUP(cr_json)
    struct cr_json *object = cr_client_get(place->client, &cr_res_leases, place->ns, place->name, err);
    return object && cr_lease_read(object, lease, err);
}

bool cr_lease_create(const struct cr_lease_place *place, const struct cr_lease_claim *claim, struct cr_lease *lease,
                     struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *object = claimed(claim);
    cr_resource_stamp(&cr_res_leases, object);
    cr_json_set_string(cr_json_object_in(object, "metadata"), "name", place->name);
    CR_CLEANUP(cr_json)
    struct cr_json *made = cr_client_create(place->client, &cr_res_leases, place->ns, object, err);
    return made && cr_lease_read(made, lease, err);
}

bool cr_lease_update(const struct cr_lease_place *place, const char *resource_version,
                     const struct cr_lease_claim *claim, struct cr_lease *lease, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *patch = claimed(claim);
    cr_json_set_string(cr_json_object_in(patch, "metadata"), "resourceVersion", resource_version);
    CR_CLEANUP(cr_json)
    struct cr_json *written =
        cr_client_merge_patch(place->client, &cr_res_leases, place->ns, place->name, NULL, patch, err);
    return written && cr_lease_read(written, lease, err);
}
