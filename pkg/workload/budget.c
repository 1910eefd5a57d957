#include "workload/budget.h"

#include <limits.h>

#include "api/consumer_kind.h"
#include "api/node.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "base/text.h"

/* --- reading --- */

static int count(const struct cr_json *object, const char *key)
{
    int64_t n = cr_json_int_at(object, 0, "status", key);
    return n < 0 || n > INT_MAX ? 0 : (int)n;
}

static char *share_text(const char *field, const struct cr_json *share)
{
    return cr_json_is_string(share) ? cr_asprintf("%s %s", field, cr_json_string(share))
                                    : cr_asprintf("%s %lld", field, (long long)cr_json_int(share, 0));
}

static void read_demand(const struct cr_json *spec, struct cr_budget *out)
{
    const struct cr_json *most = cr_json_get(spec, "maxUnavailable");
    const struct cr_json *least = cr_json_get(spec, "minAvailable");
    out->by_scale = most || cr_json_is_string(least);
    if (most)
        out->demand = share_text("maxUnavailable", most);
    else if (least)
        out->demand = share_text("minAvailable", least);
    else
        out->demand = cr_strdup("neither minAvailable nor maxUnavailable");
}

static bool is_empty(const struct cr_json *selector)
{
    return cr_json_is_object(selector) && cr_json_len(cr_json_get(selector, "matchLabels")) == 0 &&
           cr_json_len(cr_json_get(selector, "matchExpressions")) == 0;
}

/* Labels that a controller sets to a new value for each generation of its pods. */
static bool is_of_generation(const struct cr_selector *selector)
{
    for (size_t i = 0; i < selector->len; i++)
        if (cr_consumer_kind_is_revision_label(selector->items[i].key))
            return true;
    return false;
}

static void read_selector(const struct cr_json *spec, struct cr_budget *out)
{
    struct cr_error err = {0};
    const struct cr_node node = {.json = spec, .path = "spec"};
    out->selects_all = is_empty(cr_json_get(spec, "selector"));
    if (out->selects_all)
        return;
    if (!cr_selector_decode(&node, "selector", &out->selector, &err))
        out->problem = cr_strdup(err.text);
    out->of_generation = is_of_generation(&out->selector);
}

/* Then the rest of the status is an older one, but for disruptionsAllowed, which is 0. */
static void read_sync_failure(const struct cr_json *object, struct cr_budget *out)
{
    const struct cr_json *list = cr_json_at(object, "status", "conditions");
    for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c))
        if (!out->sync_failure && cr_streq(cr_json_string_at(c, "type"), "DisruptionAllowed") &&
            cr_streq(cr_json_string_at(c, "status"), "False") && cr_streq(cr_json_string_at(c, "reason"), "SyncFailed"))
            out->sync_failure = cr_text_clip(cr_or_empty(cr_json_string_at(c, "message")), 256);
}

void cr_budget_read(const struct cr_json *object, struct cr_budget *out)
{
    const struct cr_json *spec = cr_json_get(object, "spec");
    int64_t observed = cr_json_int_at(object, 0, "status", "observedGeneration");
    *out = (struct cr_budget){
        .name = cr_strdup(cr_or_empty(cr_json_string_at(object, "metadata", "name"))),
        .unready_may_go = cr_streq(cr_json_string_at(spec, "unhealthyPodEvictionPolicy"), "AlwaysAllow"),
        .observed = observed > 0 && observed >= cr_json_int_at(object, 0, "metadata", "generation"),
        .healthy = count(object, "currentHealthy"),
        .needed = count(object, "desiredHealthy"),
        .expected = count(object, "expectedPods"),
        .allowed = count(object, "disruptionsAllowed"),
    };
    read_demand(spec, out);
    read_selector(spec, out);
    read_sync_failure(object, out);
}

void cr_budget_dispose(struct cr_budget *budget)
{
    free(budget->name);
    free(budget->demand);
    free(budget->problem);
    free(budget->sync_failure);
    cr_selector_dispose(&budget->selector);
    *budget = (struct cr_budget){0};
}

bool cr_budget_selects(const struct cr_budget *budget, const struct cr_json *labels)
{
    return !budget->problem && (budget->selects_all || cr_selector_matches(&budget->selector, labels));
}

void cr_budget_verdict_dispose(struct cr_budget_verdict *verdict)
{
    free(verdict->text);
    *verdict = (struct cr_budget_verdict){0};
}
