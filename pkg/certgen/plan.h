/* What a certgen job has to do, computed from what exists; pure. Level-based: the plan is made again after each read,
 * and it converges to nothing to do, wherever an earlier run was killed.
 *
 * The rules:
 *   1. What is there is left alone, leaf, key and opaque entries, unless `overwrite`. Opaque entries are never changed.
 *      A leaf that the same rotation has issued stays: pods may still present the one before, and another CA would take
 *      the place of theirs.
 *   2. The set has one bundle: [new CA, previous], by the rule of pki/bundle.h with one previous CA (as
 *      envoyproxy/gateway#8534), and beyond it each CA of a leaf that is published in the set.
 *   3. Bundles are published before leaves: at each moment each published leaf verifies against each published bundle.
 *   4. The CA's key is nowhere but in the job. So what is missing beside what is there (a job that was killed, a set
 *      that has grown) is issued by another CA, and even without `overwrite` that CA is added to the bundles that are
 *      there: otherwise no peer would trust what is issued. */
#ifndef CR_CERTGEN_PLAN_H
#define CR_CERTGEN_PLAN_H

#include "certgen/found.h"
#include "certgen/set.h"

/* Everything is borrowed. */
struct cr_certgen_question {
    const struct cr_certgen_set *set;
    const struct cr_certgen_found *found; /* of each Secret of the set */
    bool overwrite;
    const char *rotation;  /* cr_certgen_job.rotation; NULL: unlike any other */
    const char *authority; /* PEM of the CA that issues; NULL: none yet */
    int64_t now_ms;        /* wall clock */
};

struct cr_certgen_task {
    bool opaque; /* to be created, or its entry added */
    bool trust;  /* it is there, and its bundle lacks a CA of the one below */
    bool leaf;   /* a leaf is to be issued: it is not there, or shall be replaced and is of another CA */
};

struct cr_certgen_plan {
    struct cr_certgen_task *tasks; /* of each Secret */
    struct cr_material *materials; /* of each: what is published; empty where nothing can be read */
    size_t len;
    bool needs_authority;      /* a leaf is to be issued, and there is no CA yet */
    char *bundle;              /* owned; with an authority: what each Secret's trust shall be */
    size_t bundle_len;         /* CAs in it */
    struct cr_strvec warnings; /* in words, for a person */
};

/* Errors: Invalid, a Secret that is needed is not ours to write, or cannot be mended without `overwrite`. out need not
 * be initialised. */
bool cr_certgen_plan_make(const struct cr_certgen_question *question, struct cr_certgen_plan *out,
                          struct cr_error *err) CR_MUST_USE;
void cr_certgen_plan_dispose(struct cr_certgen_plan *plan);
CR_DEFINE_DISPOSE(cr_certgen_plan, struct cr_certgen_plan, cr_certgen_plan_dispose)

/* Nothing of it is left to be written. */
bool cr_certgen_plan_is_done(const struct cr_certgen_plan *plan);

#endif
