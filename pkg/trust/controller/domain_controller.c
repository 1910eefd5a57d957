#include "trust/controller/domain_controller.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "cluster/cache_domains.h"
#include "trust/controller/domain_acts.h"
#include "trust/controller/domain_metrics.h"
#include "trust/controller/domain_world.h"
#include "kube/object.h"
#include "runtime/harness.h"

enum {
    DEFAULT_WORKERS = 2,
    /* Record, make a CA, publish, promote, look at what was done: more rounds than that are a circle, as when a webhook
     * undoes each write. The pause between rounds of a circle grows. */
    ROUNDS_MAX = 8,
    CIRCLE_DOUBLINGS_MAX = 7,
    LONG_PASSES_MAX =
        64, /* so many leaves may each take a pass; more passes without an idle one are a circle as well */
    /* Policies write their status many times while they roll, and each write notifies the domain, which reads all that
     * it has by requests. So a domain is reconciled again after this at the earliest, and later where there is more to
     * read. */
    PACE_MS = 200,
    PACE_PER_OBJECT_MS = 10,
    STATUS_PAUSE_MS = 1000,
    LAG_PAUSE_MS = 1000, /* beside the event that the cache is waited for */
    NAMESPACES_PAUSE_MS = 500,
    PERSON_PAUSE_MS = 60 * 1000,
    /* No event comes for what is not watched: ConfigMaps, webhooks, APIServices, CRDs. */
    RESYNC_MS = 60 * 1000,
};

struct cr_domain_controller {
    struct cr_domain_controller_options options;
    struct cr_harness *harness;
    struct cr_memory *memory;
    struct cr_domain_metrics *metrics;
    struct cr_domain_actor actor;
};

/* One domain during one reconcile. */
struct reconcile_context {
    struct cr_domain_controller *controller;
    const char *key;
    const struct cr_domain *domain;
    char *resource_version;
    struct cr_domain_status recorded; /* as the API server has it */
    struct cr_domain_status status;   /* the same, with what was written since */
    bool acted;                       /* what was written is to be on record at once */
    struct cr_reconcile_result *result;
};

static void on_domain(void *arg, const char *key)
{
    struct cr_domain_controller *controller = arg;
    cr_queue_add(cr_harness_queue(controller->harness), key);
}

/* --- status --- */

static char *note_key(const struct reconcile_context *context, const char *what)
{
    return cr_asprintf("%s/%s", context->key, what);
}

static void adopt(struct reconcile_context *context, const struct cr_json *written)
{
    cr_strset(&context->resource_version, cr_obj_resource_version(written));
    cr_domain_status_dispose(&context->recorded);
    cr_domain_status_decode(cr_json_get(written, "status"), &context->recorded);
    cr_domain_status_dispose(&context->status);
    cr_domain_status_copy(&context->status, &context->recorded);
    context->acted = false;
}

static bool write_status(struct reconcile_context *context, const struct cr_domain_status *after, bool *wrote,
                         struct cr_error *err)
{
    struct cr_domain_controller *controller = context->controller;
    CR_CLEANUP(cr_json) struct cr_json *written = NULL;
    *wrote = false;
    if (!cr_domain_act_status(&controller->actor, context->domain, context->resource_version, &context->recorded, after,
                              &written, err))
        return false;
    if (!written)
        return true;
    *wrote = true;
    cr_autofree char *key = note_key(context, "status");
    cr_memory_note_time(controller->memory, key, cr_clock_monotonic_ms());
    cr_domain_metrics_recorded(controller->metrics, &context->recorded, after);
    adopt(context, written);
    return true;
}

/* Writes the status at most once a second, except for what must be on record: what was handled, and what was written.
 */
static int64_t status_pause_ms(const struct reconcile_context *context)
{
    cr_autofree char *key = note_key(context, "status");
    CR_CLEANUP(cr_note) struct cr_note last = cr_memory_note(context->controller->memory, key);
    int64_t due = last.count ? last.at_ms + STATUS_PAUSE_MS : 0;
    int64_t now = cr_clock_monotonic_ms();
    return due > now ? due - now : 0;
}

static void say(const struct reconcile_context *context, bool warning, const char *reason, const char *message)
{
    const struct cr_domain *domain = context->domain;
    const struct cr_event event = {.api_version = CR_API_GROUP "/" CR_API_VERSION,
                                   .kind = domain->cluster ? CR_CLUSTER_DOMAIN_KIND : CR_DOMAIN_KIND,
                                   .ns = domain->ns,
                                   .name = domain->name,
                                   .uid = domain->uid,
                                   .warning = warning,
                                   .reason = reason,
                                   .message = message};
    cr_autofree char *title = cr_domain_title(domain);
    cr_recorder_emit(cr_harness_recorder(context->controller->harness), &event);
    cr_log(warning ? CR_LOG_WARN : CR_LOG_INFO, message, {"domain", title}, {"reason", reason});
}

