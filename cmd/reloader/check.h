/* --check: what a configuration would do, for a person. */
#ifndef CERTROLL_RELOADER_CHECK_H
#define CERTROLL_RELOADER_CHECK_H

#include <stdio.h>

#include "reloader/config.h"

void check_print(const struct cr_reloader_config *config, FILE *out);

#endif
