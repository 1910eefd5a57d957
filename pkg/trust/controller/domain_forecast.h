/* What the distrust of a CA would take. Private to domain_world.c. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_FORECAST_H
#define CR_TRUST_CONTROLLER_DOMAIN_FORECAST_H

#include "trust/controller/covering_policies.h"
#include "trust/rules/domain_plan.h"

/* covering: of each of the world's objects. */
void cr_domain_forecast_make(const struct cr_domain_world *world, const struct cr_covering_policies *covering,
                             struct cr_domain_forecast *out);

#endif
