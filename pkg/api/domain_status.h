/* Status of a TrustDomain or ClusterTrustDomain. What is remembered here is little: a rotation's state is what is
 * published, what staging holds, and what policies say of the consumers. Decoding is lenient; encoding deterministic.
 */
#ifndef CR_API_DOMAIN_STATUS_H
#define CR_API_DOMAIN_STATUS_H

#include "api/domain.h"
#include "api/status.h"
#include "api/trust_problem.h"

/* Objects beyond STATUS_OBJECTS_MAX are listed only with what must be remembered: what was written and whether it has
 * arrived. */
enum { CR_DOMAIN_CONDITIONS = 10, CR_DOMAIN_STATUS_OBJECTS_MAX = 100, CR_DOMAIN_CAS_MAX = 16 };
/* "Ready", "Converged", "Rotating", "Held", "Degraded" (something is refused), "ExpiringSoon", "RetirementPending" (a
 * CA of before is trusted), "Distrusted" (only where spec.distrust lists something) */
extern const char *const cr_domain_condition_types[CR_DOMAIN_CONDITIONS];

enum cr_ca_part { CR_CA_NEXT, CR_CA_CURRENT, CR_CA_PREVIOUS };
const char *cr_ca_part_name(enum cr_ca_part part); /* "Next", "Current", "Previous"; "" for a value that is none */
bool cr_ca_part_parse(const char *text, enum cr_ca_part *part); /* false: left alone */

/* Which of an object's leaves: the one that is there, the one that its source has, or the one that can be put back. */
enum cr_domain_leaf_at { CR_LEAF_PUBLISHED, CR_LEAF_IN_SOURCE, CR_LEAF_PREVIOUS, CR_LEAVES_AT };
const char *cr_domain_leaf_at_name(enum cr_domain_leaf_at at); /* "Published", "Source", "Previous" */

struct cr_domain_ca_status {
    char fingerprint[CR_SHA256_HEX];
    char *subject; /* for people */
    enum cr_ca_part part;
    int64_t not_after_ms;
    /* PREVIOUS: the first of the leaves without which it could go. */
    char *needed_by; /* "Secret ns/name"; NULL: none needs it */
    enum cr_domain_leaf_at needed_at;
    size_t needed_by_leaves; /* how many there are */
};

/* By what it is known that every consumer has what is published. */
enum cr_arrival { CR_ARRIVAL_NOT_YET, CR_ARRIVAL_INFERRED, CR_ARRIVAL_VERIFIED };
const char *cr_arrival_name(enum cr_arrival arrival); /* NULL for NOT_YET, "Inferred", "Verified" */
/* NOT_YET for NULL and any other text. */
enum cr_arrival cr_arrival_parse(const char *text);

/* More are not counted. */
enum { CR_OVERWRITTEN_MAX = 1000 };

/* A Secret, ConfigMap or other object that the domain writes. */
struct cr_domain_object_status {
    char *kind;
    char *ns; /* NULL: in none */
    char *name;
    /* The resourceVersion that our own last write returned: a policy that has not read that yet says nothing of it.
     * NULL: not known. */
    char *written_version;
    int64_t written_ms; /* when; 0: not known */
    /* How often another program has overwritten what we had published there, lately; when last, and its name. */
    int overwritten;
    int64_t overwritten_ms;
    char *overwritten_by;
    char leaf[CR_SHA256_HEX];  /* published; "" */
    char trust[CR_SHA256_HEX]; /* cr_material_trust_digest of what is published; "" */
    enum cr_arrival trust_evidence, leaf_evidence;
    int64_t leaf_not_after_ms;    /* 0: no leaf */
    char *waits_for;              /* one sentence; NULL: nothing */
    enum cr_trust_reason problem; /* why it is not written as it should be */
    char *problem_message;        /* beside it; NULL: none */
};

/* A leaf of a source that was put back, so it is not published again before the source or the token changes. */
struct cr_domain_rejected {
    char *leaf; /* name in spec.leaves */
    char fingerprint[CR_SHA256_HEX];
};

/* A CA of spec.distrust that was at hand. */
struct cr_domain_distrusted {
    char fingerprint[CR_SHA256_HEX];
    char *subject;    /* for people */
    int64_t since_ms; /* when it was seen listed, and there */
    int64_t stray_ms; /* when it was found in a bundle into which the domain had not put it; 0: it was not */
    int64_t gone_ms;  /* since when it is in no bundle, and no consumer has one with it; 0: not yet */
};

/* What the distrust of the present CA would take, by what is known of the consumers. */
struct cr_domain_forecast {
    int workloads;       /* that may have to be restarted */
    int restarts;        /* at most, of all of them */
    int64_t expected_ms; /* what the last rotation of a CA took; 0: there was none */
    int64_t at_most_ms;  /* with the longest time for each rollout; 0: nothing is known */
};

