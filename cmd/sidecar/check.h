/* --check: what a configuration would do, for a person. */
#ifndef CERTROLL_SIDECAR_CHECK_H
#define CERTROLL_SIDECAR_CHECK_H

#include <stdio.h>

#include "sidecar/config.h"

void check_print(const struct cr_sidecar_config *config, FILE *out);

#endif
