/* A certgen job: makes a set of Secrets, or rotates it. It may be killed after any write: when it is run again, it
 * completes the work (certgen/plan.h). Blocking, in one thread. */
#ifndef CR_CERTGEN_JOB_H
#define CR_CERTGEN_JOB_H

#include "certgen/set.h"
#include "certgen/store.h"
#include "kube/client.h"

/* Everything is borrowed. */
struct cr_certgen_job {
    const struct cr_certgen_set *set;
    struct cr_certgen_store *store;
    struct cr_client *client; /* NULL: files, then nothing is restarted and no webhook is written */
    bool overwrite;
    const char *rotation; /* with overwrite: runs with the same text are one rotation, each goes on where the last one
                           * ended; NULL: each run is another. In a cluster only */
    /* Trust first: it publishes the bundles, and when the CertRotationPolicies that cover the Secrets show that they
     * have arrived, the leaves. Needs a client. */
    bool staged;
    int64_t settle_ms;  /* staged: what no policy covers counts as arrived so long after the last write; 0: never */
    int64_t timeout_ms; /* for all of it */
    void (*say)(void *arg, const char *line); /* progress and warnings, a line each */
    void *arg;
};

/* Errors: what stopped it, in words. What is done by then is consistent, and a new run goes on. */
bool cr_certgen_job_run(const struct cr_certgen_job *job, struct cr_error *err) CR_MUST_USE;

#endif
