/* The catalogue: what known software does with new material, per component, version, parameter and role. Data, not
 * code: pkg/catalogue/data/ *.yaml are embedded; the loader checks them strictly. Pure after loading; immutable and
 * shared. */
#ifndef CR_CATALOGUE_CATALOGUE_H
#define CR_CATALOGUE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/policy.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"

struct cr_catalogue;
struct cr_component; /* borrowed from the catalogue */

/* From YAML text; errors name the entry and field. Owned. */
struct cr_catalogue *cr_catalogue_load(const char *yaml, size_t len, struct cr_error *err) CR_MUST_USE;
/* The embedded one. */
struct cr_catalogue *cr_catalogue_builtin(struct cr_error *err) CR_MUST_USE;

/* A document of the catalogue's schema with a name for messages ("kubernetes.yaml"). Borrowed. */
struct cr_catalogue_text {
    const char *name;
    const char *yaml;
    size_t len;
};
/* The embedded one with the texts laid over it: an entry of theirs replaces the embedded entry of its name as a whole,
 * or is added; its image patterns are tried before all embedded ones. "parametersOf" may name entries of both. No name
 * may stand twice in the texts. Errors name text, entry and field. Owned. */
struct cr_catalogue *cr_catalogue_override(const struct cr_catalogue_text *texts, size_t len,
                                           struct cr_error *err) CR_MUST_USE;
void cr_catalogue_free(struct cr_catalogue *catalogue);
CR_DEFINE_CLEANUP(cr_catalogue, struct cr_catalogue, cr_catalogue_free)
size_t cr_catalogue_len(const struct cr_catalogue *catalogue);

/* Finds a component by its name ("envoyproxy/ratelimit"; what follows an "@" is a version and not looked at) or by a
 * container image. NULL: not known. An image matches below any registry and mirror prefix; an official image of one
 * word ("nginx") only by itself or below "library/", since "acme/nginx" may be anything. If several entries match, the
 * one with the pattern that pins most characters counts. */
const struct cr_component *cr_catalogue_by_name(const struct cr_catalogue *catalogue, const char *name);
const struct cr_component *cr_catalogue_by_image(const struct cr_catalogue *catalogue, const char *image);
const char *cr_component_name(const struct cr_component *component);
/* The tag of a container image ("v1.36.3"), owned; NULL when it has none. A digest behind it is cut off. */
char *cr_image_tag(const char *image);

struct cr_capability {
    enum cr_method method;
    int64_t max_delay_ms;   /* from the file's change to the first handshake with it; for Poll the longest period */
    const char *signal;     /* "SIGHUP", an HTTP request or a command, as text for people; NULL when none */
    bool verified;          /* read in source, documentation or tried; else from memory */
    const char *confidence; /* where the claim comes from: "verified", "documented", "experiment", "memory"; NULL: the
                             * catalogue says nothing */
    const char *source;     /* borrowed; NULL: the catalogue says nothing */
    const char *says; /* borrowed; how the component does it in its own words ("watches its files by SDS"); NULL: as
                       * its method does */
    bool assumed;     /* the image does not show the version, and versions differ: this is the strictest */
    char why[256];    /* "envoyproxy/ratelimit reads GRPC_CLIENT_TLS_CACERT once at start" */
};

/* A parameter that the component's entry names. */
enum cr_parameter_kind {
    CR_PARAMETER_FLAG,     /* "--client-ca-file" */
    CR_PARAMETER_VARIABLE, /* "ETCD_CERT_FILE" */
    CR_PARAMETER_CONFIG,   /* in a configuration file: "kubeconfig client-certificate" */
    CR_PARAMETER_PATH,     /* a file or folder that it reads without a setting */
};
struct cr_known_parameter {
    const char *name; /* borrowed from the catalogue */
    enum cr_parameter_kind kind;
    unsigned roles; /* CR_ROLE_BIT */
    bool hands_on;  /* as in cr_parameter_use */
};
/* All of them in the order of the entry, for (size_t i = 0; cr_component_parameter(component, i, &one); i++). A name
 * may come twice, with other roles. NULL has none. */
