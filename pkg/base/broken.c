#include "base/broken.h"

#include <stdlib.h>

#include "base/log.h"

void cr_broken_memory(const char *what)
{
    cr_log(CR_LOG_ERROR, "what is kept in memory cannot be read; ending, a restart loses nothing", {"what", what});
    abort();
}
