#include "kube/exec_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "kube/config_internal.h"
#include "pki/material.h"
#include "sys/process.h"

enum {
    TIMEOUT_MS = 60 * 1000, /* some ask a server of their own */
    MAX_OUTPUT = 1024 * 1024,
    CREDENTIAL_VALUES = 1000, /* JSON; an ExecCredential has ten */
};

/* People put keys there, and a proxy's address may have a password. */
static void wipe(struct cr_strvec *variables)
{
    for (size_t i = 0; i < variables->len; i++)
        explicit_bzero(variables->items[i], strlen(variables->items[i]));
}

void cr_exec_plugin_free(struct cr_exec_plugin *plugin)
{
    if (!plugin)
        return;
    free(plugin->command);
    cr_strvec_dispose(&plugin->args);
    wipe(&plugin->env);
    cr_strvec_dispose(&plugin->env);
    free(plugin->api_version);
    free(plugin->install_hint);
    free(plugin);
}

void cr_exec_credential_dispose(struct cr_exec_credential *credential)
{
    cr_secret_free(credential->token);
    free(credential->cert_pem);
    cr_secret_free(credential->key_pem);
    *credential = (struct cr_exec_credential){0};
}

/* --- what it printed --- */

/* Absent, null and "" are all no text, as in client-go. */
static bool status_text(const struct cr_json *status, const char *field, char **slot, struct cr_error *err)
{
    const struct cr_json *value = cr_json_get(status, field);
    const char *text = cr_json_string(value);
    if (value && !text && !cr_json_is_null(value))
        return cr_error_set(err, CR_ERR_INVALID, "status.%s is no text", field);
    *slot = text && *text ? cr_strdup(text) : NULL;
    return true;
}

static bool decode_expiry(const struct cr_json *status, int64_t *expires_ms, struct cr_error *err)
{
    *expires_ms = INT64_MAX;
    CR_CLEANUP(cr_secret) char *text = NULL;
    if (!status_text(status, "expirationTimestamp", &text, err))
        return false;
    return !text || cr_time_parse(text, expires_ms, err) || cr_error_wrap(err, "status.expirationTimestamp");
}

/* The certificate's own end counts as well: nothing is to be had from the server with it afterwards. */
static bool check_certificate(struct cr_exec_credential *credential, struct cr_error *err)
{
    const struct cr_material_input input = {
        .certificate = {credential->cert_pem, strlen(credential->cert_pem)},
        .private_key = {credential->key_pem, strlen(credential->key_pem)},
        .names = {"status.clientCertificateData", "status.clientKeyData", "trust"},
    };
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    enum cr_material_problem problem = CR_MATERIAL_OK;
    if (!cr_material_parse(&input, cr_clock_wall_ms(), &material, &problem, err))
        return false;
    if (material.not_after_ms < credential->expires_ms)
        credential->expires_ms = material.not_after_ms;
    return true;
}

static bool decode_status(const struct cr_json *status, struct cr_exec_credential *out, struct cr_error *err)
{
    if (!status_text(status, "token", &out->token, err) ||
        !status_text(status, "clientCertificateData", &out->cert_pem, err) ||
        !status_text(status, "clientKeyData", &out->key_pem, err) || !decode_expiry(status, &out->expires_ms, err))
        return false;
    if (!out->token && !out->cert_pem && !out->key_pem)
        return cr_error_set(err, CR_ERR_INVALID, "status has neither a token nor a client certificate");
    if (!out->cert_pem != !out->key_pem)
        return cr_error_set(err, CR_ERR_INVALID, "status has only one of clientCertificateData and clientKeyData");
    if (out->token && !cr_kube_config_is_token(out->token))
        return cr_error_set(err, CR_ERR_INVALID, "status.token has characters that no token has");
    return !out->cert_pem || check_certificate(out, err);
}

