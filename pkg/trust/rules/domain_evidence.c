#include "trust/rules/domain_evidence.h"

#include <string.h>

#include "api/trust_problem.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "evidence/diff.h"
#include "evidence/evidence.h"

/* Consumers that are named in one sentence. */
enum { CONSUMERS_SHOWN = 2 };
/* Until every API server has seen through its watch what one of them has written. */
enum { API_WATCH_MS = 2 * 1000 };

void cr_domain_evidence_dispose(struct cr_domain_evidence *evidence)
{
    if (!evidence)
        return;
    free(evidence->why);
    cr_strvec_dispose(&evidence->trusted);
    cr_strvec_dispose(&evidence->lack_trust);
    *evidence = (struct cr_domain_evidence){0};
}

/* --- what several say, together --- */

static void at_most(enum cr_arrival *arrival, enum cr_arrival limit)
{
    if (*arrival > limit)
        *arrival = limit;
}

static void look_again(struct cr_domain_evidence *out, int64_t after_ms)
{
    if (after_ms > 0 && (!out->look_again_ms || after_ms < out->look_again_ms))
        out->look_again_ms = after_ms;
}

/* Takes why; the first one stands. */
static void say(struct cr_domain_evidence *out, char *why)
{
    if (out->why)
        free(why);
    else
        out->why = why;
}

static void trust_all(const struct cr_material *material, struct cr_strvec *trusted)
{
    for (size_t i = 0; i < material->trust_len; i++)
        cr_strvec_add_unique(trusted, material->trust[i].fingerprint);
}

static void keep_common(struct cr_strvec *trusted, const struct cr_strvec *also)
{
    struct cr_strvec kept = {0};
    for (size_t i = 0; i < trusted->len; i++)
        if (cr_strvec_has(also, trusted->items[i]))
            cr_strvec_add(&kept, trusted->items[i]);
    cr_strvec_dispose(trusted);
    *trusted = kept;
}

/* --- by time alone --- */

/* Whether so much time has passed since something is known to have been published; else when to look again. */
static bool has_passed(const struct cr_domain_evidence_input *in, int64_t since_ms, int64_t needed_ms,
                       struct cr_domain_evidence *out)
{
    if (!since_ms)
        return false;
    int64_t left = since_ms + needed_ms - in->now_ms;
    if (left <= 0)
        return true;
    /* A clock that was set back makes it later, not never. */
    look_again(out, left < needed_ms ? left : needed_ms);
    return false;
}

/* One that is being deleted does not; and who neither names consumers nor looks for them can say nothing of them. */
bool cr_domain_policy_counts(const struct cr_policy *policy)
{
    return !policy->deleting && cr_policy_may_have_consumers(policy);
}

/* Owned words. */
static char *say_who_covers(const struct cr_domain_evidence_input *in)
{
    if (!in->secret)
        return cr_strdup("no CertRotationPolicy can cover it");
    for (size_t i = 0; i < in->covering_len; i++)
        if (!in->covering[i].policy->deleting)
            return cr_asprintf("CertRotationPolicy %s covers it, and has no consumers", in->covering[i].policy->name);
    return cr_strdup("no CertRotationPolicy covers it");
}

static void set_unknown(const struct cr_domain_evidence_input *in, struct cr_domain_evidence *out)
{
    cr_autofree char *who = say_who_covers(in);
    bool delay = in->uncovered == CR_UNCOVERED_DELAY;
    bool arrived = delay && has_passed(in, in->written_ms, CR_KUBELET_REFRESH_MS, out);
    at_most(&out->trust, arrived ? CR_ARRIVAL_INFERRED : CR_ARRIVAL_NOT_YET);
    at_most(&out->leaf, arrived ? CR_ARRIVAL_INFERRED : CR_ARRIVAL_NOT_YET);
    if (arrived)
        trust_all(in->material, &out->trusted);
    else if (delay)
        say(out, cr_asprintf("%s; it counts as arrived %d s after it was written", who, CR_KUBELET_REFRESH_MS / 1000));
    else
        say(out,
            cr_asprintf("%s, so nobody knows who reads it; %s, or set spec.evidence.uncovered to Delay", who,
                        in->secret ? "write a policy with consumers" : "publish into a Secret that a policy covers"));
}

