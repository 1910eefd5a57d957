#ifndef CR_BENCH_CLOCK_H
#define CR_BENCH_CLOCK_H

#include <stdint.h>

/* Of the monotonic clock. */
int64_t bench_now_ns(void);
/* Says so and ends the program: a figure of a run that went wrong is worth nothing. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
