/* CertRotationPolicy (certroll.dev/v1alpha1): spec as C values. Decoded from parsed JSON; defaults are the schema's, so
 * that an object that was stored before a default was added reads the same. */
#ifndef CR_API_POLICY_H
#define CR_API_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/selector.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/probe_protocol.h"
#include "base/strvec.h"
#include "codec/cron.h"
#include "codec/json.h"

#define CR_API_GROUP     "certroll.dev"
#define CR_API_VERSION   "v1alpha1"
#define CR_POLICY_KIND   "CertRotationPolicy"
#define CR_POLICY_PLURAL "certrotationpolicies"

/* As in the schema, where more consumers would pass the CEL budget of the rule that compares each with each. */
enum { CR_POLICY_SECRETS_MAX = 64, CR_POLICY_CONSUMERS_MAX = 128, CR_POLICY_OPAQUE_MAX = 16, CR_POLICY_AFTER_MAX = 8 };
/* With those that are found. Secrets that are selected count into CR_POLICY_SECRETS_MAX. */
enum { CR_POLICY_EFFECTIVE_MAX = 512 };

/* How a consumer uses material (design: role). A set of roles is a bit mask of CR_ROLE_BIT(). */
enum cr_role {
    CR_ROLE_SERVER_LEAF, /* "serverLeaf" */
    CR_ROLE_CLIENT_LEAF, /* "clientLeaf" */
    CR_ROLE_CLIENT_CA,   /* "clientCA": verifies clients */
    CR_ROLE_SERVER_CA,   /* "serverCA": verifies servers */
    CR_ROLE_OPAQUE,      /* "opaque" */
    CR_ROLE_COUNT,
};
#define CR_ROLE_BIT(role) (1u << (role))
const char *cr_role_name(enum cr_role role);
bool cr_role_parse(const char *text, enum cr_role *role);

/* How a component takes up new material (design: capability). */
enum cr_method {
    CR_METHOD_UNKNOWN,
    CR_METHOD_WATCH,
    CR_METHOD_PER_HANDSHAKE,
    CR_METHOD_POLL,
    CR_METHOD_SIGNAL,
    CR_METHOD_HTTP,
    CR_METHOD_COMMAND,
    CR_METHOD_API_WATCH,
    CR_METHOD_RESTART,
    CR_METHOD_COUNT,
};
const char *cr_method_name(enum cr_method method); /* "Watch", "PerHandshake", … */
bool cr_method_parse(const char *text, enum cr_method *method);

struct cr_reload_override {
    bool set;
    enum cr_method method;
    int64_t max_delay_ms; /* 0: the method's default */
};

struct cr_policy_secret {
    char *name;
    char *certificate; /* key names; defaults tls.crt, tls.key, ca.crt */
    char *private_key;
    char *trust;
    struct cr_strvec opaque; /* with has_opaque: the other keys that count; else all do */
    bool has_opaque;
    bool selected; /* by its labels, not by its name */
    bool leaving;  /* not any more, but a change of it is not finished */
};

enum cr_on_timeout { CR_ON_TIMEOUT_RESTART, CR_ON_TIMEOUT_REPORT };
/* What a new pod counts as that cannot be asked, past its deadline. */
enum cr_on_unreachable { CR_ON_UNREACHABLE_WAIT, CR_ON_UNREACHABLE_INFER };
/* What becomes of a leaf that is not for a serverName that is asked for. */
enum cr_on_missing_name { CR_ON_MISSING_NAME_HOLD, CR_ON_MISSING_NAME_REPORT };

enum { CR_VERIFY_ENDPOINTS_MAX = 8 };

/* What every pod of a consumer is asked at; one port may be asked by several names. */
struct cr_verify_endpoint {
    enum cr_probe_protocol protocol;
    int port;
    char *server_name; /* NULL: none */
    char *secret_name; /* the Secret with the leaf that it must show; NULL: determined by the leaf that it shows */
};

struct cr_policy_verify {
    struct cr_verify_endpoint *endpoints; /* the short form is one of them */
    size_t endpoints_len;                 /* 0: nothing to ask */
    char *client_secret_name;             /* NULL: none */
    int certs_port;                       /* of a page like Envoy's /certs, plain HTTP at the pod's address; 0: none */
    char *certs_path;                     /* "/certs" */
    int64_t timeout_ms;                   /* default 60 s */
    enum cr_on_timeout on_timeout;
    enum cr_on_unreachable on_unreachable;
    enum cr_on_missing_name on_missing_name;
};

