#include "controlplane/controller/control_plane_controller.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "controlplane/controller/control_plane_acts.h"
#include "controlplane/controller/control_plane_metrics.h"
#include "controlplane/controller/control_plane_project.h"
#include "controlplane/controller/control_plane_record.h"
#include "kube/object.h"
#include "runtime/harness.h"

enum {
    WORKERS = 2,                 /* one key, and Events */
    PACE_MS = 1000,              /* between two plans, however many nodes report */
    RESYNC_MS = 15 * 1000,       /* a node that falls silent causes no event */
    SYNC_PAUSE_MS = 500,         /* beside the event of the first full state */
    LAG_PAUSE_MS = 1000,         /* beside the event that the cache is waited for */
    PERSON_PAUSE_MS = 60 * 1000, /* something must be granted, or put right */
};

struct cr_control_plane_controller {
    struct cr_control_plane_controller_options options;
    struct cr_harness *harness;
    struct cr_control_plane_cache *cache;
    struct cr_control_plane_metrics *metrics;
    struct cr_control_plane_workloads *workloads;
    struct cr_control_plane_actor actor;
    struct cr_control_plane_status_writer writer;
    int64_t planned_ms; /* the last plan began, monotonic; with the key */
    bool workloads_busy;
    bool shown;
    char *refused; /* why the plan may not be written; NULL: it may, as far as is known */
};

static const char cluster_key[] = "kube-system";

static void on_change(void *arg)
{
    const struct cr_control_plane_controller *controller = arg;
    cr_queue_add(cr_harness_queue(controller->harness), cluster_key);
}

/* --- the policies --- */

/* All policies of kube-system that are not being deleted; the one that counts comes first. */
struct policies {
    struct found {
        struct cr_snapshot *snapshot; /* owned */
        int64_t created_ms;
    } * items;
    size_t len;
};

static void policies_dispose(struct policies *policies)
{
    for (size_t i = 0; i < policies->len; i++)
        cr_snapshot_unref(policies->items[i].snapshot);
    free(policies->items);
}
CR_DEFINE_DISPOSE(policies, struct policies, policies_dispose)

static int older_first(const void *a, const void *b)
{
    const struct found *first = a;
    const struct found *second = b;
    if (first->created_ms != second->created_ms)
        return first->created_ms < second->created_ms ? -1 : 1;
    return strcmp(cr_or_empty(cr_obj_name(first->snapshot->json)), cr_or_empty(cr_obj_name(second->snapshot->json)));
}

static void find_policies(struct cr_control_plane_cache *cache, struct policies *out)
{
    CR_CLEANUP(cr_packed_list) struct cr_packed_list list;
    cr_control_plane_cache_list(cache, CR_WATCH_POLICIES, &list);
    out->items = cr_calloc(list.len + 1, sizeof *out->items);
    for (size_t i = 0; i < list.len; i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_packed_open(list.items[i].packed);
        if (cr_obj_deleting(snapshot->json))
            continue;
        int64_t created_ms = cr_obj_created_ms(snapshot->json);
        out->items[out->len++] = (struct found){cr_steal(&snapshot), created_ms};
    }
    qsort(out->items, out->len, sizeof *out->items, older_first);
}

static bool report_conflicts(const struct cr_control_plane_controller *controller, const struct policies *policies,
                             struct cr_error *err)
{
    const char *oldest = cr_obj_name(policies->items[0].snapshot->json);
    for (size_t i = 1; i < policies->len; i++) {
        bool wrote = false;
        CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
        CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after = {0};
        cr_control_plane_record_read(policies->items[i].snapshot->json, &record);
        cr_control_plane_status_conflict(&record, oldest, cr_clock_wall_ms(), &after);
        if (!cr_control_plane_record_write(&controller->writer, &record, &after, &wrote, err))
            return false;
    }
    return true;
}

/* --- one pass --- */

static bool report(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                   const struct cr_control_plane_status *after, struct cr_error *err)
{
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status before = {0};
    bool wrote = false;
    before.restarting_token = cr_strdup_or_null(record->status.restarting_token);
    before.restarting_component = cr_strdup_or_null(record->status.restarting_component);
    before.restarting_since_ms = record->status.restarting_since_ms;
    before.restarting_revoked = record->status.restarting_revoked;
    if (!cr_control_plane_record_write(&controller->writer, record, after, &wrote, err))
        return false;
    if (wrote)
        cr_control_plane_metrics_recorded(controller->metrics, &before, after, cr_clock_wall_ms());
    cr_control_plane_metrics_show(controller->metrics, after);
    controller->shown = true;
    return true;
}

static bool report_problem(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                           const char *reason, const char *message, struct cr_error *err)
{
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after = {0};
    cr_control_plane_status_problem(record, reason, message, cr_clock_wall_ms(), &after);
    return report(controller, record, &after, err);
}

static bool is_for_a_person(const struct cr_error *err)
{
    return err->kind == CR_ERR_FORBIDDEN || err->kind == CR_ERR_INVALID;
}

/* What is needed cannot be read: an error that a person must fix is shown in the status; other errors are tried again.
 */
