#include "base/civil.h"

/* The calendar repeats after 400 years; a year that begins in March has its leap day at its end. */
enum { ERA_YEARS = 400, ERA_DAYS = 146097, EPOCH_DAY = 719468 /* 1970-01-01, from 0000-03-01 */ };

/* The day of a year that begins in March: month 0 is March. */
static int64_t day_of_year(int month)
{
    return (153 * month + 2) / 5;
}

int64_t cr_civil_to_days(struct cr_civil date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = cr_floor_div(year, ERA_YEARS);
    int64_t of_era = year - era * ERA_YEARS;
    int64_t day = day_of_year((date.month + 9) % 12) + date.day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + day - EPOCH_DAY;
}

struct cr_civil cr_civil_from_days(int64_t days)
{
    days += EPOCH_DAY;
    int64_t era = cr_floor_div(days, ERA_DAYS);
    int64_t of_era = days - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t day = of_era - (365 * year + year / 4 - year / 100);
    int month = (int)((5 * day + 2) / 153);
    struct cr_civil date = {.month = month < 10 ? month + 3 : month - 9, .day = (int)(day - day_of_year(month)) + 1};
    date.year = year + era * ERA_YEARS + (date.month <= 2);
    return date;
}

int cr_civil_weekday(int64_t days)
{
    return (int)(days + 4 - cr_floor_div(days + 4, 7) * 7); /* 1970-01-01 was a Thursday */
}

bool cr_civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int cr_civil_days_in(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && cr_civil_is_leap(year));
}
