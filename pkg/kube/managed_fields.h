/* metadata.managedFields: which program wrote which part of an object. The API server keeps it for each write, an
 * update as well as an apply, and the program that changes a value takes it over (Kubernetes, "Server-Side Apply",
 * Field management). */
#ifndef CR_KUBE_MANAGED_FIELDS_H
#define CR_KUBE_MANAGED_FIELDS_H

#include "codec/json.h"

/* What certroll's writes are under. */
#define CR_FIELD_MANAGER "certroll"

/* The last other program that has written one of these fields (as "f:tls.crt"; NULL ends the list), not before our own
 * last write of one; wherever they are but in metadata. Borrowed from the object; NULL: no other program has. Times
 * have whole seconds: in the same one, the other counts as the later. */
const char *cr_managed_fields_other(const struct cr_json *object, const char *const *fields);

#endif
