/* Names of consumers that were found. Private to pkg/workload. */
#ifndef CR_WORKLOAD_FOUND_NAME_H
#define CR_WORKLOAD_FOUND_NAME_H

#include "base/strmap.h"

enum { CR_FOUND_NAME_MAX = 63 }; /* as the schema has it for consumers[].name */

/* "deployment-web": the same for the same workload, as long as no other has that name. Names of Kubernetes may have 253
 * characters and dots: such a one, and one that is taken, gets a hash of kind and name at its end. Owned. */
char *cr_found_name(const char *kind, const char *name, const struct cr_strmap *taken);

#endif
