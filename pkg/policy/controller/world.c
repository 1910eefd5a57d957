#include "policy/controller/world.h"

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cluster/cache_domains.h"
#include "cluster/project.h"
#include "kube/object.h"
#include "policy/rules/breaker.h"
#include "evidence/diff.h"

char *cr_world_refused_key(const struct cr_policy *policy, const char *consumer)
{
    return cr_asprintf("%s/%s/%s/refused", policy->ns, policy->name, consumer);
}

char *cr_world_evicted_key(const struct cr_policy *policy, const char *consumer, int64_t since_ms)
{
    return cr_asprintf("%s/%s/%s/evicted/%lld", policy->ns, policy->name, consumer, (long long)since_ms);
}

/* Takes text. */
static void take_newer(char **known, char *text)
{
    if (text && (!*known || cr_decimal_less(*known, text))) {
        free(*known);
        *known = text;
        return;
    }
    free(text);
}

/* The version of a Secret that was seen before: it is on record, or a workload was restarted for it. What the cache has
 * may be older. Owned; NULL: none is known. */
static char *seen_version(struct cr_gathered *gathered, const char *secret)
{
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, name);
    const struct cr_secret_status *known = cr_status_secret(&gathered->status, secret);
    char *seen = cr_strdup_or_null(known ? known->observed_resource_version : NULL);
    for (size_t i = 0; i < gathered->world.policy->consumers_len; i++)
        take_newer(&seen,
                   cr_restart_annotation_newest(cr_restart_annotation_of(gathered->consumers[i].workload, name)));
    return seen;
}

static bool gather_secret(const struct cr_world_source *source, const struct cr_policy *policy, size_t i,
                          struct cr_gathered *out, struct cr_error *err)
{
    cr_autofree char *not_before = seen_version(out, policy->secrets[i].name);
    if (!cr_secret_source_get(source->secrets, policy->ns, &policy->secrets[i], not_before, &out->secret_views[i], err))
        /* Deleted between the cache and the request: the same as not there. */
        return err->kind == CR_ERR_NOT_FOUND;
    const struct cr_secret_view *view = out->secret_views[i];
    if (!view)
        return true;
    bool ok = view->problem == CR_MATERIAL_OK;
    const struct cr_secret_hosts *hosts = out->hosts.of ? &out->hosts.of[i] : NULL;
    out->secrets[i] = (struct cr_world_secret){.found = true,
                                               .resource_version = view->resource_version,
                                               .material = ok ? &view->material : NULL,
                                               .refused_not_before_ms = ok ? 0 : view->material.not_before_ms,
                                               .refused_not_after_ms = ok ? 0 : view->material.not_after_ms,
                                               .problem = view->problem,
                                               .problem_text = view->problem_text,
                                               .immutable = view->immutable,
                                               .on_missing_name = view->on_missing_name,
                                               .hosts = hosts ? hosts->items : NULL,
                                               .hosts_len = hosts ? hosts->len : 0,
                                               .opaque_problem = cr_secret_source_opaque_problem(source->secrets)};
    return true;
}

/* A sighting later than now was made by another clock: the present one was set back. */
static void recall_sightings(const struct cr_world_source *source, const struct cr_policy_verify *verify,
                             const struct cr_world_pod *view, struct cr_sighting *sightings)
{
    int64_t now_ms = cr_clock_wall_ms();
    cr_memory_sightings(source->memory, view->uid, view->started_ms, verify, sightings);
    for (size_t i = 0; i < verify->endpoints_len; i++)
        if (sightings[i].at_ms > now_ms)
            sightings[i] = (struct cr_sighting){0};
}

static void recall_trust(const struct cr_world_source *source, const struct cr_policy_verify *verify,
                         struct cr_trust_sighting *trust, struct cr_world_pod *view)
{
    cr_trust_sighting_dispose(trust);
    if (!verify->endpoints_len && !verify->certs_port)
        return;
    cr_memory_trust(source->memory, view->uid, view->started_ms, verify, cr_clock_wall_ms(), trust);
    view->trust = trust;
}

static bool is_pending(const struct cr_policy_status *status)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].pending.set)
            return true;
    return false;
}

static void recall_sidecar(const struct cr_world_source *source, bool awaited, struct cr_sidecar_sighting *sidecar,
                           struct cr_world_pod *view)
{
    cr_sidecar_sighting_dispose(sidecar);
    cr_memory_sidecar(source->memory, view->uid, view->started_ms, cr_clock_wall_ms(), awaited, sidecar);
    view->sidecar = sidecar->at_ms ? sidecar : NULL;
}

