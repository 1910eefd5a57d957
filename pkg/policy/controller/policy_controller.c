#include "policy/controller/policy_controller.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "policy/controller/acts.h"
#include "evidence/memory.h"
#include "policy/controller/policy_metrics.h"
#include "cluster/secret_source.h"
#include "policy/controller/trust_bundles.h"
#include "policy/controller/world.h"
#include "policy/controller/zones.h"
#include "kube/object.h"
#include "policy/rules/look_again.h"
#include "policy/rules/plan.h"
#include "runtime/harness.h"

enum {
    /* Record, act, look at what was done: more rounds than that would be a circle. */
    ROUNDS_MAX = 4,
    STATUS_PAUSE_MS = 1000,
    /* At first and at last, beside the event that all is known which the policy needs. */
    KINDS_PAUSE_MS = 200,
    KINDS_PAUSE_MOST_MS = 5 * 1000,
    UNLISTED_REPORTED_MS = 60 * 1000, /* until then it is the start of a process, or a moment */
    /* The time between a restart and its record: what follows at once (the echo of the patch, the rollout's first
     * steps) goes on record with it. */
    RECORD_PAUSE_MS = 100,
    /* Beside the event that the cache is waited for. */
    LAG_PAUSE_MS = 1000,
    /* Beside the event of a right that was given. Nothing says that a kind can be seen again after an outage. */
    UNSEEN_PAUSE_MS = 60 * 1000,
};

struct cr_policy_controller {
    struct cr_policy_controller_options options;
    struct cr_harness *harness;
    struct cr_catalogue_source *catalogues;
    struct cr_cache *cache;
    struct cr_secret_source *secrets;
    struct cr_zones *zones;
    struct cr_memory *memory;
    struct cr_reservations *reservations;
    struct cr_probe_slots *slots;
    struct cr_actor actor;
    struct cr_policy_metrics *metrics;
};

/* One policy during one reconcile: its status and version move when we write. */
struct reconcile_context {
    struct cr_policy_controller *controller;
    const char *key;
    const struct cr_policy *policy;
    char *resource_version;
    struct cr_policy_status status;
    const struct cr_tzif *zones[CR_POLICY_WINDOWS_MAX];
    struct cr_reconcile_result *result;
    bool planned;         /* what is under way for it is known */
    bool planned_soon;    /* it waits for what is still to come */
    bool waits_for_limit; /* nothing else holds a restart */
};

static void on_policy(void *arg, const char *key)
{
    struct cr_policy_controller *controller = arg;
    cr_queue_add(cr_harness_queue(controller->harness), key);
}

static void on_pod_gone(void *arg, const char *uid)
{
    struct cr_policy_controller *controller = arg;
    if (uid)
        cr_memory_forget_pod(controller->memory, uid);
}

static void on_secret_unwanted(void *arg, const char *key)
{
    const struct cr_policy_controller *controller = arg;
    cr_secret_source_forget(controller->secrets, key);
}

static const char catalogue_key[] = "//catalogue";

static void on_catalogue_news(void *arg)
{
    struct cr_policy_controller *controller = arg;
    cr_queue_add(cr_harness_queue(controller->harness), catalogue_key);
}

/* Adds the key of each policy that is worked on. */
static void list_policies(const struct cr_policy_controller *controller, struct cr_strvec *keys)
{
    const struct cr_strvec *namespaces = controller->options.namespaces;
    for (size_t i = 0; i < namespaces->len; i++)
        cr_cache_keys(controller->cache, CR_CACHED_POLICIES, namespaces->items[i], keys);
    if (namespaces->len == 0)
        cr_cache_keys(controller->cache, CR_CACHED_POLICIES, NULL, keys);
}

static void on_catalogue_change(void *arg)
{
    struct cr_policy_controller *controller = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    list_policies(controller, &keys);
    for (size_t i = 0; i < keys.len; i++)
        on_policy(controller, keys.items[i]);
}

static struct cr_world_source world_source(const struct reconcile_context *context,
                                           const struct cr_catalogue_hold *hold)
{
    const struct cr_policy_controller *controller = context->controller;
    return (struct cr_world_source){.cache = controller->cache,
                                    .secrets = controller->secrets,
                                    .memory = controller->memory,
                                    .reservations = controller->reservations,
                                    .catalogue = hold->catalogue,
                                    .zones = context->zones};
}

/* --- status --- */

