/* What the parts of a job share. Private to pkg/certgen. */
#ifndef CR_CERTGEN_JOB_INTERNAL_H
#define CR_CERTGEN_JOB_INTERNAL_H

#include "certgen/job.h"
#include "certgen/plan.h"
#include "kube/backoff.h"
#include "pki/authority.h"

/* Our own last write of a Secret; empty: none in this run. */
struct cr_certgen_written {
    char *version; /* owned */
    int64_t at_ms; /* wall clock */
};

struct cr_certgen_run {
    const struct cr_certgen_job *job;
    int64_t begun_ms, deadline_ms; /* monotonic */
    bool overwrite;
    struct cr_certgen_found *found; /* of each Secret: as it was read, or written since */
    struct cr_certgen_written *written;
    int64_t written_ms;             /* monotonic: the last of them; 0: none */
    struct cr_authority *authority; /* NULL: none yet */
    char *staging_uid;              /* of the staging Secret; NULL: there is none */
    struct cr_certgen_plan plan;
    struct cr_strvec said; /* lines that are not said twice */
    bool wrote;            /* anything */
    bool replaced;         /* a leaf or a bundle that was there, or it may have been */
};

void cr_certgen_say(const struct cr_certgen_run *run, const char *fmt, ...) CR_PRINTF(2, 3);
/* The same, but each line once in a run. */
void cr_certgen_say_once(struct cr_certgen_run *run, const char *fmt, ...) CR_PRINTF(2, 3);
void cr_certgen_pause(int64_t ms);

/* --- looking --- */

bool cr_certgen_read(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;
/* run->plan, by what was read and the authority, if there is one. */
bool cr_certgen_decide(struct cr_certgen_run *run, bool overwrite, struct cr_error *err) CR_MUST_USE;
/* Another program has written, or the API server was out of reach: after a pause everything must be read and decided
 * again. */
bool cr_certgen_may_retry(const struct cr_certgen_run *run, const struct cr_error *why,
                          struct cr_backoff *backoff) CR_MUST_USE;

/* --- writing, by run->plan --- */

bool cr_certgen_write_opaque(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;
/* The webhook's caBundles, too. */
bool cr_certgen_write_trust(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;
bool cr_certgen_write_leaves(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;

/* Restarts each of the set's Deployments, by the annotation of `kubectl rollout restart`; one that has this time (wall
 * clock) already is not restarted again. It says which are not there, and which have one replica. */
bool cr_certgen_restart(struct cr_certgen_run *run, int64_t at_ms, struct cr_error *err) CR_MUST_USE;
/* In stages, where the job has a time for Secrets that no policy covers, and there are some: policies restart what they
 * cover. *restarted: it was done. */
bool cr_certgen_restart_uncovered(struct cr_certgen_run *run, bool *restarted, struct cr_error *err) CR_MUST_USE;

/* --- in stages --- */

/* The next CA, with its key, for as long as a staged rotation lasts: a Secret of the set's namespace. *found: a
 * rotation was begun and not finished; its CA is run->authority then. */
bool cr_certgen_staging_read(struct cr_certgen_run *run, bool *found, struct cr_error *err) CR_MUST_USE;
/* Makes it; a CA that another job has staged meanwhile is taken instead. */
bool cr_certgen_staging_make(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;
bool cr_certgen_staging_delete(struct cr_certgen_run *run, struct cr_error *err) CR_MUST_USE;

/* From what is there to the end of a rotation. */
bool cr_certgen_staged_run(struct cr_certgen_run *run, bool resumes, struct cr_error *err) CR_MUST_USE;

/* What must have arrived; NOT: nothing, it is enough that each Secret is covered. */
enum cr_certgen_wait { CR_CERTGEN_WAIT_NOT, CR_CERTGEN_WAIT_TRUST, CR_CERTGEN_WAIT_ALL };

/* Whether what is published has arrived everywhere, by the policies that cover the Secrets, and by time for a Secret
 * that none covers. *why: owned; what is waited for, NULL when it has arrived. Errors: the policies cannot be read; a
 * Secret that none covers, when the job has no time for those (Invalid). */
bool cr_certgen_arrived(const struct cr_certgen_run *run, enum cr_certgen_wait wait, char **why,
                        struct cr_error *err) CR_MUST_USE;
/* *any: there is a Secret with a leaf that no policy covers. Errors: the policies cannot be read. */
bool cr_certgen_any_uncovered(const struct cr_certgen_run *run, bool *any, struct cr_error *err) CR_MUST_USE;

#endif
