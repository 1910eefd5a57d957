#include "certgen/job_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "api/consumer_kind.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/leaf.h"
#include "kube/backoff.h"

/* Deployments that read certificates only at their start, rolled as `kubectl rollout restart` does. */

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

/* With one replica the old pod may end before the new one serves, and with Recreate it always does. */
static void warn_of_a_gap(const struct cr_certgen_run *run, const struct cr_json *deployment, const char *name)
{
    bool recreates = cr_streq(cr_json_string_at(deployment, "spec", "strategy", "type"), "Recreate");
    int64_t replicas = cr_json_int_at(deployment, 1, "spec", "replicas");
    if (replicas == 1 || recreates)
        cr_certgen_say(run, "warning: Deployment %s/%s has %s: there may be a gap while it restarts", run->job->set->ns,
                       name, recreates ? "the strategy Recreate" : "one replica");
}

static bool restart_one(const struct cr_certgen_run *run, const char *name, const char *at, struct cr_error *err)
{
    const char *ns = run->job->set->ns;
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    struct cr_json *template = cr_json_object_in(cr_json_object_in(patch, "spec"), "template");
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(template, "metadata"), "annotations");
    cr_json_set_string(annotations, RESTARTED_AT, at);
    struct cr_error why = {0};
    const struct cr_resource *resource = &cr_consumer_kind_of("Deployment")->resource;
    CR_CLEANUP(cr_json)
    struct cr_json *patched = cr_client_merge_patch(run->job->client, resource, ns, name, NULL, patch, &why);
    if (patched) {
        cr_certgen_say(run, "Deployment %s/%s: restarted", ns, name);
        warn_of_a_gap(run, patched, name);
        return true;
    }
    if (why.kind == CR_ERR_NOT_FOUND) {
        cr_certgen_say(run, "Deployment %s/%s: not there, so not restarted", ns, name);
        return true;
    }
    *err = why;
    return cr_error_wrap(err, "restarting Deployment %s/%s", ns, name);
}

/* The same value when it is tried again: one rollout. */
static bool certgen_restart_at(const struct cr_certgen_run *run, int64_t at_ms, struct cr_error *err)
{
    char at[CR_TIME_TEXT];
    cr_time_format(at_ms, at);
    const struct cr_strvec *names = &run->job->set->restarts;
    for (size_t i = 0; i < names->len; i++)
        if (!restart_one(run, names->items[i], at, err))
            return false;
    return true;
}

enum { FIRST_RETRY_MS = 500, LAST_RETRY_MS = 10 * 1000 };

void cr_certgen_say(const struct cr_certgen_run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *line = cr_vasprintf(fmt, args);
    va_end(args);
    run->job->say(run->job->arg, line);
}

void cr_certgen_say_once(struct cr_certgen_run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_autofree char *line = cr_vasprintf(fmt, args);
    va_end(args);
    if (cr_strvec_add_unique(&run->said, line))
        run->job->say(run->job->arg, line);
}

static void run_cleanup(struct cr_certgen_run *run)
{
    for (size_t i = 0; i < run->job->set->secrets_len; i++) {
        cr_certgen_found_dispose(&run->found[i]);
        free(run->written[i].version);
    }
    free(run->found);
    free(run->written);
    free(run->staging_uid);
    cr_authority_free(run->authority);
    cr_certgen_plan_dispose(&run->plan);
    cr_strvec_dispose(&run->said);
}

/* --- looking --- */

bool cr_certgen_read(struct cr_certgen_run *run, struct cr_error *err)
{
    for (size_t i = 0; i < run->job->set->secrets_len; i++) {
        cr_certgen_found_dispose(&run->found[i]);
        if (!cr_certgen_store_read(run->job->store, i, &run->found[i], err))
            return false;
    }
    return true;
}

bool cr_certgen_decide(struct cr_certgen_run *run, bool overwrite, struct cr_error *err)
{
    const struct cr_certgen_question question = {
        .set = run->job->set,
        .found = run->found,
        .overwrite = overwrite,
        .rotation = run->job->rotation,
        .authority = run->authority ? cr_authority_certificate(run->authority) : NULL,
        .now_ms = cr_clock_wall_ms(),
    };
    cr_certgen_plan_dispose(&run->plan);
    if (!cr_certgen_plan_make(&question, &run->plan, err))
        return false;
    for (size_t i = 0; i < run->plan.warnings.len; i++)
        cr_certgen_say_once(run, "warning: %s", run->plan.warnings.items[i]);
    return true;
}

/* Decides with a CA when one is needed: a key is made only then. */
static bool decide(struct cr_certgen_run *run, struct cr_error *err)
{
    if (!cr_certgen_decide(run, run->overwrite, err))
        return false;
    if (!run->plan.needs_authority)
        return true;
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = NULL;
    run->authority = cr_certgen_authority_new(run->job->set, cr_clock_wall_ms(), &key, err);
    return run->authority && cr_certgen_decide(run, run->overwrite, err);
}

static bool act(struct cr_certgen_run *run, struct cr_error *err)
{
    return cr_certgen_write_opaque(run, err) && cr_certgen_write_trust(run, err) && cr_certgen_write_leaves(run, err);
}

/* --- until nothing is left --- */

static bool round_once(struct cr_certgen_run *run, struct cr_error *err)
{
    return cr_certgen_read(run, err) && decide(run, err) && act(run, err);
}