/* The note of restarts that are not on record yet. While there is one, the next write is that record. */
static char *ahead_key(const struct reconcile_context *context)
{
    return cr_asprintf("%s/ahead", context->key);
}

static void adopt(struct reconcile_context *context, const struct cr_json *written)
{
    cr_strset(&context->resource_version, cr_obj_resource_version(written));
    cr_policy_status_dispose(&context->status);
    cr_policy_status_decode(cr_json_get(written, "status"), &context->status);
}

static bool write_status(struct reconcile_context *context, const struct cr_policy_status *after, bool *wrote,
                         struct cr_error *err)
{
    struct cr_policy_controller *controller = context->controller;
    CR_CLEANUP(cr_json) struct cr_json *written = NULL;
    *wrote = false;
    if (!cr_act_status(&controller->actor, context->policy, context->resource_version, &context->status, after,
                       &written, err))
        return false;
    if (!written)
        return true;
    *wrote = true;
    cr_memory_note_time(controller->memory, context->key, cr_clock_monotonic_ms());
    cr_autofree char *ahead = ahead_key(context);
    cr_memory_drop_note(controller->memory, ahead);
    cr_policy_metrics_recorded(controller->metrics, &context->status, after);
    adopt(context, written);
    return true;
}

static bool check_kept(const struct reconcile_context *context, const struct cr_policy_status *wanted,
                       struct cr_error *err)
{
    return cr_plan_is_kept(wanted, &context->status) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "the CRD in the cluster is older than this operator: it drops status.consumers[].restarts, "
                        "which the next restart waits for; apply the crds/ of this version");
}

/* At most one status write a second, but never a delay of what must be on record before an act. */
static int64_t status_pause_ms(const struct reconcile_context *context)
{
    CR_CLEANUP(cr_note) struct cr_note last = cr_memory_note(context->controller->memory, context->key);
    int64_t due = last.count ? last.at_ms + STATUS_PAUSE_MS : 0;
    int64_t now = cr_clock_monotonic_ms();
    return due > now ? due - now : 0;
}

static void show_metrics(const struct reconcile_context *context, const struct cr_world *world,
                         const struct cr_policy_status *status)
{
    cr_policy_metrics_show(context->controller->metrics, context->policy->ns, context->policy->name, world, status);
}

static bool report(struct reconcile_context *context, const struct cr_gathered *gathered, const struct cr_plan *plan,
                   struct cr_error *err)
{
    int64_t pause = plan->record_first ? 0 : status_pause_ms(context);
    if (pause) {
        /* Events are not emitted either: they follow from the difference that is still to be written. */
        cr_requeue_low(context->result, pause);
        return true;
    }
    bool wrote = false;
    if (!write_status(context, &plan->status, &wrote, err))
        return false;
    context->result->recorded = true;
    if (wrote)
        cr_act_say(&context->controller->actor, gathered, plan);
    show_metrics(context, &gathered->world, &plan->status);
    return !wrote || check_kept(context, &plan->status, err);
}

/* --- restarts before the record --- */

/* True: at least one was done; the plan must be made again. The same restart is never done twice before a record, so
 * that what cannot be recorded is not repeated forever. */
static bool restart_ahead(const struct reconcile_context *context, struct cr_gathered *gathered,
                          const struct cr_plan *first)
{
    struct cr_memory *memory = context->controller->memory;
    cr_autofree char *key = ahead_key(context);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, key);
    if (note.count)
        return false;
    CR_CLEANUP(cr_plan) struct cr_plan plan = {0};
    cr_plan_ahead(&gathered->world, first, &plan);
    struct cr_error failed = {0}; /* tried again, or reported, once the change is on record */
    if (!cr_act_restarts(&context->controller->actor, gathered, &plan, &failed))
        return false;
    cr_memory_note_time(memory, key, cr_clock_monotonic_ms());
    return true;
}

/* How long the record of restarts that were done ahead may still wait: a moment, and longer while other workloads are
 * to be restarted. 0: not at all, or there is nothing to record. */
static int64_t record_pause_ms(const struct reconcile_context *context)
{
    cr_autofree char *key = ahead_key(context);
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(context->controller->memory, key);
    int64_t age = cr_clock_monotonic_ms() - note.at_ms;
    if (!note.count || age >= CR_QUEUE_LOW_WAIT_MS)
        return 0;
    if (age < RECORD_PAUSE_MS)
        return RECORD_PAUSE_MS - age;
    return cr_queue_urgent(cr_harness_queue(context->controller->harness)) ? 1 : 0;
}

