#include "controllers/acts_reloader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controllers/pod_guard.h"
#include "net/page_fetch.h"
#include "rotation/reloader.h"

enum { PAGES_MS = 2000 };

struct look {
    const struct cr_world_pod *pod;
    int port;
};

struct reading {
    const struct cr_actor *actor;
    const char *ns;
    struct look *looks; /* parallel to what is fetched */
    int64_t began_ms;
};

static int64_t read_ms(const struct look *look)
{
    return look->pod->reloader ? look->pod->reloader->at_ms : 0;
}

static int by_age(const void *a, const void *b)
{
    int64_t first = read_ms(a);
    int64_t second = read_ms(b);
    return first < second ? -1 : first > second;
}

/* Takes what the page has. */
static void remember(const struct reading *reading, const struct look *look, struct cr_reloader_sighting *seen,
                     const char *outcome)
{
    seen->at_ms = reading->began_ms;
    cr_memory_saw_reloader(reading->actor->memory, look->pod->uid, look->pod->started_ms, seen);
    cr_metric_add(reading->actor->reloader_pages, CR_LABELS(reading->ns, outcome), 1);
}

static void on_page(void *arg, size_t index, const struct cr_page *page)
{
    const struct reading *reading = arg;
    struct cr_reloader_sighting seen = {0};
    struct cr_error problem = {0};
    const char *outcome = "read";
    if (page->problem[0]) {
        outcome = "unreachable";
        snprintf(seen.words, sizeof seen.words, "%s", page->problem);
    } else if (!cr_reloader_page_read(cr_buf_text(&page->body), page->body.len, &seen, &problem)) {
        outcome = "invalid";
        snprintf(seen.words, sizeof seen.words, "%s", problem.text);
    }
    remember(reading, &reading->looks[index], &seen, outcome);
}

static struct look *looks_of(const struct cr_gathered *gathered, const struct cr_plan *plan, size_t *count)
{
    struct look *looks = cr_calloc(plan->probes_len, sizeof *looks);
    size_t len = 0;
    for (size_t i = 0; i < plan->probes_len; i++) {
        const struct cr_plan_pod *what = &plan->probes[i];
        if (what->reloader_port)
            looks[len++] =
                (struct look){.pod = &gathered->consumers[what->consumer].pods[what->pod], .port = what->reloader_port};
    }
    if (len)
        qsort(looks, len, sizeof *looks, by_age);
    *count = len < CR_RELOADER_PAGES_MAX ? len : CR_RELOADER_PAGES_MAX;
    return looks;
}

/* What may not be asked is told so at once; the rest becomes targets, looks moved to the front with them. */
static size_t make_targets(const struct reading *reading, size_t count, struct cr_page_target *targets)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct look look = reading->looks[i];
        if (!cr_pod_may_be_asked(reading->actor->client, look.pod, look.port)) {
            remember(reading, &look,
                     &(struct cr_reloader_sighting){.words = "it is not at an address that may be asked"}, "refused");
            continue;
        }
        reading->looks[kept] = look;
        targets[kept++] = (struct cr_page_target){.address = look.pod->ip, .port = look.port, .path = CR_RELOADER_PATH};
    }
    return kept;
}

void cr_act_read_reloaders(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan)
{
    size_t count = 0;
    cr_autofree struct look *looks = looks_of(gathered, plan, &count);
    cr_autofree struct cr_page_target *targets = cr_calloc(count, sizeof *targets);
    struct reading reading = {
        .actor = actor, .ns = gathered->world.policy->ns, .looks = looks, .began_ms = cr_clock_wall_ms()};
    size_t asked = make_targets(&reading, count, targets);
    cr_page_fetch(targets, asked, PAGES_MS, on_page, &reading);
}
