/* Preloaded into a program that is to live on another day: its wall clock is OTHER_TIME_S seconds ahead. The monotonic
 * clock, by which it waits, stays. libfaketime does the same, and more, and waits for itself in a program that brings
 * its own malloc. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void)
{
    const char *text = getenv("OTHER_TIME_S");
    return text ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, out);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += ahead();
    return failed;
}

/* As programs call it: with a place for the time. */
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int failed = (int)syscall(SYS_gettimeofday, out, zone);
    if (!failed)
        out->tv_sec += ahead();
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
