/* The next CA of a staged rotation. It must outlive a kill, so it is in a Secret; it is deleted as soon as the last
 * leaf has arrived. After that nothing can be issued by it any more. */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/job_internal.h"
#include "certgen/leaf.h"
#include "codec/base64.h"
#include "kube/object.h"
#include "pki/digest.h"

#define STAGING_PREFIX "certroll-staging-"
#define SET_ANNOTATION "certroll.dev/certgen"

enum { DIGEST_HEX = 16 };

/* Owned. It is the same for each run with these Secrets, whatever the name of the file. */
static char *staging_name(const struct cr_certgen_set *set)
{
    CR_CLEANUP(cr_buf) struct cr_buf names = CR_BUF_INIT(0);
    for (size_t i = 0; i < set->secrets_len; i++)
        cr_buf_printf(&names, "%s,", set->secrets[i].name);
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(names.data, names.len, hex);
    return cr_asprintf(STAGING_PREFIX "%.*s", DIGEST_HEX, hex);
}

static bool decode(const struct cr_json *object, const char *entry, struct cr_buf *out, struct cr_error *err)
{
    out->secret = true;
    const char *text = cr_json_string_at(object, "data", entry);
    return text ? cr_base64_decode(text, strlen(text), out, err)
                : cr_error_set(err, CR_ERR_INVALID, "%s is missing", entry);
}

static bool take(struct cr_certgen_run *run, const struct cr_json *object, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf certificate = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf key = CR_BUF_INIT(0);
    if (!decode(object, CR_CERTGEN_CERTIFICATE, &certificate, err) ||
        !decode(object, CR_CERTGEN_PRIVATE_KEY, &key, err))
        return false;
    const struct cr_pem_input in[] = {{certificate.data, certificate.len}, {key.data, key.len}};
    run->authority = cr_authority_read(&in[0], &in[1], cr_clock_wall_ms(), err);
    cr_strset(&run->staging_uid, cr_obj_uid(object));
    return run->authority != NULL;
}

bool cr_certgen_staging_read(struct cr_certgen_run *run, bool *found, struct cr_error *err)
{
    cr_autofree char *name = staging_name(run->job->set);
    struct cr_error why = {0};
    struct cr_json *object = cr_client_get(run->job->client, &cr_res_secrets, run->job->set->ns, name, &why);
    *found = object != NULL;
    if (!object && why.kind == CR_ERR_NOT_FOUND)
        return true;
    bool ok = object && take(run, object, &why);
    cr_json_free_secret(object);
    if (ok)
        return true;
    *err = why;
    const char *hint = why.kind == CR_ERR_INVALID ? " (delete it, and the rotation begins with another)" : "";
    return cr_error_wrap(err, "Secret %s/%s, with the next CA%s", run->job->set->ns, name, hint);
}

static void put(struct cr_json *object, const char *entry, const char *bytes, size_t len)
{
    char *text = cr_base64_encode(bytes, len);
    cr_json_set_string(cr_json_object_in(object, "data"), entry, text);
    explicit_bzero(text, strlen(text));
    free(text);
}

static struct cr_json *new_object(const struct cr_certgen_set *set, const char *name, const char *certificate,
                                  const struct cr_buf *key)
{
    struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "apiVersion", "v1");
    cr_json_set_string(object, "kind", "Secret");
    cr_json_set_string(object, "type", "kubernetes.io/tls");
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    cr_json_set_string(metadata, "name", name);
    cr_json_set_string(metadata, "namespace", set->ns);
    cr_json_set_string(cr_json_object_in(metadata, "labels"), CR_MANAGED_BY_LABEL, "certroll");
    cr_json_set_string(cr_json_object_in(metadata, "annotations"), SET_ANNOTATION, set->name);
    put(object, CR_CERTGEN_CERTIFICATE, certificate, strlen(certificate));
    put(object, CR_CERTGEN_PRIVATE_KEY, key->data, key->len);
    return object;
}

/* Owned: as it was created; NULL with err. */
static struct cr_json *create(struct cr_certgen_run *run, const char *name, struct cr_error *err)
{
    const struct cr_certgen_set *set = run->job->set;
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = NULL;
    CR_CLEANUP(cr_buf) struct cr_buf pem = {.secret = true};
    CR_CLEANUP(cr_authority)
    struct cr_authority *authority = cr_certgen_authority_new(set, cr_clock_wall_ms(), &key, err);
    if (!authority || !cr_private_key_write(key, &pem, err))
        return NULL;
    struct cr_json *object = new_object(set, name, cr_authority_certificate(authority), &pem);
    struct cr_json *created = cr_client_create(run->job->client, &cr_res_secrets, set->ns, object, err);
    cr_json_free_secret(object);
    return created;
}

bool cr_certgen_staging_make(struct cr_certgen_run *run, struct cr_error *err)
{
    cr_autofree char *name = staging_name(run->job->set);
    struct cr_error why = {0};
    struct cr_json *created = create(run, name, &why);
    bool ok = created && take(run, created, &why);
    cr_json_free_secret(created);
    bool found = false;
    if (!ok && why.kind == CR_ERR_CONFLICT)
        return cr_certgen_staging_read(run, &found, err) &&
               (found || cr_error_set(err, CR_ERR_CONFLICT, "the next CA is gone again"));
    if (ok)
        return true;
    *err = why;
    return cr_error_wrap(err, "Secret %s/%s, for the next CA", run->job->set->ns, name);
}

/* Deletes only the one that was read: another rotation may have begun since. */
bool cr_certgen_staging_delete(struct cr_certgen_run *run, struct cr_error *err)
{
    cr_autofree char *name = staging_name(run->job->set);
    const struct cr_delete_options options = {.uid = run->staging_uid};
    struct cr_error why = {0};
    if (cr_client_delete(run->job->client, &cr_res_secrets, run->job->set->ns, name, &options, &why) ||
        why.kind == CR_ERR_NOT_FOUND)
        return true;
    *err = why;
    return cr_error_wrap(err, "Secret %s/%s, with the next CA", run->job->set->ns, name);
}
