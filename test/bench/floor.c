/* The floor: what any program must do. It watches Secrets as certroll does, and for each change sends one PATCH of the
 * Deployment's pod template, as `kubectl rollout restart` does, over the same connection. It decides nothing and
 * remembers nothing.
 *
 * bench-floor NAMESPACE COUNT: of the Secrets s-00000 … below COUNT, to the Deployments d-00000 …. Prints "in sync". */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api.h"
#include "clock.h"
#include "frame.h"

enum { HEAD = 512 };

struct floor {
    struct bench_api *api;
    const char *ns;
    size_t count;
    bool synced;
};

static void restart(struct floor *floor, size_t index)
{
    char path[256], body[256], seconds[32];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(seconds, sizeof seconds, "%FT%T", gmtime_r(&now.tv_sec, &parts));
    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments/d-%05zu", floor->ns, index);
    /* With fractions of a second, so that two changes in one are two. */
    snprintf(body, sizeof body,
             "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/"
             "restartedAt\":\"%s.%09ldZ\"}}}}}",
             seconds, now.tv_nsec);
    bench_api_send(floor->api, "PATCH", path, "application/merge-patch+json", body, NULL, NULL, index);
}

static void on_secret(void *arg, const char *frame, size_t len)
{
    (void)len;
    struct floor *floor = arg;
    size_t index;
    if (!floor->synced && bench_frame_is_initial_end(frame)) {
        floor->synced = true;
        puts("in sync");
        fflush(stdout);
    } else if (floor->synced && bench_frame_index(frame, "s-", &index) && index < floor->count) {
        restart(floor, index);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_fail("usage: bench-floor NAMESPACE COUNT");
    struct floor floor = {.api = bench_api_new(), .ns = argv[1], .count = strtoul(argv[2], NULL, 10)};
    bench_api_watch(floor.api, "/api/v1/secrets", "&fieldSelector=type%3Dkubernetes.io%2Ftls", HEAD, on_secret, &floor);
    for (;;)
        bench_api_poll(floor.api, 60000);
}
