/* An API server over one HTTP/2 connection, for the programs of the benchmark: libcurl, and nothing of certroll, so
 * that the floor is one. One thread. Whatever goes wrong ends the program.
 *
 * From the environment: BENCH_SERVER (https://…), BENCH_CA (file), and either BENCH_TOKEN (file) or BENCH_CERT and
 * BENCH_KEY (files). */
#ifndef CR_BENCH_API_H
#define CR_BENCH_API_H

#include <stdbool.h>
#include <stddef.h>

struct bench_api;

/* What an answer was, of which at most the first 4,095 bytes are kept; body ends with 0. */
typedef void (*bench_done)(void *arg, size_t index, long status, const char *body);
/* One frame of a watch, of which at most the first `keep` bytes are there; frame[len] is 0. */
typedef void (*bench_frame)(void *arg, const char *frame, size_t len);

struct bench_api *bench_api_new(void);
void bench_api_free(struct bench_api *api);

/* content_type is static; body is copied, NULL for none. Waits its turn when `BENCH_AT_ONCE` are under way. */
void bench_api_send(struct bench_api *api, const char *method, const char *path, const char *content_type,
                    const char *body, bench_done done, void *arg, size_t index);
/* A streaming list that goes on as a watch (KEP-3157), and on from where it was when the API server ends it; `query`
 * begins with & or is "". It lives as long as the program. */
void bench_api_watch(struct bench_api *api, const char *path, const char *query, size_t keep, bench_frame frame,
                     void *arg);
/* Works on everything that is under way, waits at most `ms`. */
void bench_api_poll(struct bench_api *api, int ms);
/* Requests that have no answer yet. */
size_t bench_api_pending(const struct bench_api *api);

enum { BENCH_AT_ONCE = 64 };

#endif