/* No pod reads it; the API server, which does, has answered the write. */
static void read_by_api(const struct cr_domain_evidence_input *in, struct cr_domain_evidence *out)
{
    if (has_passed(in, in->written_ms, API_WATCH_MS, out)) {
        trust_all(in->material, &out->trusted);
        return;
    }
    at_most(&out->trust, CR_ARRIVAL_NOT_YET);
    say(out, cr_strdup("API servers take it up within seconds"));
}

/* --- what a policy says --- */

struct policy_answer {
    const struct cr_domain_evidence_input *in;
    const struct cr_policy *policy;
    const struct cr_policy_status *status;
    const struct cr_secret_status *secret;
    bool same_leaf, same_trust; /* what it has on record as settled is what is published */
    const char *missed;         /* in words, why it does not know all readers of the Secret; NULL: it does */
    struct cr_domain_evidence *out;
};

/* Over all policies, and over those that have seen a change. */
struct weakest {
    enum cr_arrival trust, leaf;
};

static bool is_leaf_the_same(const struct cr_material *a, const struct cr_material *b)
{
    return strcmp(a->leaf, b->leaf) == 0 && strcmp(a->chain, b->chain) == 0;
}

static bool is_trust_the_same(const struct cr_material *a, const struct cr_material *b)
{
    struct cr_trust_summary one = cr_material_summarize_trust(a);
    struct cr_trust_summary other = cr_material_summarize_trust(b);
    return one.count == other.count && strcmp(one.digest, other.digest) == 0;
}

static unsigned pending_classes(const struct policy_answer *w)
{
    return w->secret->pending.set ? cr_diff_classes(w->secret->pending.changes) : 0;
}

/* Whether it has read what we wrote last, or something later. resourceVersions of one cluster are compared as numbers
 * (KEP-5504). */
static bool has_read(const struct policy_answer *w)
{
    const char *observed = w->secret->observed_resource_version;
    const char *written = w->in->written_version;
    return !written || cr_streq(observed, written) || cr_decimal_less(written, observed);
}

/* Consumers that were there before the policy may have what was there before, for as long as kubelets take. That began
 * when the policy saw it; or earlier, when it is what we wrote then. */
static bool is_first_sight_over(const struct policy_answer *w, bool same)
{
    int64_t since = w->secret->settled_ms;
    if (same && w->in->written_ms && (!since || w->in->written_ms < since))
        since = w->in->written_ms;
    return has_passed(w->in, since, CR_KUBELET_REFRESH_MS, w->out);
}

static enum cr_arrival level_of(const struct policy_answer *w, enum cr_settled_by by, bool same)
{
    if (by == CR_SETTLED_VERIFIED)
        return CR_ARRIVAL_VERIFIED;
    if (by == CR_SETTLED_FIRST_SIGHT && !is_first_sight_over(w, same))
        return CR_ARRIVAL_NOT_YET;
    return CR_ARRIVAL_INFERRED;
}

/* A policy whose record is what is published, but older than our write, has not looked yet, or did not see what was
 * there between the two: then time decides. */
static enum cr_arrival arrival_of(const struct policy_answer *w, bool same, enum cr_settled_by by, unsigned class)
{
    if (!same || (pending_classes(w) & class))
        return CR_ARRIVAL_NOT_YET;
    enum cr_arrival level = level_of(w, by, same);
    if (has_read(w) || level == CR_ARRIVAL_NOT_YET)
        return level;
    return has_passed(w->in, w->in->written_ms, CR_KUBELET_REFRESH_MS, w->out) ? CR_ARRIVAL_INFERRED
                                                                               : CR_ARRIVAL_NOT_YET;
}

/* The CAs that are in the last bundle that all consumers had, and in the one that is on its way to them: what lies
 * between the two has only grown. Unless there was one without overlap, which is not remembered; or a bundle has come
 * back, and a consumer with the smaller one that was there in between lacks one of the CAs. */
