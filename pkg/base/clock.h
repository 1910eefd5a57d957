/* Time. Pure layers never read a clock: they are given cr_time values. */
#ifndef CR_BASE_CLOCK_H
#define CR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Milliseconds since some start, never going back: for delays and deadlines within the process. */
int64_t cr_clock_monotonic_ms(void);
int64_t cr_clock_monotonic_ns(void); /* for how long short work took */
/* The same, but it goes on while the machine sleeps (CLOCK_BOOTTIME). It measures how long others have had no sign of
 * this process. */
int64_t cr_clock_boot_ms(void);
/* Milliseconds since 1970-01-01T00:00:00Z: for what is written to or read from the API. */
int64_t cr_clock_wall_ms(void);

enum { CR_TIME_TEXT = 32 };

/* RFC 3339 in UTC with seconds, as metav1.Time: "2026-11-21T06:10:21Z". The year has four digits (section 5.6): what is
 * before 0000 or after 9999 gives the first or the last moment that can be written. */
void cr_time_format(int64_t wall_ms, char out[CR_TIME_TEXT]);
/* RFC 3339 with microseconds, as metav1.MicroTime. */
void cr_time_format_micro(int64_t wall_ms, char out[CR_TIME_TEXT]);
/* RFC 3339 with any offset and fraction, which is cut to milliseconds. Errors: Invalid, also for what is in UTC not
 * within the years 0000 to 9999 ("0000-01-01T00:00:00+01:00"): cr_time_format_micro writes each time that is taken here
 * so that it reads the same. */
bool cr_time_parse(const char *text, int64_t *wall_ms, struct cr_error *err) CR_MUST_USE;

/* GEP-2257 durations ("1h30m", "10s", "500ms"), the subset of Go's that Gateway API defines. */
bool cr_duration_parse(const char *text, int64_t *ms, struct cr_error *err) CR_MUST_USE;
/* The shortest GEP-2257 text: "1h30m", "0s". */
void cr_duration_format(int64_t ms, char out[CR_TIME_TEXT]);

#endif
