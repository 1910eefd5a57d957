/* install: the program's copy in a folder that it shares with the proxy's container. */
#ifndef CERTROLL_SHUTDOWN_MANAGER_INSTALL_H
#define CERTROLL_SHUTDOWN_MANAGER_INSTALL_H

#include "base/error.h"

/* Copies this very program to folder/certroll-shutdown-manager, mode 0755, whole or not at all, as any user that may
 * write there; over one that is there, also one that runs. path: of the copy, owned. */
bool install_program(const char *folder, char **path, struct cr_error *err) CR_MUST_USE;

#endif
