/* Whether what is published has arrived. Trust domains ask the policies the same (trust/rules/domain_evidence.h). */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/job_internal.h"
#include "trust/rules/domain_evidence.h"

struct policies {
    struct cr_policy **items;
    struct cr_policy_status *statuses;
    size_t len;
};

static void policies_cleanup(struct policies *p)
{
    for (size_t i = 0; i < p->len; i++) {
        cr_policy_free(p->items[i]);
        cr_policy_status_dispose(&p->statuses[i]);
    }
    free(p->items);
    free(p->statuses);
}

/* A policy that cannot be read covers nothing. */
static void add_policy(const struct cr_certgen_run *run, const struct cr_json *object, struct policies *out)
{
    struct cr_error why = {0};
    struct cr_policy *policy = cr_policy_decode(object, &why);
    if (!policy) {
        cr_certgen_say(run, "a CertRotationPolicy cannot be used: %s", why.text);
        return;
    }
    out->items[out->len] = policy;
    cr_policy_status_decode(cr_json_get(object, "status"), &out->statuses[out->len]);
    out->len++;
}

/* There are no policies where the CRD is not installed. */
static bool list_policies(const struct cr_certgen_run *run, struct policies *out, struct cr_error *err)
{
    struct cr_error why = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *list = cr_client_list(run->job->client, &cr_res_policies, run->job->set->ns, NULL, NULL, &why);
    if (!list && why.kind != CR_ERR_NOT_FOUND) {
        *err = why;
        return cr_error_wrap(err, "reading CertRotationPolicies");
    }
    const struct cr_json *items = cr_json_get(list, "items");
    out->items = cr_calloc(cr_json_len(items) + 1, sizeof(struct cr_policy *));
    out->statuses = cr_calloc(cr_json_len(items) + 1, sizeof *out->statuses);
    for (const struct cr_json *c = cr_json_first(items); c; c = cr_json_next(c))
        add_policy(run, c, out);
    return true;
}

/* The policy names the Secret, or has found it by its labels, as the status shows. */
static bool covers(const struct policies *p, size_t i, const char *secret)
{
    for (size_t k = 0; k < p->items[i]->secrets_len; k++)
        if (cr_streq(p->items[i]->secrets[k].name, secret))
            return true;
    return cr_status_secret(&p->statuses[i], secret) != NULL;
}

static bool is_published(const struct cr_certgen_run *run, size_t i)
{
    return !run->job->set->secrets[i].opaque_key && run->found[i].found;
}

static size_t find_covering(const struct policies *p, const char *secret, struct cr_covering_policy *out)
{
    size_t len = 0;
    for (size_t i = 0; i < p->len; i++)
        if (cr_domain_policy_counts(p->items[i]) && covers(p, i, secret))
            out[len++] = (struct cr_covering_policy){.policy = p->items[i], .status = &p->statuses[i]};
    return len;
}

/* Owned; NULL: so much time has passed since the last write, or the beginning of this run. */
static char *wait_for_time(const struct cr_certgen_run *run, const char *secret)
{
    int64_t since = run->written_ms ? run->written_ms : run->begun_ms;
    if (cr_clock_monotonic_ms() - since >= run->job->settle_ms)
        return NULL;
    char time[CR_TIME_TEXT];
    cr_duration_format(run->job->settle_ms, time);
    return cr_asprintf("Secret %s, which no CertRotationPolicy covers: %s after the last write", secret, time);
}

static bool judge(const struct cr_certgen_run *run, const struct policies *p, size_t i, enum cr_certgen_wait wait,
                  char **why, struct cr_error *err)
{
    const char *name = run->job->set->secrets[i].name;
    cr_autofree struct cr_covering_policy *covering = cr_calloc(p->len + 1, sizeof *covering);
    size_t len = find_covering(p, name, covering);
    if (!len && !run->job->settle_ms)
        return cr_error_set(
            err, CR_ERR_INVALID,
            "no CertRotationPolicy with consumers covers Secret %s, so nobody knows who reads it: write one, or say "
            "with --settle how long to wait instead",
            name);
    if (wait == CR_CERTGEN_WAIT_NOT)
        return true;
    if (!len) {
        *why = wait_for_time(run, name);
        return true;
    }
    const struct cr_domain_evidence_input in = {.secret = name,
                                                .material = &run->plan.materials[i],
                                                .written_version = run->written[i].version,
                                                .written_ms = run->written[i].at_ms,
                                                .covering = covering,
                                                .covering_len = len,
                                                .uncovered = CR_UNCOVERED_WAIT,
                                                .now_ms = cr_clock_wall_ms()};
    CR_CLEANUP(cr_domain_evidence) struct cr_domain_evidence evidence = {0};
    cr_domain_evidence_judge(&in, &evidence);
    bool leaf = wait == CR_CERTGEN_WAIT_TRUST || evidence.leaf != CR_ARRIVAL_NOT_YET;
    if (evidence.trust == CR_ARRIVAL_NOT_YET || !leaf)
        *why = cr_asprintf("Secret %s: %s", name, evidence.why ? evidence.why : "not yet everywhere");
    return true;
}

bool cr_certgen_arrived(const struct cr_certgen_run *run, enum cr_certgen_wait wait, char **why, struct cr_error *err)
{
    CR_CLEANUP(policies) struct policies p = {0};
    *why = NULL;
    if (!list_policies(run, &p, err))
        return false;
    for (size_t i = 0; i < run->plan.len; i++) {
        if (!is_published(run, i))
            continue;
        char *one = NULL;
        if (!judge(run, &p, i, wait, &one, err)) {
            free(*why);
            *why = NULL;
            return false;
        }
        if (*why)
            free(one);
        else
            *why = one;
    }
    return true;
}

bool cr_certgen_any_uncovered(const struct cr_certgen_run *run, bool *any, struct cr_error *err)
{
    CR_CLEANUP(policies) struct policies p = {0};
    *any = false;
    if (!list_policies(run, &p, err))
        return false;
    cr_autofree struct cr_covering_policy *covering = cr_calloc(p.len + 1, sizeof *covering);
    for (size_t i = 0; i < run->plan.len; i++)
        *any |= is_published(run, i) && !find_covering(&p, run->job->set->secrets[i].name, covering);
    return true;
}
