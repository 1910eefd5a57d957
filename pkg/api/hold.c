/* One table: a hold is added here, in hold.h, and in docs/api.md and the CRD, which test_hold.c compares with it. */
#include "api/hold.h"

#include <stdarg.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/strings.h"

struct row {
    const char *name;
    bool needs_a_person;
    bool waits_for_budget;
    bool is_quiet;
    enum cr_hold_health health;
    const char *event;
};

static const struct row rows[CR_HOLDS] = {
    [CR_HOLD_NONE] = {"", .is_quiet = true},
    [CR_HOLD_DELETING] = {"Deleting"},
    [CR_HOLD_SUSPENDED] = {"Suspended", .health = CR_HOLD_WAITS},
    [CR_HOLD_PLAN_MODE] = {"PlanMode", .health = CR_HOLD_WAITS},
    [CR_HOLD_RESTART_NEVER] = {"RestartNever", .needs_a_person = true, .health = CR_HOLD_WAITS},
    [CR_HOLD_OTHER_POLICY] = {"OtherPolicy", .health = CR_HOLD_WAITS},
    [CR_HOLD_NO_SECRET] = {"NoSecret", .needs_a_person = true},
    [CR_HOLD_NOT_FOUND] = {"NotFound", .needs_a_person = true, .event = "TargetNotFound"},
    [CR_HOLD_USES_NO_SECRET] = {"UsesNoSecret", .needs_a_person = true, .event = "UsesNoSecret"},
    [CR_HOLD_NOT_VERIFIED] = {"NotVerified"},
    [CR_HOLD_OTHER_CERTIFICATE] = {"OtherCertificate", .needs_a_person = true, .health = CR_HOLD_STUCK,
                                   .event = "OtherCertificate"},
    [CR_HOLD_UNKNOWN_SOFTWARE] = {"UnknownSoftware", .needs_a_person = true, .health = CR_HOLD_WAITS},
    [CR_HOLD_SECRET_PROBLEM] = {"SecretProblem", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_IMMUTABLE_SECRET] = {"ImmutableSecret", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_KEY_TYPE_NOT_ACCEPTED] = {"KeyTypeNotAccepted", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_PAUSED] = {"Paused", .needs_a_person = true, .health = CR_HOLD_WAITS},
    [CR_HOLD_BARE_REPLICA_SET] = {"BareReplicaSet", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_UPDATING] = {"Updating"},
    [CR_HOLD_UPDATE_FAILED] = {"UpdateFailed", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_ON_DELETE] = {"OnDelete", .needs_a_person = true, .health = CR_HOLD_WAITS},
    [CR_HOLD_PARTITION] = {"Partition", .needs_a_person = true, .health = CR_HOLD_WAITS},
    [CR_HOLD_WINDOW] = {"Window", .health = CR_HOLD_WAITS},
    [CR_HOLD_WINDOW_TOO_LATE] = {"WindowTooLate", .health = CR_HOLD_STUCK},
    [CR_HOLD_WINDOW_NEVER] = {"WindowNever", .health = CR_HOLD_STUCK},
    [CR_HOLD_CIRCUIT_BREAKER] = {"CircuitBreaker", .health = CR_HOLD_STUCK, .event = "RestartedTooOften"},
    [CR_HOLD_ORDER] = {"Order", .health = CR_HOLD_WAITS},
    [CR_HOLD_ORDER_UNKNOWN] = {"OrderUnknown", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_COALESCE] = {"Coalesce", .is_quiet = true},
    [CR_HOLD_KUBELET] = {"Kubelet"},
    [CR_HOLD_ROLLOUT_UNDER_WAY] = {"RolloutUnderWay"},
    [CR_HOLD_MAX_CONCURRENT] = {"MaxConcurrent", .health = CR_HOLD_WAITS},
    [CR_HOLD_OTHER_ROLLOUT_FAILED] = {"OtherRolloutFailed", .health = CR_HOLD_STUCK},
    [CR_HOLD_LIMIT] = {"Limit"},
    [CR_HOLD_BUDGET_WAIT] = {"BudgetWait", .waits_for_budget = true, .event = "WaitsForBudget"},
    [CR_HOLD_BUDGET] = {"Budget", .needs_a_person = true, .waits_for_budget = true, .health = CR_HOLD_STUCK,
                        .event = "WaitsForBudget"},
    [CR_HOLD_SINGLE_REPLICA] = {"SingleReplica", .needs_a_person = true, .waits_for_budget = true,
                                .health = CR_HOLD_STUCK, .event = "OnlyPodHeld"},
    [CR_HOLD_REFUSED] = {"Refused", .needs_a_person = true},
    [CR_HOLD_REFUSED_BY_BUDGET] = {"RefusedByBudget", .needs_a_person = true, .waits_for_budget = true},
    [CR_HOLD_ROLLOUT_FAILED] = {"RolloutFailed", .needs_a_person = true, .is_quiet = true, .health = CR_HOLD_STUCK,
                                .event = "RolloutFailed"},
    [CR_HOLD_RESTART_UNDONE] = {"RestartUndone", .needs_a_person = true, .health = CR_HOLD_STUCK,
                                .event = "RestartUndone"},
    [CR_HOLD_EVIDENCE] = {"Evidence", .is_quiet = true},
    [CR_HOLD_STILL_STALE] = {"StillStale", .needs_a_person = true, .health = CR_HOLD_STUCK},
    [CR_HOLD_DRAIN] = {"Drain"},
    [CR_HOLD_DRAIN_STUCK] = {"DrainStuck", .needs_a_person = true, .health = CR_HOLD_STUCK, .event = "DrainStuck"},
};

