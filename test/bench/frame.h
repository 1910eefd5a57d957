/* The few things that the programs of the benchmark look for in a frame of a watch, by hand: the API server's own
 * encoder writes them, without blanks and always in the same order. */
#ifndef CR_BENCH_FRAME_H
#define CR_BENCH_FRAME_H

#include <stdbool.h>
#include <stddef.h>

/* The number behind `prefix` in metadata.name ("s-00042", "s-": 42); false when the object is called otherwise. */
bool bench_frame_index(const char *frame, const char *prefix, size_t *index);
/* {"type":"BOOKMARK"…} at the end of the initial state. */
bool bench_frame_is_initial_end(const char *frame);
/* The first number behind "key": or "key":"; 0 when there is none. */
long long bench_frame_number(const char *frame, const char *key);

#endif
