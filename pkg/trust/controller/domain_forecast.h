/* What the distrust of a CA would take. Private to domain_world.c. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_FORECAST_H
#define CR_TRUST_CONTROLLER_DOMAIN_FORECAST_H

#include "base/strmap.h"
#include "trust/controller/covering_policies.h"
#include "trust/rules/domain_plan.h"

/* What is known so far, object by object. */
struct cr_domain_forecast_sum {
    struct cr_strmap *workloads; /* owned; each once */
    int64_t longest_ms;          /* for the rollouts of one policy */
    bool uncovered;              /* of an object nobody knows who reads it */
};

void cr_domain_forecast_add(struct cr_domain_forecast_sum *sum, const struct cr_covering_policies *covering,
                            bool is_read_by_api);
void cr_domain_forecast_make(const struct cr_domain_world *world, const struct cr_domain_forecast_sum *sum,
                             struct cr_domain_forecast *out);
void cr_domain_forecast_sum_dispose(struct cr_domain_forecast_sum *sum);

#endif
