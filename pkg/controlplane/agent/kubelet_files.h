/* What a kubelet reads of certificates: out of its command line and its configuration. Pure: nothing is opened.
 *
 * Flags are above the configuration file, and files of --config-dir between the two, merged over it in the order of
 * their names (RFC 7386); gates of all of them are merged (cmd/kubelet/app/server.go, kubeletConfigFlagPrecedence,
 * mergeKubeletConfigurations). Defaults of what is in none of them are those of
 * pkg/kubelet/apis/config/v1beta1/defaults.go and cmd/kubelet/app/options/options.go, which are the same in 1.29
 * and 1.36; what hangs on the version is what the kubelet *does* with a file, and that the catalogue knows. */
#ifndef CR_CONTROLPLANE_AGENT_KUBELET_FILES_H
#define CR_CONTROLPLANE_AGENT_KUBELET_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "codec/json.h"
#include "controlplane/agent/given_flags.h"

enum { CR_KUBELET_COMMAND_MAX = 256 * 1024, CR_KUBELET_WORDS_MAX = 2048 };

struct cr_kubelet_command {
    struct cr_given_flags flags;
    char *folder;     /* that it runs in */
    char *config;     /* --config, absolute; NULL: none */
    char *config_dir; /* --config-dir, absolute; NULL: none */
};

/* cmdline: as in /proc/<pid>/cmdline, each word ended by a NUL. folder: that the process runs in, absolute
 * (/proc/<pid>/cwd). Errors: Invalid when it is no kubelet's: it is empty, cut, of another program (k3s and MicroK8s
 * run a kubelet within themselves, with flags that no other process sees), or has words beside flags, which the kubelet
 * refuses. Thread-safe, as all here. */
bool cr_kubelet_command_read(const char *cmdline, size_t len, const char *folder, struct cr_kubelet_command *out,
                             struct cr_error *err) CR_MUST_USE;
void cr_kubelet_command_dispose(struct cr_kubelet_command *command);
CR_DEFINE_DISPOSE(cr_kubelet_command, struct cr_kubelet_command, cr_kubelet_command_dispose)

/* A KubeletConfiguration, whole or a part of one. Borrowed. */
struct cr_kubelet_text {
    const char *path; /* absolute */
    const char *text;
    size_t len;
};
/* What the command line names. parts: what is in --config-dir and below it and ends in ".conf", in the order in which
 * Go's filepath.WalkDir comes to it (names of each folder sorted by their bytes). */
struct cr_kubelet_texts {
    const struct cr_kubelet_text *config; /* NULL: without --config */
    const struct cr_kubelet_text *parts;
    size_t parts_len;
};

/* A path and what says so. */
struct cr_kubelet_file {
    char *path; /* absolute; NULL: none */
    const char
        *parameter; /* "--client-ca-file", "authentication.x509.clientCAFile"; NULL: none, or the kubelet's default */
};

struct cr_kubelet_files {
    struct cr_kubelet_file client_ca; /* without one no client is let in by a certificate */
    /* What it serves. Neither given, and it does not ask for one: cert_dir/kubelet.crt and .key, which it makes itself
     * when they are not there and reads like any other. It asks for one (rotates_server): none of these, but
     * server_pair. */
    struct cr_kubelet_file certificate;
    struct cr_kubelet_file key;
    struct cr_kubelet_file kubeconfig; /* none: it runs without an API server */
    struct cr_kubelet_file bootstrap_kubeconfig;
    struct cr_kubelet_file static_pods; /* a folder, or one manifest; none: it runs no static pods */
    /* It asks the API server for its certificates, keeps them in memory, and never looks at what others write here. */
    bool rotates_client;
    bool rotates_server;
    char *client_pair;     /* with rotates_client: <cert_dir>/kubelet-client-current.pem */
    char *server_pair;     /* with rotates_server: <cert_dir>/kubelet-server-current.pem */
    char *root;            /* --root-dir: pods and their volumes are below it: "/var/lib/kubelet" */
    char *address;         /* that it serves on: "0.0.0.0" */
    int port;              /* 10250; 0: it serves nothing */
    char *healthz_address; /* of its endpoint that every client may ask: "127.0.0.1" */
    int healthz_port;      /* 10248; 0: there is none */
    /* The effective settings, wherever they were given, as flags of a container: what cr_program.container takes, so
     * that the catalogue's conditions see what the configuration file says ("--rotate-certificates=false"). */
    struct cr_json *settings;
};

/* Errors: Invalid, with the file and field: no KubeletConfiguration of kubelet.config.k8s.io/v1beta1, a field of
 * another kind, a switch that is neither true nor false, --config given and no text, or a text and no --config. out is
 * empty then. A path of --config's file is below that file's folder when it is relative, all others below the
 * kubelet's own (configfiles.go resolves only those). */
bool cr_kubelet_files_read(const struct cr_kubelet_command *command, const struct cr_kubelet_texts *texts,
                           struct cr_kubelet_files *out, struct cr_error *err) CR_MUST_USE;
void cr_kubelet_files_dispose(struct cr_kubelet_files *files);
CR_DEFINE_DISPOSE(cr_kubelet_files, struct cr_kubelet_files, cr_kubelet_files_dispose)

#endif