/* --- restarts under way, over all policies --- */

/* A place that no policy looks after goes to the next. */
static const char limits_key[] = "//limits";
enum { LIMITS_PAUSE_MS = 60 * 1000 };

static void on_place(void *arg, const char *policy)
{
    on_policy(arg, policy);
}

static void on_unseen_end(void *arg, const char *ns)
{
    const struct cr_policy_controller *controller = arg;
    cr_cache_notify_budget_waiters(controller->cache, ns);
}

static void follow_restarts(struct reconcile_context *context, const struct cr_gathered *gathered,
                            const struct cr_plan *plan)
{
    const struct cr_policy *policy = gathered->world.policy;
    cr_autofree struct cr_reserved *workloads = cr_calloc(plan->under_way_len, sizeof *workloads);
    for (size_t i = 0; i < plan->under_way_len; i++) {
        const struct cr_policy_consumer *consumer = &policy->consumers[plan->under_way[i]];
        workloads[i] = (struct cr_reserved){.kind = consumer->kind, .name = consumer->target};
    }
    cr_reservations_follow(context->controller->reservations, context->key, policy->ns, workloads, plan->under_way_len,
                           cr_clock_monotonic_ms());
    context->planned = true;
    context->waits_for_limit = plan->waits_for_limit;
}

/* Once, when this process begins to act. */
static void expect_policies(struct cr_policy_controller *controller)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    if (cr_reservations_expects(controller->reservations))
        return;
    list_policies(controller, &keys);
    cr_reservations_expect(controller->reservations, &keys, cr_clock_monotonic_ms());
    cr_queue_add_low(cr_harness_queue(controller->harness), limits_key, LIMITS_PAUSE_MS);
}

/* Whether the policy waits for a place is known only when everything else is done. */
static void line_up(const struct reconcile_context *context, const char *ns, bool done)
{
    struct cr_reservations *reservations = context->controller->reservations;
    int64_t now_ms = cr_clock_monotonic_ms();
    if (!context->planned)
        cr_reservations_put_off(reservations, context->key, ns, &context->status, context->planned_soon, now_ms);
    else if (done && context->waits_for_limit)
        cr_reservations_wait(reservations, context->key, ns, now_ms);
    else
        cr_reservations_leave(reservations, context->key, now_ms);
}

/* --- the rounds --- */

/* One round: plan, and either record or act. *again: the world moved, plan once more. */
static bool round_of(struct reconcile_context *context, const struct cr_world_source *source,
                     struct cr_gathered *gathered, bool last, bool *again, struct cr_error *err)
{
    *again = false;
    gathered->outdated = false;
    CR_CLEANUP(cr_plan) struct cr_plan plan = {0};
    cr_plan_make(&gathered->world, &plan);
    follow_restarts(context, gathered, &plan);
    if (plan.record_first && restart_ahead(context, gathered, &plan)) {
        cr_requeue_low(context->result, RECORD_PAUSE_MS);
        return true;
    }
    if (plan.record_first && !cr_act_may_evict(&context->controller->actor, gathered, &plan)) {
        cr_requeue(context->result, 1);
        return true;
    }
    if (plan.record_first) {
        *again = true;
        return report(context, gathered, &plan, err);
    }
    bool did = false;
    struct cr_error failed = {0};
    bool acted = cr_act(&context->controller->actor, gathered, &plan, &did, &failed);
    bool went = cr_world_forget_gone(source, gathered, &plan);
    if (acted && (gathered->outdated || went)) {
        cr_requeue(context->result, 1);
        return true;
    }
    if (acted && did && !last) {
        *again = true;
        return true;
    }
    cr_requeue(context->result, plan.restart_after_ms);
    cr_requeue_low(context->result, plan.requeue_after_ms);
    if (!report(context, gathered, &plan, err))
        return false;
    if (acted)
        return true;
    *err = failed;
    return false;
}

/* Nothing is done by data that may be old. The watches notify when it can be seen again. */
static bool report_unseen(struct reconcile_context *context, const char *problem, struct cr_error *err)
{
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {0};
    cr_plan_unseen(&context->status, context->policy->generation, problem, cr_clock_wall_ms(), &after);
    bool wrote = false;
    show_metrics(context, NULL, &after);
    context->result->recorded = write_status(context, &after, &wrote, err);
    return context->result->recorded;
}

