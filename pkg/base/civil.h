/* Dates of the Gregorian calendar as numbers of days, without the C library's time zones. Pure; any year within ±10^9.
 */
#ifndef CR_BASE_CIVIL_H
#define CR_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { CR_DAY_S = 24 * 60 * 60 };

struct cr_civil {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Days since 1970-01-01. */
int64_t cr_civil_to_days(struct cr_civil date);
struct cr_civil cr_civil_from_days(int64_t days);
/* 0: Sunday. */
int cr_civil_weekday(int64_t days);
bool cr_civil_is_leap(int64_t year);
int cr_civil_days_in(int64_t year, int month);

/* Rounds down, also below zero; b is positive. */
static inline int64_t cr_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

#endif
