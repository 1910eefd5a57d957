/* The words of the API for the values of C: one table each, so that a name is written once. */
#include "api/names.h"
#include "api/policy.h"
#include "api/status.h"

#include "base/strings.h"

static const char *const roles[] = {
    [CR_ROLE_SERVER_LEAF] = "serverLeaf", [CR_ROLE_CLIENT_LEAF] = "clientLeaf", [CR_ROLE_CLIENT_CA] = "clientCA",
    [CR_ROLE_SERVER_CA] = "serverCA",     [CR_ROLE_OPAQUE] = "opaque",
};
_Static_assert(cr_array_len(roles) == CR_ROLE_COUNT, "a name for each role");

static const char *const methods[] = {
    [CR_METHOD_UNKNOWN] = "Unknown", [CR_METHOD_WATCH] = "Watch",        [CR_METHOD_PER_HANDSHAKE] = "PerHandshake",
    [CR_METHOD_POLL] = "Poll",       [CR_METHOD_SIGNAL] = "Signal",      [CR_METHOD_HTTP] = "HTTP",
    [CR_METHOD_COMMAND] = "Command", [CR_METHOD_API_WATCH] = "ApiWatch", [CR_METHOD_RESTART] = "Restart",
};
_Static_assert(cr_array_len(methods) == CR_METHOD_COUNT, "a name for each method");

static const char *const stages[] = {
    [CR_STAGE_IDLE] = "Idle",         [CR_STAGE_TRUSTING] = "Trusting", [CR_STAGE_SWITCHING] = "Switching",
    [CR_STAGE_RETIRING] = "Retiring", [CR_STAGE_HELD] = "Held",
};

static const char *const decisions[] = {
    [CR_DECISION_NONE] = "None",
    [CR_DECISION_HOT_RELOAD] = "HotReload",
    [CR_DECISION_TRIGGER] = "Trigger",
    [CR_DECISION_RESTART] = "Restart",
};

static const char *const consumer_states[] = {
    [CR_CONSUMER_IDLE] = "Idle",
    [CR_CONSUMER_PENDING] = "Pending",
    [CR_CONSUMER_RESTARTING] = "Restarting",
    [CR_CONSUMER_VERIFYING] = "Verifying",
    [CR_CONSUMER_CONVERGED] = "Converged",
    [CR_CONSUMER_BLOCKED] = "Blocked",
    [CR_CONSUMER_FAILED] = "Failed",
    [CR_CONSUMER_ABSENT] = "Absent",
};

static const char *const settled_by[] = {
    [CR_SETTLED_FIRST_SIGHT] = "FirstSight",
    [CR_SETTLED_INFERRED] = "Inferred",
    [CR_SETTLED_VERIFIED] = "Verified",
};

static const char *const unknown_readers[] = {
    [CR_READERS_KNOWN] = "",
    [CR_READERS_UNMANAGED_POD] = CR_REASON_UNMANAGED_POD,
    [CR_READERS_UNCOVERED_POD] = CR_REASON_UNCOVERED_POD,
    [CR_READERS_TOO_MANY] = "TooManyConsumers",
    [CR_READERS_CANNOT_DISCOVER] = "CannotDiscover",
    [CR_READERS_NOT_ACTED_ON] = "NotActedOn",
};

/* In the order of the bits. */
static const char *const changes[] = {
    "LeafRenewed",  "KeyChanged",   "IssuerChanged", "TrustAdded",
    "TrustRemoved", "TrustRenewed", "TrustReplaced", "OpaqueChanged",
};
_Static_assert(cr_array_len(changes) == CR_CHANGE_BITS, "a name for each bit");

/* Likewise. */
static const char *const warnings[] = {"ShutdownMisfit", "NameMissing"};
_Static_assert(cr_array_len(warnings) == CR_WARNING_BITS, "a name for each bit");

const char *const cr_condition_types[CR_CONDITIONS] = {
    "Ready", "Converged", "Rotating", "Blocked", "Degraded", "ExpiringSoon", "Conflict", "Reconciling", "Stalled",
};

const char *cr_word_of(const char *const *names, size_t count, size_t value)
{
    return value < count ? names[value] : "";
}