/* Events follow from the difference that is written, so they are not emitted before. */
static bool report(struct reconcile_context *context, const struct cr_domain_plan *plan, struct cr_error *err)
{
    int64_t pause = plan->record_first || context->acted ? 0 : status_pause_ms(context);
    if (pause) {
        cr_requeue(context->result, pause);
        return true;
    }
    bool wrote = false;
    if (!write_status(context, &plan->status, &wrote, err))
        return false;
    context->result->recorded = true;
    for (size_t i = 0; wrote && i < plan->events_len; i++)
        say(context, plan->events[i].warning, plan->events[i].reason, plan->events[i].message);
    cr_domain_metrics_show(context->controller->metrics, context->domain, &context->recorded);
    return true;
}

/* --- the rounds --- */

/* Does nothing but report, since something that is needed cannot be read, or may not be written. */
static bool report_problem(struct reconcile_context *context, const struct cr_error *problem, struct cr_error *err)
{
    const struct cr_domain_world world = {.domain = context->domain,
                                          .status = &context->status,
                                          .problem = problem->text,
                                          .problem_reason =
                                              problem->kind == CR_ERR_FORBIDDEN ? CR_TRUST_FORBIDDEN : CR_TRUST_FINE,
                                          .now_ms = cr_clock_wall_ms()};
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&world, &plan);
    cr_requeue(context->result, PERSON_PAUSE_MS);
    return report(context, &plan, err);
}

/* One round: plan, and either record or act. *again: the world moved, plan once more. */
static bool round_of(struct reconcile_context *context, struct cr_domain_gathered *gathered, bool *again,
                     struct cr_error *err)
{
    struct cr_domain_controller *controller = context->controller;
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&gathered->world, &plan);
    *again = plan.record_first;
    if (plan.record_first)
        return report(context, &plan, err);
    if (plan.status.stage != CR_STAGE_IDLE || gathered->trust_under_way)
        cr_requeue(context->result, cr_domain_act_canaries(&controller->actor, gathered));
    struct cr_error failed = {0};
    bool acted = cr_domain_act(&controller->actor, gathered, &plan, again, &failed);
    context->acted = context->acted || *again;
    if (acted && *again)
        return true;
    *again = false;
    cr_requeue(context->result, plan.requeue_after_ms);
    cr_requeue(context->result, gathered->look_again_ms);
    if (!acted && (failed.kind == CR_ERR_FORBIDDEN || failed.kind == CR_ERR_INVALID))
        return report_problem(context, &failed, err);
    if (!report(context, &plan, err))
        return false;
    if (!acted)
        *err = failed;
    return acted;
}

/* Reports what cannot be read, for a while or until a person helps. */
static bool report_unread(struct reconcile_context *context, const struct cr_error *failed, struct cr_error *err)
{
    if (failed->kind == CR_ERR_FORBIDDEN || failed->kind == CR_ERR_INVALID)
        return report_problem(context, failed, err);
    *err = *failed;
    return false;
}

/* Their first full state is still to come; it notifies all domains of the cluster kind. */
static bool waits_for_namespaces(const struct reconcile_context *context)
{
    struct cr_error err = {0};
    return context->domain->cluster && !cr_cache_namespaces_known(context->controller->options.cache, &err) &&
           err.kind == CR_ERR_TRANSIENT;
}

/* --- circles --- */

/* The pause between two reconciles when neither of them became idle. */
static int64_t circle_pause_ms(int count)
{
    int doublings = count < CIRCLE_DOUBLINGS_MAX ? count : CIRCLE_DOUBLINGS_MAX;
    return (int64_t)PACE_MS << doublings;
}

static void note_circle(struct reconcile_context *context)
{
    struct cr_memory *memory = context->controller->memory;
    cr_autofree char *key = note_key(context, "circle");
    cr_memory_note_time(memory, key, cr_clock_monotonic_ms());
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(memory, key);
    cr_requeue(context->result, circle_pause_ms(note.count));
    cr_autofree char *title = cr_domain_title(context->domain);
    cr_log(CR_LOG_WARN, "what is published does not stay as it was written: somebody else changes it, or a webhook",
           {"domain", title});
}

