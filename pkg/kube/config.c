#include "kube/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "kube/config_internal.h"
#include "kube/exec_plugin.h"
#include "pki/material.h"
#include "sys/file.h"

/* A bundle of a few hundred CAs; a token is a few kilobytes. */
enum { MAX_FILE = 1024 * 1024 };

static const char service_account[] = "/var/run/secrets/kubernetes.io/serviceaccount";

void cr_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void cr_kube_config_free(struct cr_kube_config *config)
{
    if (!config)
        return;
    free(config->server);
    free(config->server_name);
    free(config->ca_pem);
    free(config->cert_pem);
    cr_secret_free(config->key_pem);
    cr_secret_free(config->token);
    free(config->ca_file);
    free(config->cert_file);
    free(config->key_file);
    free(config->token_file);
    cr_secret_free(config->proxy_url);
    cr_exec_plugin_free(config->exec);
    free(config->ns);
    free(config->source);
    free(config);
}

char *cr_kube_config_read(const char *path, const char *what, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    if (!cr_file_read(path, MAX_FILE, &text, err)) {
        cr_error_wrap(err, "%s", what);
        return NULL;
    }
    static const char blank[] = " \t\r\n";
    size_t start = text.len ? strspn(text.data, blank) : 0;
    while (text.len > start && strchr(blank, text.data[text.len - 1]))
        text.len--;
    if (text.len <= start || memchr(text.data, '\0', text.len)) {
        cr_error_set(err, CR_ERR_INVALID, "%s: %s is %s", what, path, text.len <= start ? "empty" : "no text");
        return NULL;
    }
    return cr_strndup(text.data + start, text.len - start);
}

bool cr_kube_config_is_token(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return *text != '\0';
}

char *cr_kube_config_read_token(const char *path, struct cr_error *err)
{
    char *token = cr_kube_config_read(path, "token", err);
    if (!token || cr_kube_config_is_token(token))
        return token;
    cr_error_set(err, CR_ERR_INVALID, "token: %s has characters that no token has", path);
    cr_secret_free(token);
    return NULL;
}

/* The kinds of client-go. The text is not repeated: it may have a password. */
static bool check_proxy(const struct cr_kube_config *config, struct cr_error *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    if (!config->proxy_url)
        return true;
    for (size_t i = 0; i < cr_array_len(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (cr_starts_with(config->proxy_url, schemes[i]) && config->proxy_url[len] && config->proxy_url[len] != '/' &&
            cr_kube_config_is_token(config->proxy_url))
            return true;
    }
    return cr_error_set(err, CR_ERR_INVALID,
                        "%s: proxy-url is no address like http://host:3128 (or https://, socks5://)", config->source);
}

bool cr_kube_config_check(struct cr_kube_config *config, struct cr_error *err)
{
    size_t len = strlen(config->server);
    while (len && config->server[len - 1] == '/')
        config->server[--len] = '\0';
    if (!check_proxy(config, err))
        return false;
    bool tls = cr_starts_with(config->server, "https://");
    const char *host = strstr(config->server, "://");
    if ((!tls && !cr_starts_with(config->server, "http://")) || !host || !host[3] ||
        strpbrk(config->server, "@?# \t\r\n"))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s: server '%s' is no address like https://host:6443 (no user, query or fragment)",
                            config->source, config->server);
    if (!tls && (config->token || config->token_file || config->key_pem || config->exec))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s: credentials would go to %s without TLS; use an https:// address, or no credentials",
                            config->source, config->server);
    if (config->insecure && (config->ca_pem || config->ca_file))
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s: a certificate authority and insecure-skip-tls-verify exclude each other",
                            config->source);
    return true;
}

/* $KUBECONFIG is a list; the merge rules of kubectl are not worth their surprises in an operator. */
static struct cr_kube_config *from_environment(const char *list, const char *context, struct cr_error *err)
{
    cr_autofree char *copy = cr_strdup(list);
    const char *only = NULL;
    char *rest = NULL;
    for (char *path = strtok_r(copy, ":", &rest); path; path = strtok_r(NULL, ":", &rest)) {
        if (only) {
            cr_error_set(err, CR_ERR_INVALID,
                         "KUBECONFIG names several files; merge them (kubectl config view --flatten) or name one with "
                         "--kubeconfig");
            return NULL;
        }
        only = path;
    }
    if (!only) {
        cr_error_set(err, CR_ERR_INVALID, "KUBECONFIG names no file");
        return NULL;
    }
    return cr_kube_config_from_file(only, context, err);
}