/* What is timed here alone is remembered by the monotonic clock: a wall clock that is set must not make a pause of
 * seconds one of hours. 0 stays 0: never. */
static int64_t wall_of(int64_t monotonic_ms)
{
    return monotonic_ms ? cr_clock_wall_ms() + (monotonic_ms - cr_clock_monotonic_ms()) : 0;
}

static void view_pod(const struct cr_world_source *source, const struct cr_policy_verify *verify,
                     const struct cr_json *pod, struct cr_sighting *sightings, struct cr_world_pod *view)
{
    const char *uid = cr_obj_uid(pod);
    struct cr_pod_memory memory = cr_memory_pod(source->memory, cr_or_empty(uid));
    *view = (struct cr_world_pod){.pod = pod,
                                  .name = cr_obj_name(pod),
                                  .uid = uid,
                                  .ip = cr_pod_ip(pod),
                                  .ready = cr_pod_ready(pod),
                                  .started_ms = cr_pod_started_ms(pod),
                                  .created_ms = cr_obj_created_ms(pod),
                                  .sightings = sightings,
                                  .nudges = memory.nudges,
                                  .nudged_ms = memory.nudged_ms,
                                  .nudged_since_ms = memory.nudged_since_ms,
                                  .evicted_ms = wall_of(memory.evicted_ms)};
    /* Starts are compared with each other, never with our clock: the node has its own. */
    recall_sightings(source, verify, view, sightings);
}

/* False: its containers have ended, or the time of its deletion cannot be read. */
static bool view_ending(const struct cr_snapshot *snapshot, struct cr_world_ending *view)
{
    const struct cr_json *pod = snapshot->json;
    const char *phase = cr_pod_phase(pod);
    const char *at = cr_json_string_at(pod, "metadata", "deletionTimestamp");
    int64_t until_ms = 0;
    if (!at || cr_streq(phase, "Succeeded") || cr_streq(phase, "Failed") || !cr_time_parse(at, &until_ms, NULL))
        return false;
    /* That time includes the grace period after the request
     * (kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta). */
    int64_t grace_s = cr_json_int_at(pod, 0, "metadata", "deletionGracePeriodSeconds");
    *view = (struct cr_world_ending){
        .pod = {.pod = pod, .name = cr_obj_name(pod), .uid = cr_obj_uid(pod), .created_ms = cr_obj_created_ms(pod)},
        .since_ms = until_ms - grace_s * 1000,
        .until_ms = until_ms,
        .drain_ms = cr_projected_drain_ms(snapshot->extra)};
    return true;
}

/* Independent of the recorded status, because a restart may replace all pods before the status that records it is
 * written. */
static void view_all_ending(size_t i, struct cr_gathered *out)
{
    struct cr_snapshots *pods = &out->ending[i];
    out->ending_views[i] = cr_calloc(pods->len, sizeof(struct cr_world_ending));
    out->consumers[i].ending = out->ending_views[i];
    for (size_t p = 0; p < pods->len; p++)
        out->consumers[i].ending_len +=
            view_ending(pods->items[p], &out->ending_views[i][out->consumers[i].ending_len]);
}

static void gather_consumer(const struct cr_world_source *source, const struct cr_policy *policy, size_t i,
                            struct cr_gathered *out)
{
    const struct cr_policy_consumer *spec = &policy->consumers[i];
    struct cr_world_consumer *consumer = &out->consumers[i];
    consumer->unseen = cr_cache_pods_unseen(source->cache, policy, out->world.status, cr_consumer_kind_of(spec->kind));
    out->workload_snapshots[i] = cr_cache_workload(source->cache, policy->ns, spec->kind, spec->target);
    if (!out->workload_snapshots[i])
        return;
    consumer->found = true;
    consumer->workload = out->workload_snapshots[i]->json;
    consumer->others = out->scope.others[i];
    if (!cr_policy_kind_by_api(spec->kind))
        cr_cache_pods(source->cache, policy->ns, spec->kind, spec->target, &out->pods[i], &out->ending[i]);
    out->pod_views[i] = cr_calloc(out->pods[i].len, sizeof(struct cr_world_pod));
    out->sightings[i] = cr_calloc(out->pods[i].len * spec->verify.endpoints_len, sizeof(struct cr_sighting));
    out->trusts[i] = cr_calloc(out->pods[i].len, sizeof(struct cr_trust_sighting));
    out->sidecars[i] = cr_calloc(out->pods[i].len, sizeof(struct cr_sidecar_sighting));
    consumer->pods = out->pod_views[i];
    consumer->pods_len = out->pods[i].len;
    view_all_ending(i, out);
}

