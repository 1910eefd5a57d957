/* What the parts of a job share. Private to pkg/certgen. */
#ifndef CR_CERTGEN_JOB_INTERNAL_H
#define CR_CERTGEN_JOB_INTERNAL_H

#include "certgen/job.h"
#include "certgen/plan.h"
#include "pki/authority.h"

struct cr_certgen_run {
    const struct cr_certgen_job *job;
    int64_t deadline_ms;            /* monotonic */
    struct cr_certgen_found *found; /* of each Secret: as it was read, or written since */
    char **versions;                /* of each Secret: what our own last write made it; NULL: none of ours */
    struct cr_authority *authority; /* NULL: none yet */
    struct cr_certgen_plan plan;
    struct cr_strvec said; /* lines that are not said twice */
    bool wrote;            /* anything */
    bool rotated;          /* a leaf that was there has been replaced */
};

void cr_certgen_say(const struct cr_certgen_run *run, const char *fmt, ...) CR_PRINTF(2, 3);
/* The same, but each line once in a run. */
void cr_certgen_say_once(struct cr_certgen_run *run, const char *fmt, ...) CR_PRINTF(2, 3);

/* The webhook's caBundles become `bundle` (PEM). What is not there is told. */
bool cr_certgen_webhook_write(struct cr_certgen_run *run, const char *bundle, struct cr_error *err) CR_MUST_USE;
/* Each of the set's Deployments, by the annotation of `kubectl rollout restart`. What is not there is told, and so is
 * who has one replica. */
bool cr_certgen_restart(const struct cr_certgen_run *run, int64_t now_ms, struct cr_error *err) CR_MUST_USE;

#endif
