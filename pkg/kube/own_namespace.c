#include "kube/own_namespace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "kube/config_internal.h"

static const char namespace_file[] = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

bool cr_is_namespace_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && name[0] != '-' &&
           name[len - 1] != '-';
}

bool cr_own_namespace(char **ns, struct cr_error *err)
{
    const char *variable = getenv("POD_NAMESPACE");
    bool given = variable && *variable;
    cr_autofree char *name = given ? cr_strdup(variable) : cr_kube_config_read(namespace_file, "namespace", NULL);
    if (name && !cr_is_namespace_name(name))
        return cr_error_set(err, CR_ERR_INVALID, "%s says '%s', which is no name of a namespace",
                            given ? "POD_NAMESPACE" : namespace_file, name);
    *ns = cr_steal(&name);
    return true;
}