struct cr_domain_rotation {
    char id[24];
    char *what; /* "First", "CA", "Leaves", "Bundles" (neither CAs nor leaves change) */
    int64_t started_ms, finished_ms;
    int64_t trusting_ms, switching_ms, retiring_ms; /* how long each stage took */
    bool restarted; /* a consumer was restarted for it, so its times are not those of reloading */
    char *outcome;  /* "Converged", "Incomplete" (an object was left as it is), "Superseded", "PutBack" */
};

struct cr_domain_status {
    int64_t observed_generation;
    enum cr_stage stage; /* HELD: held_stage says where */
    enum cr_stage held_stage;
    int64_t stage_since_ms; /* with its milliseconds */
    char rotation[24];      /* id of the one under way; "" */
    int64_t rotation_since_ms;
    int64_t trusting_ms, switching_ms; /* of the one under way: stages that are over */
    bool restarted;
    char *what; /* of the one under way; NULL */
    char *last_handled_token;
    struct cr_domain_ca_status cas[CR_DOMAIN_CAS_MAX];
    size_t cas_len;
    struct cr_domain_object_status *objects;
    size_t objects_len;
    struct cr_domain_rejected *rejected;
    size_t rejected_len;
    struct cr_domain_distrusted distrusted[CR_DOMAIN_DISTRUST_MAX];
    size_t distrusted_len;
    struct cr_domain_forecast forecast;
    struct cr_condition conditions[CR_DOMAIN_CONDITIONS];
    struct cr_domain_rotation history[CR_HISTORY_MAX]; /* newest first */
    size_t history_len;
};

void cr_domain_object_status_dispose(struct cr_domain_object_status *object);
void cr_domain_status_dispose(struct cr_domain_status *status);
CR_DEFINE_DISPOSE(cr_domain_status, struct cr_domain_status, cr_domain_status_dispose)
/* to must be a valid status (zeroed when new): it is replaced. */
void cr_domain_status_copy(struct cr_domain_status *to, const struct cr_domain_status *from);
/* From the object's `status` member (NULL: empty). out need not be initialised. */
void cr_domain_status_decode(const struct cr_json *status, struct cr_domain_status *out);
/* Owned; each member of status, and of its rotation, is always there, so that the result can be a merge patch. Adds for
 * printer columns `converged` ("3/3": objects whose every consumer has what is published), `expires` (the earliest end
 * of a leaf or of a current CA), `problem` (the reason of the first of Ready, Degraded, Held and ExpiringSoon that is
 * not as it should be). Texts are cut to the schema's lengths. Times keep their milliseconds where they are
 * compared (stage, rotation, written, history), those of certificates do not. */
struct cr_json *cr_domain_status_encode(const struct cr_domain_status *status);

/* None is listed any more. */
void cr_domain_status_forget_cas(struct cr_domain_status *status);
struct cr_domain_object_status *cr_domain_status_object(struct cr_domain_status *status, const char *kind,
                                                        const char *ns, const char *name);
/* Found or appended. The pointer holds until the next one is added. */
struct cr_domain_object_status *cr_domain_status_object_add(struct cr_domain_status *status, const char *kind,
                                                            const char *ns, const char *name);
/* Which rotation one version of an object was published for. */
struct cr_domain_step {
    struct cr_restart_step restart; /* one */
    bool distrusts;                 /* for a CA that spec.distrust lists and that is still trusted somewhere */
    bool awaits_record; /* the domain publishes there, and that version is not on its record: another program has
                         * written it, or the domain has just now */
};
/* version: the object's resourceVersion. Nothing: the domain does not publish there, or not in a rotation. */
struct cr_domain_step cr_domain_status_step(struct cr_domain_status *status, const char *kind, const char *ns,
                                            const char *name, const char *version);
/* Since when there is one that is not gone, and policies hold no restart back for what would do it at another time; 0:
 * there is none. */
int64_t cr_domain_status_distrusts_since_ms(const struct cr_domain_status *status);
void cr_domain_status_drop_condition(struct cr_domain_status *status, const char *type);
/* Borrowed. NULL: it is not set. */
const struct cr_condition *cr_domain_status_condition_get(const struct cr_domain_status *status, const char *type);
/* Its transition time moves only when the status flips. type as in cr_domain_condition_types. */
void cr_domain_status_condition(struct cr_domain_status *status, const char *type, bool value, const char *reason,
                                const char *message, int64_t generation, int64_t now_ms);
/* Puts a record first; takes copies. The oldest goes. */
void cr_domain_status_history_add(struct cr_domain_status *status, const struct cr_domain_rotation *record);

#endif