static void add_trusted(const struct policy_answer *w, enum cr_arrival trust, struct cr_strvec *trusted)
{
    const struct cr_secret_status *secret = w->secret;
    bool replaced = secret->pending.set && (secret->pending.changes & CR_CHANGE_TRUST_REPLACED);
    if (replaced || level_of(w, secret->trust_by, w->same_trust) == CR_ARRIVAL_NOT_YET)
        return;
    if (w->same_trust) {
        if (trust != CR_ARRIVAL_NOT_YET)
            trust_all(w->in->material, trusted);
        return;
    }
    CR_CLEANUP(cr_strvec) struct cr_strvec published = {0};
    trust_all(w->in->material, &published);
    trust_all(&secret->settled, trusted);
    keep_common(trusted, &published);
}

/* --- and why not --- */

static bool is_waited_for(const struct cr_consumer_status *consumer)
{
    return consumer->state != CR_CONSUMER_IDLE && consumer->state != CR_CONSUMER_CONVERGED &&
           consumer->state != CR_CONSUMER_ABSENT;
}

static void add_consumer(const struct cr_consumer_status *consumer, struct cr_buf *text)
{
    const struct cr_pod_counts *pods = &consumer->pods;
    cr_buf_printf(text, "%s%s is %s", text->len ? "; " : "", consumer->name, cr_consumer_state_name(consumer->state));
    if (pods->total)
        cr_buf_printf(text, " with %d of %d pods", pods->verified + pods->inferred, pods->total);
    if (consumer->gate.hold)
        cr_buf_printf(text, ": %s", consumer->gate.text ? consumer->gate.text : cr_hold_name(consumer->gate.hold));
}

static char *name_consumers(const struct cr_policy_status *status)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    size_t found = 0;
    for (size_t i = 0; i < status->consumers_len; i++) {
        if (!is_waited_for(&status->consumers[i]))
            continue;
        if (found++ < CONSUMERS_SHOWN)
            add_consumer(&status->consumers[i], &text);
    }
    if (found > CONSUMERS_SHOWN)
        cr_buf_printf(&text, "; and %zu more", found - CONSUMERS_SHOWN);
    return text.len ? cr_buf_steal(&text) : NULL;
}

/* The policy itself says that it does not know all readers of its Secrets, so what the others have is no proof. Owned
 * words; NULL: it knows all. */
static char *what_it_misses(const struct policy_answer *w)
{
    for (size_t i = 0; i < w->status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &w->status->consumers[i];
        enum cr_hold hold = consumer->gate.hold;
        if (hold == CR_HOLD_NOT_FOUND || hold == CR_HOLD_USES_NO_SECRET)
            return cr_asprintf("consumer %s: %s", consumer->name, cr_hold_name(hold));
    }
    if (!w->secret || !w->secret->unknown_readers)
        return NULL;
    return cr_asprintf("it does not know all that use the Secret (%s, see its conditions)",
                       cr_unknown_readers_name(w->secret->unknown_readers));
}

/* Seen while idle: whatever it serves, its CA is still needed. */
static bool serves_another(const struct policy_answer *w)
{
    for (size_t i = 0; i < w->status->consumers_len; i++)
        if (w->status->consumers[i].gate.hold == CR_HOLD_OTHER_CERTIFICATE)
            return true;
    return false;
}

static bool knows_nothing(const struct policy_answer *w)
{
    return !w->secret || !w->secret->has_settled || w->secret->problem_reason;
}

