/* Reports the steps of a delivery worker: to the log and to metrics. Private to pkg/reloader. */
#ifndef CR_RELOADER_DELIVERY_REPORT_H
#define CR_RELOADER_DELIVERY_REPORT_H

#include "reloader/delivery_worker.h"

/* before, now: the delivery before and after a step. A failure that stays the same is reported once. */
void cr_delivery_report(const struct cr_delivery_worker_options *options, const struct cr_delivery *before,
                        const struct cr_delivery *now);

#endif
