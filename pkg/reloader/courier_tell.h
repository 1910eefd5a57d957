/* What a courier says of its steps: on the log, in metrics. Private to pkg/reloader. */
#ifndef CR_RELOADER_COURIER_TELL_H
#define CR_RELOADER_COURIER_TELL_H

#include "reloader/courier.h"

/* A step led from before to now. A failure that stays the same is told once. */
void cr_courier_tell(const struct cr_courier_options *options, const struct cr_delivery *before,
                     const struct cr_delivery *now);

#endif