/* Owned words. */
static char *reason_of(const struct policy_answer *w)
{
    if (w->policy->suspend)
        return cr_strdup("it is suspended");
    if (w->policy->mode == CR_MODE_PLAN)
        return cr_strdup("it is in mode Plan, in which nothing is done");
    if (w->secret && w->secret->problem_reason)
        return cr_asprintf("%s: %s", w->secret->problem_reason, cr_or_empty(w->secret->problem_message));
    if (knows_nothing(w))
        return cr_strdup("it has not looked at the Secret yet");
    if (w->missed)
        return cr_strdup(w->missed);
    if (!has_read(w))
        return cr_strdup("it has not read yet what was written");
    if (!w->secret->pending.set && w->same_leaf && w->same_trust && !serves_another(w))
        return cr_asprintf("it has seen the Secret for the first time; kubelets have refreshed it %d s after it was "
                           "written",
                           CR_KUBELET_REFRESH_MS / 1000);
    char *consumers = name_consumers(w->status);
    if (consumers)
        return consumers;
    return cr_strdup(w->secret->pending.set ? "it is putting the change on record"
                                            : "it has other material on record than what is published");
}

static void explain(const struct policy_answer *w)
{
    cr_autofree char *reason = reason_of(w);
    say(w->out, cr_asprintf("CertRotationPolicy %s: %s", w->policy->name, reason));
}

/* One that has changes of several Secrets to wait for is waited for all the same. */
static void note_lacking(const struct policy_answer *w)
{
    for (size_t i = 0; i < w->status->consumers_len; i++) {
        if (!is_waited_for(&w->status->consumers[i]))
            continue;
        cr_autofree char *name = cr_asprintf("%s/%s", w->policy->name, w->status->consumers[i].name);
        cr_strvec_add(&w->out->lack_trust, name);
    }
}

static enum cr_hold_health health_of_consumers(const struct cr_policy_status *status)
{
    enum cr_hold_health worst = CR_HOLD_WAITS;
    size_t waiting = 0;
    for (size_t i = 0; i < status->consumers_len; i++) {
        if (!is_waited_for(&status->consumers[i]))
            continue;
        worst = cr_hold_worse(worst, cr_hold_health(status->consumers[i].gate.hold));
        waiting++;
    }
    return waiting ? worst : CR_HOLD_PASSES;
}

static bool is_for_a_person(enum cr_unknown_readers why)
{
    return why == CR_READERS_TOO_MANY || why == CR_READERS_NOT_ACTED_ON;
}

/* What a policy that does not have it waits for, in the order of reason_of(). */
static enum cr_hold_health health_of(const struct policy_answer *w)
{
    enum cr_trust_reason problem = CR_TRUST_FINE;
    if (w->policy->suspend || w->policy->mode == CR_MODE_PLAN)
        return CR_HOLD_WAITS;
    if (w->secret && w->secret->problem_reason)
        return cr_trust_reason_parse(w->secret->problem_reason, &problem) && cr_trust_may_come(problem) ? CR_HOLD_PASSES
                                                                                                        : CR_HOLD_STUCK;
    if (w->secret && is_for_a_person(w->secret->unknown_readers))
        return CR_HOLD_STUCK;
    if (knows_nothing(w) || w->missed || !has_read(w) || !w->secret->pending.set)
        return CR_HOLD_PASSES;
    return health_of_consumers(w->status);
}

static void note_consumers(const struct policy_answer *w, bool waits)
{
    for (size_t i = 0; i < w->status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &w->status->consumers[i];
        w->out->failed = w->out->failed || (waits && consumer->state == CR_CONSUMER_FAILED);
        if (consumer->last_restart_ms > w->out->restarted_ms)
            w->out->restarted_ms = consumer->last_restart_ms;
    }
}

static const struct cr_secret_status *secret_of(const struct cr_policy_status *status, const char *name)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (cr_streq(status->secrets[i].name, name))
            return &status->secrets[i];
    return NULL;
}

