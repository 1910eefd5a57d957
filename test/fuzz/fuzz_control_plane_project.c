/* A report, a kube-root-ca.crt, a token Secret, a Node or a Namespace as YAML: what is kept of it is who it is, and
 * digests; nothing of its content, and nothing that is not sorted. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "codec/yaml.h"
#include "controlplane/controller/control_plane_project.h"

typedef bool (*project_fn)(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);

static void require_identity_alone(const struct cr_json *json)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion"};
    require(cr_json_len(json) == 1 && cr_json_is_object(cr_json_get(json, "metadata")));
    const struct cr_json *metadata = cr_json_get(json, "metadata");
    for (const struct cr_json *m = cr_json_first(metadata); m; m = cr_json_next(m)) {
        bool known = false;
        for (size_t i = 0; i < cr_array_len(kept); i++)
            known = known || cr_streq(cr_json_key(m), kept[i]);
        require(known);
    }
}

static void check_digest(const char *digest)
{
    require(strlen(digest) == CR_SHA256_HEX - 1 && strspn(digest, "0123456789abcdef") == CR_SHA256_HEX - 1);
}

static void check_trust(const struct cr_kept_trust *kept)
{
    require(kept->readable || !kept->prints.len);
    for (size_t i = 0; i < kept->prints.len; i++) {
        check_digest(kept->prints.items[i]);
        require(i == 0 || strcmp(kept->prints.items[i - 1], kept->prints.items[i]) < 0);
    }
    if (kept->key)
        check_digest(kept->key);
}

static struct cr_snapshot *project(const struct cr_json *object, project_fn fn)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(cr_json_copy(object));
    if (!fn(NULL, snapshot->json, snapshot))
        return NULL;
    require_identity_alone(snapshot->json);
    return cr_steal(&snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object || !cr_json_is_object(object))
        return 0;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *report = project(object, cr_control_plane_project_report);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *root_ca = project(object, cr_control_plane_project_root_ca);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *token = project(object, cr_control_plane_project_token_secret);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *node = project(object, cr_control_plane_project_node);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *ns = project(object, cr_control_plane_project_namespace);
    require(root_ca && token && node && ns);
    if (report)
        check_digest(((const struct cr_kept_report *)report->extra)->content);
    check_trust(root_ca->extra);
    check_trust(token->extra);
    return 0;
}