static bool report_unread(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                          const struct cr_error *failed, struct cr_reconcile_result *result, struct cr_error *err)
{
    if (!is_for_a_person(failed) && failed->kind != CR_ERR_NOT_FOUND) {
        *err = *failed;
        return false;
    }
    cr_requeue(result, PERSON_PAUSE_MS);
    return report_problem(controller, record, failed->kind == CR_ERR_FORBIDDEN ? "Forbidden" : "NotReadable",
                          failed->text, err);
}

/* --- acting --- */

static bool wants_workloads(const struct cr_control_plane_status *status)
{
    return status->workloads.converged < status->workloads.total;
}

/* In mode Plan and while suspended the plan asks for nothing, but without this check the key would be published. */
static bool may_act(const struct cr_control_plane_policy *policy)
{
    return policy->enforce && !policy->suspend;
}

/* In this order (controlplane/rules/control_plane_plan.h): what the plan says is on record before it is done, so the
 * operator that starts after a crash knows of the order; and an order that is over is removed before the record says
 * so. */
static bool write_all(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                      const struct cr_control_plane_gathered *gathered, const struct cr_control_plane_plan *plan,
                      struct cr_error *err)
{
    struct cr_control_plane_acted acted = {0};
    if (!cr_control_plane_clear(&controller->actor, plan, err) || !report(controller, record, &plan->status, err))
        return false;
    if (!may_act(gathered->world.policy))
        return true;
    bool done = cr_control_plane_act(&controller->actor, gathered, plan, &acted, err);
    cr_control_plane_metrics_renewed(controller->metrics, acted.renewed);
    return done;
}

/* The recorded status stays, since the writes that would follow it were not made. */
static bool report_refused(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                           int64_t now_ms, struct cr_error *err)
{
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status after;
    cr_control_plane_record_status(record, &after);
    cr_control_plane_status_refused(record, controller->refused, now_ms, &after);
    return report(controller, record, &after, err);
}

/* A write that is refused is tried again each time, and the refusal stays in the status until a write succeeds:
 * otherwise the status would alternate between the two. */
static bool write_or_say_why(struct cr_control_plane_controller *controller, struct cr_control_plane_record *record,
                             const struct cr_control_plane_gathered *gathered, struct cr_control_plane_plan *plan,
                             struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_error failed = {0};
    int64_t now_ms = gathered->world.now_ms;
    bool was_refused = controller->refused != NULL;
    if (was_refused)
        cr_control_plane_status_refused(record, controller->refused, now_ms, &plan->status);
    bool done = write_all(controller, record, gathered, plan, &failed);
    if (!done && !is_for_a_person(&failed)) {
        *err = failed;
        return false;
    }
    cr_strset(&controller->refused, done ? NULL : failed.text);
    cr_requeue(result, done && was_refused ? PACE_MS : 0);
    return done || report_refused(controller, record, now_ms, err);
}

static bool run(struct cr_control_plane_controller *controller, const struct cr_control_plane_policy *policy,
                struct cr_control_plane_record *record, struct cr_reconcile_result *result, struct cr_error *err)
{
    CR_CLEANUP(cr_control_plane_gathered) struct cr_control_plane_gathered gathered = {0};
    struct cr_error failed = {0};
    /* The plan must see the old status, and the record changes while the new one is reported. */
    CR_CLEANUP(cr_control_plane_status) struct cr_control_plane_status status;
    cr_control_plane_record_status(record, &status);
    if (!cr_control_plane_gather(controller->cache, controller->options.client, policy, &status, cr_clock_wall_ms(),
                                 &gathered, &failed))
        return report_unread(controller, record, &failed, result, err);
    gathered.world.workloads = cr_control_plane_workloads_look(
        controller->workloads, policy, controller->workloads_busy, cr_clock_monotonic_ms(), &failed);
    if (!gathered.world.workloads)
        return report_unread(controller, record, &failed, result, err);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&gathered.world, &plan);
    controller->workloads_busy = wants_workloads(&plan.status);
    cr_requeue(result, plan.again_ms);
    cr_requeue(result, controller->workloads_busy ? CR_CONTROL_PLANE_WORKLOADS_BUSY_MS : 0);
    return write_or_say_why(controller, record, &gathered, &plan, result, err);
}

static bool reconcile_policy(struct cr_control_plane_controller *controller, const struct cr_json *json,
                             struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_error problem = {0};
    CR_CLEANUP(cr_control_plane_record) struct cr_control_plane_record record;
    CR_CLEANUP(cr_control_plane_policy) struct cr_control_plane_policy policy;
    cr_control_plane_record_read(json, &record);
    cr_requeue(result, RESYNC_MS);
    if (!cr_control_plane_policy_decode(json, &policy, &problem)) {
        result->recorded = report_problem(controller, &record, "Invalid", problem.text, err);
    } else if (cr_control_plane_cache_ready(controller->cache, &problem)) {
        result->recorded = run(controller, &policy, &record, result, err);
    } else if (problem.kind != CR_ERR_TRANSIENT && problem.kind != CR_ERR_THROTTLED) {
        result->recorded = report_unread(controller, &record, &problem, result, err);
    } else {
        cr_requeue(result, SYNC_PAUSE_MS);
        return true;
    }
    return result->recorded;
}

