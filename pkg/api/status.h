/* Status of a CertRotationPolicy: what is remembered between reconciles (secrets[].settled and .pending), and what
 * people read. Decoding is lenient (a broken part reads as absent: first sight, the safe choice); encoding is
 * deterministic, so that an unchanged status encodes to equal JSON and is not written again. */
#ifndef CR_API_STATUS_H
#define CR_API_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hold.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "pki/material.h"

enum cr_stage { CR_STAGE_IDLE, CR_STAGE_TRUSTING, CR_STAGE_SWITCHING, CR_STAGE_RETIRING, CR_STAGE_HELD };
/* The *_name functions answer "" for a value that is none; the *_parse ones leave the value alone when they fail. */
const char *cr_stage_name(enum cr_stage stage);
bool cr_stage_parse(const char *text, enum cr_stage *stage);

enum cr_decision_kind { CR_DECISION_NONE, CR_DECISION_HOT_RELOAD, CR_DECISION_TRIGGER, CR_DECISION_RESTART };
const char *cr_decision_name(enum cr_decision_kind kind); /* "None", "HotReload", "Trigger", "Restart" */
bool cr_decision_parse(const char *text, enum cr_decision_kind *kind);

/* Bounds of what status lists. */
enum { CR_OLD_LEAVES_MAX = 8, CR_EXAMPLES_MAX = 5 };

/* A change that was seen, written down before it is acted on. */
struct cr_pending_change {
    bool set;
    char id[24];      /* rotation id: hex, from policy uid, Secret and target material; stable over restarts */
    int64_t since_ms; /* wall clock */
    int64_t
        first_ms; /* since_ms of the first of those that it has superseded without a pause (coalesce) between them */
    int64_t superseded_ms;     /* since_ms of the first of all that it has superseded; 0: none */
    unsigned changes;          /* CR_CHANGE_* bits (evidence/diff.h), against settled and all superseded states */
    struct cr_material target; /* what the Secret holds now */
    struct cr_strvec
        old_leaves; /* fingerprints that count as stale: settled's and those of superseded targets; at most 8 */
    struct cr_strvec opaque_keys; /* names of opaque keys that changed, with OpaqueChanged; empty: any may have */
    bool was_immutable;           /* the Secret that held the material before was immutable */
};

/* Weakest first. First sight: it was there when it was first looked at, and it is not known which pods have it. */
enum cr_settled_by { CR_SETTLED_FIRST_SIGHT, CR_SETTLED_INFERRED, CR_SETTLED_VERIFIED };
const char *cr_settled_by_name(enum cr_settled_by by); /* "FirstSight", "Inferred", "Verified" */
bool cr_settled_by_parse(const char *text, enum cr_settled_by *by);

/* Why not all that use a Secret are known: then what the policy's consumers have proves nothing of the others. */
enum cr_unknown_readers {
    CR_READERS_KNOWN,           /* as far as the policy looks for them */
    CR_READERS_UNMANAGED_POD,   /* a pod of no known workload may have what was there before the last change */
    CR_READERS_UNCOVERED_POD,   /* likewise one whose workload is not there, or does not use the Secret any more */
    CR_READERS_TOO_MANY,        /* more consumers belong to the policy than are in force */
    CR_READERS_CANNOT_DISCOVER, /* a kind of workload cannot be listed */
    CR_READERS_NOT_ACTED_ON,    /* a consumer of a kind that this version does not know */
};
const char *cr_unknown_readers_name(enum cr_unknown_readers why); /* "UnmanagedPod", …; "": they are known */
bool cr_unknown_readers_parse(const char *text, enum cr_unknown_readers *why);

#define CR_PROBLEM_NOT_FOUND    "NotFound"
#define CR_PROBLEM_NAME_MISSING "NameMissing" /* the leaf is not for a name in use */

struct cr_secret_status {
    char *name;
    bool selected;                   /* the policy does not name it: it was there by its labels */
    char *observed_resource_version; /* at which the fingerprints were read */
    bool immutable;                  /* the Secret was then */
    bool has_settled;
    struct cr_material settled; /* digests and not-after only survive the round trip */
    /* How it is known that every consumer has it: the weakest proof of their pods, at the last change of trust and of
     * the leaf. What no consumer reads counts as verified. */
    enum cr_settled_by trust_by, leaf_by;
    int64_t settled_ms; /* wall, when the last change did, or the first sight was; 0: not known */
    int64_t changed_ms; /* wall, when that change was seen; 0: first sight, or not known */
    struct cr_pending_change pending;
    enum cr_unknown_readers unknown_readers;
    char *problem_reason; /* NULL: none; the word of a cr_material_problem, or CR_PROBLEM_* */
    char *problem_message;
    int64_t problem_not_after_ms; /* when the leaf ends that cannot be used; 0: none could be read */
};

struct cr_pod_counts {
    int total, verified, inferred, stale, unknown;
};