static bool go_round(struct reconcile_context *context, const struct cr_world_source *source,
                     struct cr_gathered *gathered, struct cr_error *err)
{
    for (int i = 0; i < ROUNDS_MAX; i++) {
        bool again = false;
        if (!round_of(context, source, gathered, i == ROUNDS_MAX - 1, &again, err))
            return false;
        if (!again) {
            cr_requeue_low(context->result, gathered->world.beyond.unseen ? UNSEEN_PAUSE_MS : 0);
            return true;
        }
        cr_policy_status_dispose(&gathered->status);
        cr_policy_status_copy(&gathered->status, &context->status);
        cr_world_refresh(source, gathered);
    }
    cr_requeue(context->result, 1);
    return true;
}

/* What the policy needs is still to be listed, perhaps by an API server that does not answer for long: then what was
 * reported before is not left to stand. */
static bool await_cache(struct reconcile_context *context, struct cr_error *err)
{
    struct cr_memory *memory = context->controller->memory;
    cr_autofree char *key = cr_asprintf("%s/unlisted", context->key);
    CR_CLEANUP(cr_note) struct cr_note begun = cr_memory_note(memory, key);
    int64_t now_ms = cr_clock_monotonic_ms();
    if (!begun.count)
        cr_memory_note_time(memory, key, now_ms);
    int64_t pause_ms = cr_look_again_ms(KINDS_PAUSE_MS, begun.count ? now_ms - begun.at_ms : 0);
    context->planned_soon = true;
    cr_requeue(context->result, pause_ms < KINDS_PAUSE_MOST_MS ? pause_ms : KINDS_PAUSE_MOST_MS);
    bool is_long = begun.count && now_ms - begun.at_ms >= UNLISTED_REPORTED_MS;
    cr_autofree char *unseen = is_long ? cr_cache_unseen(context->controller->cache, context->policy) : NULL;
    return !unseen || report_unseen(context, unseen, err);
}

static void forget_wait(const struct reconcile_context *context)
{
    cr_autofree char *key = cr_asprintf("%s/unlisted", context->key);
    cr_memory_drop_note(context->controller->memory, key);
}

/* Bundles of spec.trust come first: a restarted pod then starts with them. */
static bool run_rounds(struct reconcile_context *context, struct cr_error *err)
{
    cr_autofree char *refused = cr_cache_refused(context->controller->cache, context->policy, &context->status);
    if (refused)
        return report_unseen(context, refused, err);
    CR_CLEANUP(cr_catalogue_hold)
    struct cr_catalogue_hold hold = cr_catalogue_source_hold(context->controller->catalogues);
    struct cr_world_source source = world_source(context, &hold);
    CR_CLEANUP(cr_world) struct cr_gathered gathered = {0};
    if (cr_cache_waits(context->controller->cache, context->policy, &context->status))
        return await_cache(context, err);
    forget_wait(context);
    if (!cr_world_gather(&source, context->policy, &context->status, &gathered, err))
        return false;
    struct cr_error failed = {0};
    int64_t look_again_ms = 0;
    bool published = cr_trust_bundles_publish(&context->controller->actor, &gathered, &look_again_ms, &failed);
    if (!go_round(context, &source, &gathered, err))
        return false;
    bool due = cr_trust_bundles_due(&context->controller->actor, &gathered, &context->status);
    cr_requeue_low(context->result, due ? 1 : look_again_ms);
    if (published)
        return true;
    *err = failed;
    return false;
}

static bool report_invalid(struct reconcile_context *context, const struct cr_snapshot *snapshot, const char *problem,
                           struct cr_error *err)
{
    /* What is needed to write its status, when nothing else of it could be read. */
    CR_CLEANUP(cr_policy) struct cr_policy *stand_in = cr_new(struct cr_policy);
    stand_in->ns = cr_strdup(cr_or_empty(cr_obj_namespace(snapshot->json)));
    stand_in->name = cr_strdup(cr_or_empty(cr_obj_name(snapshot->json)));
    stand_in->uid = cr_strdup_or_null(cr_obj_uid(snapshot->json));
    context->policy = stand_in;
    CR_CLEANUP(cr_policy_status) struct cr_policy_status after = {0};
    cr_plan_invalid(&context->status, cr_obj_generation(snapshot->json), problem, cr_clock_wall_ms(), &after);
    bool wrote = false;
    show_metrics(context, NULL, &after);
    bool done = write_status(context, &after, &wrote, err);
    context->result->recorded = done;
    context->policy = NULL;
    if (!done || !wrote)
        return done;
    struct cr_event event = {.api_version = CR_API_GROUP "/" CR_API_VERSION,
                             .kind = CR_POLICY_KIND,
                             .ns = stand_in->ns,
                             .name = stand_in->name,
                             .uid = stand_in->uid,
                             .warning = true,
                             .reason = "Invalid",
                             .message = problem};
    cr_recorder_emit(cr_harness_recorder(context->controller->harness), &event);
    return true;
}

