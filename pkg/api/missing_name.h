/* What becomes of a leaf without a name that clients ask for. The owner of its Secret sets this by an annotation, for
 * owners who cannot edit the policy. */
#ifndef CR_API_MISSING_NAME_H
#define CR_API_MISSING_NAME_H

#include <stdbool.h>

#include "api/policy.h"

#define CR_MISSING_NAME_ANNOTATION "certroll.dev/on-missing-name"

/* "Hold", "Report". False: it is neither, and value is left alone. */
bool cr_on_missing_name_parse(const char *text, enum cr_on_missing_name *value);

#endif