enum cr_consumer_state {
    CR_CONSUMER_IDLE,       /* nothing pending */
    CR_CONSUMER_PENDING,    /* decided, not yet acted (concurrency, suspend, Plan) */
    CR_CONSUMER_RESTARTING, /* rollout under way */
    CR_CONSUMER_VERIFYING,  /* waits for evidence */
    CR_CONSUMER_CONVERGED,
    CR_CONSUMER_BLOCKED, /* by a gate or a missing right, which a person must lift; gate says which */
    CR_CONSUMER_FAILED,  /* rollout failed */
    CR_CONSUMER_ABSENT,  /* workload not there */
};
const char *cr_consumer_state_name(enum cr_consumer_state state); /* "Idle", "Pending", … */
bool cr_consumer_state_parse(const char *text, enum cr_consumer_state *state);

/* Each is an Event when it comes up, and in Degraded. */
enum cr_warning_bit {
    CR_WARNING_SHUTDOWN_MISFIT = 1u << 0, /* "ShutdownMisfit": its shutdown manager's times cannot hold in its pods */
    CR_WARNING_NAME_MISSING = 1u << 1,    /* "NameMissing": a leaf is not for a name in use, and is not held */
};
enum { CR_WARNING_BITS = 2 };
const char *cr_warning_name(enum cr_warning_bit bit);
bool cr_warning_parse(const char *text, enum cr_warning_bit *bit);

/* A rotation of a trust domain restarts a workload once for each of its stages (trust, leaf, retirement), which counts
 * as one restart. */
enum { CR_RESTARTS_OF_ROTATION_MAX = 3 };
struct cr_restart_step {
    char rotation[24]; /* its id, as the domain has it; "": something else asked for the restart */
    int restarts; /* how many restarts for it are counted here as one, 1 to CR_RESTARTS_OF_ROTATION_MAX; 0: of "" */
};

/* Restarts of one workload by certroll, newest first. Those for one rotation are one, at the time of the last. */
enum { CR_RESTART_TIMES_MAX = 5 };
struct cr_restart_times {
    int64_t at_ms[CR_RESTART_TIMES_MAX];
    struct cr_restart_step steps[CR_RESTART_TIMES_MAX]; /* parallel */
    size_t len;
};

/* What its pods were seen to show while nothing changes (verify). */
enum { CR_VERIFICATION_OF = 16 + 1 };
struct cr_verification {
    char of[CR_VERIFICATION_OF]; /* digest of the leaves that they should show, and where; "": there are none */
    int64_t since_ms;            /* wall: when these were first asked for; not remembered once they were seen */
    int64_t at_ms;               /* wall: when all pods had been seen with them; 0: they have not */
    /* Pods that were created before this were among them, by the API server's clock. 0: none; else at_ms is set. */
    int64_t until_ms;
};

struct cr_consumer_status {
    char *name;
    char *kind;
    char *target;
    char *component; /* as recognised, NULL when unknown */
    bool found;      /* by spec.discover */
    enum cr_decision_kind decision;
    char *reason; /* one sentence */
    enum cr_consumer_state state;
    struct cr_pod_counts pods;
    struct cr_gate gate;     /* what holds it where it is (blockedReason, blockedBy); open: nothing */
    int64_t last_restart_ms; /* 0: never by us */
    int64_t since_ms;        /* when the present decision was first made; 0 when idle */
    char *restarted_for;     /* rotation ids of the last restart, NULL: none. The same is not restarted for twice */
    int64_t restarted_generation; /* of the workload, with that restart in its template */
    /* That restart was by evictions: pods that were created later than this are the new ones. By the API server's
     * clock, which gives them their times; 0: it was a rollout. */
    int64_t evicted_until_ms;
    char *evicting;                   /* UID of the pod that is, or was last, evicted for it; NULL: none */
    struct cr_restart_times restarts; /* as many as the breaker counts; in status with their milliseconds */
    struct cr_strvec examples;        /* at most 5 pods that are stale or unknown, "name: why" */
    unsigned warnings;                /* CR_WARNING_* bits: what holds nothing, and a person should know */
    struct cr_verification verification;
};

struct cr_condition {
    const char *type; /* static */
    bool status;
    bool unknown; /* whether it holds cannot be known; status is false then */
    char *reason;
    char *message;
    int64_t transition_ms;
    int64_t observed_generation;
};
enum { CR_CONDITIONS = 9 };
extern const char *const cr_condition_types[CR_CONDITIONS];
/* A reason of Converged and Degraded: a pod that no workload made uses a Secret and came before the change. */
#define CR_REASON_UNMANAGED_POD "UnmanagedPod"
#define CR_REASON_UNCOVERED_POD "UncoveredPod"

struct cr_rotation_record {
    char id[24];
    char *secret;
    unsigned changes;
    int64_t started_ms;
    int64_t finished_ms;
    char *outcome; /* "Converged", "Superseded", "Reverted" */
};
enum { CR_HISTORY_MAX = 10 };