/* The policy is valid by itself, but the time zones that it names may be unknown here. */
static bool run_valid(struct reconcile_context *context, const struct cr_snapshot *snapshot, struct cr_error *err)
{
    struct cr_error problem = {0};
    if (cr_zones_of(context->controller->zones, context->policy, context->zones, &problem))
        return run_rounds(context, err);
    if (problem.kind == CR_ERR_INVALID)
        return report_invalid(context, snapshot, problem.text, err);
    *err = problem;
    return false;
}

static bool split_key(const char *key, char **ns, const char **name)
{
    const char *slash = strchr(key, '/');
    if (!slash)
        return false;
    *ns = cr_strndup(key, (size_t)(slash - key));
    *name = slash + 1;
    return true;
}

static void forget(struct cr_policy_controller *controller, const char *key, const char *ns, const char *name)
{
    cr_policy_metrics_forget(controller->metrics, ns, name);
    cr_autofree char *prefix = cr_asprintf("%s/", key);
    cr_memory_forget_keys(controller->memory, prefix);
    cr_memory_drop_note(controller->memory, key);
    cr_own_writes_forget(cr_harness_own_writes(controller->harness), key);
    cr_reservations_forget(controller->reservations, key, cr_clock_monotonic_ms());
}

/* --- stale caches --- */

static struct cr_packed *look(void *arg, const char *kind, const char *ns, const char *name)
{
    struct cr_policy_controller *controller = arg;
    return cr_streq(kind, CR_POLICY_KIND) ? cr_cache_policy_packed(controller->cache, ns, name)
                                          : cr_cache_workload_packed(controller->cache, ns, kind, name);
}

/* True: not yet, and the key comes again. This is cheap: the echoes of our own writes end here. */
static bool must_wait(struct reconcile_context *context)
{
    int64_t pause = record_pause_ms(context);
    cr_requeue_low(context->result, pause);
    if (pause)
        return true;
    if (!cr_harness_cache_lags(context->controller->harness, context->key))
        return false;
    cr_requeue_low(context->result, LAG_PAUSE_MS);
    return true;
}

/* --- chores --- */

static void say_catalogue_news(void *arg)
{
    struct cr_policy_controller *controller = arg;
    cr_catalogue_source_emit_event(controller->catalogues, cr_harness_recorder(controller->harness));
}

static void sweep_limits(void *arg)
{
    const struct cr_policy_controller *controller = arg;
    cr_reservations_sweep(controller->reservations, cr_clock_monotonic_ms());
    cr_queue_add_low(cr_harness_queue(controller->harness), limits_key, LIMITS_PAUSE_MS);
}

static const struct cr_chore chores[] = {{catalogue_key, say_catalogue_news}, {limits_key, sweep_limits}, {0}};

/* --- one key --- */

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_policy_controller *controller = arg;
    expect_policies(controller);
    cr_autofree char *ns = NULL;
    const char *name = NULL;
    if (!split_key(key, &ns, &name))
        return cr_error_set(err, CR_ERR_INTERNAL, "'%s' is not a key", key);
    struct reconcile_context context = {.controller = controller, .key = key, .result = result};
    if (must_wait(&context))
        return true;
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_cache_get(controller->cache, CR_CACHED_POLICIES, ns, name);
    if (!snapshot) {
        forget(controller, key, ns, name);
        result->recorded = true;
        return true;
    }
    const char *problem = NULL;
    context.policy = cr_cached_policy(snapshot, &problem);
    context.resource_version = cr_strdup_or_null(cr_obj_resource_version(snapshot->json));
    cr_policy_status_decode(cr_json_get(snapshot->json, "status"), &context.status);
    bool done = true;
    if (!context.policy)
        done = report_invalid(&context, snapshot, problem, err);
    else if (context.policy->deleting)
        result->recorded = true;
    else
        done = run_valid(&context, snapshot, err);
    line_up(&context, ns, done);
    cr_policy_status_dispose(&context.status);
    free(context.resource_version);
    return done;
}

