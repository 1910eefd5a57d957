#include "policy/controller/acts_pages.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "policy/controller/pod_guard.h"

enum { PAGES_MS = 2000 };

struct reading {
    const struct cr_page_look *looks; /* parallel to what is fetched */
    cr_page_look_seen seen;
    void *arg;
};

static int by_age(const void *a, const void *b)
{
    int64_t first = ((const struct cr_page_look *)a)->read_ms;
    int64_t second = ((const struct cr_page_look *)b)->read_ms;
    return first < second ? -1 : first > second;
}

static void on_page(void *arg, size_t index, const struct cr_page *page)
{
    const struct reading *reading = arg;
    reading->seen(reading->arg, &reading->looks[index], page);
}

/* Moves those that may be asked to the front, and returns their number; calls seen for the others at once. */
static size_t keep_askable(const struct cr_actor *actor, struct cr_page_look *looks, size_t len, cr_page_look_seen seen,
                           void *arg)
{
    size_t kept = 0;
    for (size_t i = 0; i < len; i++) {
        const struct cr_page_look look = looks[i];
        if (cr_pod_may_be_asked(actor->client, look.pod, look.port))
            looks[kept++] = look;
        else
            seen(arg, &look, NULL);
    }
    return kept;
}

void cr_act_read_looks(const struct cr_actor *actor, struct cr_page_look *looks, size_t len, size_t max,
                       cr_page_look_seen seen, void *arg)
{
    if (len)
        qsort(looks, len, sizeof *looks, by_age);
    size_t asked = keep_askable(actor, looks, len < max ? len : max, seen, arg);
    cr_autofree struct cr_page_target *targets = cr_calloc(asked, sizeof *targets);
    for (size_t i = 0; i < asked; i++)
        targets[i] = (struct cr_page_target){
            .address = looks[i].pod->ip, .port = looks[i].port, .path = looks[i].path, .max = looks[i].max};
    struct reading reading = {.looks = looks, .seen = seen, .arg = arg};
    cr_page_fetch(targets, asked, PAGES_MS, on_page, &reading);
}