struct cr_policy_status {
    int64_t observed_generation;
    enum cr_stage stage;
    struct cr_secret_status *secrets;
    size_t secrets_len;
    struct cr_consumer_status *consumers; /* all; the encoder bounds them (100, the unconverged first, then memory) */
    size_t consumers_len;
    struct cr_condition conditions[CR_CONDITIONS];     /* in the order of cr_condition_types; reason NULL: not set */
    struct cr_rotation_record history[CR_HISTORY_MAX]; /* newest first */
    size_t history_len;
};

/* When the first of the leaves of one of its Secrets ends that pods may serve: the one that the Secret holds, also when
 * it cannot be used, and the one of before while a consumer may not have another. 0: there is none. */
int64_t cr_policy_status_leaf_end_ms(const struct cr_policy_status *status, const struct cr_secret_status *secret);

void cr_policy_status_dispose(struct cr_policy_status *status);
CR_DEFINE_DISPOSE(cr_policy_status, struct cr_policy_status, cr_policy_status_dispose)
/* to must be a valid status (zeroed when new): it is replaced. */
void cr_policy_status_copy(struct cr_policy_status *to, const struct cr_policy_status *from);

/* From the object's `status` member (NULL: empty status). out need not be initialised. Times lose their milliseconds,
 * but for pending.since, .first and .superseded, consumers[].since and .restarts (microsecond text), which are compared
 * with others. A pending change without readable settled material is dropped: nothing says what it was from. */
void cr_policy_status_decode(const struct cr_json *status, struct cr_policy_status *out);
/* Owned. It fits into the object that etcd takes (1.5 MiB with the spec), whatever the Secrets hold: each list of CAs
 * or of opaque keys has a share of the space for all Secrets; only a summary is encoded of a longer list. Adds `totals`
 * {secrets, consumers, converged, pods, verified, …}, and for printer columns `expires` (earliest end of a leaf, or of
 * trust that comes without one), `converged` ("3/3": idle or converged, of those not absent) and `problem`
 * (cr_policy_status_problem). Each member of status is always there (the first and the last may be null), so that the
 * result can be a merge patch. Texts are cut to the schema's lengths. */
struct cr_json *cr_policy_status_encode(const struct cr_policy_status *status);

/* Borrowed, NULL when absent. */
struct cr_secret_status *cr_status_secret(struct cr_policy_status *status, const char *name);
struct cr_consumer_status *cr_status_consumer(struct cr_policy_status *status, const char *name);
/* Found or appended. The pointer holds until the next one is added. */
struct cr_secret_status *cr_status_secret_add(struct cr_policy_status *status, const char *name);
struct cr_consumer_status *cr_status_consumer_add(struct cr_policy_status *status, const char *name);
/* Drops entries whose name is not in keep. */
void cr_status_keep_secrets(struct cr_policy_status *status, const struct cr_strvec *keep);
void cr_status_keep_consumers(struct cr_policy_status *status, const struct cr_strvec *keep);
/* Moves the entry of a Secret, if there is one, to a status that has none of that name. */
void cr_status_move_secret(struct cr_policy_status *to, struct cr_policy_status *from, const char *name);
/* Sets a condition; its transition time moves only when the status flips. type as in cr_condition_types. */
void cr_status_condition(struct cr_policy_status *status, const char *type, bool value, const char *reason,
                         const char *message, int64_t generation, int64_t now_ms);
/* The same of one that cannot be known: "Unknown". */
void cr_status_condition_unknown(struct cr_policy_status *status, const char *type, const char *reason,
                                 const char *message, int64_t generation, int64_t now_ms);
const struct cr_condition *cr_status_condition_get(const struct cr_policy_status *status, const char *type);
/* Whether a person should know of the condition, by the table of what types mean in status_fields.c. A condition that
 * is not set is no trouble. */
bool cr_condition_is_trouble(const struct cr_condition *condition);
/* The reason of the condition that sums the status up, by the same table; NULL: none is trouble. Borrowed. */
const char *cr_policy_status_problem(const struct cr_policy_status *status);
/* Puts a record first; takes copies. The oldest goes. */
void cr_status_history_add(struct cr_policy_status *status, const struct cr_rotation_record *record);

/* Names of change bits are in status too ("LeafRenewed", …), so they live with the API. */
enum cr_change_bit {
    CR_CHANGE_LEAF_RENEWED = 1u << 0,   /* "LeafRenewed" */
    CR_CHANGE_KEY_CHANGED = 1u << 1,    /* "KeyChanged" */
    CR_CHANGE_ISSUER_CHANGED = 1u << 2, /* "IssuerChanged" */
    CR_CHANGE_TRUST_ADDED = 1u << 3,    /* "TrustAdded" */
    CR_CHANGE_TRUST_REMOVED = 1u << 4,  /* "TrustRemoved" */
    CR_CHANGE_TRUST_RENEWED = 1u << 5,  /* "TrustRenewed" */
    CR_CHANGE_TRUST_REPLACED = 1u << 6, /* "TrustReplaced" */
    CR_CHANGE_OPAQUE = 1u << 7,         /* "OpaqueChanged" */
};
enum { CR_CHANGE_BITS = 8 };
const char *cr_change_name(enum cr_change_bit bit);
bool cr_change_parse(const char *text, enum cr_change_bit *bit);

#endif
