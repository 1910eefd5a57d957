/* A server that reloads while clients connect: what the handshakes were and took, as one line of JSON. */
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "ends.h"
#include "generations.h"

enum { GENERATIONS = 40, STEP_US = 4000, IDLE_MS = 10 * 1000, SETTLE_MS = 60 * 1000 };

static const char usage[] =
    "usage: bench-handshakes FOLDER [--rate 200] [--seconds 10] [--swaps N [--burst 16]]\n"
    "  FOLDER is empty. With --swaps that many are done, in bursts, each followed by a reload that is waited for;\n"
    "  without, nothing is swapped for so many seconds.\n";

struct plan {
    const char *folder;
    int rate, seconds, swaps, burst;
};

struct footprint {
    long anonymous_kib;
    int descriptors;
};

static long anonymous_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static struct footprint take_footprint(void)
{
    return (struct footprint){anonymous_kib(), descriptors()};
}

static uint64_t reloads(struct cr_tlsreload *tls)
{
    struct cr_tlsreload_state state;
    cr_tlsreload_state(tls, &state);
    return state.reloads;
}

/* Behind the quiet that is waited for. */
static void await_reload(struct cr_tlsreload *tls, uint64_t before)
{
    for (int64_t end = cr_clock_monotonic_ms() + IDLE_MS; reloads(tls) == before && cr_clock_monotonic_ms() < end;)
        usleep(2000);
}

static void storm(const struct plan *plan, struct cr_tlsreload *tls, struct volume *volume,
                  const struct generation *generations, struct footprint *quarter)
{
    for (int done = 0; done < plan->swaps;) {
        uint64_t before = reloads(tls);
        for (int i = 0; i < plan->burst && done < plan->swaps; i++, done++) {
            volume_swap(volume, &generations[volume->number % GENERATIONS], done / plan->burst % 2);
            usleep(STEP_US);
            if (done == plan->swaps / 4)
                *quarter = take_footprint();
        }
        await_reload(tls, before);
    }
}

/* Who starts now serves what the files hold. */
static void leaf_of_now(const struct cr_tlsreload_options *options, struct cr_tlsreload_state *out)
{
    struct cr_error err = {0};
    struct cr_tlsreload *fresh = cr_tlsreload_new(options, &err);
    if (!fresh) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    cr_tlsreload_state(fresh, out);
    cr_tlsreload_free(fresh);
}

static bool settles(const struct cr_tlsreload_options *options, struct cr_tlsreload *tls)
{
    struct cr_tlsreload_state wanted;
    struct cr_tlsreload_state now;
    leaf_of_now(options, &wanted);
    int64_t end = cr_clock_monotonic_ms() + SETTLE_MS;
    do {
        cr_tlsreload_state(tls, &now);
        usleep(5000);
    } while (strcmp(now.leaf, wanted.leaf) != 0 && cr_clock_monotonic_ms() < end);
    return strcmp(now.leaf, wanted.leaf) == 0;
}

static int compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int32_t percentile(const int32_t *sorted, int len, int percent)
{
    return len ? sorted[(int64_t)(len - 1) * percent / 100] : 0;
}

static void report(const struct plan *plan, const struct ends *ends, const struct cr_tlsreload_state *state,
                   bool settled, int64_t took_ms)
{
    int len = atomic_load(&ends->handshakes) < TOOK_MAX ? atomic_load(&ends->handshakes) : TOOK_MAX;
    qsort(ends->took_us, (size_t)len, sizeof *ends->took_us, compare);
    printf("{\"seconds\": %.3f, \"swaps\": %d, \"reloads\": %llu, \"failures\": %llu, \"settled\": %s, "
           "\"handshakes\": %d, \"failed\": %d, \"refused\": %d, \"mixed\": %d, "
           "\"p50_us\": %d, \"p99_us\": %d, \"most_us\": %d",
           (double)took_ms / 1000, plan->swaps, (unsigned long long)state->reloads, (unsigned long long)state->failures,
           settled ? "true" : "false", atomic_load(&ends->handshakes), atomic_load(&ends->failed),
           atomic_load(&ends->refused), atomic_load(&ends->mixed), percentile(ends->took_us, len, 50),
           percentile(ends->took_us, len, 99), percentile(ends->took_us, len, 100));
}

static void report_footprints(const struct footprint all[3])
{
    static const char *const when[] = {"start", "quarter", "end"};
    for (int i = 0; i < 3; i++)
        printf(", \"%s\": {\"anonymous_kib\": %ld, \"descriptors\": %d}", when[i], all[i].anonymous_kib,
               all[i].descriptors);
    puts("}");
}

static struct cr_tlsreload *serve(const struct cr_tlsreload_options *options)
{
    struct cr_error err = {0};
    struct cr_tlsreload *tls = cr_tlsreload_new(options, &err);
    if (tls && cr_tlsreload_start(tls, &err))
        return tls;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

/* The last footprint is taken when the connections have ended, as the first is before they begin. */
static void run(const struct plan *plan, const struct cr_tlsreload_options *options, struct volume *volume,
                const struct generation *generations)
{
    struct ends ends;
    struct footprint footprints[3] = {{0}};
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = serve(options);
    footprints[0] = take_footprint();
    ends_start(&ends, tls, plan->rate);
    int64_t start = cr_clock_monotonic_ms();
    if (plan->swaps)
        storm(plan, tls, volume, generations, &footprints[1]);
    else
        sleep((unsigned)plan->seconds);
    int64_t took = cr_clock_monotonic_ms() - start;
    bool settled = settles(options, tls);
    ends_quiet(&ends);
    footprints[2] = take_footprint();
    struct cr_tlsreload_state state;
    cr_tlsreload_state(tls, &state);
    report(plan, &ends, &state, settled, took);
    report_footprints(footprints);
    ends_free(&ends);
}

static struct plan plan_of(int argc, char **argv)
{
    static const struct option known[] = {{"rate", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"swaps", required_argument, NULL, 'n'},
                                          {"burst", required_argument, NULL, 'b'},
                                          {0}};
    struct plan plan = {.rate = 200, .seconds = 10, .burst = 16};
    for (int word; (word = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        int *const slot = word == 'r'   ? &plan.rate
                          : word == 's' ? &plan.seconds
                          : word == 'n' ? &plan.swaps
                          : word == 'b' ? &plan.burst
                                        : NULL;
        if (slot)
            *slot = atoi(optarg);
        else
            optind = argc;
    }
    plan.folder = optind == argc - 1 ? argv[optind] : NULL;
    return plan;
}

int main(int argc, char **argv)
{
    struct plan plan = plan_of(argc, argv);
    if (!plan.folder || plan.rate < 1 || plan.seconds < 1 || plan.swaps < 0 || plan.burst < 1) {
        fputs(usage, stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    cr_autofree char *crt = cr_asprintf("%s/tls.crt", plan.folder);
    cr_autofree char *key = cr_asprintf("%s/tls.key", plan.folder);
    cr_autofree char *ca = cr_asprintf("%s/ca.crt", plan.folder);
    const struct cr_tlsreload_options options = {
        .certificate = crt, .private_key = key, .client_ca = ca, .clients = CR_TLSRELOAD_CLIENTS_REQUEST};
    struct generation *generations = generations_new(GENERATIONS);
    struct volume volume = {.folder = plan.folder};
    volume_swap(&volume, &generations[0], false);
    run(&plan, &options, &volume, generations);
    generations_free(generations, GENERATIONS);
    return 0;
}
