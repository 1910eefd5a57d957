/* Where flags do not say how to reach the proxy: nothing is done, and the proxy never counts as drained. */
#include "drain/flags_internal.h"

static bool know_nothing(struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "the flags do not say how to reach the proxy");
}

static bool prepare_nothing(struct cr_drain_target *target, struct cr_error *err)
{
    (void)target;
    (void)err;
    return true;
}

static bool begin_nothing(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                          struct cr_error *err)
{
    (void)target;
    (void)attempt;
    return know_nothing(err);
}

static bool count_nothing(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                          struct cr_drain_count *out, struct cr_error *err)
{
    (void)out;
    return begin_nothing(target, attempt, err);
}

const struct cr_drain_strategy cr_drain_unreachable = {"none", "waits for the time-out", prepare_nothing, begin_nothing,
                                                       count_nothing};