/* --- set-up --- */

static void register_metrics(struct cr_policy_controller *controller, struct cr_metrics *metrics)
{
    struct cr_actor *actor = &controller->actor;
    controller->metrics = cr_policy_metrics_new(metrics);
    actor->metrics = controller->metrics;
    actor->nudges =
        cr_metrics_counter(metrics, "certroll_nudges_total",
                           "Pods whose kubelet was made to refresh its Secret volumes.", CR_LABELS("namespace"));
    actor->probes = cr_metrics_counter(metrics, "certroll_probes_total", "TLS probes of pods by outcome.",
                                       CR_LABELS("namespace", "outcome"));
    actor->sidecar_pages =
        cr_metrics_counter(metrics, "certroll_sidecar_pages_total",
                           "Pages of sidecars that were asked for, by outcome.", CR_LABELS("namespace", "outcome"));
    actor->evictions = cr_metrics_counter(metrics, "certroll_evictions_total", "Pods evicted by what for.",
                                          CR_LABELS("namespace", "reason"));
}

struct cr_policy_controller *cr_policy_controller_new(const struct cr_policy_controller_options *options,
                                                      struct cr_error *err)
{
    CR_CLEANUP(cr_policy_controller) struct cr_policy_controller *controller = cr_new(struct cr_policy_controller);
    controller->options = *options;
    controller->harness = cr_harness_new(&(struct cr_harness_options){.manager = options->manager,
                                                                      .client = options->client,
                                                                      .metrics = options->metrics,
                                                                      .what = "policy",
                                                                      .chores = chores,
                                                                      .reconcile = reconcile,
                                                                      .look = look,
                                                                      .arg = controller});
    const struct cr_catalogue_source_options catalogue_options = {.manager = options->manager,
                                                                  .client = options->client,
                                                                  .loop = options->loop,
                                                                  .metrics = options->metrics,
                                                                  .ns = options->operator_namespace,
                                                                  .name = options->catalogue_configmap,
                                                                  .on_change = on_catalogue_change,
                                                                  .on_news = on_catalogue_news,
                                                                  .arg = controller};
    controller->catalogues = cr_catalogue_source_new(&catalogue_options, err);
    if (!controller->catalogues)
        return NULL;
    controller->zones = cr_zones_new(NULL);
    controller->memory = cr_memory_new();
    controller->reservations = cr_reservations_new(&(struct cr_reservations_options){.limits = options->limits,
                                                                                     .metrics = options->metrics,
                                                                                     .on_place = on_place,
                                                                                     .on_unseen_end = on_unseen_end,
                                                                                     .arg = controller});
    controller->slots = cr_probe_slots_new();
    struct cr_cache_options cache_options = {
        .namespaces = options->namespaces,
        .secret_scope = options->secret_scope,
        .hosts_in_use = options->hosts_in_use,
        .on_policy = on_policy,
        .on_pod_gone = on_pod_gone,
        .on_secret_unwanted = on_secret_unwanted,
        .arg = controller,
    };
    controller->cache = cr_cache_new(options->manager, options->client, options->loop, &cache_options);
    controller->secrets = cr_secret_source_new(controller->cache, options->client, options->operator_namespace);
    controller->actor = (struct cr_actor){.client = options->client,
                                          .recorder = cr_harness_recorder(controller->harness),
                                          .memory = controller->memory,
                                          .reservations = controller->reservations,
                                          .canaries = options->canaries,
                                          .slots = controller->slots,
                                          .own_writes = cr_harness_own_writes(controller->harness)};
    register_metrics(controller, options->metrics);
    return cr_steal(&controller);
}

void cr_policy_controller_free(struct cr_policy_controller *controller)
{
    if (!controller)
        return;
    cr_secret_source_free(controller->secrets);
    cr_cache_free(controller->cache);
    cr_probe_slots_free(controller->slots);
    cr_policy_metrics_free(controller->metrics);
    cr_reservations_free(controller->reservations);
    cr_memory_free(controller->memory);
    cr_zones_free(controller->zones);
    cr_catalogue_source_free(controller->catalogues);
    cr_harness_free(controller->harness);
    free(controller);
}

struct cr_cache *cr_policy_controller_cache(struct cr_policy_controller *controller)
{
    return controller->cache;
}

struct cr_catalogue_source *cr_policy_controller_catalogues(struct cr_policy_controller *controller)
{
    return controller->catalogues;
}
