#include "certgen/profiles.h"

#include <string.h>

#include "base/strings.h"

const struct cr_certgen_profile *cr_certgen_profile_find(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < cr_certgen_profiles_len; i++)
        if (strncmp(cr_certgen_profiles[i].name, name, len) == 0 &&
            cr_streq(cr_certgen_profiles[i].name + len, ".yaml"))
            return &cr_certgen_profiles[i];
    return NULL;
}
