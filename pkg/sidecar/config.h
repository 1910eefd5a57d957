/* What a sidecar does, from its YAML file (docs/sidecar.md): which files are one material, what is made of them, what
 * is triggered when they change, and what proves that it worked. */
#ifndef CR_SIDECAR_CONFIG_H
#define CR_SIDECAR_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "net/tls_probe.h"

enum {
    CR_SIDECAR_MATERIALS_MAX = 16,
    CR_SIDECAR_OUTPUTS_MAX = 8,    /* of one material */
    CR_SIDECAR_TRIGGERS_MAX = 8,   /* of one material */
    CR_SIDECAR_EXCHANGES_MAX = 16, /* of one socket trigger */
    CR_SIDECAR_ENDPOINTS_MAX = 8,
};

/* A file made of the material, for programs that want another form; replaced by rename. */
enum cr_output_type {
    CR_OUTPUT_PEM,        /* the parts, one behind the other: certificate and key for HAProxy */
    CR_OUTPUT_KEYSTORE,   /* PKCS#12 with certificate, key and CAs */
    CR_OUTPUT_TRUSTSTORE, /* PKCS#12 with the CAs */
};
enum cr_output_part { CR_PART_CERTIFICATE = 1, CR_PART_PRIVATE_KEY = 2, CR_PART_TRUST = 4 };

struct cr_output_spec {
    enum cr_output_type type;
    char *path;
    unsigned parts;       /* of PEM: enum cr_output_part, in that order */
    mode_t mode;          /* 0400; 0444 without a key */
    int64_t owner, group; /* -1: as this process */
    char *password_file;  /* of the PKCS#12 types */
};

/* What a trigger is. Texts may hold ${certificate}, ${privateKey}, ${trust}, ${combined} (certificate and key): the PEM
 * text, with ".json" (${certificate.json}) inside of a JSON string; and ${certificate.path}, …, as configured. */
enum cr_trigger_type {
    CR_TRIGGER_SIGNAL,
    CR_TRIGGER_HTTP,
    CR_TRIGGER_SOCKET,
    CR_TRIGGER_COMMAND,
    CR_TRIGGER_HAPROXY, /* its runtime API: a socket with the exchanges that it needs */
    CR_TRIGGER_REDIS,   /* CONFIG SET: likewise */
    CR_TRIGGERS
};
extern const char *const cr_trigger_type_names[CR_TRIGGERS]; /* "Signal": of the file and of metrics */

struct cr_exchange {
    char *send;
    char *expect; /* must be in the answer; NULL: anything without "error" semantics of the type */
};

struct cr_trigger_spec {
    enum cr_trigger_type type;
    int64_t timeout_ms; /* of the whole; default 10 s */
    struct {
        int number;
        char *process; /* the name in /proc/<pid>/comm or the base name of its executable; of several the one that is no
                        * child of another: the master. NULL: pid_file */
        char *pid_file; /* first line; as pid of a pod's shared process namespace */
    } signal;
    struct {
        char *method;                              /* "POST" */
        char *url;                                 /* http or https, of loopback or a name that is resolved */
        struct cr_strvec headers;                  /* "Name: value" */
        char *body_file;                           /* NULL: body */
        char *body;                                /* NULL: none */
        char *ca_file;                             /* https: what the server must verify against; NULL: the system's */
        char *certificate_file, *private_key_file; /* presented to the server; NULL: none */
        char *server_name;                         /* that its certificate must have; NULL: the URL's host */
        int status_from, status_to;                /* that mean success; default 200 to 299 */
    } http;
    struct {
        char *address;                 /* an absolute path (Unix), or "127.0.0.1:6379", "[::1]:6379": loopback only */
        bool reconnect_each;           /* one connection per exchange, as HAProxy's runtime API has it */
        struct cr_exchange *exchanges; /* owned */
        size_t exchanges_len;
    } socket;
    struct {
        struct cr_strvec argv; /* no shell */
    } command;
    struct {
        char *address;
        struct cr_strvec certificates; /* as HAProxy names them ("show ssl cert"): files with certificate and key */
        struct cr_strvec ca_files;     /* "show ssl ca-file" */
    } haproxy;
    struct {
        char *address;
        char *user;          /* NULL: the default one */
        char *password_file; /* NULL: no AUTH */
    } redis;
};

/* Where the program serves the material, asked from this pod: loopback only. */
struct cr_proof_endpoint {
    char *address; /* "127.0.0.1" */
    int port;
    char *server_name; /* NULL: none */
    enum cr_probe_protocol protocol;
};

struct cr_sidecar_material {
    char *name;                              /* DNS label */
    char *certificate, *private_key, *trust; /* paths; NULL: not part of it. Certificate and key go together */
    struct cr_output_spec *outputs;
    size_t outputs_len;
    struct cr_trigger_spec *triggers; /* in order; none: the program sees outputs by itself */
    size_t triggers_len;
    struct {
        struct cr_proof_endpoint *endpoints; /* none: a trigger that succeeded is all that is known */
        size_t endpoints_len;
        int64_t timeout_ms; /* default 10 s: then the trigger is pulled again */
    } proof;
};

struct cr_sidecar_config {
    struct cr_sidecar_material *materials; /* owned */
    size_t materials_len;
    char *envoy_admin; /* "127.0.0.1:9901" or an absolute path: its /certs is relayed; NULL: none */
};

/* Errors: NotFound, Forbidden, Invalid: the file with line and column, or the field
 * ("materials[0].triggers[1].http.url: …") and what is allowed. out need not be initialised, and holds nothing on
 * failure. */
bool cr_sidecar_config_load(const char *path, struct cr_sidecar_config *out, struct cr_error *err) CR_MUST_USE;
bool cr_sidecar_config_parse(const char *text, size_t len, struct cr_sidecar_config *out,
                             struct cr_error *err) CR_MUST_USE;
void cr_sidecar_config_dispose(struct cr_sidecar_config *config);
CR_DEFINE_DISPOSE(cr_sidecar_config, struct cr_sidecar_config, cr_sidecar_config_dispose)

#endif