void cr_certgen_pause(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Another program has written, or the API server was out of reach: what was decided is decided again. */
bool cr_certgen_may_retry(const struct cr_certgen_run *run, const struct cr_error *why, struct cr_backoff *backoff)
{
    if (why->kind != CR_ERR_CONFLICT && why->kind != CR_ERR_TRANSIENT && why->kind != CR_ERR_THROTTLED)
        return false;
    int64_t delay = cr_backoff_next(backoff);
    if (why->retry_after_ms > delay)
        delay = why->retry_after_ms;
    if (cr_clock_monotonic_ms() + delay > run->deadline_ms)
        return false;
    cr_certgen_say(run, "%s; trying again", why->text);
    cr_certgen_pause(delay);
    return true;
}

/* The round that finds nothing to do proves what the earlier rounds have written. */
static bool settle(struct cr_certgen_run *run, struct cr_error *err)
{
    struct cr_backoff backoff = {.first_ms = FIRST_RETRY_MS, .max_ms = LAST_RETRY_MS};
    for (;;) {
        struct cr_error why = {0};
        if (round_once(run, &why)) {
            if (cr_certgen_plan_is_done(&run->plan))
                return true;
            if (cr_clock_monotonic_ms() > run->deadline_ms)
                return cr_error_set(err, CR_ERR_TRANSIENT, "not done in time: others write the same Secrets");
        } else if (!cr_certgen_may_retry(run, &why, &backoff)) {
            *err = why;
            return false;
        }
    }
}

bool cr_certgen_restart(struct cr_certgen_run *run, int64_t at_ms, struct cr_error *err)
{
    struct cr_backoff backoff = {.first_ms = FIRST_RETRY_MS, .max_ms = LAST_RETRY_MS};
    for (;;) {
        struct cr_error why = {0};
        if (certgen_restart_at(run, at_ms, &why))
            return true;
        if (!cr_certgen_may_retry(run, &why, &backoff)) {
            *err = why;
            return false;
        }
    }
}

/* When the last leaf of this rotation began, also if an earlier run has issued it: 0, there is none. */
static int64_t issued_ms(const struct cr_certgen_run *run)
{
    int64_t last = 0;
    for (size_t i = 0; run->job->rotation && i < run->plan.len; i++) {
        int64_t begins_ms = run->plan.materials[i].not_before_ms;
        if (cr_streq(run->found[i].rotation, run->job->rotation) && begins_ms > last)
            last = begins_ms;
    }
    return last;
}

/* An earlier run of the same rotation may have ended before a restart; what it has restarted is not restarted again. */
static bool restart_once(struct cr_certgen_run *run, struct cr_error *err)
{
    int64_t issued = issued_ms(run);
    bool goes_on = issued && !run->wrote;
    if (!run->job->client || (!run->replaced && !goes_on))
        return true;
    return cr_certgen_restart(run, issued ? issued : cr_clock_wall_ms(), err);
}

static void say_nothing_to_do(const struct cr_certgen_run *run)
{
    const char *why = !run->overwrite  ? ", and is left alone"
                      : issued_ms(run) ? ", and this rotation has issued it"
                                       : "";
    cr_certgen_say(run, "nothing to do: every Secret is there%s", why);
}

static bool run_at_once(struct cr_certgen_run *run, struct cr_error *err)
{
    run->overwrite = run->job->overwrite;
    if (!settle(run, err))
        return false;
    if (!run->wrote && !run->replaced)
        say_nothing_to_do(run);
    return restart_once(run, err);
}

bool cr_certgen_restart_uncovered(struct cr_certgen_run *run, bool *restarted, struct cr_error *err)
{
    *restarted = false;
    if (!run->job->settle_ms)
        return true;
    return cr_certgen_any_uncovered(run, restarted, err) &&
           (!*restarted || cr_certgen_restart(run, cr_clock_wall_ms(), err));
}

/* A set that was completed has another CA, which consumers that read CAs at their start do not know. */
static bool end_completed(struct cr_certgen_run *run, struct cr_error *err)
{
    bool restarted = false;
    cr_certgen_say(run, "what was missing is made; nothing was rotated");
    return !run->replaced || cr_certgen_restart_uncovered(run, &restarted, err);
}

/* What was made a moment ago cannot have arrived anywhere yet: it is not rotated at once. */
static bool run_staged(struct cr_certgen_run *run, struct cr_error *err)
{
    bool resumes = false;
    if (!cr_certgen_staging_read(run, &resumes, err) || (!resumes && !settle(run, err)))
        return false;
    if (run->wrote)
        return end_completed(run, err);
    if (!cr_certgen_set_has_leaves(run->job->set)) {
        cr_certgen_say(run, "nothing to do: the set has no leaf, and what is opaque is never changed");
        return true;
    }
    return cr_certgen_staged_run(run, resumes, err);
}

bool cr_certgen_job_run(const struct cr_certgen_job *job, struct cr_error *err)
{
    CR_CLEANUP(run) struct cr_certgen_run run = {.job = job};
    run.begun_ms = cr_clock_monotonic_ms();
    run.deadline_ms = run.begun_ms + job->timeout_ms;
    run.found = cr_calloc(job->set->secrets_len, sizeof *run.found);
    run.written = cr_calloc(job->set->secrets_len, sizeof *run.written);
    return job->staged ? run_staged(&run, err) : run_at_once(&run, err);
}
