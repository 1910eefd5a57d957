#include "controlplane/controller/control_plane_project.h"

#include <stdlib.h>
#include <string.h>

#include "api/token_key.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "kube/object.h"
#include "pki/ca_set.h"

/* --- metadata --- */

/* Everything else is wiped, since it may be part of a Secret. */
static void keep_identity(struct cr_json *json)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion"};
    struct cr_json *metadata = cr_json_take(json, "metadata");
    struct cr_json *dropped = NULL;
    while ((dropped = cr_json_take_first(json)))
        cr_json_free_secret(dropped);
    struct cr_json *identity = cr_json_object_in(json, "metadata");
    for (size_t i = 0; i < cr_array_len(kept); i++)
        cr_json_set(identity, kept[i], cr_json_take(metadata, kept[i]));
    cr_json_free_secret(metadata);
}

/* The label that kubeadm gives (kubernetes.io/docs/reference/labels-annotations-taints), and that a kubelet may not
 * give itself. */
bool cr_control_plane_project_node(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    static char labelled;
    (void)arg;
    if (cr_json_at(json, "metadata", "labels", "node-role.kubernetes.io/control-plane"))
        snapshot->extra = &labelled;
    keep_identity(json);
    return true;
}

bool cr_control_plane_project_namespace(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    static char terminating;
    (void)arg;
    if (cr_obj_deleting(json))
        snapshot->extra = &terminating;
    keep_identity(json);
    return true;
}

/* --- reports --- */

static void kept_report_free(void *extra)
{
    struct cr_kept_report *kept = extra;
    cr_node_report_dispose(&kept->report);
    free(kept);
}

/* Digests the text, which is the same when the agent reports the same. The order is the operator's own. */
static void digest_content(struct cr_json *json, struct cr_kept_report *kept)
{
    cr_json_remove(cr_json_edit(json, "status"), "seen");
    cr_autofree char *text = cr_json_print(cr_json_get(json, "status"));
    const char *token = cr_or_empty(kept->report.order.token);
    const struct cr_sha256_piece pieces[] = {{token, strlen(token) + 1}, {text, strlen(text)}};
    cr_sha256_hex_pieces(pieces, cr_array_len(pieces), kept->content);
}

/* A report is read into room for the most entries that it may have, which is 70 KB, and there are thousands of reports.
 */
#define SHRINK(report, list)                                                                                           \
    if ((report)->list)                                                                                                \
    (report)->list =                                                                                                   \
        cr_reallocarray((report)->list, (report)->list##_len ? (report)->list##_len : 1, sizeof *(report)->list)

static void shrink(struct cr_node_report *report)
{
    SHRINK(report, components);
    SHRINK(report, files);
    SHRINK(report, cas);
    SHRINK(report, tokens);
}

bool cr_control_plane_project_report(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    struct cr_kept_report *kept = cr_new(struct cr_kept_report);
    if (!cr_node_report_decode(json, &kept->report, NULL)) {
        free(kept);
        return false;
    }
    shrink(&kept->report);
    digest_content(json, kept);
    keep_identity(json);
    snapshot->extra = kept;
    snapshot->free_extra = kept_report_free;
    return true;
}

/* --- CAs --- */

static void kept_trust_free(void *extra)
{
    struct cr_kept_trust *kept = extra;
    cr_strvec_dispose(&kept->prints);
    free(kept->key);
    free(kept);
}

static void read_bundle(const char *text, size_t len, struct cr_kept_trust *kept)
{
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *set = cr_ca_set_new();
    const struct cr_pem_input in = {text, len};
    if (!text || !cr_ca_set_add(set, &in, NULL, NULL))
        return;
    kept->readable = true;
    for (size_t i = 0; i < cr_ca_set_len(set); i++)
        cr_strvec_add(&kept->prints, cr_ca_set_facts(set, i)->fingerprint);
    cr_strvec_sort(&kept->prints);
}

static void keep(struct cr_json *json, struct cr_kept_trust *kept, struct cr_snapshot *snapshot)
{
    keep_identity(json);
    snapshot->extra = kept;
    snapshot->free_extra = kept_trust_free;
}

bool cr_control_plane_project_root_ca(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    struct cr_kept_trust *kept = cr_new(struct cr_kept_trust);
    const char *text = cr_json_string_at(json, "data", "ca.crt");
    read_bundle(text, text ? strlen(text) : 0, kept);
    kept->immutable = cr_json_bool_at(json, false, "immutable");
    keep(json, kept, snapshot);
    return true;
}

void cr_control_plane_project_unreadable(void *arg, struct cr_snapshot *snapshot)
{
    (void)arg;
    struct cr_kept_trust *kept = cr_new(struct cr_kept_trust);
    kept->unreadable = true;
    keep(snapshot->json, kept, snapshot);
}

/* --- tokens --- */

static void read_token(const char *base64, struct cr_kept_trust *kept)
{
    char key[CR_SHA256_HEX];
    CR_CLEANUP(cr_buf) struct cr_buf token = {.secret = true};
    if (base64 && cr_base64_decode(base64, strlen(base64), &token, NULL) &&
        cr_token_key(cr_buf_text(&token), token.len, key))
        kept->key = cr_strdup(key);
}

bool cr_control_plane_project_token_secret(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    struct cr_kept_trust *kept = cr_new(struct cr_kept_trust);
    const char *ca = cr_json_string_at(json, "data", "ca.crt");
    CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
    if (ca && cr_base64_decode(ca, strlen(ca), &bundle, NULL))
        read_bundle(cr_buf_text(&bundle), bundle.len, kept);
    const char *token = cr_json_string_at(json, "data", "token");
    kept->has_token = token && *token;
    kept->immutable = cr_json_bool_at(json, false, "immutable");
    kept->deleting = cr_obj_deleting(json);
    read_token(token, kept);
    keep(json, kept, snapshot);
    return true;
}