bool cr_word_find(const char *const *names, size_t count, const char *text, unsigned *value)
{
    for (size_t i = 0; text && i < count; i++) {
        if (cr_streq(names[i], text)) {
            *value = (unsigned)i;
            return true;
        }
    }
    return false;
}

const char *cr_role_name(enum cr_role role)
{
    return cr_word_of(roles, cr_array_len(roles), role);
}

bool cr_role_parse(const char *text, enum cr_role *role)
{
    unsigned value = 0;
    if (!cr_word_find(roles, cr_array_len(roles), text, &value))
        return false;
    *role = (enum cr_role)value;
    return true;
}

const char *cr_method_name(enum cr_method method)
{
    return cr_word_of(methods, cr_array_len(methods), method);
}

bool cr_method_parse(const char *text, enum cr_method *method)
{
    unsigned value = 0;
    if (!cr_word_find(methods, cr_array_len(methods), text, &value))
        return false;
    *method = (enum cr_method)value;
    return true;
}

const char *cr_stage_name(enum cr_stage stage)
{
    return cr_word_of(stages, cr_array_len(stages), stage);
}

bool cr_stage_parse(const char *text, enum cr_stage *stage)
{
    unsigned value = 0;
    if (!cr_word_find(stages, cr_array_len(stages), text, &value))
        return false;
    *stage = (enum cr_stage)value;
    return true;
}

const char *cr_decision_name(enum cr_decision_kind kind)
{
    return cr_word_of(decisions, cr_array_len(decisions), kind);
}

bool cr_decision_parse(const char *text, enum cr_decision_kind *kind)
{
    unsigned value = 0;
    if (!cr_word_find(decisions, cr_array_len(decisions), text, &value))
        return false;
    *kind = (enum cr_decision_kind)value;
    return true;
}

const char *cr_consumer_state_name(enum cr_consumer_state state)
{
    return cr_word_of(consumer_states, cr_array_len(consumer_states), state);
}

bool cr_consumer_state_parse(const char *text, enum cr_consumer_state *state)
{
    unsigned value = 0;
    if (!cr_word_find(consumer_states, cr_array_len(consumer_states), text, &value))
        return false;
    *state = (enum cr_consumer_state)value;
    return true;
}

const char *cr_settled_by_name(enum cr_settled_by by)
{
    return cr_word_of(settled_by, cr_array_len(settled_by), by);
}

bool cr_settled_by_parse(const char *text, enum cr_settled_by *by)
{
    unsigned value = 0;
    if (!cr_word_find(settled_by, cr_array_len(settled_by), text, &value))
        return false;
    *by = (enum cr_settled_by)value;
    return true;
}

const char *cr_unknown_readers_name(enum cr_unknown_readers why)
{
    return cr_word_of(unknown_readers, cr_array_len(unknown_readers), why);
}

bool cr_unknown_readers_parse(const char *text, enum cr_unknown_readers *why)
{
    unsigned value = 0;
    if (!cr_word_find(unknown_readers, cr_array_len(unknown_readers), text, &value))
        return false;
    *why = (enum cr_unknown_readers)value;
    return true;
}

static const char *word_of_bit(const char *const *names, unsigned count, unsigned bit)
{
    for (unsigned i = 0; i < count; i++)
        if (1u << i == bit)
            return names[i];
    return "";
}

const char *cr_change_name(enum cr_change_bit bit)
{
    return word_of_bit(changes, CR_CHANGE_BITS, (unsigned)bit);
}

bool cr_change_parse(const char *text, enum cr_change_bit *bit)
{
    unsigned value = 0;
    if (!cr_word_find(changes, cr_array_len(changes), text, &value))
        return false;
    *bit = (enum cr_change_bit)(1u << value);
    return true;
}

const char *cr_warning_name(enum cr_warning_bit bit)
{
    return word_of_bit(warnings, CR_WARNING_BITS, (unsigned)bit);
}

bool cr_warning_parse(const char *text, enum cr_warning_bit *bit)
{
    unsigned value = 0;
    if (!cr_word_find(warnings, cr_array_len(warnings), text, &value))
        return false;
    *bit = (enum cr_warning_bit)(1u << value);
    return true;
}