/* What was done and refused lately. */
static void recall_acts(const struct cr_world_source *source, struct cr_gathered *gathered, size_t i)
{
    const struct cr_policy *policy = gathered->world.policy;
    const char *name = policy->consumers[i].name;
    struct cr_world_consumer *consumer = &gathered->consumers[i];
    const struct cr_consumer_status *status = cr_status_consumer(&gathered->status, name);
    cr_autofree char *evicted_key = cr_world_evicted_key(policy, name, status ? status->since_ms : 0);
    cr_autofree char *refused_key = cr_world_refused_key(policy, name);
    CR_CLEANUP(cr_note) struct cr_note evicted = cr_memory_note(source->memory, evicted_key);
    consumer->evictions = evicted.count;
    consumer->evicted_ms = wall_of(evicted.at_ms);
    cr_note_dispose(&gathered->refusals[i]);
    gathered->refusals[i] = cr_memory_note(source->memory, refused_key);
    consumer->refused = gathered->refusals[i].text;
    consumer->refused_by_budget = gathered->refusals[i].reason == CR_HOLD_REFUSED_BY_BUDGET;
    consumer->refused_until_ms = wall_of(gathered->refusals[i].at_ms);
}

/* Restarts that are under way, as far as this process knows. */
static void recall_restarts(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    const struct cr_policy *policy = gathered->world.policy;
    int64_t now_ms = cr_clock_monotonic_ms();
    if (!source->reservations)
        return;
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    gathered->world.limits = cr_reservations_limits(source->reservations, key, policy->ns);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        struct cr_reserved workload = {.kind = policy->consumers[i].kind, .name = policy->consumers[i].target};
        gathered->consumers[i].claim =
            cr_reservations_claim(source->reservations, key, policy->ns, workload,
                                  cr_obj_resource_version(gathered->consumers[i].workload), now_ms);
    }
}

/* Compares the numbers of the versions: a version after the write is greater than the one before it. */
static bool is_shown(struct cr_cache *cache, const char *ns, const char *kind, const char *name, const char *before)
{
    CR_CLEANUP(cr_packed) struct cr_packed *workload = cr_cache_workload_packed(cache, ns, kind, name);
    return !workload || cr_decimal_less(before, cr_packed_resource_version(workload));
}

/* The cache may not show yet what other policies have begun a moment ago. Once it does, it also shows when that has
 * ended, and the policies that began it may find that out later than the policy that waits for it. */
static void add_rollouts_of_others(const struct cr_world_source *source, const char *ns, struct cr_budgets *budgets)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec kinds = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec versions = {0};
    cr_reservations_list(source->reservations, ns, &kinds, &names, &versions);
    for (size_t i = 0; i < kinds.len; i++)
        if (!is_shown(source->cache, ns, kinds.items[i], names.items[i], versions.items[i]))
            cr_budgets_add_rolling(budgets, kinds.items[i], names.items[i]);
}

/* What they evict next, nothing shows yet. */
static void add_evictions_of_others(const struct cr_world_source *source, const struct cr_policy *policy,
                                    struct cr_budgets *budgets)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec kinds = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_autofree char *key = cr_asprintf("%s/%s", policy->ns, policy->name);
    cr_reservations_list_evicting(source->reservations, key, policy->ns, &kinds, &names);
    for (size_t i = 0; i < kinds.len; i++)
        cr_budgets_add_evicting(budgets, kinds.items[i], names.items[i]);
}

static void add_restarts_of_others(const struct cr_world_source *source, const struct cr_policy *policy,
                                   struct cr_budgets *budgets)
{
    if (!source->reservations || !budgets->view.len)
        return;
    add_rollouts_of_others(source, policy->ns, budgets);
    add_evictions_of_others(source, policy, budgets);
}

/* Whether the domain may still write down what a restart was for: a rollout may be over before that. */
static bool may_become_known(const struct cr_policy_status *status)
{
    int64_t now_ms = cr_clock_wall_ms();
    for (size_t i = 0; i < status->consumers_len; i++)
        if (cr_breaker_awaits_rotation(&status->consumers[i].restarts, now_ms))
            return true;
    return false;
}

