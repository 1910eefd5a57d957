/* The script that a manifest gives to a shell, as far as one must understand it to know which program it ends up as.
 * Pure. The grammar is POSIX's (pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html, sections 2.2, 2.3,
 * 2.9.1); what goes beyond plain commands is recognised, not understood. Private to pkg/controlplane/agent. */
#ifndef CR_CONTROLPLANE_AGENT_SHELL_WORDS_H
#define CR_CONTROLPLANE_AGENT_SHELL_WORDS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/strvec.h"

enum { CR_SHELL_WORDS_MAX = 4096 };

/* The words of the script's program, quotes and redirections taken away: of the command behind the last `exec`, else of
 * the longest one. False: the process may be given other words, since something in them is expanded by the shell, other
 * commands come after it, or the script has pipes, jobs, conditions, functions and the like. Then out has as much as
 * could be read. Owned by the caller in any case. */
bool cr_shell_words(const char *script, struct cr_strvec *out) CR_MUST_USE;

#endif