/* --- when --- */

static struct cr_packed *look(void *arg, const char *kind, const char *ns, const char *name)
{
    static const struct {
        const char *kind;
        enum cr_control_plane_watch watch;
    } places[] = {{CR_CONTROL_PLANE_KIND, CR_WATCH_POLICIES},
                  {CR_NODE_REPORT_KIND, CR_WATCH_REPORTS},
                  {"Secret", CR_WATCH_TOKEN_SECRETS},
                  {"ConfigMap", CR_WATCH_KEY}};
    const struct cr_control_plane_controller *controller = arg;
    for (size_t i = 0; i < cr_array_len(places); i++)
        if (cr_streq(places[i].kind, kind))
            return cr_control_plane_cache_get(controller->cache, places[i].watch, cr_or_empty(ns), name);
    return NULL;
}

/* True: not yet, and it comes again. */
static bool must_wait(struct cr_control_plane_controller *controller, struct cr_reconcile_result *result)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    int64_t due_ms = controller->planned_ms ? controller->planned_ms + PACE_MS : 0;
    int64_t pause_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    if (!pause_ms && cr_harness_cache_lags(controller->harness, cluster_key))
        pause_ms = LAG_PAUSE_MS;
    cr_requeue(result, pause_ms);
    if (!pause_ms)
        controller->planned_ms = now_ms;
    return pause_ms > 0;
}

static void forget(struct cr_control_plane_controller *controller)
{
    cr_own_writes_forget(cr_harness_own_writes(controller->harness), cluster_key);
    if (controller->shown)
        cr_control_plane_metrics_forget(controller->metrics);
    controller->shown = false;
}

/* The policy is gone, and nothing would follow up a restart that has not begun yet. What has begun is ended by its
 * agent. */
static bool take_all_back(const struct cr_control_plane_controller *controller, struct cr_error *err)
{
    CR_CLEANUP(cr_packed_list) struct cr_packed_list reports;
    if (!cr_control_plane_cache_ready(controller->cache, NULL)) /* there has been no policy since this process began */
        return true;
    cr_control_plane_cache_list(controller->cache, CR_WATCH_REPORTS, &reports);
    for (size_t i = 0; i < reports.len; i++) {
        const struct cr_kept_report *kept = cr_packed_extra(reports.items[i].packed);
        const struct cr_control_plane_plan plan = {.clear = reports.items[i].name};
        if (kept->report.order.token && !cr_control_plane_clear(&controller->actor, &plan, err))
            return false;
    }
    return true;
}

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_control_plane_controller *controller = arg;
    CR_CLEANUP(policies) struct policies policies = {0};
    (void)key;
    if (must_wait(controller, result))
        return true;
    find_policies(controller->cache, &policies);
    if (!policies.len) {
        forget(controller);
        result->recorded = true;
        return take_all_back(controller, err);
    }
    return report_conflicts(controller, &policies, err) &&
           reconcile_policy(controller, policies.items[0].snapshot->json, result, err);
}

/* --- set-up --- */

static void make_hands(struct cr_control_plane_controller *controller)
{
    struct cr_client *client = controller->options.client;
    struct cr_own_writes *own_writes = cr_harness_own_writes(controller->harness);
    controller->actor = (struct cr_control_plane_actor){.client = client,
                                                        .own_writes = own_writes,
                                                        .key = cluster_key,
                                                        .cache = controller->cache,
                                                        .workloads = controller->workloads};
    controller->writer = (struct cr_control_plane_status_writer){.client = client,
                                                                 .recorder = cr_harness_recorder(controller->harness),
                                                                 .own_writes = own_writes,
                                                                 .key = cluster_key};
}

struct cr_control_plane_controller *
cr_control_plane_controller_new(const struct cr_control_plane_controller_options *options)
{
    struct cr_control_plane_controller *controller = cr_new(struct cr_control_plane_controller);
    controller->options = *options;
    controller->metrics = cr_control_plane_metrics_new(options->metrics);
    controller->harness = cr_harness_new(&(struct cr_harness_options){
        .manager = options->manager,
        .client = options->client,
        .metrics = options->metrics,
        .name = "controlplanepolicy",
        .workers = WORKERS,
        .what = "controlplanepolicy",
        .reconcile = reconcile,
        .look = look,
        .arg = controller,
    });
    controller->workloads = cr_control_plane_workloads_new(options->client);
    controller->cache = cr_control_plane_cache_new(&(struct cr_control_plane_cache_options){
        .client = options->client, .loop = options->loop, .on_change = on_change, .arg = controller});
    make_hands(controller);
    return controller;
}

void cr_control_plane_controller_free(struct cr_control_plane_controller *controller)
{
    if (!controller)
        return;
    cr_control_plane_cache_free(controller->cache);
    cr_control_plane_workloads_free(controller->workloads);
    cr_harness_free(controller->harness);
    cr_control_plane_metrics_free(controller->metrics);
    free(controller->refused);
    free(controller);
}
