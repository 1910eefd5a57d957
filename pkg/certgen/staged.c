/* A rotation in stages, as the operator does it: trust, evidence, leaves, evidence. Level-based like the whole job: the
 * stage follows from what is published and staged. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/job_internal.h"

enum { FIRST_RETRY_MS = 500, LAST_RETRY_MS = 10 * 1000, LOOK_MS = 500 };

enum stage { BEFORE, TRUSTING, SWITCHING, DONE, STAGES };

static const char *const stage_says[STAGES] = {
    [BEFORE] = "what is published has arrived everywhere",
    [TRUSTING] = "the new CA is trusted everywhere",
    [SWITCHING] = "the new leaves are used everywhere",
};

struct staged {
    struct cr_certgen_run *run;
    enum stage stage;
    int64_t since_ms;       /* monotonic: of the stage */
    bool restarted[STAGES]; /* in this run */
    bool trust_published;   /* the webhook's, too */
    char *waits;            /* owned: what was said last; NULL */
};

static void staged_cleanup(struct staged *s)
{
    free(s->waits);
}

static void enter(struct staged *s, enum stage next)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    char took[CR_TIME_TEXT];
    cr_duration_format(now_ms - s->since_ms, took);
    if (s->stage != BEFORE || s->waits)
        cr_certgen_say(s->run, "%s (%s)", stage_says[s->stage], took);
    s->stage = next;
    s->since_ms = now_ms;
}

static void say_waiting(struct staged *s, const char *why)
{
    if (!cr_streq(s->waits, why))
        cr_certgen_say(s->run, "waiting for %s", why);
    cr_strset(&s->waits, why);
}

/* A policy restarts the workloads that it covers and that read certificates only at their start. Without a policy the
 * job restarts them, and the time to wait begins then. */
static bool restart_uncovered(struct staged *s, struct cr_error *err)
{
    bool restarted = false;
    if (s->restarted[s->stage] || s->stage == BEFORE)
        return true;
    if (!cr_certgen_restart_uncovered(s->run, &restarted, err))
        return false;
    s->restarted[s->stage] = restarted;
    if (restarted)
        s->run->written_ms = cr_clock_monotonic_ms();
    return true;
}

/* A bundle of one CA can drop none: then a rotation may begin before every consumer has all that is published. */
static enum cr_certgen_wait waits_for(const struct staged *s)
{
    if (s->stage != BEFORE)
        return s->stage == TRUSTING ? CR_CERTGEN_WAIT_TRUST : CR_CERTGEN_WAIT_ALL;
    for (size_t i = 0; i < s->run->plan.len; i++)
        if (s->run->plan.materials[i].trust_len > 1)
            return CR_CERTGEN_WAIT_ALL;
    return CR_CERTGEN_WAIT_NOT;
}

/* *arrived: what the stage waits for. */
static bool look(struct staged *s, bool *arrived, struct cr_error *err)
{
    cr_autofree char *why = NULL;
    if (!restart_uncovered(s, err) || !cr_certgen_arrived(s->run, waits_for(s), &why, err))
        return false;
    *arrived = !why;
    if (why)
        say_waiting(s, why);
    return true;
}

static bool has_leaf_task(const struct cr_certgen_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->tasks[i].leaf)
            return true;
    return false;
}

static bool has_trust_task(const struct cr_certgen_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->tasks[i].trust || plan->tasks[i].opaque)
            return true;
    return false;
}

/* An earlier run may have been killed between the bundles and the webhook. */
static bool publish_trust(struct staged *s, struct cr_error *err)
{
    if (!cr_certgen_write_opaque(s->run, err) || !cr_certgen_write_trust(s->run, err))
        return false;
    s->trust_published = true;
    return true;
}

/* Also used when another program has changed something meanwhile: then the job waits for the trust again. */
static bool begin_again(struct staged *s, struct cr_error *err)
{
    s->stage = s->run->authority ? TRUSTING : BEFORE;
    s->restarted[TRUSTING] = s->restarted[SWITCHING] = false;
    return publish_trust(s, err);
}

static bool go_on(struct staged *s, struct cr_error *err)
{
    if (s->stage == SWITCHING && !cr_certgen_staging_delete(s->run, err))
        return false;
    enter(s, s->stage + 1);
    return true;
}

/* One step: a write of the stage, or a check of its result. *again_ms: when to make the next step. */
static bool step(struct staged *s, int64_t *again_ms, struct cr_error *err)
{
    struct cr_certgen_run *run = s->run;
    bool arrived = false;
    *again_ms = 0;
    if (s->stage == TRUSTING && !run->authority && !cr_certgen_staging_make(run, err))
        return false;
    if (!cr_certgen_read(run, err) || !cr_certgen_decide(run, run->authority != NULL, err))
        return false;
    if (has_trust_task(&run->plan)) {
        *again_ms = s->trust_published ? LOOK_MS : 0; /* another program writes, too: no race with it */
        return begin_again(s, err);
    }
    if (s->stage == TRUSTING && !s->trust_published && !publish_trust(s, err))
        return false;
    if (s->stage == SWITCHING && has_leaf_task(&run->plan))
        return cr_certgen_write_leaves(run, err);
    if (s->stage == TRUSTING && !has_leaf_task(&run->plan))
        s->stage = SWITCHING; /* an earlier run has published them */
    if (!look(s, &arrived, err))
        return false;
    if (arrived)
        return go_on(s, err);
    *again_ms = LOOK_MS;
    return true;
}

static bool is_late(const struct staged *s, struct cr_error *err)
{
    if (cr_clock_monotonic_ms() < s->run->deadline_ms)
        return false;
    (void)cr_error_set(err, CR_ERR_TRANSIENT,
                       "not done in time, and what is published is trusted; run it again. It waited for %s",
                       s->waits ? s->waits : "the API server");
    return true;
}

bool cr_certgen_staged_run(struct cr_certgen_run *run, bool resumes, struct cr_error *err)
{
    CR_CLEANUP(staged)
    struct staged s = {.run = run, .stage = resumes ? TRUSTING : BEFORE, .since_ms = cr_clock_monotonic_ms()};
    struct cr_backoff backoff = {.first_ms = FIRST_RETRY_MS, .max_ms = LAST_RETRY_MS};
    if (resumes)
        cr_certgen_say(run, "going on with a rotation that was begun");
    while (s.stage != DONE) {
        struct cr_error why = {0};
        int64_t again_ms = 0;
        if (step(&s, &again_ms, &why)) {
            cr_backoff_reset(&backoff);
        } else if (!cr_certgen_may_retry(run, &why, &backoff)) {
            *err = why;
            return false;
        }
        if (s.stage != DONE && is_late(&s, err))
            return false;
        cr_certgen_pause(again_ms);
    }
    return true;
}
