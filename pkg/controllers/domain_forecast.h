/* What the distrust of a CA would take. Private to domain_world.c. */
#ifndef CR_CONTROLLERS_DOMAIN_FORECAST_H
#define CR_CONTROLLERS_DOMAIN_FORECAST_H

#include "controllers/domain_witnesses.h"
#include "rotation/domain_plan.h"

/* witnesses: of each of the world's objects. */
void cr_domain_forecast_make(const struct cr_domain_world *world, const struct cr_witnesses *witnesses,
                             struct cr_domain_forecast *out);

#endif
