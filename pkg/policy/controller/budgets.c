#include "policy/controller/budgets.h"

#include <stdlib.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/project.h"
#include "kube/object.h"

struct cr_roller {
    char *kind;
    char *name;
    struct cr_worst_case worst;
    struct cr_snapshots pods;
    struct cr_budget_pod *pod_views;
};

static void roller_free(struct cr_roller *roller)
{
    cr_snapshots_dispose(&roller->pods);
    free(roller->pod_views);
    free(roller->kind);
    free(roller->name);
    free(roller);
}

/* --- budgets --- */

static void add_budget(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct cr_budgets *out = arg;
    (void)ns;
    (void)name;
    out->packed = cr_reallocarray(out->packed, out->view.len + 1, sizeof(struct cr_packed *));
    out->items = cr_reallocarray(out->items, out->view.len + 1, sizeof *out->items);
    out->packed[out->view.len] = cr_packed_ref(packed);
    out->items[out->view.len++] = *cr_projected_budget(cr_packed_extra(packed));
}

/* Sorts them: a store has no order, and what is reported about the first of several must stay the same. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cr_budget *)a)->name, ((const struct cr_budget *)b)->name);
}

static void sort_budgets(struct cr_budgets *out)
{
    if (out->view.len)
        qsort(out->items, out->view.len, sizeof *out->items, by_name);
}

/* --- who rolls --- */

/* Includes pods that are being deleted: when a strategy takes all pods at once, only they show which budgets that
 * concerns. */
static void view_pods(struct cr_roller *roller)
{
    roller->pod_views = cr_calloc(roller->pods.len, sizeof *roller->pod_views);
    for (size_t i = 0; i < roller->pods.len; i++) {
        const struct cr_json *pod = roller->pods.items[i]->json;
        roller->pod_views[i] = (struct cr_budget_pod){.name = cr_obj_name(pod),
                                                      .labels = cr_json_at(pod, "metadata", "labels"),
                                                      .phase = cr_pod_phase(pod),
                                                      .ready = cr_pod_ready(pod) && cr_pod_active(pod)};
    }
}

static struct cr_budget_workload *find(const struct cr_budgets *budgets, const char *kind, const char *name)
{
    for (size_t i = 0; i < budgets->view.rolling_len; i++)
        if (cr_streq(budgets->rolling[i].kind, kind) && cr_streq(budgets->rolling[i].name, name))
            return &budgets->rolling[i];
    return NULL;
}

static void add_roller(struct cr_budgets *out, struct cr_roller *roller, bool evicts)
{
    size_t n = out->view.rolling_len++;
    out->rollers = cr_reallocarray(out->rollers, n + 1, sizeof(struct cr_roller *));
    out->rolling = cr_reallocarray(out->rolling, n + 1, sizeof *out->rolling);
    out->view.rolling = out->rolling;
    out->rollers[n] = roller;
    out->rolling[n] = (struct cr_budget_workload){.kind = roller->kind,
                                                  .name = roller->name,
                                                  .worst = &roller->worst,
                                                  .pods = roller->pod_views,
                                                  .pods_len = roller->pods.len,
                                                  .evicts = evicts};
}

static void add(struct cr_budgets *budgets, const char *kind, const char *name, bool evicts)
{
    struct cr_cache *cache = budgets->cache;
    const char *ns = budgets->ns;
    struct cr_budget_workload *known = find(budgets, kind, name);
    if (known)
        known->evicts = known->evicts && evicts; /* a rollout takes no less */
    if (!budgets->view.len || known)
        return;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *workload = cr_cache_workload(cache, ns, kind, name);
    if (!workload)
        return;
    struct cr_roller *roller = cr_new(struct cr_roller);
    roller->kind = cr_strdup(kind);
    roller->name = cr_strdup(name);
    cr_worst_case_of(kind, workload->json, &roller->worst);
    cr_cache_all_pods(cache, ns, kind, name, &roller->pods);
    view_pods(roller);
    add_roller(budgets, roller, evicts);
}

void cr_budgets_add_rolling(struct cr_budgets *budgets, const char *kind, const char *name)
{
    add(budgets, kind, name, false);
}

void cr_budgets_add_evicting(struct cr_budgets *budgets, const char *kind, const char *name)
{
    add(budgets, kind, name, true);
}

static void add_rolling_name(void *names, const char *ns, const char *name, struct cr_packed *packed)
{
    (void)ns;
    if (cr_projected_rolling(cr_packed_extra(packed)))
        cr_strvec_add(names, name);
}

static void gather_rolling_of(struct cr_budgets *out, const struct cr_consumer_kind *kind)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_cache_visit_kind(out->cache, kind, out->ns, add_rolling_name, &names);
    cr_strvec_sort(&names);
    for (size_t i = 0; i < names.len; i++)
        cr_budgets_add_rolling(out, kind->resource.kind, names.items[i]);
}

static void gather_rolling(struct cr_budgets *out)
{
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (cr_consumer_kind_rolls(&cr_consumer_kinds[i]))
            gather_rolling_of(out, &cr_consumer_kinds[i]);
}

void cr_budgets_gather(struct cr_cache *cache, const char *ns, struct cr_budgets *out)
{
    *out = (struct cr_budgets){.cache = cache, .ns = ns, .unseen = cr_cache_budgets_unseen(cache, ns)};
    cr_cache_visit(cache, CR_CACHED_BUDGETS, ns, add_budget, out);
    sort_budgets(out);
    out->view.items = out->items;
    out->view.unseen = out->unseen;
    if (out->view.len)
        gather_rolling(out);
}

void cr_budgets_dispose(struct cr_budgets *budgets)
{
    for (size_t i = 0; i < budgets->view.len; i++)
        cr_packed_unref(budgets->packed[i]);
    for (size_t i = 0; i < budgets->view.rolling_len; i++)
        roller_free(budgets->rollers[i]);
    free(budgets->packed);
    free(budgets->items);
    free(budgets->unseen);
    free(budgets->rollers);
    free(budgets->rolling);
    *budgets = (struct cr_budgets){0};
}