/* Looks only where something is new: a domain's status may be long. */
static void find_steps(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    const struct cr_policy *policy = gathered->world.policy;
    bool restarted = may_become_known(&gathered->status);
    for (size_t i = 0; i < policy->secrets_len; i++) {
        struct cr_world_secret *secret = &gathered->secrets[i];
        const struct cr_secret_status *known = cr_status_secret(&gathered->status, policy->secrets[i].name);
        bool is_new = known && (restarted || known->pending.set ||
                                !cr_streq(known->observed_resource_version, secret->resource_version));
        if (secret->found && is_new)
            secret->step =
                cr_cache_domain_step(source->cache, policy->ns, policy->secrets[i].name, secret->resource_version);
    }
}

void cr_world_refresh(const struct cr_world_source *source, struct cr_gathered *gathered)
{
    const struct cr_policy *policy = gathered->world.policy;
    bool awaited = is_pending(&gathered->status);
    find_steps(source, gathered);
    for (size_t i = 0; i < policy->consumers_len; i++) {
        const struct cr_policy_verify *verify = &policy->consumers[i].verify;
        for (size_t p = 0; p < gathered->pods[i].len; p++) {
            struct cr_world_pod *view = &gathered->pod_views[i][p];
            view_pod(source, verify, gathered->pods[i].items[p]->json,
                     &gathered->sightings[i][p * verify->endpoints_len], view);
            recall_trust(source, verify, &gathered->trusts[i][p], view);
            recall_sidecar(source, awaited, &gathered->sidecars[i][p], view);
        }
        recall_acts(source, gathered, i);
    }
    recall_restarts(source, gathered);
    gathered->world.now_ms = cr_clock_wall_ms();
}

/* --- pods that went meanwhile --- */

static bool forget_if_gone(const struct cr_world_source *source, const struct cr_gathered *gathered, size_t consumer,
                           size_t pod)
{
    const struct cr_world_pod *view = &gathered->consumers[consumer].pods[pod];
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *now = cr_cache_get(source->cache, CR_CACHED_PODS, gathered->world.policy->ns, view->name);
    if (now && cr_streq(cr_obj_uid(now->json), view->uid))
        return false;
    cr_memory_forget_pod(source->memory, cr_or_empty(view->uid));
    return true;
}

bool cr_world_forget_gone(const struct cr_world_source *source, const struct cr_gathered *gathered,
                          const struct cr_plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->nudges_len; i++)
        any |= forget_if_gone(source, gathered, plan->nudges[i].consumer, plan->nudges[i].pod);
    for (size_t i = 0; i < plan->probes_len; i++)
        any |= forget_if_gone(source, gathered, plan->probes[i].consumer, plan->probes[i].pod);
    for (size_t i = 0; i < plan->evictions_len; i++)
        any |= forget_if_gone(source, gathered, plan->evictions[i].consumer, plan->evictions[i].pod);
    return any;
}

/* --- gathered --- */

/* Allocates room for each Secret and consumer of the effective policy. */
static void make_room(const struct cr_world_source *source, const struct cr_policy *policy, struct cr_gathered *out)
{
    size_t consumers = policy->consumers_len;
    struct cr_scope scope = out->scope;
    *out = (struct cr_gathered){.scope = scope,
                                .secrets = cr_calloc(policy->secrets_len, sizeof(struct cr_world_secret)),
                                .consumers = cr_calloc(consumers, sizeof(struct cr_world_consumer)),
                                .secret_views = cr_calloc(policy->secrets_len, sizeof(struct cr_secret_view *)),
                                .workload_snapshots = cr_calloc(consumers, sizeof(struct cr_snapshot *)),
                                .workload_overrides = cr_calloc(consumers, sizeof(struct cr_json *)),
                                .pods = cr_calloc(consumers, sizeof(struct cr_snapshots)),
                                .pod_views = cr_calloc(consumers, sizeof(struct cr_world_pod *)),
                                .ending = cr_calloc(consumers, sizeof(struct cr_snapshots)),
                                .ending_views = cr_calloc(consumers, sizeof(struct cr_world_ending *)),
                                .sightings = cr_calloc(consumers, sizeof(struct cr_sighting *)),
                                .trusts = cr_calloc(consumers, sizeof(struct cr_trust_sighting *)),
                                .sidecars = cr_calloc(consumers, sizeof(struct cr_sidecar_sighting *)),
                                .refusals = cr_calloc(consumers, sizeof(struct cr_note))};
    out->world = (struct cr_world){.policy = policy,
                                   .status = &out->status,
                                   .secrets = out->secrets,
                                   .consumers = out->consumers,
                                   .catalogue = source->catalogue,
                                   .zones = source->zones};
}