static struct cr_kube_config *from_home(const char *context, struct cr_error *err)
{
    const char *home = getenv("HOME");
    cr_autofree char *path = cr_asprintf("%s/.kube/config", cr_or_empty(home));
    if (!home || access(path, F_OK) != 0) {
        cr_error_set(err, CR_ERR_NOT_FOUND,
                     "no cluster is configured: give --kubeconfig, set KUBECONFIG, or run in a pod (no "
                     "KUBERNETES_SERVICE_HOST, no ~/.kube/config)");
        return NULL;
    }
    return cr_kube_config_from_file(path, context, err);
}

struct cr_kube_config *cr_kube_config_load(const char *path, const char *context, struct cr_error *err)
{
    if (path)
        return cr_kube_config_from_file(path, context, err);
    const char *list = getenv("KUBECONFIG");
    if (list && *list)
        return from_environment(list, context, err);
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    if (host && *host)
        return cr_kube_config_from_pod(service_account, err);
    return from_home(context, err);
}

/* --- reading again --- */

/* Replaces *slot by what was read (NULL: could not be); *changed is only ever set. */
static bool replace(char **slot, char *fresh, bool *changed)
{
    if (!fresh)
        return false;
    if (cr_streq(fresh, *slot)) {
        cr_secret_free(fresh);
        return true;
    }
    cr_secret_free(*slot);
    *slot = fresh;
    *changed = true;
    return true;
}

static bool refresh(const char *path, const char *what, char **slot, bool *changed, struct cr_error *err)
{
    return !path || replace(slot, cr_kube_config_read(path, what, err), changed);
}

static bool refresh_token(struct cr_kube_config *config, struct cr_error *err)
{
    bool ignored = false; /* connections need not be opened again */
    return !config->token_file || replace(&config->token, cr_kube_config_read_token(config->token_file, err), &ignored);
}

/* Whether the key is that of the certificate. What cannot be read as either is left to the TLS library to judge. */
static bool belong_together(const char *cert, const char *key)
{
    const struct cr_material_input input = {
        .certificate = {cert, strlen(cert)},
        .private_key = {key, strlen(key)},
        .names = {"client certificate", "client key", "trust"},
    };
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    enum cr_material_problem problem = CR_MATERIAL_OK;
    return cr_material_parse(&input, cr_clock_wall_ms(), &material, &problem, NULL) ||
           problem != CR_MATERIAL_KEY_MISMATCH;
}

/* Certificate and key change together or not at all: writers replace one file after the other, and half a pair would
 * break every new connection. The next reload finds both. */
static bool refresh_pair(struct cr_kube_config *config, bool *changed, struct cr_error *err)
{
    if (!config->cert_file && !config->key_file)
        return true;
    CR_CLEANUP(cr_secret) char *cert = NULL;
    CR_CLEANUP(cr_secret) char *key = NULL;
    bool ignored = false;
    if (!refresh(config->cert_file, "client certificate", &cert, &ignored, err) ||
        !refresh(config->key_file, "client key", &key, &ignored, err))
        return false;
    if (!belong_together(cert ? cert : config->cert_pem, key ? key : config->key_pem))
        return cr_error_set(err, CR_ERR_INVALID, "the client key is not (yet) that of the client certificate");
    if (cert && !cr_streq(cert, config->cert_pem)) {
        cr_strset(&config->cert_pem, cert);
        *changed = true;
    }
    if (key && !cr_streq(key, config->key_pem)) {
        cr_secret_free(config->key_pem);
        config->key_pem = cr_steal(&key);
        *changed = true;
    }
    return true;
}

bool cr_kube_config_reload(struct cr_kube_config *config, bool *changed, struct cr_error *err)
{
    *changed = false;
    struct cr_error first = {0};
    struct cr_error *slot = &first;
    /* One file that cannot be read must not keep the others old. */
    bool ok = refresh_token(config, slot);
    if (!ok)
        slot = NULL;
    if (!refresh(config->ca_file, "certificate authority", &config->ca_pem, changed, slot)) {
        ok = false;
        slot = NULL;
    }
    if (!refresh_pair(config, changed, slot))
        ok = false;
    if (!ok && err)
        *err = first;
    return ok;
}