static void forget_circle(const struct reconcile_context *context)
{
    cr_autofree char *key = note_key(context, "circle");
    cr_autofree char *long_key = note_key(context, "long");
    cr_memory_drop_note(context->controller->memory, key);
    cr_memory_drop_note(context->controller->memory, long_key);
}

/* The domain is not idle yet, and has had the worker for long enough: records what was done, and leaves the remaining
 * work until after other domains. */
static bool let_others(struct reconcile_context *context, const struct cr_domain_gathered *gathered,
                       struct cr_error *err)
{
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&gathered->world, &plan);
    cr_autofree char *key = note_key(context, "long");
    cr_memory_note_time(context->controller->memory, key, cr_clock_monotonic_ms());
    CR_CLEANUP(cr_note) struct cr_note note = cr_memory_note(context->controller->memory, key);
    cr_requeue(context->result, note.count > LONG_PASSES_MAX ? circle_pause_ms(note.count - LONG_PASSES_MAX) : PACE_MS);
    return report(context, &plan, err);
}

static bool run(struct reconcile_context *context, struct cr_error *err)
{
    struct cr_domain_controller *controller = context->controller;
    if (waits_for_namespaces(context)) {
        cr_requeue(context->result, NAMESPACES_PAUSE_MS);
        return true;
    }
    CR_CLEANUP(cr_catalogue_hold)
    struct cr_catalogue_hold hold = cr_catalogue_source_hold(controller->options.catalogues);
    const struct cr_domain_source source = {.client = controller->options.client,
                                            .cache = controller->options.cache,
                                            .memory = controller->memory,
                                            .catalogue = hold.catalogue,
                                            .operator_namespace = controller->options.operator_namespace};
    CR_CLEANUP(cr_domain_world) struct cr_domain_gathered gathered = {0};
    struct cr_error failed = {0};
    if (!cr_domain_world_gather(&source, context->domain, &context->status, &gathered, &failed))
        return report_unread(context, &failed, err);
    cr_cache_domain_wants(controller->options.cache, context->key, &gathered.secrets);
    cr_requeue(context->result, RESYNC_MS);
    int64_t end_ms = cr_clock_monotonic_ms() + CR_DOMAIN_WORK_MS;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        bool again = false;
        if (!round_of(context, &gathered, &again, err))
            return false;
        if (!again) {
            forget_circle(context);
            return true;
        }
        cr_domain_world_refresh(&source, &gathered);
        if (cr_clock_monotonic_ms() >= end_ms)
            return let_others(context, &gathered, err);
    }
    note_circle(context);
    return true;
}

static bool report_invalid(struct reconcile_context *context, const struct cr_snapshot *snapshot, const char *problem,
                           struct cr_error *err)
{
    const char *ns = cr_obj_namespace(snapshot->json);
    /* What is needed to write its status, when nothing else of it could be read. */
    CR_CLEANUP(cr_domain) struct cr_domain *stand_in = cr_new(struct cr_domain);
    stand_in->cluster = !ns;
    stand_in->ns = cr_strdup_or_null(ns);
    stand_in->name = cr_strdup(cr_or_empty(cr_obj_name(snapshot->json)));
    stand_in->uid = cr_strdup_or_null(cr_obj_uid(snapshot->json));
    context->domain = stand_in;
    CR_CLEANUP(cr_domain_status) struct cr_domain_status after = {0};
    cr_domain_plan_invalid(&context->status, cr_obj_generation(snapshot->json), problem, cr_clock_wall_ms(), &after);
    bool wrote = false;
    bool done = write_status(context, &after, &wrote, err);
    context->result->recorded = done;
    if (wrote)
        say(context, true, "Invalid", problem);
    cr_domain_metrics_show(context->controller->metrics, stand_in, &after);
    context->domain = NULL;
    return done;
}

/* --- when --- */

static struct cr_packed *look(void *arg, const char *kind, const char *ns, const char *name)
{
    struct cr_domain_controller *controller = arg;
    (void)kind;
    return cr_cache_domain_packed(controller->options.cache, cr_or_empty(ns), name);
}

/* In ms; 0: now. objects: of its last reconcile. */
static int64_t pace_ms(const struct reconcile_context *context, size_t objects)
{
    int64_t pace = (int64_t)objects * PACE_PER_OBJECT_MS;
    cr_autofree char *key = note_key(context, "turn");
    CR_CLEANUP(cr_note) struct cr_note last = cr_memory_note(context->controller->memory, key);
    cr_autofree char *circle_key = note_key(context, "circle");
    CR_CLEANUP(cr_note) struct cr_note circle = cr_memory_note(context->controller->memory, circle_key);
    int64_t least = circle_pause_ms(circle.count);
    int64_t due = last.count ? last.at_ms + (pace > least ? pace : least) : 0;
    int64_t now = cr_clock_monotonic_ms();
    return due > now ? due - now : 0;
}