bool cr_world_gather(const struct cr_world_source *source, const struct cr_policy *policy,
                     const struct cr_policy_status *status, struct cr_gathered *out, struct cr_error *err)
{
    uint64_t moves = source->reservations ? cr_reservations_moves(source->reservations, policy->ns) : 0;
    cr_scope_gather(source->cache, policy, status, &out->scope);
    const struct cr_policy *effective = &out->scope.expansion.policy;
    make_room(source, effective, out);
    out->moves = moves;
    out->world.beyond = cr_scope_beyond(&out->scope);
    out->world.unmanaged = out->scope.expansion.unmanaged;
    out->world.uncovered = out->scope.expansion.uncovered;
    cr_policy_status_copy(&out->status, status);
    cr_cache_expect_secrets(source->cache, effective);
    for (size_t i = 0; i < effective->consumers_len; i++)
        gather_consumer(source, effective, i, out);
    cr_hosts_in_use_gather(source->cache, effective, &out->hosts);
    out->world.beyond.host_objects = out->hosts.objects_beyond;
    out->world.beyond.hosts = out->hosts.hosts_beyond;
    for (size_t i = 0; i < effective->secrets_len; i++)
        if (!gather_secret(source, effective, i, out, err))
            return false;
    cr_budgets_gather(source->cache, effective->ns, &out->budgets);
    add_restarts_of_others(source, effective, &out->budgets);
    out->world.budgets = out->budgets.view;
    cr_world_refresh(source, out);
    return true;
}

/* The API server's answer lacks what the cache has added: an Argo Rollout's template that comes from another object. */
static void keep_template(const struct cr_json *from, struct cr_json *to)
{
    const struct cr_json *template = cr_json_at(from, "spec", "template");
    if (template && !cr_json_at(to, "spec", "template"))
        cr_json_set(cr_json_object_in(to, "spec"), "template", cr_json_copy(template));
}

void cr_world_override(struct cr_gathered *gathered, size_t consumer, struct cr_json *workload)
{
    keep_template(gathered->consumers[consumer].workload, workload);
    cr_json_free(gathered->workload_overrides[consumer]);
    gathered->workload_overrides[consumer] = workload;
    gathered->consumers[consumer].workload = workload;
    const struct cr_policy_consumer *spec = &gathered->world.policy->consumers[consumer];
    cr_budgets_add_rolling(&gathered->budgets, spec->kind, spec->target);
    gathered->world.budgets = gathered->budgets.view;
}

void cr_world_dispose(struct cr_gathered *gathered)
{
    const struct cr_policy *policy = gathered->world.policy;
    for (size_t i = 0; policy && i < policy->secrets_len; i++)
        cr_secret_view_free(gathered->secret_views[i]);
    for (size_t i = 0; policy && i < policy->consumers_len; i++) {
        cr_snapshot_unref(gathered->workload_snapshots[i]);
        cr_json_free(gathered->workload_overrides[i]);
        for (size_t p = 0; gathered->trusts[i] && p < gathered->pods[i].len; p++) {
            cr_trust_sighting_dispose(&gathered->trusts[i][p]);
            cr_sidecar_sighting_dispose(&gathered->sidecars[i][p]);
        }
        free(gathered->trusts[i]);
        free(gathered->sidecars[i]);
        cr_snapshots_dispose(&gathered->pods[i]);
        free(gathered->pod_views[i]);
        cr_snapshots_dispose(&gathered->ending[i]);
        free(gathered->ending_views[i]);
        free(gathered->sightings[i]);
        cr_note_dispose(&gathered->refusals[i]);
    }
    cr_policy_status_dispose(&gathered->status);
    free(gathered->secrets);
    free(gathered->consumers);
    free(gathered->secret_views);
    free(gathered->workload_snapshots);
    free(gathered->workload_overrides);
    free(gathered->pods);
    free(gathered->pod_views);
    free(gathered->ending);
    free(gathered->ending_views);
    free(gathered->sightings);
    free(gathered->trusts);
    free(gathered->sidecars);
    free(gathered->refusals);
    cr_budgets_dispose(&gathered->budgets);
    cr_hosts_in_use_dispose(&gathered->hosts, policy ? policy->secrets_len : 0);
    free(gathered->trust_refused);
    cr_scope_dispose(&gathered->scope); /* last: the policy is its */
    *gathered = (struct cr_gathered){0};
}
