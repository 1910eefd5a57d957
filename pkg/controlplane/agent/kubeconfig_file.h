/* What a kubeconfig says of certificates: for each of CA, certificate and key, the file that it names, or that it is
 * embedded. It serves to know what the kubeconfig's reader takes up again. Pure: the text goes in, no file that it
 * names is opened.
 *
 * client-go (transport/transport.go loadTLSFiles) reads files again, and embedded material never; what is embedded
 * beside a file counts alone. Certificate and key are read again only when both are files. Context, cluster and user
 * are found as our own client does (kube/kubeconfig_reader.h). */
#ifndef CR_CONTROLPLANE_AGENT_KUBECONFIG_FILE_H
#define CR_CONTROLPLANE_AGENT_KUBECONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

enum cr_kubeconfig_source {
    CR_KUBECONFIG_NONE,
    CR_KUBECONFIG_FILE,
    CR_KUBECONFIG_EMBEDDED, /* "…-data": read once, with the kubeconfig */
};

struct cr_kubeconfig_item {
    enum cr_kubeconfig_source source;
    char *path; /* with File: as its reader sees it; a relative one is below the kubeconfig's folder */
    char *pem;  /* with Embedded, of CA and certificate; never of a key */
};

struct cr_kubeconfig_file {
    char *context;                /* the effective one: current-context */
    char *server;                 /* NULL: the cluster names none */
    char *server_name;            /* tls-server-name; NULL: none */
    bool insecure;                /* verifies no server, so no CA matters */
    struct cr_kubeconfig_item ca; /* None: the system's CAs */
    struct cr_kubeconfig_item certificate;
    struct cr_kubeconfig_item key;
    bool leaf_reloads; /* certificate and key are files, both */
    bool has_token;    /* in it, or in token_file: then the client certificate is not all that says who it is */
    char *token_file;  /* NULL: none */
    bool has_exec;     /* a credential plugin brings token or certificate */
};

/* path: of the kubeconfig, as its reader sees it. Key and tokens are wiped from all memory that this takes. Errors:
 * Invalid, beginning with the path: no YAML, no current-context, a context, cluster or user that is not there, a
 * certificate without a key or a key without a certificate, a field that is no text or, of an embedded CA or
 * certificate, no base64. out is empty then. Thread-safe. */
bool cr_kubeconfig_file_read(const char *path, const char *text, size_t len, struct cr_kubeconfig_file *out,
                             struct cr_error *err) CR_MUST_USE;
void cr_kubeconfig_file_dispose(struct cr_kubeconfig_file *file);
CR_DEFINE_DISPOSE(cr_kubeconfig_file, struct cr_kubeconfig_file, cr_kubeconfig_file_dispose)

#endif
