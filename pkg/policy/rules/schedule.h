/* Windows of time in which something disruptive may begin. Pure: the caller gives the time and the zones.
 *
 * A window opens when the clocks of its zone first show a minute of its schedule, and stays open for its duration,
 * which is counted as it passes. A minute that is left out in spring (02:30) opens it at the change; one that comes
 * twice in autumn opens it once, the first time. */
#ifndef CR_POLICY_RULES_SCHEDULE_H
#define CR_POLICY_RULES_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/cron.h"
#include "codec/tzif.h"

/* Wall clock, ms. */
#define CR_SCHEDULE_NEVER INT64_MAX

/* The first opening at or after from_ms; CR_SCHEDULE_NEVER: none within 41 years. */
int64_t cr_schedule_next_ms(const struct cr_cron *cron, const struct cr_tzif *zone, int64_t from_ms);

struct cr_window {
    const struct cr_cron *cron; /* borrowed */
    const struct cr_tzif *zone;
    int64_t duration_ms;
};

/* A window opens for many at once, and all would act in the same second. So each first waits for a time of its own, the
 * same each time: up to half a minute, and up to a tenth of the window. */
enum { CR_SCHEDULE_JITTER_MAX_MS = 30 * 1000 };
/* who: such as a UID. */
int64_t cr_schedule_jitter_ms(const char *who, int64_t duration_ms);

struct cr_schedule {
    bool open;       /* at least one of the windows is */
    int64_t next_ms; /* when not: when the first of them opens; with its jitter */
    size_t window;   /* which */
};
/* No window at all is never open. */
struct cr_schedule cr_schedule_judge(const struct cr_window *windows, size_t len, const char *who, int64_t now_ms);

/* RFC 3339 with the zone's offset, and its name: "2026-11-22T02:00:00+01:00 (Europe/Paris)". Owned. */
char *cr_schedule_time(const struct cr_tzif *zone, const char *name, int64_t at_ms);

#endif