struct cr_policy_consumer {
    char *name;
    char *api_version; /* "apps/v1" */
    char *kind;        /* "Deployment": one of consumer_kind.h */
    char *target;      /* its name */
    char *component;   /* NULL: recognised from the image */
    struct cr_reload_override reload[CR_ROLE_COUNT];
    bool optional;
    bool found;             /* by spec.discover; not listed in the spec */
    struct cr_strvec after; /* names of consumers that must have finished before this one is restarted */
    struct cr_policy_verify verify;
};

/* Ingress, Gateway: no pods of its own, its controller watches the Secrets that it names. */
bool cr_policy_kind_by_api(const char *kind);
/* Job, CronJob: its pods end by themselves, and those of its next run mount what the Secrets hold by then
 * (kubernetes.io/docs/concepts/workloads/controllers/job). Never restarted, so it is not looked at. */
bool cr_policy_kind_runs_to_end(const char *kind);

/* What to do with a consumer if it is not known how it takes up new material. */
enum cr_unknown { CR_UNKNOWN_RESTART, CR_UNKNOWN_REPORT };

struct cr_policy_discover {
    bool enabled;
    enum cr_unknown unknown; /* of all consumers, also of those that the spec lists */
};

enum { CR_POLICY_TRUST_TARGETS_MAX = 16 };

/* Bundles [new, previous] of the CAs seen in the policy's Secrets, written into its own namespace. */
struct cr_policy_trust {
    int retain_previous;
    struct cr_policy_trust_target {
        bool is_secret; /* else a ConfigMap */
        char *name;
        char *key;
    } * targets;
    size_t targets_len; /* 0: none */
};

enum cr_mode { CR_MODE_ENFORCE, CR_MODE_PLAN };
enum cr_restart_method { CR_RESTART_AUTO, CR_RESTART_ROLLOUT, CR_RESTART_EVICT, CR_RESTART_NEVER };
/* What if a restart takes the only pod away for a while. */
enum cr_single_replica {
    CR_SINGLE_SURGE, /* its own update strategy decides; no eviction, which never starts the new pod first */
    CR_SINGLE_WARN,
    CR_SINGLE_BLOCK,
};

enum { CR_POLICY_WINDOWS_MAX = 16, CR_POLICY_NO_OVERRIDE = -1 };

struct cr_policy_window {
    struct cr_cron opens;
    int64_t duration_ms;
    char *time_zone; /* a name within the IANA database, if it is in there */
};

/* So many restarts of one workload within that time, and no more. */
struct cr_breaker {
    int restarts;      /* 1 to CR_RESTART_TIMES_MAX */
    int64_t within_ms; /* 0: any number */
};

struct cr_policy_restart {
    enum cr_restart_method method;
    enum cr_single_replica single;
    int max_concurrent;
    int64_t coalesce_ms;
    struct cr_policy_window *windows; /* none: at any time */
    size_t windows_len;
    int64_t override_window_ms; /* before the end of a certificate; CR_POLICY_NO_OVERRIDE: never */
    struct cr_breaker breaker;
};

struct cr_policy {
    char *ns;
    char *name;
    char *uid;
    char *resource_version;
    int64_t generation;
    int64_t created_ms; /* wall, the API server's clock; whole seconds */
    bool deleting;      /* metadata.deletionTimestamp is set */

    bool suspend;
    enum cr_mode mode;
    struct cr_policy_secret *secrets;
    size_t secrets_len;
    struct cr_selector secret_selector;
    struct cr_policy_discover discover;
    struct cr_policy_consumer *consumers; /* only those whose target this version can act on */
    size_t consumers_len;
    struct cr_policy_restart restart;
    struct cr_policy_trust trust;

    /* Paths of fields that are set but not acted on by this version ("spec.consumers[0].targetRef.kind"): reported in a
     * condition, never silently ignored. */
    struct cr_strvec unsupported;
};

/* Owned. Errors (Invalid) name the field by path and say what is allowed; the CRD schema catches nearly all of them
 * first. */
struct cr_policy *cr_policy_decode(const struct cr_json *object, struct cr_error *err) CR_MUST_USE;
void cr_policy_free(struct cr_policy *policy);
CR_DEFINE_CLEANUP(cr_policy, struct cr_policy, cr_policy_free)

/* The policy's entries, by the name of the Secret, or by what uses it. Borrowed; NULL: none. */
const struct cr_policy_secret *cr_policy_secret_of(const struct cr_policy *policy, const char *name);
const struct cr_policy_consumer *cr_policy_consumer_of(const struct cr_policy *policy, const char *kind,
                                                       const char *target);
/* Whether it names any, or looks for them; else it knows nothing of those that use its Secrets. */
bool cr_policy_may_have_consumers(const struct cr_policy *policy);

#endif
