#include "codec/resource_type.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

char *cr_resource_api_version(const struct cr_resource *resource)
{
    return cr_asprintf("%s%s%s", resource->group, *resource->group ? "/" : "", resource->version);
}

/* The version of an apiVersion of this group; NULL: it is of another group. */
static const char *version_in(const char *group, const char *api_version)
{
    size_t len = strlen(group);
    if (!len)
        return api_version && !strchr(api_version, '/') ? api_version : NULL;
    return cr_starts_with(api_version, group) && api_version[len] == '/' ? api_version + len + 1 : NULL;
}

bool cr_resource_has_api_version(const struct cr_resource *resource, const char *api_version)
{
    const char *version = version_in(resource->group, api_version);
    return version && strcmp(version, resource->version) == 0;
}

bool cr_resource_shares_group(const struct cr_resource *resource, const char *api_version)
{
    return version_in(resource->group, api_version) != NULL;
}