static const struct row *row_of(enum cr_hold hold)
{
    return &rows[(unsigned)hold < CR_HOLDS ? hold : CR_HOLD_NONE];
}

const char *cr_hold_name(enum cr_hold hold)
{
    return row_of(hold)->name;
}

bool cr_hold_parse(const char *text, enum cr_hold *hold)
{
    for (size_t i = CR_HOLD_NONE + 1; i < CR_HOLDS; i++)
        if (cr_streq(rows[i].name, text)) {
            *hold = (enum cr_hold)i;
            return true;
        }
    return false;
}

bool cr_hold_needs_a_person(enum cr_hold hold)
{
    return row_of(hold)->needs_a_person;
}

bool cr_hold_waits_for_budget(enum cr_hold hold)
{
    return row_of(hold)->waits_for_budget;
}

bool cr_hold_is_counted(enum cr_hold hold)
{
    return !row_of(hold)->is_quiet;
}

bool cr_hold_is_unmet(enum cr_hold hold)
{
    return hold == CR_HOLD_NO_SECRET || hold == CR_HOLD_NOT_FOUND || hold == CR_HOLD_USES_NO_SECRET;
}

bool cr_hold_is_unseen(enum cr_hold hold)
{
    return hold == CR_HOLD_NOT_VERIFIED || hold == CR_HOLD_OTHER_CERTIFICATE;
}

enum cr_hold_health cr_hold_health(enum cr_hold hold)
{
    return row_of(hold)->health;
}

enum cr_hold_health cr_hold_worse(enum cr_hold_health a, enum cr_hold_health b)
{
    if (a == CR_HOLD_STUCK || b == CR_HOLD_STUCK)
        return CR_HOLD_STUCK;
    return a == CR_HOLD_PASSES || b == CR_HOLD_PASSES ? CR_HOLD_PASSES : CR_HOLD_WAITS;
}

const char *cr_hold_event(enum cr_hold hold)
{
    return row_of(hold)->event;
}

struct cr_gate cr_gate_make(enum cr_hold hold, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct cr_gate gate = {.hold = hold, .text = cr_vasprintf(fmt, args)};
    va_end(args);
    return gate;
}

struct cr_gate cr_gate_copy(const struct cr_gate *gate)
{
    return (struct cr_gate){
        .hold = gate->hold, .text = cr_strdup_or_null(gate->text), .look_again_ms = gate->look_again_ms};
}

void cr_gate_dispose(struct cr_gate *gate)
{
    free(gate->text);
    *gate = CR_GATE_OPEN;
}

struct cr_gate cr_gate_steal(struct cr_gate *gate)
{
    struct cr_gate stolen = *gate;
    *gate = CR_GATE_OPEN;
    return stolen;
}

void cr_gate_set(struct cr_gate *gate, struct cr_gate value)
{
    free(gate->text);
    *gate = value;
}
