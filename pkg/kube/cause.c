#include "kube/cause.h"

static _Thread_local int64_t cause_ns;

void cr_cause_set(int64_t arrived_ns)
{
    cause_ns = arrived_ns;
}

int64_t cr_cause_get(void)
{
    return cause_ns;
}
