/* Why a consumer waits: one value for each gate or reason that holds it. status.consumers[].blockedReason, the label of
 * certroll_consumers_blocked, the index of consumers that wait for a budget and the Events come from the value. The
 * text beside it is for people, and no program reads it. docs/api.md says of each when it is set and what to do. */
#ifndef CR_API_HOLD_H
#define CR_API_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

enum cr_hold {
    CR_HOLD_NONE,
    /* The policy. */
    CR_HOLD_DELETING,
    CR_HOLD_SUSPENDED,
    CR_HOLD_PLAN_MODE,
    CR_HOLD_RESTART_NEVER,
    CR_HOLD_OTHER_POLICY,
    /* What the policy names. */
    CR_HOLD_NO_SECRET,
    CR_HOLD_NOT_FOUND,
    CR_HOLD_USES_NO_SECRET,
    /* What its pods show while it is idle. */
    CR_HOLD_NOT_VERIFIED,
    CR_HOLD_OTHER_CERTIFICATE,
    /* What the Secret holds, and which software takes it. */
    CR_HOLD_UNKNOWN_SOFTWARE,
    CR_HOLD_SECRET_PROBLEM,
    CR_HOLD_IMMUTABLE_SECRET,
    CR_HOLD_KEY_TYPE_NOT_ACCEPTED,
    /* The workload. */
    CR_HOLD_PAUSED,
    CR_HOLD_BARE_REPLICA_SET,
    CR_HOLD_UPDATING,
    CR_HOLD_UPDATE_FAILED,
    CR_HOLD_ON_DELETE,
    CR_HOLD_PARTITION,
    /* Time and order. */
    CR_HOLD_WINDOW,
    CR_HOLD_WINDOW_TOO_LATE,
    CR_HOLD_WINDOW_NEVER,
    CR_HOLD_CIRCUIT_BREAKER,
    CR_HOLD_ORDER,
    CR_HOLD_ORDER_UNKNOWN,
    CR_HOLD_COALESCE,
    CR_HOLD_KUBELET,
    CR_HOLD_ROLLOUT_UNDER_WAY,
    CR_HOLD_MAX_CONCURRENT,
    CR_HOLD_OTHER_ROLLOUT_FAILED,
    CR_HOLD_LIMIT,
    /* Availability. */
    CR_HOLD_BUDGET_WAIT,
    CR_HOLD_BUDGET,
    CR_HOLD_SINGLE_REPLICA,
    /* What was tried. */
    CR_HOLD_REFUSED,
    CR_HOLD_REFUSED_BY_BUDGET,
    CR_HOLD_ROLLOUT_FAILED,
    CR_HOLD_RESTART_UNDONE,
    CR_HOLD_EVIDENCE,
    CR_HOLD_STILL_STALE,
    CR_HOLD_DRAIN,
    CR_HOLD_DRAIN_STUCK,
};
enum { CR_HOLDS = CR_HOLD_DRAIN_STUCK + 1 };

/* "Suspended"; "" for CR_HOLD_NONE and for what is no value. Static. */
const char *cr_hold_name(enum cr_hold hold);
/* False: it is none of the names (NULL, "", or of another version); *hold is left alone. */
bool cr_hold_parse(const char *text, enum cr_hold *hold);
/* A person must lift it: its consumer is Blocked. Else it may pass by itself: its consumer is Pending. Says nothing of
 * holds with a state that is set apart: found once a restart is under way (Evidence, Drain, RolloutFailed), or with
 * nothing to restart (NoSecret, NotFound, UsesNoSecret, NotVerified, OtherCertificate). */
bool cr_hold_needs_a_person(enum cr_hold hold);
/* An event of the API server about PodDisruptionBudgets or other rollouts may end the hold. */
bool cr_hold_waits_for_budget(enum cr_hold hold);
/* It is worth a series of certroll_consumers_blocked. Not worth one: a pause of seconds, and what the state already
 * shows. */
bool cr_hold_is_counted(enum cr_hold hold);
/* Nothing is asked of the consumer, and it does not have what the policy means it to have. */
bool cr_hold_is_unmet(enum cr_hold hold);
/* Nothing is asked of the consumer, and its pods were not all seen to show what its Secrets hold. */
bool cr_hold_is_unseen(enum cr_hold hold);
/* What a hold means to a tool that waits until an object is healthy (kstatus, Argo CD). */
enum cr_hold_health {
    CR_HOLD_PASSES, /* it goes on by itself: not healthy yet; also while nothing holds it */
    CR_HOLD_WAITS,  /* as the user has arranged it, for as long as that lasts, or for a consumer or policy whose own
                     * state shows it: healthy, or whoever waits would hang */
    CR_HOLD_STUCK,  /* it does not go on before somebody mends it */
};
enum cr_hold_health cr_hold_health(enum cr_hold hold);
/* Of two: stuck before passes before waits. */
enum cr_hold_health cr_hold_worse(enum cr_hold_health a, enum cr_hold_health b);
/* The reason of the Event when a gate begins to hold for this; NULL: there is none. Static. */
const char *cr_hold_event(enum cr_hold hold);

/* What a gate answers. */
struct cr_gate {
    enum cr_hold hold;
    char *text;            /* owned: in words, with what to do; NULL: it is open */
    int64_t look_again_ms; /* after so long it may be open by time alone; 0: not by time, or it is not known when */
};
#define CR_GATE_OPEN ((struct cr_gate){.hold = CR_HOLD_NONE})

struct cr_gate cr_gate_make(enum cr_hold hold, const char *fmt, ...) CR_PRINTF(2, 3);
struct cr_gate cr_gate_copy(const struct cr_gate *gate);
void cr_gate_dispose(struct cr_gate *gate);
CR_DEFINE_DISPOSE(cr_gate, struct cr_gate, cr_gate_dispose)
/* Takes the value, and leaves an open gate behind. */
struct cr_gate cr_gate_steal(struct cr_gate *gate);
/* Replaces what is in *gate; takes value. */
void cr_gate_set(struct cr_gate *gate, struct cr_gate value);

#endif