/* True: not yet, and it comes again. */
static bool must_wait(struct reconcile_context *context)
{
    int64_t pause = pace_ms(context, context->recorded.objects_len);
    if (!pause && cr_harness_cache_lags(context->controller->harness, context->key))
        pause = LAG_PAUSE_MS;
    cr_requeue(context->result, pause);
    if (pause)
        return true;
    cr_autofree char *key = note_key(context, "turn");
    cr_memory_note_time(context->controller->memory, key, cr_clock_monotonic_ms());
    return false;
}

/* --- one key --- */

static void forget(struct cr_domain_controller *controller, const char *key, const char *ns, const char *name)
{
    static const struct cr_strvec nothing = {0};
    cr_autofree char *prefix = cr_asprintf("%s/", key);
    cr_cache_domain_wants(controller->options.cache, key, &nothing);
    cr_memory_forget_keys(controller->memory, prefix);
    cr_own_writes_forget(cr_harness_own_writes(controller->harness), key);
    cr_domain_metrics_forget(controller->metrics, ns, name);
}

static bool decode_and_run(struct reconcile_context *context, const struct cr_snapshot *snapshot, struct cr_error *err)
{
    struct cr_error problem = {0};
    CR_CLEANUP(cr_domain) struct cr_domain *domain = cr_domain_decode(snapshot->json, &problem);
    if (!domain)
        return report_invalid(context, snapshot, problem.text, err);
    context->domain = domain;
    bool done = domain->deleting || run(context, err);
    context->domain = NULL;
    return done;
}

static bool reconcile_domain(struct cr_domain_controller *controller, const char *key,
                             const struct cr_snapshot *snapshot, struct cr_reconcile_result *result,
                             struct cr_error *err)
{
    struct reconcile_context context = {.controller = controller, .key = key, .result = result};
    context.resource_version = cr_strdup_or_null(cr_obj_resource_version(snapshot->json));
    cr_domain_status_decode(cr_json_get(snapshot->json, "status"), &context.recorded);
    cr_domain_status_copy(&context.status, &context.recorded);
    bool done = must_wait(&context) || decode_and_run(&context, snapshot, err);
    cr_domain_status_dispose(&context.status);
    cr_domain_status_dispose(&context.recorded);
    free(context.resource_version);
    return done;
}

static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct cr_domain_controller *controller = arg;
    const char *slash = strchr(key, '/');
    if (!slash)
        return cr_error_set(err, CR_ERR_INTERNAL, "'%s' is not a key", key);
    cr_autofree char *ns = cr_strndup(key, (size_t)(slash - key));
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_cache_domain(controller->options.cache, ns, slash + 1);
    if (snapshot)
        return reconcile_domain(controller, key, snapshot, result, err);
    forget(controller, key, ns, slash + 1);
    result->recorded = true;
    return true;
}

/* --- set-up --- */

struct cr_domain_controller *cr_domain_controller_new(const struct cr_domain_controller_options *options)
{
    struct cr_domain_controller *controller = cr_new(struct cr_domain_controller);
    controller->options = *options;
    controller->memory = cr_memory_new();
    controller->metrics = cr_domain_metrics_new(options->metrics);
    controller->harness = cr_harness_new(&(struct cr_harness_options){
        .manager = options->manager,
        .client = options->client,
        .metrics = options->metrics,
        .name = "trustdomain",
        .workers = options->workers ? options->workers : DEFAULT_WORKERS,
        .what = "domain",
        .reconcile = reconcile,
        .look = look,
        .arg = controller,
    });
    controller->actor = (struct cr_domain_actor){.client = options->client,
                                                 .memory = controller->memory,
                                                 .own_writes = cr_harness_own_writes(controller->harness),
                                                 .canaries = options->canaries};
    cr_cache_watch_domains(options->cache, &(struct cr_domain_listener){.on_domain = on_domain, .arg = controller});
    return controller;
}

void cr_domain_controller_free(struct cr_domain_controller *controller)
{
    if (!controller)
        return;
    cr_harness_free(controller->harness);
    cr_domain_metrics_free(controller->metrics);
    cr_memory_free(controller->memory);
    free(controller);
}