static void add_answer(struct policy_answer *w, struct weakest *seen, struct cr_strvec *trusted)
{
    enum cr_arrival trust = CR_ARRIVAL_NOT_YET;
    enum cr_arrival leaf = CR_ARRIVAL_NOT_YET;
    w->secret = secret_of(w->status, w->in->secret);
    cr_autofree char *missed = what_it_misses(w);
    w->missed = missed;
    if (w->secret && w->secret->has_settled) {
        w->same_leaf = is_leaf_the_same(&w->secret->settled, w->in->material);
        w->same_trust = is_trust_the_same(&w->secret->settled, w->in->material);
        trust = arrival_of(w, w->same_trust, w->secret->trust_by, CR_CLASS_TRUST);
        leaf = arrival_of(w, w->same_leaf, w->secret->leaf_by, CR_CLASS_LEAF);
        if (!missed)
            add_trusted(w, trust, trusted);
    }
    /* A Secret that was broken has arrived nowhere; what is trusted is known still, or nothing could mend it. */
    if (knows_nothing(w) || missed)
        trust = leaf = CR_ARRIVAL_NOT_YET;
    if (serves_another(w))
        leaf = CR_ARRIVAL_NOT_YET;
    bool lacks_trust = cr_material_has_trust(w->in->material) && trust == CR_ARRIVAL_NOT_YET;
    bool lacks_leaf = w->in->material->has_leaf && leaf == CR_ARRIVAL_NOT_YET;
    at_most(&w->out->trust, trust);
    at_most(&w->out->leaf, leaf);
    if (!w->secret || w->secret->trust_by != CR_SETTLED_FIRST_SIGHT)
        at_most(&seen->trust, trust);
    if (!w->secret || w->secret->leaf_by != CR_SETTLED_FIRST_SIGHT)
        at_most(&seen->leaf, leaf);
    if (lacks_trust || lacks_leaf) {
        w->out->health = w->out->why ? cr_hold_worse(w->out->health, health_of(w)) : health_of(w);
        explain(w);
    }
    if (lacks_trust)
        note_lacking(w);
    note_consumers(w, lacks_trust || lacks_leaf);
    w->missed = NULL;
}

/* Returns how many count. */
static size_t add_answers(const struct cr_domain_evidence_input *in, struct cr_domain_evidence *out)
{
    size_t count = 0;
    struct weakest seen = {CR_ARRIVAL_VERIFIED, CR_ARRIVAL_VERIFIED};
    for (size_t i = 0; in->secret && i < in->covering_len; i++) {
        if (!cr_domain_policy_counts(in->covering[i].policy))
            continue;
        struct policy_answer w = {
            .in = in, .policy = in->covering[i].policy, .status = in->covering[i].status, .out = out};
        CR_CLEANUP(cr_strvec) struct cr_strvec trusted = {0};
        add_answer(&w, &seen, &trusted);
        if (count++)
            keep_common(&out->trusted, &trusted);
        else
            cr_strvec_copy(&out->trusted, &trusted);
    }
    out->trust_first_sight = out->trust == CR_ARRIVAL_INFERRED && seen.trust == CR_ARRIVAL_VERIFIED;
    out->leaf_first_sight = out->leaf == CR_ARRIVAL_INFERRED && seen.leaf == CR_ARRIVAL_VERIFIED;
    return count;
}

/* Those that were not looked at may know of somebody who has not got it. */
static void set_too_many(const struct cr_domain_evidence_input *in, struct cr_domain_evidence *out)
{
    cr_strvec_dispose(&out->trusted);
    out->trust = out->leaf = CR_ARRIVAL_NOT_YET;
    out->trust_first_sight = out->leaf_first_sight = false;
    out->health = CR_HOLD_STUCK;
    free(out->why);
    out->why =
        cr_asprintf("more than %zu CertRotationPolicies cover it, and not all of them are looked at: delete some",
                    in->covering_len);
}

void cr_domain_evidence_judge(const struct cr_domain_evidence_input *input, struct cr_domain_evidence *out)
{
    *out = (struct cr_domain_evidence){.trust = CR_ARRIVAL_VERIFIED, .leaf = CR_ARRIVAL_VERIFIED};
    if (input->is_read_by_api)
        read_by_api(input, out);
    else if (!add_answers(input, out))
        set_unknown(input, out);
    if (input->too_many_cover_it)
        set_too_many(input, out);
    if (!cr_material_has_trust(input->material))
        out->trust = CR_ARRIVAL_VERIFIED;
    if (!input->material->has_leaf)
        out->leaf = CR_ARRIVAL_VERIFIED;
}