bool cr_component_parameter(const struct cr_component *component, size_t i, struct cr_known_parameter *out);

/* A program in a container. All borrowed. */
struct cr_program {
    const struct cr_component *component; /* NULL: unknown */
    const struct cr_json *pod_spec;
    const struct cr_json *container; /* its JSON: image, args, env; NULL: not seen */
    const char
        *version; /* as the policy says it ("1.27.4"); NULL: the image's tag, unless the component is a library */
};
/* The version in a policy's "name@version"; NULL: none. */
const char *cr_component_version(const char *name);

/* What a program does with one role. parameter: the flag, variable or path that gives the material; NULL when that is
 * not known (then the strictest capability of the role over all parameters). Tags without an order (commit hashes)
 * count as known only when listed; an unknown version takes the strictest, and so does a setting that the template does
 * not show. */
void cr_catalogue_capability(const struct cr_program *program, const char *parameter, enum cr_role role,
                             struct cr_capability *out);

enum cr_acceptance { CR_ACCEPTANCE_UNKNOWN, CR_ACCEPTANCE_YES, CR_ACCEPTANCE_NO };
/* Whether the program accepts a leaf of this key type (cr_material.key_type): its own in a leaf's role, its peers' in a
 * CA's role. Unknown where the catalogue says nothing, knows it from memory only, or the version leaves it open. */
enum cr_acceptance cr_catalogue_accepts(const struct cr_program *program, const char *key_type, enum cr_role role);

/* A parameter of a component (flag "--client-ca-file", variable "GRPC_SERVER_TLS_CERT", or a path that it reads without
 * a setting) and the roles it gives to what it points to. */
struct cr_parameter_use {
    const char *parameter; /* borrowed from the catalogue; NULL: not known */
    enum cr_role role;
    char key[64];  /* the Secret's key it points to; "" when not known */
    bool hands_on; /* it does not read the file, but names it to another container of the pod */
};
struct cr_parameter_uses {
    struct cr_parameter_use *items;
    size_t len;
};
void cr_parameter_uses_dispose(struct cr_parameter_uses *uses);
CR_DEFINE_DISPOSE(cr_parameter_uses, struct cr_parameter_uses, cr_parameter_uses_dispose)

struct cr_usage;
/* Which parameters of the container's command, args and environment ($(VAR) expanded) point into this usage, and so
 * which roles the Secret plays there. secret's key names say which file is certificate, key or trust.
 * - A known parameter that points to a file of the usage gives its roles for that key.
 * - A parameter that the component does not know gives no role by itself: stock Envoy Gateway sets
 *   GRPC_SERVER_TLS_CA_CERT on Rate Limit, which never reads it.
 * - Parameters that a pod template does not show (in configuration files, from a ConfigMap by envFrom, by valueFrom)
 *   may point to what no visible one points to: those kinds of files (certificate and key, or trust) get their roles.
 * - No known parameter points into the usage: the roles are not known, so all roles of the component; a kind of file
 *   about which the catalogue says nothing, and an unknown component, get all roles of that kind.
 * Files that are neither certificate, key nor trust play `opaque`, unless a parameter that points to them says better.
 */
void cr_catalogue_roles(const struct cr_component *component, const struct cr_json *container,
                        const struct cr_usage *usage, const struct cr_policy_secret *secret,
                        struct cr_parameter_uses *out);

/* How long a method takes when neither the catalogue nor the policy says: a watch 5 s (inotify and a debounce), a
 * handshake 1 s (client-go reads its files at most once a second), a poll 5 min (client-go's). 0 for methods that do
 * not act by themselves. */
int64_t cr_method_default_delay_ms(enum cr_method method);
/* Signal, HTTP, Command: the program reads again when it is notified. */
bool cr_method_is_notified(enum cr_method method);
/* How long such a method takes with a sidecar when neither the catalogue nor the policy says: the sidecar waits 1 s
 * at most for quiet and 10 s for the proof of its first try, and a second try needs the same time. */
enum { CR_NOTIFIED_DELAY_MS = 30 * 1000 };

#endif
