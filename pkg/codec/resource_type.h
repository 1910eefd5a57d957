/* How the API server calls a type of resources. The functions that make requests with it are in kube/resource.h; the
 * types that pkg/api has tables of need none. */
#ifndef CR_CODEC_RESOURCE_TYPE_H
#define CR_CODEC_RESOURCE_TYPE_H

#include <stdbool.h>

/* Static data of the caller. */
struct cr_resource {
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural; /* "deployments" */
    const char *kind;   /* "Deployment" */
};

/* "apps/v1", of the core group "v1". Owned. */
char *cr_resource_api_version(const struct cr_resource *resource);
/* Whether it is exactly that. NULL is not. */
bool cr_resource_has_api_version(const struct cr_resource *resource, const char *api_version);
/* Whether an apiVersion is of the resource's group, in whatever version. NULL is not. */
bool cr_resource_shares_group(const struct cr_resource *resource, const char *api_version);

#endif
