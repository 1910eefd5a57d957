/* The rule by which a time zone goes on for ever: what stands in POSIX's variable TZ ("CET-1CEST,M3.5.0,M10.5.0/3"),
 * and in the footer of a TZif file, there with times from -167 to 167 hours (RFC 9636, section 3.3.1). Pure; times are
 * seconds since 1970-01-01T00:00:00Z without leap seconds, within ±2^55. */
#ifndef CR_CODEC_TZ_RULE_H
#define CR_CODEC_TZ_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum cr_tz_day_kind {
    CR_TZ_DAY_JULIAN,  /* Jn: 1 to 365, the 29th of February never counts */
    CR_TZ_DAY_OF_YEAR, /* n: 0 to 365, it counts */
    CR_TZ_DAY_OF_WEEK, /* Mm.w.d: the w-th day d of month m; week 5 is the last */
};

struct cr_tz_change {
    enum cr_tz_day_kind kind;
    int day;        /* of the week: 0 is Sunday */
    int week;       /* 1 to 5 */
    int month;      /* 1 to 12 */
    int32_t time_s; /* from the midnight that begins the day, by the time that ends then; may be negative */
};

struct cr_tz_rule {
    int32_t standard_s; /* seconds east of UTC */
    int32_t daylight_s; /* may be less than the standard time (Dublin) */
    bool has_daylight;
    struct cr_tz_change to_daylight;
    struct cr_tz_change to_standard;
};

/* Errors (Invalid) quote the text. Daylight time without its two rules is refused: POSIX leaves it open when it begins.
 */
bool cr_tz_rule_parse(const char *text, struct cr_tz_rule *rule, struct cr_error *err) CR_MUST_USE;
/* Seconds east of UTC. */
int32_t cr_tz_rule_offset(const struct cr_tz_rule *rule, int64_t at_s);
/* The first change after at_s; INT64_MAX: there is none. */
int64_t cr_tz_rule_next(const struct cr_tz_rule *rule, int64_t at_s);

#endif
