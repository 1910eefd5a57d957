#include "certgen/job_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/leaf.h"
#include "kube/backoff.h"

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
        free(run->versions[i]);
    }
    free(run->found);
    free(run->versions);
    cr_authority_free(run->authority);
    cr_certgen_plan_dispose(&run->plan);
    cr_strvec_dispose(&run->said);
}

/* --- looking --- */

static bool read_all(struct cr_certgen_run *run, struct cr_error *err)
{
    for (size_t i = 0; i < run->job->set->secrets_len; i++) {
        cr_certgen_found_dispose(&run->found[i]);
        if (!cr_certgen_store_read(run->job->store, i, &run->found[i], err))
            return false;
    }
    return true;
}

static bool make_plan(struct cr_certgen_run *run, struct cr_error *err)
{
    const struct cr_certgen_question question = {
        .set = run->job->set,
        .found = run->found,
        .overwrite = run->job->overwrite,
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

/* With a CA when one is needed: only then is a key made. */
static bool decide(struct cr_certgen_run *run, struct cr_error *err)
{
    if (!make_plan(run, err))
        return false;
    if (!run->plan.needs_authority)
        return true;
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = NULL;
    run->authority = cr_certgen_authority_new(run->job->set, cr_clock_wall_ms(), &key, err);
    return run->authority && make_plan(run, err);
}

/* --- writing --- */

/* What was written is what would be read now. */
static void note_written(struct cr_certgen_run *run, size_t i, const struct cr_certgen_write *write, char *version)
{
    struct cr_certgen_found *found = &run->found[i];
    run->wrote = true;
    found->found = true;
    found->has_opaque |= write->opaque != NULL;
    for (size_t k = 0; k < cr_array_len(found->data); k++) {
        if (!write->data[k].data)
            continue;
        cr_buf_reset(&found->data[k]);
        cr_buf_puts(&found->data[k], write->data[k].data);
    }
    cr_strset(&found->version, version);
    free(run->versions[i]);
    run->versions[i] = version;
}

static bool write_secret(struct cr_certgen_run *run, size_t i, const struct cr_certgen_write *write, const char *what,
                         struct cr_error *err)
{
    char *version = NULL;
    if (!cr_certgen_store_write(run->job->store, i, &run->found[i], write, &version, err))
        return false;
    cr_autofree char *title = cr_certgen_store_title(run->job->store, i);
    cr_certgen_say(run, "%s: %s", title, what);
    note_written(run, i, write, version);
    return true;
}

static struct cr_pem_input text_entry(const char *text)
{
    return (struct cr_pem_input){text, strlen(text)};
}

static bool write_opaque(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    size_t len = (size_t)run->job->set->secrets[i].opaque_bytes;
    cr_autofree unsigned char *bytes = cr_malloc(len);
    ssize_t n = getrandom(bytes, len, 0);
    bool ok = n == (ssize_t)len || cr_error_set(err, CR_ERR_TRANSIENT, "the kernel gives no random bytes");
    ok = ok && write_secret(run, i, &(struct cr_certgen_write){.opaque = bytes}, "created", err);
    explicit_bzero(bytes, len);
    return ok;
}

static bool write_trust(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    struct cr_certgen_write write = {0};
    write.data[CR_CERTGEN_DATA_TRUST] = text_entry(run->plan.bundle);
    cr_autofree char *what = cr_asprintf("trusts %zu CAs: the new one first", run->plan.bundle_len);
    return write_secret(run, i, &write, what, err);
}

static bool write_leaf(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    const struct cr_certgen_set *set = run->job->set;
    CR_CLEANUP(cr_certgen_leaf) struct cr_certgen_leaf leaf = {0};
    if (!cr_certgen_leaf_issue(set, &set->secrets[i], run->authority, cr_clock_wall_ms(), &leaf, err))
        return false;
    bool replaces = run->found[i].found;
    struct cr_certgen_write write = {0};
    write.data[CR_CERTGEN_DATA_CERTIFICATE] = text_entry(leaf.certificate);
    write.data[CR_CERTGEN_DATA_PRIVATE_KEY] = (struct cr_pem_input){leaf.key.data, leaf.key.len};
    if (!replaces)
        write.data[CR_CERTGEN_DATA_TRUST] = text_entry(run->plan.bundle);
    char until[CR_TIME_TEXT];
    cr_time_format(leaf.not_after_ms, until);
    cr_autofree char *what = cr_asprintf("%s, until %s", replaces ? "a new leaf" : "created", until);
    if (!write_secret(run, i, &write, what, err))
        return false;
    run->rotated |= replaces;
    return true;
}

static bool write_each(struct cr_certgen_run *run, size_t task,
                       bool (*write)(struct cr_certgen_run *run, size_t i, struct cr_error *err), struct cr_error *err)
{
    for (size_t i = 0; i < run->plan.len; i++) {
        const bool *todo = (const bool *)((const char *)&run->plan.tasks[i] + task);
        if (*todo && !write(run, i, err))
            return false;
    }
    return true;
}

/* Trust first, for the webhook as well; without an authority the bundle is the one that is there. */
static bool write_webhook(struct cr_certgen_run *run, struct cr_error *err)
{
    const struct cr_certgen_set *set = run->job->set;
    if (!set->webhook || !run->job->client)
        return true;
    const char *bundle = run->plan.bundle ? run->plan.bundle : run->found[set->webhook_secret].data[2].data;
    return !bundle || cr_certgen_webhook_write(run, bundle, err);
}

#define TASK(name) offsetof(struct cr_certgen_task, name)

static bool act(struct cr_certgen_run *run, struct cr_error *err)
{
    return write_each(run, TASK(opaque), write_opaque, err) && write_each(run, TASK(trust), write_trust, err) &&
           write_webhook(run, err) && write_each(run, TASK(leaf), write_leaf, err);
}

/* --- until nothing is left --- */

static bool round_once(struct cr_certgen_run *run, struct cr_error *err)
{
    return read_all(run, err) && decide(run, err) && act(run, err);
}

static void pause_for(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Somebody else has written, or the API server was out of reach: what was decided is decided again. */
static bool may_retry(const struct cr_certgen_run *run, const struct cr_error *why, struct cr_backoff *backoff)
{
    if (why->kind != CR_ERR_CONFLICT && !cr_error_is_retryable(why))
        return false;
    int64_t delay = cr_backoff_next(backoff);
    if (why->retry_after_ms > delay)
        delay = why->retry_after_ms;
    if (cr_clock_monotonic_ms() + delay > run->deadline_ms)
        return false;
    cr_certgen_say(run, "%s; trying again", why->text);
    pause_for(delay);
    return true;
}

/* The round that finds nothing to do proves what the ones before have written. */
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
        } else if (!may_retry(run, &why, &backoff)) {
            *err = why;
            return false;
        }
    }
}

static bool restart(struct cr_certgen_run *run, struct cr_error *err)
{
    struct cr_backoff backoff = {.first_ms = FIRST_RETRY_MS, .max_ms = LAST_RETRY_MS};
    int64_t now_ms = cr_clock_wall_ms();
    for (;;) {
        struct cr_error why = {0};
        if (cr_certgen_restart(run, now_ms, &why))
            return true;
        if (!may_retry(run, &why, &backoff)) {
            *err = why;
            return false;
        }
    }
}

bool cr_certgen_job_run(const struct cr_certgen_job *job, struct cr_error *err)
{
    CR_CLEANUP(run) struct cr_certgen_run run = {.job = job};
    run.deadline_ms = cr_clock_monotonic_ms() + job->timeout_ms;
    run.found = cr_calloc(job->set->secrets_len, sizeof *run.found);
    run.versions = cr_calloc(job->set->secrets_len, sizeof *run.versions);
    if (!settle(&run, err))
        return false;
    if (!run.wrote)
        cr_certgen_say(&run, "nothing to do: every Secret is there%s", job->overwrite ? "" : ", and is left alone");
    return !run.rotated || !job->client || restart(&run, err);
}
