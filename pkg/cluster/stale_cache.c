#include "cluster/stale_cache.h"

#include "base/clock.h"
#include "base/log.h"

struct cr_metric *cr_stale_cache_counter(struct cr_metrics *metrics)
{
    return cr_metrics_counter(metrics, "certroll_stale_cache_total",
                              "Reconciles that found the cache behind their own last write.", CR_LABELS("result"));
}

bool cr_stale_cache_waits(struct cr_own_writes *own, const char *key, const char *what, struct cr_metric *counter,
                          cr_own_writes_look_fn look, void *arg)
{
    switch (cr_own_writes_check(own, key, cr_clock_monotonic_ms(), look, arg)) {
    case CR_OWN_WRITES_SEEN:
        return false;
    case CR_OWN_WRITES_WAIT:
        cr_metric_add(counter, CR_LABELS("waited"), 1);
        return true;
    case CR_OWN_WRITES_GIVEN_UP:
        cr_metric_add(counter, CR_LABELS("given_up"), 1);
        cr_log(CR_LOG_WARN, "the cache has not seen our own write for two minutes; it is not waited for any longer",
               {what, key});
        return false;
    }
    return false;
}
