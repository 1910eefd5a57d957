/* Time zones by name, each read once from the folder of the database and kept. Thread-safe. */
#ifndef CR_POLICY_CONTROLLER_ZONES_H
#define CR_POLICY_CONTROLLER_ZONES_H

#include "api/policy.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "codec/tzif.h"

#define CR_ZONES_FOLDER "/usr/share/zoneinfo"

struct cr_zones;

/* folder: NULL for CR_ZONES_FOLDER. */
struct cr_zones *cr_zones_new(const char *folder);
void cr_zones_free(struct cr_zones *zones);
CR_DEFINE_CLEANUP(cr_zones, struct cr_zones, cr_zones_free)

/* Borrowed until zones are freed; NULL on failure. UTC is there without a file. Errors: Invalid when there is no such
 * zone, or its file is not a zone's; otherwise the error of reading it. May block for a file. */
const struct cr_tzif *cr_zones_get(struct cr_zones *zones, const char *name, struct cr_error *err) CR_MUST_USE;

/* The zones of the policy's windows. Errors as above, with the field. */
bool cr_zones_of(struct cr_zones *zones, const struct cr_policy *policy,
                 const struct cr_tzif *out[CR_POLICY_WINDOWS_MAX], struct cr_error *err) CR_MUST_USE;

#endif