static bool decode(const char *api_version, const struct cr_json *credential, struct cr_exec_credential *out,
                   struct cr_error *err)
{
    const char *version = cr_json_string_at(credential, "apiVersion");
    if (!cr_streq(cr_json_string_at(credential, "kind"), "ExecCredential") || !version)
        return cr_error_set(err, CR_ERR_INVALID, "it printed something else than an ExecCredential");
    if (strcmp(version, api_version) != 0)
        return cr_error_set(err, CR_ERR_INVALID, "the kubeconfig has apiVersion %s, but it printed %.100s", api_version,
                            version);
    const struct cr_json *status = cr_json_get(credential, "status");
    if (!cr_json_is_object(status))
        return cr_error_set(err, CR_ERR_INVALID, "what it printed has no status");
    return decode_status(status, out, err);
}

bool cr_exec_credential_decode(const char *api_version, const char *text, size_t len, struct cr_exec_credential *out,
                               struct cr_error *err)
{
    *out = (struct cr_exec_credential){0};
    struct cr_json_budget budget = {.values = CREDENTIAL_VALUES};
    CR_CLEANUP(cr_json_secret) struct cr_json *credential = cr_json_parse_within(text, len, &budget, err);
    if (!credential)
        return cr_error_wrap(err, budget.exceeded ? "what it printed" : "what it printed is no JSON");
    if (decode(api_version, credential, out, err))
        return true;
    cr_exec_credential_dispose(out);
    return false;
}

/* --- running it --- */

static bool execute(const struct cr_exec_plugin *plugin, const char *path, int cancel_fd, struct cr_buf *output,
                    struct cr_process_end *end, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec argv = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    cr_strvec_add(&argv, plugin->command);
    for (size_t i = 0; i < plugin->args.len; i++)
        cr_strvec_add(&argv, plugin->args.items[i]);
    cr_process_environment(&plugin->env, &environment);
    const struct cr_process process = {.path = path,
                                       .argv = &argv,
                                       .environment = &environment,
                                       .timeout_ms = TIMEOUT_MS,
                                       .max_output = MAX_OUTPUT,
                                       .cancel_fd = cancel_fd};
    bool ok = cr_process_run(&process, output, end, err);
    wipe(&environment);
    return ok;
}

static bool failed(const struct cr_process_end *end, struct cr_error *err)
{
    if (end->signal)
        return cr_error_set(err, CR_ERR_UNAUTHORIZED, "ended by signal %d", end->signal);
    return cr_error_set(err, CR_ERR_UNAUTHORIZED, "failed with exit status %d", end->status);
}

static bool run(const struct cr_exec_plugin *plugin, const char *path, int cancel_fd, struct cr_process_end *end,
                struct cr_exec_credential *out, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf output = {.secret = true};
    if (!execute(plugin, path, cancel_fd, &output, end, err))
        return false;
    if (end->status != 0)
        return failed(end, err);
    return cr_exec_credential_decode(plugin->api_version, cr_buf_text(&output), output.len, out, err);
}

/* Names the plugin, and what a person should know beside it (NULL, "": nothing). */
static bool explain(const struct cr_exec_plugin *plugin, const char *more, struct cr_error *err)
{
    if (!err || err->kind == CR_ERR_CANCELLED)
        return false;
    enum cr_error_kind kind = err->kind == CR_ERR_TRANSIENT ? CR_ERR_TRANSIENT : CR_ERR_UNAUTHORIZED;
    struct cr_error inner = *err;
    return cr_error_set(err, kind, "credential plugin '%s': %s%s%s", plugin->command, inner.text,
                        more && *more ? ": " : "", cr_or_empty(more));
}

bool cr_exec_plugin_run(const struct cr_exec_plugin *plugin, int cancel_fd, struct cr_exec_credential *out,
                        struct cr_error *err)
{
    *out = (struct cr_exec_credential){0};
    struct cr_error problem = {0};
    struct cr_process_end end = {0};
    cr_autofree char *path = cr_process_find(plugin->command, &problem);
    if (path && run(plugin, path, cancel_fd, &end, out, &problem))
        return true;
    explain(plugin, path ? end.last_words : plugin->install_hint, &problem);
    if (err)
        *err = problem;
    return false;
}
