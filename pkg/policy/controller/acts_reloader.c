#include "policy/controller/acts_reloader.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "policy/controller/acts_pages.h"
#include "workload/reloader.h"

struct reading {
    const struct cr_actor *actor;
    const char *ns;
    int64_t began_ms;
};

static const char *read_page(const struct cr_page *page, struct cr_reloader_sighting *seen)
{
    struct cr_error problem = {0};
    if (!page) {
        snprintf(seen->words, sizeof seen->words, "%s", CR_PAGE_REFUSED);
        return "refused";
    }
    if (page->problem[0]) {
        snprintf(seen->words, sizeof seen->words, "%s", page->problem);
        return "unreachable";
    }
    if (!cr_reloader_page_read(cr_buf_text(&page->body), page->body.len, seen, &problem)) {
        snprintf(seen->words, sizeof seen->words, "%s", problem.text);
        return "invalid";
    }
    return "read";
}

/* Takes what the page has. */
static void remember(void *arg, const struct cr_page_look *look, const struct cr_page *page)
{
    const struct reading *reading = arg;
    struct cr_reloader_sighting seen = {0};
    const char *outcome = read_page(page, &seen);
    seen.at_ms = reading->began_ms;
    cr_memory_saw_reloader(reading->actor->memory, look->pod->uid, look->pod->started_ms, &seen);
    cr_metric_add(reading->actor->reloader_pages, CR_LABELS(reading->ns, outcome), 1);
}

static struct cr_page_look *looks_of(const struct cr_gathered *gathered, const struct cr_plan *plan, size_t *len)
{
    struct cr_page_look *looks = cr_calloc(plan->probes_len, sizeof *looks);
    *len = 0;
    for (size_t i = 0; i < plan->probes_len; i++) {
        const struct cr_plan_pod *what = &plan->probes[i];
        const struct cr_world_pod *pod = &gathered->consumers[what->consumer].pods[what->pod];
        if (what->reloader_port)
            looks[(*len)++] = (struct cr_page_look){.pod = pod,
                                                    .port = what->reloader_port,
                                                    .path = CR_RELOADER_PATH,
                                                    .max = CR_RELOADER_PAGE_MAX,
                                                    .read_ms = pod->reloader ? pod->reloader->at_ms : 0};
    }
    return looks;
}

void cr_act_read_reloaders(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan)
{
    size_t len = 0;
    cr_autofree struct cr_page_look *looks = looks_of(gathered, plan, &len);
    struct reading reading = {.actor = actor, .ns = gathered->world.policy->ns, .began_ms = cr_clock_wall_ms()};
    cr_act_read_looks(actor, looks, len, CR_RELOADER_PAGES_MAX, remember, &reading);
}
