#include "net/tls_probe.h"

#include <poll.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/probe_conn.h"

enum { AT_ONCE = CR_PROBE_AT_ONCE }; /* sockets: a policy may cover thousands of pods */

struct round {
    const struct cr_probe_target *targets;
    struct cr_probe_result *results;
    size_t count;
    size_t next; /* first target that was not begun */
    int64_t deadline_ms;
    SSL_CTX *ctx;
    struct cr_probe_conn *probes;
    size_t slots;
};

/* Those that wait get as much time as those that run: what remains is divided by the waves still to come. So who never
 * answers costs the others no more than its own share. */
static int64_t fair_share_ms(const struct round *round, int64_t now)
{
    int64_t left = round->deadline_ms - now;
    int64_t waves = (int64_t)((round->count - round->next + round->slots - 1) / round->slots);
    return left > 0 ? left / waves : 0;
}

static bool any_runs(const struct round *round)
{
    for (size_t i = 0; i < round->slots; i++)
        if (round->probes[i].step != CR_PROBE_ENDED)
            return true;
    return false;
}

/* A target that cannot even be begun leaves its slot free for the next. False: there are no sockets for now; the code
 * that has one will give it back, and the target waits for that. */
static bool fill_slot(struct round *round, struct cr_probe_conn *slot, int64_t now)
{
    while (slot->step == CR_PROBE_ENDED && round->next < round->count) {
        int64_t share = fair_share_ms(round, now);
        size_t at = round->next++;
        if (cr_probe_conn_begin(slot, &round->targets[at], &round->results[at], now, share, round->deadline_ms) ||
            !any_runs(round))
            continue;
        round->next = at;
        return false;
    }
    return true;
}

static void fill_slots(struct round *round, int64_t now)
{
    for (size_t i = 0; i < round->slots && round->next < round->count; i++)
        if (!fill_slot(round, &round->probes[i], now))
            return;
}

static int wait_ms(const struct round *round, int64_t now)
{
    int64_t due = round->deadline_ms;
    for (size_t i = 0; i < round->slots; i++)
        if (round->probes[i].step != CR_PROBE_ENDED && round->probes[i].deadline_ms < due)
            due = round->probes[i].deadline_ms;
    return due > now ? (int)(due - now) : 0;
}

/* Those under way, and none more: poll refuses more than there may be file descriptors. */
static size_t gather(struct round *round, struct pollfd fds[AT_ONCE], struct cr_probe_conn *polled[AT_ONCE])
{
    size_t count = 0;
    for (size_t i = 0; i < round->slots; i++) {
        struct cr_probe_conn *probe = &round->probes[i];
        if (probe->step == CR_PROBE_ENDED)
            continue;
        fds[count] = (struct pollfd){.fd = probe->wire.fd, .events = probe->wants};
        polled[count++] = probe;
    }
    return count;
}

/* False when nothing is under way. */
static bool poll_once(struct round *round)
{
    struct pollfd fds[AT_ONCE];
    struct cr_probe_conn *polled[AT_ONCE];
    size_t count = gather(round, fds, polled);
    if (!count)
        return false;
    if (poll(fds, (nfds_t)count, wait_ms(round, cr_clock_monotonic_ms())) < 0)
        for (size_t i = 0; i < count; i++)
            fds[i].revents = 0;
    for (size_t i = 0; i < count; i++)
        cr_probe_conn_advance(polled[i], round->ctx, fds[i].revents, cr_clock_monotonic_ms());
    return true;
}

static void run(struct round *round, int64_t now)
{
    fill_slots(round, now);
    while (poll_once(round))
        fill_slots(round, cr_clock_monotonic_ms());
}

static void nothing_works(const struct round *round)
{
    for (size_t i = 0; i < round->count; i++)
        cr_probe_conn_give_up(&round->results[i], "TLS cannot be initialised here");
}

void cr_tls_probe(const struct cr_probe_target *targets, size_t count, int timeout_ms, struct cr_probe_result *results)
{
    int64_t now = cr_clock_monotonic_ms();
    struct round round = {.targets = targets,
                          .results = results,
                          .count = count,
                          .deadline_ms = now + timeout_ms,
                          .ctx = cr_probe_context_new(),
                          .slots = count < AT_ONCE ? count : AT_ONCE};
    round.probes = cr_calloc(round.slots, sizeof *round.probes);
    for (size_t i = 0; i < round.slots; i++)
        round.probes[i].step = CR_PROBE_ENDED;
    if (round.ctx)
        run(&round, now);
    else
        nothing_works(&round);
    free(round.probes);
    SSL_CTX_free(round.ctx);
}
