#include "controlplane/agent/kubeconfig_file.h"

#include "base/alloc.h"
#include "codec/yaml.h"
#include "kube/kubeconfig_reader.h"

static void item_dispose(struct cr_kubeconfig_item *item)
{
    free(item->path);
    free(item->pem);
}

void cr_kubeconfig_file_dispose(struct cr_kubeconfig_file *file)
{
    free(file->context);
    free(file->server);
    free(file->server_name);
    free(file->token_file);
    item_dispose(&file->ca);
    item_dispose(&file->certificate);
    item_dispose(&file->key);
    *file = (struct cr_kubeconfig_file){0};
}

/* The field and the one ending in -data, which wins. pem: whether what is embedded is wanted. */
static bool read_item(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field, bool pem,
                      struct cr_kubeconfig_item *out)
{
    cr_autofree char *data_field = cr_asprintf("%s-data", field);
    const char *data = NULL;
    const char *path = NULL;
    if (!cr_kubeconfig_text(in, object, data_field, &data) || !cr_kubeconfig_text(in, object, field, &path))
        return false;
    if (data) {
        out->source = CR_KUBECONFIG_EMBEDDED;
        out->pem = pem ? cr_kubeconfig_decode(in, data_field, data) : NULL;
        return !pem || out->pem;
    }
    if (path) {
        out->source = CR_KUBECONFIG_FILE;
        out->path = cr_kubeconfig_resolve(in, path);
    }
    return true;
}

static bool read_cluster(const struct cr_kubeconfig_reader *in, const struct cr_json *cluster,
                         struct cr_kubeconfig_file *out)
{
    return cr_kubeconfig_copy(in, cluster, "server", &out->server) &&
           cr_kubeconfig_copy(in, cluster, "tls-server-name", &out->server_name) &&
           cr_kubeconfig_bool(in, cluster, "insecure-skip-tls-verify", &out->insecure) &&
           read_item(in, cluster, "certificate-authority", true, &out->ca);
}

/* Notes only that there is a token. */
static bool read_token(const struct cr_kubeconfig_reader *in, const struct cr_json *user,
                       struct cr_kubeconfig_file *out)
{
    const char *token = NULL;
    const char *file = NULL;
    if (!cr_kubeconfig_text(in, user, "token", &token) || !cr_kubeconfig_text(in, user, "tokenFile", &file))
        return false;
    out->has_token = token || file;
    out->token_file = file ? cr_kubeconfig_resolve(in, file) : NULL;
    return true;
}

static bool read_user(const struct cr_kubeconfig_reader *in, const struct cr_json *user, struct cr_kubeconfig_file *out)
{
    if (!read_item(in, user, "client-certificate", true, &out->certificate) ||
        !read_item(in, user, "client-key", false, &out->key) || !read_token(in, user, out))
        return false;
    out->has_exec = cr_json_is_object(cr_json_get(user, "exec"));
    out->leaf_reloads = out->certificate.source == CR_KUBECONFIG_FILE && out->key.source == CR_KUBECONFIG_FILE;
    if (out->certificate.source && !out->key.source)
        return cr_kubeconfig_invalid(in, "client-key", "is missing, but there is a client-certificate");
    if (out->key.source && !out->certificate.source)
        return cr_kubeconfig_invalid(in, "client-certificate", "is missing, but there is a client-key");
    return true;
}

/* What the context names under `kind`, read by the function for it. */
static bool read_part(const char *path, const struct cr_json *file, const struct cr_json *context, const char *kind,
                      bool (*read)(const struct cr_kubeconfig_reader *, const struct cr_json *,
                                   struct cr_kubeconfig_file *),
                      struct cr_kubeconfig_file *out, struct cr_error *err)
{
    const struct cr_json *body = cr_kubeconfig_part(path, file, context, kind, err);
    if (!body)
        return false;
    cr_autofree char *what = cr_asprintf("%s '%s'", kind, cr_json_string_at(context, kind));
    return read(&(struct cr_kubeconfig_reader){.path = path, .what = what, .err = err}, body, out);
}

static bool read_file(const char *path, const struct cr_json *file, struct cr_kubeconfig_file *out,
                      struct cr_error *err)
{
    const char *name = NULL;
    const struct cr_json *context = cr_kubeconfig_context(path, file, NULL, &name, err);
    if (!context)
        return false;
    out->context = cr_strdup(name);
    cr_autofree char *what = cr_asprintf("context '%s'", name);
    const struct cr_kubeconfig_reader in = {.path = path, .what = what, .err = err};
    const char *user = NULL;
    return cr_kubeconfig_text(&in, context, "user", &user) &&
           read_part(path, file, context, "cluster", read_cluster, out, err) &&
           (!user || read_part(path, file, context, "user", read_user, out, err));
}

bool cr_kubeconfig_file_read(const char *path, const char *text, size_t len, struct cr_kubeconfig_file *out,
                             struct cr_error *err)
{
    *out = (struct cr_kubeconfig_file){0};
    CR_CLEANUP(cr_json_secret) struct cr_json *file = cr_yaml_parse(text, len, err);
    if (!file)
        return cr_error_wrap(err, "%s", path);
    if (read_file(path, file, out, err))
        return true;
    cr_kubeconfig_file_dispose(out);
    return false;
}
